"""How programs are started: one that is given up at once leaves nothing of it or of what was to confine it, and none has a terminal."""

from __future__ import annotations

import asyncio
import contextlib
import os
import pty
import sys
from pathlib import Path
from typing import Any

import pytest
from hands import needs_a_sandbox
from scratching import gone_from, processes_in, ready

from plan_mode_nb.agent.tools import ToolCall
from plan_mode_nb.features.tools import process
from plan_mode_nb.features.tools.dialogue import Dialogue

pytestmark = needs_a_sandbox


@pytest.mark.parametrize("start", [lambda launch: process.run(launch, seconds=600), Dialogue.open], ids=["run", "open"])
def test_giving_up_while_it_starts_leaves_no_process(start: Any, tmp_path: Path) -> None:
    """What confines it is several processes by then, of which the first alone is known."""

    async def main() -> None:
        made = ready(tmp_path / "ws")
        call = ToolCall("bash", "{}", "call", 1, 1, made.bench.agent)
        for _ in range(25):
            launch = await made.bench.seams.confinement.confined(call, ["/bin/sh", "-c", "sleep 600"])
            starting = asyncio.ensure_future(start(launch))
            async with asyncio.timeout(60):
                while not processes_in(tmp_path / "ws"):
                    await asyncio.sleep(0)
            starting.cancel()
            (left,) = await asyncio.gather(starting, return_exceptions=True)
            if isinstance(left, Dialogue):
                left.close()
            assert await gone_from(tmp_path / "ws")

    asyncio.run(main())


WITH_A_TERMINAL = """
import asyncio, os, sys
from pathlib import Path
from scratching import ready
from plan_mode_nb.agent.tools import ToolCall
from plan_mode_nb.features.tools import process

async def main():
    made = ready(Path(sys.argv[1]))
    call = ToolCall("bash", "{}", "call", 1, 1, made.bench.agent)
    launch = await made.bench.seams.confinement.confined(call, ["/bin/sh", "-c", ": < /dev/tty"])
    return await process.run(launch, seconds=60)

os.close(os.open("/dev/tty", os.O_RDWR))
print("mine;", "theirs" if asyncio.run(main()).status == 0 else "not theirs")
"""


def test_no_program_has_the_persons_terminal(tmp_path: Path) -> None:
    """Into which it could type what the person's shell would then run."""
    folder = Path(__file__).parent
    child, terminal = pty.fork()
    if child == 0:
        environ = {**os.environ, "PYTHONPATH": os.pathsep.join([str(folder), str(folder.parents[2]), os.environ.get("PYTHONPATH", "")])}
        os.execve(sys.executable, [sys.executable, "-c", WITH_A_TERMINAL, str(tmp_path / "ws")], environ)
    said = b""
    with contextlib.suppress(OSError):  # how a terminal ends when nobody has it any more
        while data := os.read(terminal, 1000):
            said += data
    os.close(terminal)
    os.waitpid(child, 0)
    assert said.decode().strip() == "mine; not theirs"
