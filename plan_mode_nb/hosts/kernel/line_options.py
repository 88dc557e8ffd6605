"""The first line of ``%%plan`` and ``%%agent``: options and nothing else."""

from __future__ import annotations

import shlex

from msgspec import Struct

from plan_mode_nb.exceptions import CommandError


class CellOptions(Struct, frozen=True):
    """``images``: files in the order given; ``agent``: the name after ``--as``."""

    images: tuple[str, ...] = ()
    agent: str = "main"


def parse(magic: str, line: str, *, named_agents: bool) -> CellOptions:
    """Read ``[--image FILE]… [--as NAME]``. FILE is shell-quoted where it holds spaces.

    Raises:
        CommandError: anything else stands on the line, or an option lacks its value.
    """
    try:
        words = shlex.split(line)
    except ValueError as error:
        raise CommandError(f"%%{magic}: {error}; quote file names that hold spaces") from None
    images: list[str] = []
    agent = "main"
    while words:
        option = words.pop(0)
        if option not in ("--image", "--as") or (option == "--as" and not named_agents):
            allowed = "--image FILE and --as NAME" if named_agents else "--image FILE"
            raise CommandError(f"%%{magic} takes only {allowed} on its first line, not {option!r}; write the message on the lines below")
        if not words:
            raise CommandError(f"%%{magic}: {option} needs a value")
        if option == "--image":
            images.append(words.pop(0))
        else:
            agent = words.pop(0)
    if not agent.isidentifier():
        raise CommandError(f"%%{magic}: --as takes a name such as analyst, not {agent!r}")
    return CellOptions(tuple(images), agent)
