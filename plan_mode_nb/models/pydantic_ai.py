"""A live model through pydantic-ai's direct API: one streamed request at a time, with tools, images and usage; not its Agent.

pydantic_ai is imported with the first request and never before: it takes about a second, and most kernels never need it.
"""

from __future__ import annotations

import asyncio
import importlib
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from plan_mode_nb.agent.model import Chunk, Request
from plan_mode_nb.exceptions import ModelError
from plan_mode_nb.models.settings import ModelSettings

if TYPE_CHECKING:
    from pydantic_ai.models import Model as ProviderModel

    from plan_mode_nb.models.convert import History
    from plan_mode_nb.models.failures import Route

_LAZY = tuple(f"plan_mode_nb.models.{name}" for name in ("clients", "convert", "failures", "stream"))


_UNASKED = -1


async def preload() -> None:
    """Import what talks to providers, in a thread, so that the loop goes on answering. A host may call it ahead of the first request."""
    if not all(name in sys.modules for name in _LAZY):
        await asyncio.to_thread(_import_all)


def _import_all() -> None:
    for name in _LAZY:
        importlib.import_module(name)


class _Open(Struct, frozen=True):
    """What belongs to one event loop: the provider's model with its connections, and the conversation as converted for it."""

    loop: asyncio.AbstractEventLoop
    stack: AsyncExitStack
    model: ProviderModel
    history: History
    settings: dict[str, Any]


class PydanticAIModel:
    """``provider:model`` through pydantic-ai. The client is opened by the first request, on its loop; a new loop gets a new client."""

    def __init__(self, provider: str, model: str, settings: ModelSettings, environ: Mapping[str, str]) -> None:
        """``environ``: where keys and addresses are read, with the first request (a key may be set after the configuration)."""
        self._provider = provider
        self._model = model
        self._settings = settings
        self._environ = environ
        self._open: _Open | None = None
        self._window: int | None = _UNASKED

    @property
    def config(self) -> Mapping[str, Any]:
        """``{provider, model, …settings}`` for the request header; timeouts are no part of it."""
        return {"provider": self._provider, "model": self._model, **self._settings.config()}

    async def stream(self, request: Request) -> AsyncIterator[Chunk]:
        """One request. Cancelling it closes its connection.

        Raises:
            ModelError: with one sentence; chunks before it were delivered, usage too where the provider had told it.
        """
        await preload()
        from plan_mode_nb.models.clients import SAYS_FINISH, route_to
        from plan_mode_nb.models.failures import failure
        from plan_mode_nb.models.stream import Translator, start, usage_chunk

        route = route_to(self._provider, self._model, self._environ)
        response, translator = None, Translator(says_finish=self._provider in SAYS_FINISH)
        try:
            opened = await self._opened(route)
            messages = opened.history.convert(request.messages, request.images)
            async with start(opened.model, messages, request, opened.settings) as response:
                async for event in response:
                    for chunk in translator.take(event):
                        yield chunk
        except ModelError:
            raise
        except Exception as error:
            if response is not None and (spent := usage_chunk(response.usage)) is not None:
                yield spent
            raise failure(error, route) from error
        for chunk in translator.end(response.get()):
            yield chunk

    async def context_window(self) -> int | None:
        """As set; else by the public list of models, read in a thread: a moment the first time. Unknown for a server of one's own."""
        if self._settings.context_window is not None:
            return self._settings.context_window
        if self._window == _UNASKED:
            await preload()
            from plan_mode_nb.models.prices import window_for

            self._window = await asyncio.to_thread(window_for, self._provider, self._model, self._environ)
        return self._window

    async def aclose(self) -> None:
        """Close the connections; a later request opens new ones."""
        opened, self._open = self._open, None
        if opened is not None and opened.loop is asyncio.get_running_loop():
            await opened.stack.aclose()

    async def _opened(self, route: Route) -> _Open:
        from plan_mode_nb.models.clients import dialect_of, open_model, request_settings
        from plan_mode_nb.models.convert import History

        loop = asyncio.get_running_loop()
        if self._open is None or self._open.loop is not loop:
            # A client of another loop cannot be closed from here; that loop is gone, and its connections with it.
            async with AsyncExitStack() as stack:
                model = await open_model(route, stack)
                settings = request_settings(model, route, self._settings)
                self._open = _Open(loop, stack.pop_all(), model, History(dialect_of(route)), settings)
        return self._open
