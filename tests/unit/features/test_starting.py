"""A program that is given up the moment it starts: nothing of it, or of what was to confine it, stays."""

from __future__ import annotations

import asyncio
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
        for _ in range(10):
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
