"""The composition of one shell: seams, plugins and model, made anew between turns when a setting changed."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from plan_mode_nb.agent.model import Model
from plan_mode_nb.agent.registry import Undo, undo_all
from plan_mode_nb.agent.seams import Seams
from plan_mode_nb.agent.shell import Shell
from plan_mode_nb.compose import compose, in_programs, mcp_servers, notebook, with_servers
from plan_mode_nb.features.retry import RetryPolicy, Sleep
from plan_mode_nb.hosts.front_end import People
from plan_mode_nb.hosts.kernel.choices import Choices
from plan_mode_nb.hosts.kernel.config import Settings
from plan_mode_nb.hosts.kernel.surroundings import surroundings
from plan_mode_nb.log.events import Event
from plan_mode_nb.loop.turn import LoopConfig
from plan_mode_nb.models.choose import Choice


class Composition:
    """``seams`` stays the same object for the life of the extension; what is registered in it follows the settings."""

    def __init__(self, settings: Settings, shell: Shell, people: People, sleep: Sleep = asyncio.sleep) -> None:
        """Install everything. ``sleep``: how a retry waits.

        Raises:
            ConfigError: a setting cannot work; nothing is installed.
        """
        self.settings = settings
        self.seams = Seams.create()
        self._shell = shell
        self._people = people
        self._sleep = sleep
        self._root = Path.cwd()
        self.servers = mcp_servers()
        self._installed: Undo = lambda: None
        self._installed_for: tuple[Any, ...] = ()
        self._choices = Choices(settings.agent, read_recording)
        self.refresh()

    def refresh(self) -> None:
        """Follow the settings. Between turns only: a turn's configuration is frozen.

        Raises:
            ConfigError: a setting cannot work; the composition stays as it was.
        """
        agent = self.settings.agent
        self.servers.wanted = self.settings.servers
        recording = agent.model if agent.answers == "recording" else ""
        frozen = (agent.instructions, agent.answers, agent.max_retries, agent.sandbox_network, agent.compact_at, agent.max_child_depth)
        wanted = (self.settings.plan, recording, agent.code_mode, *frozen)
        if wanted == self._installed_for:
            return
        plan_config, instructions = self.settings.plan, agent.instructions
        answers = self._recorded() if agent.answers == "recording" else None
        self._installed()
        retries = RetryPolicy(max_retries=agent.max_retries)
        around = surroundings(network=agent.sandbox_network)
        plugins = notebook(
            plan_config,
            instructions,
            self._shell,
            self._root,
            surroundings=around,
            retries=retries,
            compacted_at=agent.compact_at,
            max_child_depth=agent.max_child_depth,
            sleep=self._sleep,
        )
        more = [with_servers(self.servers, around), *([in_programs(around)] if agent.code_mode else [])]
        undos: list[Undo] = [compose(self.seams, [*plugins, *more])]
        if answers is None:
            undos.append(self.seams.questions.provide(self._people))
            undos.append(self.seams.approvals.provide(self._people))
        else:
            from plan_mode_nb.replay.answers import RecordedAnswers, RecordedApprovals

            undos.append(self.seams.questions.provide(RecordedAnswers(answers)))
            undos.append(self.seams.approvals.provide(RecordedApprovals(answers)))
        self._installed, self._installed_for = undo_all(undos), wanted

    def close(self) -> None:
        """Take everything out again."""
        self._installed()
        self._installed, self._installed_for = (lambda: None), ()

    @property
    def loop_config(self) -> LoopConfig:
        """The loop's configuration now."""
        agent = self.settings.agent
        return LoopConfig(max_steps=agent.max_steps, record_chunks=agent.record_chunks)

    @property
    def choice(self) -> Choice:
        """The model of the settings, and why.

        Raises:
            ConfigError: the name or a setting cannot work.
        """
        return self._choices.choose(None)

    @property
    def plan_choice(self) -> Choice | None:
        """The model of plan mode, where it has one of its own.

        Raises:
            ConfigError: the name or a setting cannot work.
        """
        name = self.settings.agent.plan_model
        return self._choices.choose(name) if name else None

    def model(self, name: str | None) -> Model:
        """The model for a step: ``name`` where a pre-step set one, else that of the settings. On the agent thread."""
        return self._choices.model(name)

    async def aclose(self) -> None:
        """Close the models' connections, and those to MCP servers. On the agent thread."""
        await self.servers.aclose()
        await self._choices.aclose()

    def _recorded(self) -> Sequence[Event]:
        return read_recording(Path(self.settings.agent.model.partition(":")[2]))


def read_recording(path: Path) -> Sequence[Event]:
    """The events of a recorded session. A relative path starts at the kernel's working folder.

    Raises:
        StoreError, LogError: it cannot be read; one sentence.
    """
    from plan_mode_nb.log.codec import decode_all
    from plan_mode_nb.store.sources import open_any

    return decode_all(open_any(path).lines)
