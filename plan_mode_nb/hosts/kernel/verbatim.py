"""``%plan MESSAGE`` takes its line as it stands, and ``%%plan`` may stand alone.

IPython would expand ``{x}`` and ``$x``, read a final ``?`` as a call for help and a final ``\\`` as a continued line. A message is none of
that, so a token transformer with the first word takes the line; only ``%plan?`` and ``%plan??`` stay what they are. A cell magic without
a body IPython would refuse before ours is called; ours may have images to send, or a better sentence to say.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from tokenize import DEDENT, ENCODING, INDENT, TokenInfo
from typing import Any

from IPython.core.inputtransformer2 import TokenTransformBase

from plan_mode_nb.agent.registry import Undo, undo_all

_LINE = re.compile(r"(?P<indent>\s*)%(?P<name>\w+)(?P<rest>.*)")
_HELP = re.compile(r"\s*\?{1,2}\s*")
_ALONE = re.compile(r"\s*%%(?P<name>\w+)(?![\w?])[^\n]*\n?\s*")
_SILENT = {INDENT, DEDENT, ENCODING}


def transformer(names: Sequence[str]) -> type[TokenTransformBase]:
    """A transformer class for the line magics of these names. Register it in ``shell.input_transformer_manager.token_transformers``."""
    wanted = frozenset(names)

    class Verbatim(TokenTransformBase):  # type: ignore[misc]
        priority = 1

        @classmethod
        def find(cls, tokens_by_line: list[list[TokenInfo]]) -> Verbatim | None:
            """The first line magic of ours that stands where a statement begins."""
            for line in tokens_by_line:
                first = next((at for at, token in enumerate(line) if token.type not in _SILENT), None)
                if first is None or line[first].string != "%" or first + 1 >= len(line):
                    continue
                match = _LINE.match(line[first].line)
                if (
                    match
                    and match["name"] in wanted
                    and line[first + 1].start[1] == line[first].end[1]
                    and not _HELP.fullmatch(match["rest"])
                ):
                    return cls(line[first].start)
            return None

        def transform(self, lines: list[str]) -> list[str]:
            """That one physical line becomes a call with the rest of the line as a literal."""
            match = _LINE.match(lines[self.start_line].rstrip("\r\n"))
            assert match is not None
            call = f"{match['indent']}get_ipython().run_line_magic({match['name']!r}, {match['rest'].strip()!r})\n"
            return [*lines[: self.start_line], call, *lines[self.start_line + 1 :]]

    return Verbatim


def with_a_body(names: Sequence[str]) -> Callable[[list[str]], list[str]]:
    """A clean-up of a cell's lines that gives the cell magics of these names an empty line where they have no body."""
    wanted = frozenset(names)

    def clean_up(lines: list[str]) -> list[str]:
        alone = _ALONE.fullmatch("".join(lines))
        return [*lines, "\n"] if alone and alone["name"] in wanted else lines

    return clean_up


def install(shell: Any, names: Sequence[str]) -> Undo:
    """Put both in place, the latter ahead of IPython's own; returns the undo."""
    manager = shell.input_transformer_manager
    return undo_all([_entered(manager.token_transformers, transformer(names)), _entered(manager.cleanup_transforms, with_a_body(names), 0)])


def _entered(transforms: list[Any], ours: Any, place: int | None = None) -> Undo:
    transforms.insert(len(transforms) if place is None else place, ours)

    def undo() -> None:
        if ours in transforms:
            transforms.remove(ours)

    return undo
