"""Pages come and go, and some are only slow: the log reaches whoever is there."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import comm
import pytest
from pages import Page

from plan_mode_nb.hosts.kernel.carrier import Carrier
from plan_mode_nb.log.session import Session
from plan_mode_nb.testing import logs


class Channel:
    """The comm, of which both ends are seen."""

    def __init__(self, **opened: Any) -> None:
        self.comm_id = "plan_mode_nb"
        self.sent: list[dict[str, Any]] = []

    def on_msg(self, receive: Any) -> None:
        self._receive = receive

    def send(self, message: dict[str, Any]) -> None:
        self.sent.append(message)

    def hear(self, client: str, data: Mapping[str, Any]) -> None:
        self._receive({"header": {"session": client}, "content": {"data": dict(data)}})


class Host:
    """One session, of an agent ``main``."""

    def __init__(self, session: Session) -> None:
        self.session = session

    def sessions_to_carry(self) -> Mapping[str, Session]:
        return {self.session.id: self.session}

    def agent_sessions(self) -> Mapping[str, str]:
        return {"main": self.session.id}

    def agent_choices(self) -> Mapping[str, int]:
        return {}

    def images(self) -> Mapping[str, str]:
        return {}

    def push_plans(self) -> None:
        """Nobody looks."""

    def on_select(self, active: bool) -> None:
        """Nobody chooses."""

    def on_renamed(self, before: str, now: str) -> None:
        """Nothing moves."""

    def on_page(self) -> None:
        """Nobody waits."""


def test_a_page_that_was_given_up_and_answers_after_all_is_asked_to_say_hello_and_gets_the_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a busy machine a live page may take longer than is waited for one that is gone."""
    made: list[Channel] = []
    monkeypatch.setattr(comm, "create_comm", lambda **opened: made.append(Channel(**opened)) or made[-1])
    events = SimpleNamespace(register=lambda *_: None, unregister=lambda *_: None)
    session = logs.new_session("s")
    session.append(logs.turn_start(1))
    carrier = Carrier(SimpleNamespace(kernel=SimpleNamespace(_allow_stdin=True), events=events, parent_header={}), Host(session))
    try:
        (channel,) = made
        notebook = Page({})
        hello = {"op": "hello", "path": "a.ipynb", "session": "", "length": 0}
        channel.hear("slow", hello)
        append = channel.sent[-1]
        assert (append["op"], append["to"]) == ("append", "slow")

        carrier.give_up()
        session.append(logs.turn_end(1))
        assert carrier.page is None
        answer = notebook.answer(append)
        assert answer is not None
        channel.sent.clear()
        channel.hear("slow", answer)
        assert channel.sent == [{"op": "hello"}]

        channel.hear("slow", {**hello, "session": "s", "length": len(notebook.lines("s"))})
        assert carrier.page is not None
        last = notebook.answer(channel.sent[-1])
        assert last is not None
        channel.hear("slow", last)
        assert notebook.lines("s") == list(session.lines)
        assert carrier.is_settled
        assert [message["op"] for message in channel.sent].count("hello") == 1, "a page that is known is not asked again"
    finally:
        carrier.close()
