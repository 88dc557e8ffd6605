"""A model that answers from a script: the public fake, in memory, without a key, a network or a clock."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from plan_mode_nb.agent.model import Chunk, Request
from plan_mode_nb.exceptions import ModelError
from plan_mode_nb.models.script import Hold, Part, play

Step: TypeAlias = Part | Sequence[Part] | Callable[[Request], Part | Sequence[Part]]
"""One answer: a part, several, or a function of the request."""
SCRIPTED: Mapping[str, Any] = {"provider": "scripted", "model": "scripted"}


class ScriptedModel:
    """Each request gets the next step. ``requests`` keeps what was asked, in order, failed and cancelled ones too.

    ``before_chunk`` is awaited before every chunk: a test holds or counts a stream there instead of sleeping. ``window``: how many tokens
    it says that it can read.
    """

    def __init__(
        self,
        steps: Iterable[Step] = (),
        *,
        config: Mapping[str, Any] = SCRIPTED,
        before_chunk: Callable[[Chunk], Awaitable[None]] | None = None,
        window: int | None = None,
    ) -> None:
        self.requests: list[Request] = []
        self._config = dict(config)
        self._steps = list(steps)
        self._before_chunk = before_chunk
        self.window = window

    @property
    def config(self) -> Mapping[str, Any]:
        """What the request header says of this model."""
        return self._config

    @property
    def remaining(self) -> int:
        """Steps that no request has taken yet."""
        return max(0, len(self._steps) - len(self.requests))

    def add(self, *steps: Step) -> None:
        """Put more steps at the end."""
        self._steps.extend(steps)

    async def context_window(self) -> int | None:
        """As told."""
        return self.window

    async def stream(self, request: Request) -> AsyncIterator[Chunk]:
        """The next answer.

        Raises:
            ModelError: as scripted; or the script has no more steps (code ``CONFIG``: asking again cannot help).
        """
        answer = len(self.requests)
        self.requests.append(request)
        if answer >= len(self._steps):
            raise ModelError(f"the script ends here: it has {len(self._steps)} answers; add one for request {answer + 1}", code="CONFIG")
        step = self._steps[answer]
        said = step(request) if callable(step) else step
        for item in play(said if isinstance(said, Sequence) else [said], answer):
            if isinstance(item, ModelError):
                raise item
            if isinstance(item, Hold):
                await item.wait()
                continue
            if self._before_chunk is not None:
                await self._before_chunk(item)
            yield item
