"""What works: a kernel that loads the extension, the model that it would use, and whether a configured server answers."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from msgspec import Struct

from plan_mode_nb.exceptions import PlanModeError
from plan_mode_nb.hosts.cli.findings import Finding, fix, ok
from plan_mode_nb.log.codec import decode_all
from plan_mode_nb.log.events import Event
from plan_mode_nb.store.sources import open_any

REACH_S: Final = 2.0
_START_S: Final = 60
_ANSI: Final = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
_BASE_URLS: Final = {"openai-chat": "OPENAI_BASE_URL", "openai": "OPENAI_BASE_URL", "anthropic": "ANTHROPIC_BASE_URL"}


class ModelNames(Struct, frozen=True):
    """``PlanAgent.model`` and ``PlanAgent.plan_model`` as a kernel has them; each may be empty."""

    model: str
    plan_model: str = ""


def kernel(name: str = "python3") -> tuple[Finding, ModelNames | None]:
    """Start a kernel as Jupyter would, and load the extension. Also the models it is set to, None where the extension does not load."""
    from jupyter_client.kernelspec import NoSuchKernel
    from jupyter_client.manager import start_new_kernel

    what = "kernel"
    try:
        manager, client = start_new_kernel(_START_S, name, stderr=subprocess.DEVNULL)
    except NoSuchKernel:
        return fix(what, f"there is no kernel {name}; pip install ipykernel"), None
    except (RuntimeError, OSError) as error:
        return fix(what, f"kernel {name} does not start ({error}); try it with jupyter console --kernel {name}"), None
    try:
        failure, _ = _run(client, "%load_ext plan_mode_nb")
        if failure:
            return fix(what, f"kernel {name} cannot load the extension: {failure}"), None
        model, plan_model = (_text(_run(client, f"%config PlanAgent.{key}")[1]) for key in ("model", "plan_model"))
        _, where = _run(client, "import sys, ipykernel; f'ipykernel {ipykernel.__version__}, {sys.executable}'")
        return ok(what, f"{name} ({_text(where)}) loads the extension"), ModelNames(model, plan_model)
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)


def _run(client: Any, code: str) -> tuple[str, str]:
    """One cell's error in one line ("" for none) and the text of its result."""
    shown: list[str] = []

    def keep(message: Mapping[str, Any]) -> None:
        if message["msg_type"] == "execute_result":
            shown.append(message["content"]["data"].get("text/plain", ""))

    reply = client.execute_interactive(code, store_history=False, allow_stdin=False, timeout=_START_S, output_hook=keep)["content"]
    failed = reply["status"] == "error"
    return (_ANSI.sub("", f"{reply['ename']}: {reply['evalue']}") if failed else ""), "".join(shown)


def _text(literal: str) -> str:
    return str(ast.literal_eval(literal)) if literal else ""


def sandbox() -> Finding:
    """What confines the agent's commands on this machine; it is tried out."""
    from plan_mode_nb.compose import enforced

    found = enforced()
    said = f"enforcement {found.enforcement}: {found.sentence}"
    # Elsewhere nothing that could be installed would help.
    return fix("sandbox", said) if found.enforcement == "none" and sys.platform == "linux" else ok("sandbox", said)


def models(names: ModelNames, environ: Mapping[str, str]) -> Iterator[Finding]:
    """Which model answers and why, which one while plan mode is on where it is another, and whether their servers answer."""
    chosen = [_choose("model", names.model, environ, "PlanAgent.model")]
    if names.plan_model:
        chosen.append(_choose("plan model", names.plan_model, environ, "PlanAgent.plan_model"))
    for finding, _ in chosen:
        yield finding
    for variable in dict.fromkeys(variable for _, variable in chosen if environ.get(variable)):
        yield reachable(variable, environ[variable])


def _choose(what: str, name: str, environ: Mapping[str, str], setting: str) -> tuple[Finding, str]:
    """The finding about one setting, and the variable that may name its server ("" for none)."""
    from plan_mode_nb.models.choose import NEEDS_NAME, NO_MODEL, choose

    try:
        choice = choose(name or None, environ, read_recording=_recording, setting=setting)
    except PlanModeError as error:
        return fix(what, str(error)), ""
    if choice.name == "none":
        return fix(what, NEEDS_NAME if environ.get("OPENAI_BASE_URL") else NO_MODEL), "OPENAI_BASE_URL"
    return ok(what, f"{choice.name} ({choice.why})"), _BASE_URLS.get(choice.name.partition(":")[0], "")


def _recording(path: Path) -> Sequence[Event]:
    return decode_all(open_any(path).lines)


def reachable(variable: str, url: str) -> Finding:
    """Whether anything answers at a configured address within two seconds. Its host is named, never a key that it may carry."""
    parts = urlsplit(url)
    where = parts.netloc.rpartition("@")[2]
    if parts.scheme not in ("http", "https") or not parts.hostname:
        return fix("model server", f"{variable} is no http address; write it as http://HOST:PORT/v1")
    answer = _within(REACH_S, lambda: _status(f"{parts.scheme}://{where}{parts.path.rstrip('/')}/models"))
    if answer is None:
        return fix("model server", f"{where} did not answer within {REACH_S:.0f} s; start it, or correct {variable}")
    if isinstance(answer, str):
        return fix("model server", f"{where} cannot be reached ({answer}); start it, or correct {variable}")
    return ok("model server", f"{where} answers (HTTP {answer})")


def _status(url: str) -> int | str:
    try:
        with urllib.request.urlopen(url, timeout=REACH_S) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return error.code  # it wants a key, which is not tried here: somebody is there
    except (OSError, ValueError) as error:
        return str(getattr(error, "reason", error))


def _within(seconds: float, ask: Callable[[], int | str]) -> int | str | None:
    """The answer, None when it takes longer: looking up a name has no time limit of its own."""
    answers: list[int | str] = []
    thread = threading.Thread(target=lambda: answers.append(ask()), daemon=True)
    thread.start()
    thread.join(seconds)
    return answers[0] if answers else None
