"""Commands a person gives: a registry, and the record of each run.

``command/run`` and ``command/done`` are log-only; names and outcomes never enter the model's history.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import Awaitable, Callable
from typing import Any, Literal

from msgspec import Struct
from msgspec.structs import replace

from plan_mode_nb.agent.agent import Agent
from plan_mode_nb.agent.registry import Registry, Undo
from plan_mode_nb.exceptions import CommandError
from plan_mode_nb.log.events import Draft
from plan_mode_nb.log.messages import USER_SOURCE, Block
from plan_mode_nb.log.vocabulary import draft

_logger = logging.getLogger(__name__)


class CommandCall(Struct, frozen=True):
    """One use. ``args``: the raw text after the name; ``images``: image blocks that came with it.

    ``literal``: the text is a message whatever it says (the body of a cell); no word of it is a keyword. ``id``: the ``commandId``
    under which the use is logged; a handler always has it.
    """

    agent: Agent
    args: str
    images: tuple[Block, ...] = ()
    literal: bool = False
    id: str = ""


class CommandResult(Struct, frozen=True):
    """``text``: one line for the person. ``turn``: a turn should follow, because the command left something in the inbox."""

    kind: Literal["success", "error"]
    text: str
    turn: bool = False


Handler = Callable[[CommandCall], CommandResult | Awaitable[CommandResult]]


class Command(Struct, frozen=True):
    """``hint`` shows what may follow the name; ``help`` is what ``?`` prints; ``recorded_args`` is what the log keeps of a call's text.

    ``magic``: whether a shell has a magic of this name; otherwise the command stands under another one (``%session compact``).
    """

    name: str
    description: str
    handler: Handler
    hint: str = ""
    help: str = ""
    images: bool = False
    magic: bool = True
    recorded_args: Callable[[CommandCall], str] = lambda call: call.args


class CommandRegistry:
    """Commands by unique name."""

    def __init__(self, new_id: Callable[[], str], redact: Callable[[str], str] = str) -> None:
        """``redact``: what takes secrets out of arguments and results before they are logged."""
        self._new_id = new_id
        self._redact = redact
        self._commands: Registry[Command] = Registry("command")

    def register(self, command: Command) -> Undo:
        """Add a command; returns the undo."""
        return self._commands.register(command.name, command)

    def get(self, name: str) -> Command | None:
        """The command of that name, or None."""
        return self._commands.get(name)

    def all(self) -> list[Command]:
        """All commands, in order of registration."""
        return list(self._commands)

    async def run(self, name: str, call: CommandCall, *, cell: dict[str, Any] | None = None) -> CommandResult:
        """Run a command and log it. ``cell``: which notebook cell it stands in (``{source, cell?}``), logged directly after the run.

        Raises:
            CommandError: no such command, or images for one that takes none; nothing was logged.
        """
        command = self._commands.get(name)
        if command is None:
            raise CommandError(f"there is no command {name!r}; there are {', '.join(self._commands.names()) or 'none'}")
        if call.images and not command.images:
            raise CommandError(f"{name} takes no images; leave them out")
        session, command_id = call.agent.session, self._new_id()
        session.append(*self._run_events(command, call, command_id, cell))
        result = CommandResult("error", "the command was interrupted")
        try:
            handled = command.handler(replace(call, id=command_id))
            result = await handled if inspect.isawaitable(handled) else handled
        except CommandError as error:
            result = CommandResult("error", str(error))
        except Exception as error:
            _logger.exception("the command %s failed", name)
            result = CommandResult("error", f"{name} failed: {error}")
        finally:
            done = {"commandId": command_id, "kind": result.kind, "text": self._redact(result.text)}
            session.append(draft("command/done", done))
        return result

    def _run_events(self, command: Command, call: CommandCall, command_id: str, cell: dict[str, Any] | None) -> list[Draft]:
        args = self._redact(command.recorded_args(call))
        drafts = [draft("command/run", {"commandId": command_id, "name": command.name, "args": args, "source": dict(USER_SOURCE)})]
        if cell is not None:
            drafts.append(draft("notebook/cell", {"turn": None, "command": command_id, **cell}))
        return drafts
