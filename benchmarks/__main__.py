"""``python -m benchmarks [--json] [--only NAME]…``: measure, one process a measurement, and print a table or one JSON object.

A measurement that cannot be made here has the value null, and its reason stands under ``reasons``. Run it from the repository's root, with
the extra ``bench`` for the peers.
"""

from __future__ import annotations

import argparse
import importlib
import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from typing import Any, Final

from benchmarks.measuring import NotMeasured

KEYS: Final[dict[str, tuple[str, ...]]] = {
    "steps": ("step_us",),
    "langgraph_steps": ("peers.langgraph",),
    "pydantic_ai_steps": ("peers.pydantic_ai",),
    "appending": ("append_per_s",),
    "folding": ("fold_1m_ms", "state_read_us"),
    "reopening": ("reopen_ratio", "memory_ratio"),
    "saving": ("save_ms",),
    "importing": ("load_ext_s", "import_s"),
    "clicking": ("click_ms",),
    "replaying": ("replay_ratio",),
    "rendering": ("render_ms",),
}
"""Each measurement's module and what it gives."""
ORDER: Final = """
    step_us peers append_per_s fold_1m_ms state_read_us reopen_ratio save_ms memory_ratio load_ext_s import_s click_ms replay_ratio
    render_ms
""".split()


def main(argv: Sequence[str] | None = None) -> int:
    """Run the measurements; the exit status is 0 unless one of them broke."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Measure plan_mode_nb beside its peers.")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of a table")
    parser.add_argument("--only", nargs="+", default=[], metavar="NAME", choices=[*ORDER, *KEYS], help="keys or modules to measure")
    parser.add_argument("--here", help=argparse.SUPPRESS, choices=list(KEYS))
    options = parser.parse_args(argv)
    if options.here:
        print(json.dumps(_here(options.here)))
        return 0
    measured, reasons, broken = _all(set(options.only))
    found = {key: measured[key] for key in ORDER if key in measured}
    if options.json:
        print(json.dumps({**found, **({"reasons": reasons} if reasons else {})}, indent=1))
    else:
        print("\n".join(_table(found, reasons)))
    return 1 if broken else 0


def _here(name: str) -> dict[str, Any]:
    """One measurement in this process: its values, or why there are none."""
    try:
        values: dict[str, Any] = importlib.import_module(f"benchmarks.{name}").measure()
    except NotMeasured as why:
        return {"why": str(why)}
    return {"values": values}


def _all(only: set[str]) -> tuple[dict[str, Any], dict[str, str], bool]:
    measured: dict[str, Any] = {}
    reasons: dict[str, str] = {}
    broken = False
    for name, keys in KEYS.items():
        if only and name not in only and not only & {key.partition(".")[0] for key in keys}:
            continue
        print(f"measuring {', '.join(keys)} …", file=sys.stderr, flush=True)
        ran = subprocess.run([sys.executable, "-m", "benchmarks", "--here", name], stdout=subprocess.PIPE, text=True, check=False)
        broken = broken or ran.returncode != 0
        answer: dict[str, Any] = json.loads(ran.stdout) if ran.returncode == 0 else {"why": f"benchmarks.{name} failed; its error is above"}
        _put(measured, answer.get("values") or _nothing(keys))
        if "why" in answer:
            reasons.update(dict.fromkeys(keys, answer["why"]))
    return measured, reasons, broken


def _nothing(keys: Sequence[str]) -> dict[str, Any]:
    """The keys of a measurement that was not made, each null."""
    values: dict[str, Any] = {}
    for key in keys:
        outer, _, inner = key.partition(".")
        _put(values, {outer: {inner: None}} if inner else {outer: None})
    return values


def _put(into: dict[str, Any], values: dict[str, Any]) -> None:
    for key, value in values.items():
        if isinstance(into.get(key), dict) and isinstance(value, dict):
            into[key].update(value)
        else:
            into[key] = value


def _table(found: dict[str, Any], reasons: dict[str, str]) -> Iterator[str]:
    for key, value in found.items():
        for name, each in _rows(key, value):
            yield f"{name:28} {'not measured: ' + reasons[name] if each is None else each}"


def _rows(key: str, value: Any) -> Iterator[tuple[str, Any]]:
    if not isinstance(value, dict):
        yield key, value
    elif all(not isinstance(each, dict) and each is not None for each in value.values()):
        yield key, "  ".join(f"{name}: {each:g}" for name, each in value.items())
    else:
        for name, each in value.items():
            yield from _rows(f"{key}.{name}", each)


if __name__ == "__main__":
    raise SystemExit(main())
