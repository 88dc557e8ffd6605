"""The magics: parse, call one method of the host, print. One magic per registered command, and ``agent`` and ``session``."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any

from plan_mode_nb.agent.commands import Command
from plan_mode_nb.agent.registry import Undo, undo_all
from plan_mode_nb.exceptions import CommandError, PlanModeError
from plan_mode_nb.hosts.kernel import completion, verbatim
from plan_mode_nb.hosts.kernel.host import KernelHost
from plan_mode_nb.hosts.kernel.image_files import attached
from plan_mode_nb.hosts.kernel.line_options import parse
from plan_mode_nb.hosts.kernel.refusals import one_line
from plan_mode_nb.hosts.kernel.session_magic import SESSION_HELP, run_session
from plan_mode_nb.log.messages import Block, text_block

AGENT_HELP = """Say something to the notebook's agent: one turn. Plan mode stays as it is.

  %agent MESSAGE                               MESSAGE exactly as written
  %agent                                       what waits since before, if anything does
  %%agent [--image FILE]… [--as NAME]
  MESSAGE                                      several lines, images, another agent of this notebook
"""
Magic = Callable[..., None]


def install_magics(shell: Any, host: KernelHost) -> Undo:
    """Register the magics, their completion and the verbatim lines; returns the undo, which leaves none of them."""
    commands = host.composition.seams.commands
    registered = [command for command in commands.all() if command.magic] if commands is not None else []
    lines: dict[str, Magic] = {command.name: _command_line(host, command) for command in registered}
    cells: dict[str, Magic] = {command.name: _command_cell(host, command) for command in registered if command.images}
    lines |= {"agent": _agent_line(host), "session": _session_line(host)}
    cells["agent"] = _agent_cell(host)
    undos: list[Undo] = [verbatim.install(shell, [*cells, "agent"]), completion.install(shell, list(lines))]
    for kind, magics in (("line", lines), ("cell", cells)):
        for name, magic in magics.items():
            shell.register_magic_function(magic, kind, name)
            undos.append(functools.partial(_forget, shell, kind, name, magic))
    return undo_all(undos)


def _forget(shell: Any, kind: str, name: str, magic: Magic) -> None:
    magics = shell.magics_manager.magics[kind]
    if magics.get(name) is magic:
        del magics[name]


def _magic(name: str, help: str) -> Callable[[Magic], Magic]:
    """Name, ``?`` help, text taken as written, and every error of ours as one line."""

    def decorate(function: Magic) -> Magic:
        @functools.wraps(function)
        def magic(*args: str) -> None:
            try:
                function(*args)
            except PlanModeError as error:
                raise one_line(error) from None

        magic.__name__ = magic.__qualname__ = name
        magic.__doc__ = help
        # IPython expands {x} and $x in a line magic's text unless it says this.
        magic._ipython_magic_no_var_expand = True  # type: ignore[attr-defined]
        return magic

    return decorate


def _command_line(host: KernelHost, command: Command) -> Magic:
    @_magic(command.name, command.help or command.description)
    def line(text: str) -> None:
        result = host.command(command.name, text)
        if not result.turn:
            print(result.text)

    return line


def _command_cell(host: KernelHost, command: Command) -> Magic:
    @_magic(command.name, command.help or command.description)
    def cell(text: str, body: str) -> None:
        options = parse(command.name, text, named_agents=False)
        with _images(host, options.images) as images:
            result = host.command(command.name, body.strip("\n"), images=images, literal=True)
        if not result.turn:
            print(result.text)

    return cell


def _agent_line(host: KernelHost) -> Magic:
    @_magic("agent", AGENT_HELP)
    def line(text: str) -> None:
        host.message([text_block(text.strip())] if text.strip() else [])

    return line


def _agent_cell(host: KernelHost) -> Magic:
    @_magic("agent", AGENT_HELP)
    def cell(text: str, body: str) -> None:
        options = parse("agent", text, named_agents=True)
        with _images(host, options.images) as images:
            blocks = [*images, *([text_block(body.strip())] if body.strip() else [])]
            if not blocks:
                raise CommandError("say something to the agent: write the message on the lines below %%agent")
            host.message(blocks, agent=options.agent)

    return cell


def _images(host: KernelHost, files: Sequence[str]) -> AbstractContextManager[list[Block]]:
    def is_named(digest: str) -> bool:
        return any(digest in line for session in host.agents.sessions.values() for line in session.lines)

    return attached(files, host.composition.seams.attachments, is_named)


def _session_line(host: KernelHost) -> Magic:
    @_magic("session", SESSION_HELP)
    def line(text: str) -> None:
        said = run_session(host, text)
        if said:
            print(said)

    return line
