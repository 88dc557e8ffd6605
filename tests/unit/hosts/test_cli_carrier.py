"""The client's end of the headless carrier: what is applied, and what is not."""

from __future__ import annotations

from typing import Any

import pytest
import stored

from plan_mode_nb.document.document import Document, StoredSession
from plan_mode_nb.hosts.cli.carrier import Received
from plan_mode_nb.hosts.cli.settle import gather

LINES = stored.lines(3)


def message(start: int, events: list[str], *, id: str = "s", **more: Any) -> dict[str, Any]:
    """An append as the kernel sends it."""
    data = {"op": "append", "n": 1, "to": "", "session": id, "start": start, "events": events, "header": stored.header(id).to_json()}
    return {"content": {"comm_id": "plan_mode_nb", "data": {**data, "agents": {"main": id}, **more}}}


def test_appends_in_order_make_the_session() -> None:
    received = Received()
    assert received.open({"content": {"data": {"op": "hello"}}}) is received
    received.handle_msg(message(0, LINES[:6]))
    received.handle_msg(message(6, LINES[6:], attachments={"a" * 64: "AAAA"}))
    assert received.document == Document(
        agents={"main": "s"}, sessions={"s": StoredSession(stored.header("s"), LINES)}, attachments={"a" * 64: "AAAA"}
    )
    assert received.problems == []


def test_what_is_sent_twice_counts_once() -> None:
    received = Received()
    for start, end in ((0, 6), (0, 6), (3, 12), (0, 3), (12, 18)):
        received.handle_msg(message(start, LINES[start:end]))
    assert list(received.document.sessions["s"].lines) == LINES
    assert received.problems == []


@pytest.mark.parametrize(
    "faulty",
    [
        message(7, LINES[7:]),
        message(0, stored.lines(1, "else")),
        message(0, LINES, header={"version": 3}),
        message(0, [1]),  # type: ignore[list-item]
        message("0", LINES),  # type: ignore[arg-type]
    ],
)
def test_a_message_that_does_not_fit_changes_nothing_and_is_said(faulty: dict[str, Any]) -> None:
    received = Received()
    received.handle_msg(message(0, LINES[:6]))
    received.handle_msg(faulty)
    assert list(received.document.sessions["s"].lines) == LINES[:6]
    assert len(received.problems) == 1


@pytest.mark.parametrize("data", [None, 5, {"op": "plan", "active": True}, {"op": "get"}, {}])
def test_what_is_meant_for_pages_is_passed_over(data: object) -> None:
    received = Received()
    received.handle_msg({"content": {"data": data}})
    assert (received.document, received.problems) == (Document(), [])


def test_the_kernel_says_who_goes_on_with_which_session() -> None:
    on_disk = Document(
        agents={"main": "old", "reviewer": "r"}, sessions={"old": StoredSession(stored.header("old", 2_000_000_000_000), LINES)}
    )
    received = Received()
    received.handle_msg(message(0, LINES))
    assert gather(on_disk, received.document, []).agents == {"main": "s", "reviewer": "r"}
