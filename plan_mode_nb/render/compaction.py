"""A compaction for people: one line, which opens to the summary that the model goes on from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from plan_mode_nb.agent.compaction import STOPPED
from plan_mode_nb.plan.visible import visible, visible_line
from plan_mode_nb.render import facts
from plan_mode_nb.render.html import Bundle, card, element, paragraph, text
from plan_mode_nb.render.markdown import to_html
from plan_mode_nb.render.source import inert_markdown


class Compacting:
    """One attempt, of which ``take`` is given the events' data in order."""

    def __init__(self) -> None:
        self._summary: Mapping[str, Any] | None = None
        self._ended: Mapping[str, Any] | None = None
        self._began = False

    @property
    def is_over(self) -> bool:
        """Whether its end was seen."""
        return self._ended is not None

    def take(self, data: Mapping[str, Any]) -> Compacting:
        """Its ``compaction/start``, ``compaction/summary`` or ``compaction/end``; returns itself."""
        if "summary" in data:
            self._summary = data
        elif self._began or "error" in data:
            self._ended = data
        self._began = True
        return self

    def card(self, *, ended: bool) -> Bundle:
        """``ended``: nothing more comes."""
        if self._ended is None:
            said = "The compaction was interrupted." if ended else "Compacting the conversation…"
        elif self._summary is not None and "error" not in self._ended:
            return _done(self._summary)
        else:
            said = failed(self._ended)
        return {"text/plain": said, "text/html": card("compaction", paragraph(said))}


def failed(ended: Mapping[str, Any]) -> str:
    """A ``compaction/end`` with an error, in words."""
    error = str(ended.get("error") or "")
    why = "it was stopped" if error == STOPPED else error.rstrip(".")
    return visible_line(f"The conversation was not compacted and is as it was: {why}.")


def done(summary: Mapping[str, Any]) -> str:
    """A ``compaction/summary`` in one line."""
    seqs, tokens = summary.get("shadowedSeqs"), summary.get("shadowedTokenCount")
    count = len(seqs) if isinstance(seqs, list) else 0
    messages = f"{count} message{'' if count == 1 else 's'}"
    return f"Compacted {messages}" + (f" (about {tokens:,} tokens)" if type(tokens) is int else "") + " into a summary."


def cell(summary: Mapping[str, Any]) -> str:
    """A ``compaction/summary`` as a markdown cell's source."""
    return _done(summary)["text/markdown"]


def _done(summary: Mapping[str, Any]) -> Bundle:
    said = done(summary)
    written = "\n\n".join(str(block.get("text", "")) for block in facts.items(summary.get("summary")) if block.get("type") == "text")
    body = element("summary", text(said)) + to_html(written)
    return {
        "text/plain": f"{said}\n\n{visible(written)}",
        "text/markdown": f"*{said}*\n\n{inert_markdown(written)}",
        "text/html": card("compaction", element("details", body)),
    }
