"""Strip leaves nothing of the conversation in the file but tombstones."""

from __future__ import annotations

import json
from hashlib import sha256
from typing import Any

from plan_mode_nb.document.chunks import read_metadata, write_metadata
from plan_mode_nb.document.document import Document, StoredSession
from plan_mode_nb.document.outputs import EVENTS_MIME
from plan_mode_nb.document.strip import strip_metadata, strip_notebook
from plan_mode_nb.log.vocabulary import draft
from plan_mode_nb.testing.logs import new_session, turn_start, user

SECRET = "the word is MARMALADE"
PROMPT = "%agent remember it"


def notebook(*, source: Any = PROMPT) -> dict[str, Any]:
    session = new_session()
    cell = draft("notebook/cell", {"turn": 1, "source": sha256(PROMPT.encode()).hexdigest()})
    session.append(turn_start(1), cell, user(SECRET))
    document = Document({"main": "s"}, {"s": StoredSession(session.header, session.lines)}, {"a" * 64: "TUFSTUFMQURF"})
    card = {"model_module": "anywidget", "state": {"kind": "review", "state": "approved", "questions": [], "markdown": SECRET}}
    slider = {"model_module": "@jupyter-widgets/controls", "state": {"value": 1}}
    widgets = {"application/vnd.jupyter.widget-state+json": {"version_major": 2, "state": {"1": card, "2": slider}}}
    spoken = {"output_type": "display_data", "metadata": {}, "data": {"text/plain": SECRET}}
    carried = {"output_type": "display_data", "metadata": {}, "data": {EVENTS_MIME: {}, "text/plain": SECRET}}
    figure = {"output_type": "stream", "name": "stdout", "text": "42\n"}
    return {
        "nbformat": 4,
        "nbformat_minor": 5,
        "metadata": write_metadata(document, {"kernelspec": {"name": "python3"}, "widgets": widgets}),
        "cells": [
            {"cell_type": "markdown", "id": "m", "metadata": {}, "source": "Hello"},
            {"cell_type": "code", "id": "a", "metadata": {}, "source": source, "outputs": [spoken], "execution_count": 1},
            {"cell_type": "code", "id": "b", "metadata": {}, "source": "edited since", "outputs": [carried], "execution_count": 2},
            {"cell_type": "code", "id": "c", "metadata": {}, "source": "6*7", "outputs": [figure], "execution_count": 3},
        ],
    }


def test_nothing_of_the_conversation_is_left_and_everything_else_is() -> None:
    before = notebook()
    after = strip_notebook(before)
    assert SECRET not in json.dumps(after)
    assert "TUFSTUFMQURF" not in json.dumps(after)
    assert after["metadata"]["plan_mode_nb"] == {"format": 1, "agents": {}, "sessions": {}, "stripped": ["s"]}
    assert [cell["outputs"] for cell in after["cells"][1:3]] == [[], []]
    assert after["cells"][0] == before["cells"][0]
    assert after["cells"][3] == before["cells"][3]
    assert after["metadata"]["widgets"]["application/vnd.jupyter.widget-state+json"]["state"].keys() == {"2"}
    assert SECRET in json.dumps(before)


def test_a_source_in_lines_is_the_same_cell() -> None:
    assert strip_notebook(notebook(source=["%agent ", "remember it"]))["cells"][1]["outputs"] == []


def test_stripping_twice_is_stripping_once() -> None:
    once = strip_notebook(notebook())
    assert strip_notebook(once) == once


def test_what_cannot_be_read_is_removed_too_and_its_id_does_not_return() -> None:
    metadata = notebook()["metadata"]
    metadata["plan_mode_nb/s/0000001"] = [SECRET]
    metadata["plan_mode_nb/unknown"] = SECRET
    assert read_metadata(metadata).problems
    assert strip_metadata(metadata)["plan_mode_nb"]["stripped"] == ["s"]
    assert SECRET not in json.dumps(strip_metadata(metadata))
    newer = {**metadata, "plan_mode_nb": {"format": 2, "sessions": {"later": {}}}}
    assert strip_metadata(newer)["plan_mode_nb"]["stripped"] == ["later", "s"]
    assert SECRET not in json.dumps(strip_metadata(newer))


def test_a_notebook_without_sessions_is_left_alone() -> None:
    plain = {**notebook(), "metadata": {"kernelspec": {}}, "cells": []}
    assert strip_notebook(plain) == plain


def test_a_transcript_is_kept_as_markdown_cells_with_ids_that_depend_on_the_session_alone() -> None:
    def transcript(session: StoredSession) -> list[str]:
        return [f"## {session.header.id}", f"{len(session.lines)} events"]

    first, second = (strip_notebook(notebook(), transcript=transcript) for _ in range(2))
    assert first == second
    assert [(cell["cell_type"], cell["source"]) for cell in first["cells"][4:]] == [("markdown", "## s"), ("markdown", "3 events")]
    assert len({cell["id"] for cell in first["cells"]}) == 6
    old = strip_notebook({**notebook(), "nbformat_minor": 4}, transcript=transcript)
    assert "id" not in old["cells"][-1]
