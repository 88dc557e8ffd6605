"""The system prompt: named, ordered sections, assembled anew for each step."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from plan_mode_nb.agent.agent import Agent
from plan_mode_nb.agent.registry import Registry, Undo


@dataclass(frozen=True)
class PromptContext:
    """What a section may depend on. ``agent`` is None where a prompt is assembled for nobody (a preview)."""

    agent: Agent | None


@dataclass(frozen=True)
class Section:
    """``text`` gives the section's exact text, or an empty string for none. Lower ``order`` comes first."""

    name: str
    order: int
    text: Callable[[PromptContext], str]


class PromptSections:
    """Sections by unique name. What changes rarely belongs first: a provider caches the longest common prefix."""

    def __init__(self) -> None:
        self._sections: Registry[Section] = Registry("section")

    def register(self, name: str, order: int, text: Callable[[PromptContext], str]) -> Undo:
        """Add a section; returns the undo."""
        return self._sections.register(name, Section(name, order, text))

    def texts(self, context: PromptContext) -> dict[str, str]:
        """Each section's text by name, by order (ties: first registered first)."""
        return {section.name: section.text(context) for section in sorted(self._sections, key=lambda section: section.order)}

    def assemble(self, context: PromptContext) -> str:
        """The system prompt: the sections that are not empty, a blank line between two."""
        return "\n\n".join(text for text in self.texts(context).values() if text)
