"""The models of one shell: one for each name, kept with its connections from step to step, and closed when a setting or a key changed."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from plan_mode_nb.agent.model import HoldsConnections, Model
from plan_mode_nb.hosts.kernel.config import PlanAgent
from plan_mode_nb.log.events import Event
from plan_mode_nb.models.choose import Choice, choose

_logger = logging.getLogger(__name__)


class Choices:
    """A per-phase model switches back and forth; both stay open, each with its own converted history."""

    def __init__(self, agent: PlanAgent, read_recording: Callable[[Path], Sequence[Event]]) -> None:
        self._agent = agent
        self._read_recording = read_recording
        self._made_for: tuple[Any, ...] = ()
        self._by_name: dict[str | None, Choice] = {}
        self._retired: list[HoldsConnections] = []
        self._closing: set[asyncio.Task[None]] = set()

    def choose(self, name: str | None) -> Choice:
        """The model of that name and why; None: the one of the settings. On any thread.

        Raises:
            ConfigError: the name or a setting cannot work.
        """
        settings = {**self._agent.model_settings(), "idle_timeout": self._agent.request_timeout}
        # A key or server given after the last turn must count, so they are part of what a choice was made for; no value is kept.
        keys = tuple(sorted((key, hash(value)) for key, value in os.environ.items() if key.endswith(("_API_KEY", "_BASE_URL"))))
        made_for = (tuple(sorted(settings.items())), keys, self._agent.model)
        if made_for != self._made_for:
            self._retire()
            self._made_for = made_for
        told = name or self._agent.model or None
        if told not in self._by_name:
            setting = "PlanAgent.plan_model" if name else "PlanAgent.model"
            self._by_name[told] = choose(told, os.environ, settings, read_recording=self._read_recording, setting=setting)
        return self._by_name[told]

    def model(self, name: str | None) -> Model:
        """The model for a step, on the agent thread; what was retired since is closed there, beside it.

        Raises:
            ConfigError: as :meth:`choose`.
        """
        chosen = self.choose(name).model
        if self._retired:
            retired, self._retired = self._retired, []
            task = asyncio.get_running_loop().create_task(_close(retired))
            self._closing.add(task)
            task.add_done_callback(self._closing.discard)
        return chosen

    async def aclose(self) -> None:
        """Close every connection. On the agent thread."""
        self._retire()
        await _close(self._retired)
        await asyncio.gather(*self._closing)

    def _retire(self) -> None:
        """Only put aside: connections belong to the agent thread's loop, and this may be another thread."""
        models: list[Model] = [choice.model for choice in self._by_name.values()]
        self._by_name = {}
        self._retired.extend(model for model in models if isinstance(model, HoldsConnections))


async def _close(models: list[HoldsConnections]) -> None:
    while models:
        try:
            await models.pop().aclose()
        except Exception:
            _logger.exception("a model's connections could not be closed")
