"""A damaged log of deepseek-harness is read to a log that folds, or refused in one sentence. Nothing crashes and nothing is written.

Real recordings where they are there (``shared/dsh-logs``, beside this repository), and logs made here in any case.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from random import Random
from typing import Any

import pytest
from test_dsh_export import streamed

from plan_mode_nb.exceptions import LogError, PlanModeError
from plan_mode_nb.folds.summary import fold_summary
from plan_mode_nb.hosts.cli.moving import import_command
from plan_mode_nb.log.closing import closers
from plan_mode_nb.log.dsh import read_jsonl, scan_jsonl, write_jsonl
from plan_mode_nb.log.session import Session
from plan_mode_nb.log.vocabulary import draft
from plan_mode_nb.render.transcript import timeline
from plan_mode_nb.store.jsonl import framed, load_jsonl, unframed
from plan_mode_nb.store.sources import open_any
from plan_mode_nb.testing.packing import packed

LOGS = Path(__file__).resolve().parents[2].parent / "shared" / "dsh-logs"
MUTATIONS = 2_400
ZSTD_MUTATIONS = 300
VALUES: list[Any] = [None, True, 0, -1, 1.5, 2**53, 10**30, "", "x", [], {}, [None], {"type": 1}, "\ud800", [[[]]]]
Mutation = Callable[[bytes, Random], bytes]


@cache
def originals() -> list[bytes]:
    """Logs as files: recorded, made by hand with their verdicts, and random ones, plain and packed."""
    recorded = [path.read_bytes() for path in sorted(LOGS.glob("*.jsonl"))]
    verdicts = json.loads((LOGS / "verdicts.json").read_text()) if recorded else {}
    by_hand = [verdict["input"].encode() for verdict in verdicts.values()]
    made = [streamed(seed, 40) for seed in range(8)]
    plain = [write_jsonl(session.header, session.lines) for session in made]
    return [*recorded, *by_hand, *plain, *(write_jsonl(session.header, packed(session.lines)) for session in made)]


def bit(data: bytes, random: Random) -> bytes:
    at = random.randrange(len(data))
    return data[:at] + bytes([data[at] ^ 1 << random.randrange(8)]) + data[at + 1 :]


def cut(data: bytes, random: Random) -> bytes:
    return data[: random.randrange(len(data))]


def hole(data: bytes, random: Random) -> bytes:
    at = random.randrange(len(data))
    return data[:at] + data[at + random.randint(1, 60) :]


def noise(data: bytes, random: Random) -> bytes:
    at = random.randrange(len(data))
    return data[:at] + random.choice([b"\n", b"\r", b"\0", b"}", b"{", b'"', b"\xff", b"\\", b"[" * 3000, b"\xed\xa0\x80"]) + data[at:]


def lines_of(change: Callable[[list[bytes], int, Random], None]) -> Mutation:
    """A mutation of whole lines; the header is one of them."""

    def mutate(data: bytes, random: Random) -> bytes:
        lines = data.split(b"\n")
        change(lines, random.randrange(len(lines)), random)
        return b"\n".join(lines)

    return mutate


def swap(lines: list[bytes], at: int, random: Random) -> None:
    other = random.randrange(len(lines))
    lines[at], lines[other] = lines[other], lines[at]


def values_of(change: Callable[[dict[str, Any], str, Random], None]) -> Mutation:
    """A mutation of one key of one object, at any depth, in a line that stays JSON."""

    def mutate(data: bytes, random: Random) -> bytes:
        lines = data.split(b"\n")
        at = random.randrange(len(lines))
        try:
            value = json.loads(lines[at])
        except ValueError:
            return data[1:]
        objects = [each for each in inside(value) if isinstance(each, dict) and each]
        if objects:
            target = random.choice(objects)
            change(target, random.choice(sorted(target)), random)
        lines[at] = json.dumps(value, separators=(",", ":")).encode()
        return b"\n".join(lines)

    return mutate


def inside(value: Any) -> list[Any]:
    """A value and all values in it."""
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [value, *(each for part in parts for each in inside(part))]


def set_value(target: dict[str, Any], key: str, random: Random) -> None:
    target[key] = random.choice(VALUES)


def rename(target: dict[str, Any], key: str, random: Random) -> None:
    target[random.choice(["type", "seq", "more", "ignorable", "data", ""])] = target.pop(key)


def drop(target: dict[str, Any], key: str, random: Random) -> None:
    del target[key]


KINDS: dict[str, Mutation] = {
    "bit": bit,
    "cut": cut,
    "hole": hole,
    "noise": noise,
    "line dropped": lines_of(lambda lines, at, random: lines.pop(at) and None),
    "line doubled": lines_of(lambda lines, at, random: lines.insert(at, lines[at])),
    "lines swapped": lines_of(swap),
    "lines joined": lines_of(lambda lines, at, random: lines.__setitem__(slice(at, at + 2), [b"".join(lines[at : at + 2])])),
    "value set": values_of(set_value),
    "key renamed": values_of(rename),
    "key dropped": values_of(drop),
}


def use(data: bytes) -> str:
    """Do with a log all that reading commands and a resumed agent do before a turn; ``loaded``, or ``refused`` by one sentence."""
    try:
        scan = scan_jsonl(data)
        session = Session(scan.header, clock=lambda: 1, lines=scan.lines)
    except LogError as error:
        check_refusal(error)
        return "refused"
    for problem in scan.problems:
        check_sentence(problem)
    json.dumps(fold_summary(session.header, session.events))
    timeline(session.events)
    assert read_jsonl(write_jsonl(session.header, session.lines)) == (session.header, session.lines)
    if session.place.turn is not None:
        session.owe(closers(session.events), time=session.events[-1].time)
    session.append(draft("session/title", {"title": "goes on"}))
    fold_summary(session.header, session.events)
    return "loaded"


def check_sentence(text: str) -> None:
    """One line that a person can read to its end, and that names where or how the way out begins."""
    assert 10 < len(text) < 400
    assert "\n" not in text


WAYS_OUT = re.compile("copy|upgrade|another file|version that wrote it|reads that one any more|session log: it|cut off|left out")


def check_refusal(error: LogError) -> None:
    """A sentence, the line where there is one, and what to do."""
    check_sentence(str(error))
    assert WAYS_OUT.search(str(error)), str(error)
    assert (
        "session log" in str(error) or "session header" in str(error) or re.match(r"line \d+", str(error)) or "near byte" in str(error)
    ), str(error)


@pytest.mark.parametrize("kind", KINDS)
def test_a_mutated_log_loads_and_folds_or_is_refused_in_one_sentence(kind: str) -> None:
    """Seeded: a failure names the kind, and the number of the mutation that did it."""
    files, counted = originals(), Counter[str]()
    for number in range(MUTATIONS // len(KINDS) + 1):
        random = Random(f"{kind} {number}")
        data = KINDS[kind](random.choice(files), random)
        try:
            counted[use(data)] += 1
        except Exception as error:
            raise AssertionError(f"mutation {number}: {type(error).__name__}: {error}\n{data[:3000]!r}") from error
    assert counted["refused"], "a mutation that is always harmless tests nothing"


def test_a_mutated_compressed_log_is_unpacked_or_refused_in_one_sentence() -> None:
    """Its frames are checksummed, so a flipped bit is found before its text is read."""
    counted = Counter[str]()
    for number in range(ZSTD_MUTATIONS):
        random = Random(number)
        header, _, events = random.choice(originals()).partition(b"\n")
        data = random.choice([bit, cut, hole])(framed(header + b"\n") + framed(events), random)
        try:
            plain, _ = unframed(data)
        except LogError as error:
            check_sentence(str(error))
            counted["refused"] += 1
        else:
            counted[use(plain)] += 1
    assert counted["refused"] > ZSTD_MUTATIONS // 3


def state(path: Path) -> tuple[bytes, int, int, list[str]]:
    """A file's bytes, time and mode, and what lies beside it."""
    about = path.stat()
    return path.read_bytes(), about.st_mtime_ns, about.st_mode, sorted(each.name for each in path.parent.iterdir())


@pytest.mark.parametrize("suffix", [".jsonl", ".jsonl.zstd"])
def test_the_source_is_never_written_to_whole_torn_damaged_or_refused(tmp_path: Path, suffix: str) -> None:
    """Read-only, in a folder of its own: bytes, times and modes stay, and nothing appears beside it."""
    whole = originals()[-1]
    folder = tmp_path / "theirs"
    folder.mkdir()
    source = folder / f"session{suffix}"
    for number, data in enumerate([whole, whole[:-7], whole.replace(b'"turn":1', b'"turn":"1"', 1), whole + b"oops\n", b"no log"]):
        notebook = tmp_path / f"{number}.ipynb"
        source.unlink(missing_ok=True)
        source.write_bytes(framed(data) if suffix.endswith("zstd") else data)
        source.chmod(0o400)
        before = state(source)
        for read in (load_jsonl, open_any, partial(import_command, notebook=notebook, session=None)):
            try:
                read(source)
            except PlanModeError as error:
                check_sentence(str(error))
            assert state(source) == before
    assert (tmp_path / "0.ipynb").exists()
