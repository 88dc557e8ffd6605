"""The limits of a session made to hold: its sandbox mode, the grounds, and the backend that is here."""

from __future__ import annotations

import asyncio
import os
import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Final, assert_never, final

from plan_mode_nb.agent.agent import Agent
from plan_mode_nb.agent.confinement import Enforced, Launch
from plan_mode_nb.agent.registry import Undo
from plan_mode_nb.agent.seams import Seams
from plan_mode_nb.agent.secret_names import looks_secret
from plan_mode_nb.agent.tools import ToolError
from plan_mode_nb.features.sandbox import backends, bubblewrap, landlock
from plan_mode_nb.features.sandbox.axis import AXIS
from plan_mode_nb.features.sandbox.backends import Backend, Bubblewrap, Landlock, Missing
from plan_mode_nb.features.sandbox.profile import Grounds, is_whole_system, profile_of

_DROPPED: Final = ("BASH_ENV", "ENV", "XDG_RUNTIME_DIR", "DBUS_SESSION_BUS_ADDRESS", "SSH_AUTH_SOCK", "GPG_AGENT_INFO", "DOCKER_HOST")
_DROPPED_PREFIXES: Final = ("JPY_", "BASH_FUNC_")
"""Ways to a service outside, and code that a shell would run before its command."""
_TAIL: Final = 4_000
"""Characters of output in which a refusal is looked for: what failed, failed last."""


@final
class SandboxConfiner:
    """Satisfies the Confiner protocol."""

    def __init__(
        self, grounds: Grounds, *, environ: Mapping[str, str] = os.environ, detect: Callable[[], Backend] = backends.detect
    ) -> None:
        """``environ``: read at each launch. ``detect``: finds the backend; asked before the first launch, in a thread."""
        self._grounds = grounds
        self._environ = environ
        self._detect = detect

    async def confined(self, agent: Agent, argv: Sequence[str]) -> Launch:
        """The launch under the sandbox mode in force for the agent.

        Raises:
            ToolError: nothing here can make the mode hold, or the workspace is the whole file system.
        """
        mode = AXIS.in_force(agent)
        match mode:
            case "danger-full-access":
                return self.unconfined(argv)
            case "read-only" | "workspace-write":
                writes = mode == "workspace-write"
                if writes and is_whole_system(self._grounds):
                    raise ToolError(
                        "nothing ran: the workspace is the root of the file system, so writing cannot be kept inside it; tell the user to "
                        "start Jupyter in a folder of its own, or to choose another mode with %sandbox",
                        code="SANDBOX_UNAVAILABLE",
                    )
                backend = await asyncio.to_thread(self._detect)
                return await asyncio.to_thread(self._launch, backend, mode, writes, argv)
            case _:
                assert_never(mode)

    def unconfined(self, argv: Sequence[str]) -> Launch:
        """The program as it is, with the whole environment."""
        return Launch(tuple(argv), dict(self._environ), str(self._grounds.root), "everything")

    def enforced(self) -> Enforced:
        """What confines here, in words."""
        return backends.enforced(self._detect(), network=self._grounds.network)

    def _launch(self, backend: Backend, mode: str, writes: bool, argv: Sequence[str]) -> Launch:
        profile = profile_of(self._grounds, writes=writes)
        environ = scrubbed(self._environ)
        limits = f"sandbox mode {mode}, {'network on' if profile.network else 'no network'}"
        scope: Final = "workspace" if writes else "nothing"
        match backend:
            case Bubblewrap(program):
                command = bubblewrap.wrapped(program, profile, argv)
                denied = partial(refusal, (*bubblewrap.DENIALS, *(() if profile.network else bubblewrap.OFFLINE)))
                return Launch(tuple(command), {**environ, **_temporary(bubblewrap.TEMPORARY)}, str(profile.root), scope, limits, denied)
            case Landlock():
                scratch = Path(os.path.realpath(tempfile.mkdtemp(prefix="sandbox-")))
                command = landlock.wrapped(profile, scratch, argv)
                denied = partial(refusal, (*landlock.DENIALS, *(() if profile.network else landlock.OFFLINE)))
                close = partial(shutil.rmtree, scratch, ignore_errors=True)
                own = _temporary(str(scratch))
                return Launch(tuple(command), {**environ, **own}, str(profile.root), scope, f"{limits}, partial enforcement", denied, close)
            case Missing(why):
                raise ToolError(
                    f"nothing ran: the sandbox mode is {mode}, and {why}; tell the user, who can also lift the limits with "
                    "%sandbox danger-full-access",
                    code="SANDBOX_UNAVAILABLE",
                )
            case _:
                assert_never(backend)


def scrubbed(environ: Mapping[str, str]) -> dict[str, str]:
    """What a confined program is told: no secrets, no way to a service outside; messages in English, so that a refusal is recognised."""
    kept = {
        name: value
        for name in list(environ)
        if (value := environ.get(name)) is not None
        and not looks_secret(name)
        and name not in _DROPPED
        and not name.startswith(_DROPPED_PREFIXES)
    }
    return {**kept, "LC_ALL": "C.UTF-8"}


def refusal(words: Sequence[str], output: str) -> str:
    """The first of the words that stands near the end of the output, or ""."""
    tail = output[-_TAIL:].lower()
    return next((each for each in words if each.lower() in tail), "")


def _temporary(folder: str) -> dict[str, str]:
    return {"TMPDIR": folder, "XDG_CACHE_HOME": f"{folder}/.cache"}


def confine(seams: Seams, grounds: Grounds) -> Undo:
    """Confine the programs of a composition's tools; returns the undo."""
    return seams.confinement.provide(SandboxConfiner(grounds))
