"""The system prompt: named, ordered sections, assembled anew for each step."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable

from msgspec import Struct

from plan_mode_nb.agent.agent import Agent
from plan_mode_nb.agent.registry import Registry, Undo

SEPARATOR = "\n\n"
"""Between two sections."""


class PromptContext(Struct, frozen=True):
    """What a section may depend on. ``agent`` is None where a prompt is assembled for nobody (a preview)."""

    agent: Agent | None


class Section(Struct, frozen=True):
    """``text`` gives the section's exact text, or an empty string for none. Lower ``order`` comes first.

    ``changes``: the text may differ from one request of a session to the next.
    """

    name: str
    order: int
    text: Callable[[PromptContext], str]
    changes: bool = False


class PromptSections:
    """Sections by unique name. What changes rarely belongs first: a provider caches the longest common prefix."""

    def __init__(self) -> None:
        self._sections: Registry[Section] = Registry("section")

    def register(self, name: str, order: int, text: Callable[[PromptContext], str], *, changes: bool = False) -> Undo:
        """Add a section; returns the undo."""
        return self._sections.register(name, Section(name, order, text, changes))

    def texts(self, context: PromptContext) -> dict[str, str]:
        """Each section's text by name, by order (ties: first registered first)."""
        return {section.name: section.text(context) for section in self._ordered()}

    def assemble(self, context: PromptContext) -> str:
        """The system prompt: the sections that are not empty, a blank line between two."""
        return _joined(self._ordered(), context)

    def assemble_stable(self, context: PromptContext) -> str:
        """The part of :meth:`assemble` ahead of the first section that may change: what a provider's cache can keep across a switch."""
        return _joined(itertools.takewhile(lambda section: not section.changes, self._ordered()), context)

    def _ordered(self) -> list[Section]:
        return sorted(self._sections, key=lambda section: section.order)


def _joined(sections: Iterable[Section], context: PromptContext) -> str:
    return SEPARATOR.join(text for section in sections if (text := section.text(context)))
