"""What goes to the page: every event once, every image once, and again what it has not taken."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import stored
from pages import Page

from plan_mode_nb.document.document import EncodedImages
from plan_mode_nb.hosts.kernel import outbox
from plan_mode_nb.hosts.kernel.outbox import Outbox
from plan_mode_nb.log.session import Session

NAMES: dict[str, Any] = {"agents": {"main": "s"}}


def session(turns: int = 2, id: str = "s") -> Session:
    return Session(stored.header(id), clock=lambda: 1, lines=stored.lines(turns, id=id))


def images(*contents: bytes) -> EncodedImages:
    return EncodedImages({f"{number:064x}": content for number, content in enumerate(contents)})


class Exchange:
    """An outbox and the page it writes to; ``now`` in seconds."""

    def __init__(self, page: Page, *sessions: Session) -> None:
        self.box, self.page, self.now = Outbox(), page, 0.0
        self.sessions = {each.id: each for each in sessions or (session(),)}

    def next(self, kept: EncodedImages, to: str = "page", names: Mapping[str, Any] = NAMES) -> dict[str, Any] | None:
        return self.box.next_append(self.sessions, to, self.now, kept, names)

    def settle(self, kept: EncodedImages, to: str = "page") -> list[dict[str, Any]]:
        """Send until nothing is left; what was sent."""
        sent = []
        while (message := self.next(kept, to)) is not None:
            sent.append(message)
            assert self.box.acknowledge(self.page.answer(message) or {})
        assert self.box.is_settled(self.sessions, kept)
        return sent


def test_an_image_goes_with_the_events_that_it_belongs_to_and_once() -> None:
    exchange, kept = Exchange(Page({})), images(b"one")
    (first,) = exchange.settle(kept)
    assert first["attachments"] == dict(kept)
    assert exchange.settle(kept) == []
    (second,) = exchange.settle(images(b"one", b"two"))
    assert (second["events"], list(second["attachments"])) == ([], [f"{1:064x}"])
    assert all(exchange.page.image(sha) for sha in images(b"one", b"two"))


def test_an_append_that_nobody_answered_is_sent_again_with_its_images() -> None:
    exchange, kept = Exchange(Page({})), images(b"one")
    lost = exchange.next(kept)
    assert exchange.next(kept) is None, "one in flight"
    exchange.now = 1.5
    again = exchange.next(kept)
    assert lost is not None
    assert again == {**lost, "n": 2}
    assert exchange.box.acknowledge(exchange.page.answer(again) or {})
    assert exchange.box.is_settled(exchange.sessions, kept)


def test_many_images_go_in_bounded_messages(monkeypatch: Any) -> None:
    monkeypatch.setattr(outbox, "BATCH_IMAGES", 100)
    exchange, kept = Exchange(Page({})), images(*(bytes([number]) * 30 for number in range(7)), b"big" * 200)
    sent = exchange.settle(kept)
    assert [len(message["attachments"]) for message in sent] == [2, 2, 2, 1, 1]
    assert sum(bool(message["events"]) for message in sent) == 1
    assert all(exchange.page.image(sha) for sha in kept)


def test_images_that_the_notebook_had_are_asked_about_and_sent_where_they_are_lacking() -> None:
    kept = images(b"one", b"two", b"new")
    had = list(kept)[:2]
    held = session()
    page = Page(stored.metadata({"s": list(held.lines)}, attachments={had[0]: kept[had[0]]}))
    exchange = Exchange(page, held)
    exchange.box.page_holds("s", len(held))
    exchange.box.images.likely = frozenset(had)
    first, second = exchange.settle(kept)
    assert (list(first["attachments"]), first["images"]) == ([f"{2:064x}"], had)
    assert (list(second["attachments"]), "images" in second) == ([had[1]], False)
    assert all(page.image(sha) for sha in kept)


def test_another_page_and_a_reloaded_one_get_what_they_lack() -> None:
    exchange, kept = Exchange(Page({})), images(b"one")
    exchange.settle(kept)
    exchange.page = Page({})
    assert exchange.settle(kept, to="another")[-1]["attachments"] == dict(kept)
    exchange.page = Page({})
    exchange.box.page_holds("s", 0)
    assert exchange.settle(kept, to="another")[-1]["attachments"] == dict(kept)


def test_a_page_that_holds_another_continuation_is_left_alone_and_waited_for_no_more() -> None:
    exchange, kept = Exchange(Page(stored.metadata({"s": stored.lines(1, "something else")}))), images(b"one")
    message = exchange.next(kept)
    assert message is not None
    exchange.box.acknowledge({"n": message["n"], "session": "s", "diverged": 3})
    assert exchange.next(kept) is None
    assert exchange.box.is_settled(exchange.sessions, kept)


def test_a_name_that_goes_elsewhere_is_told_without_any_event() -> None:
    exchange = Exchange(Page({}))
    exchange.settle(images())
    moved = exchange.next(images(), names={"agents": {"main": "t"}, "chosen": {"main": 1}})
    assert moved is not None
    assert (moved["events"], moved["agents"], moved["chosen"]) == ([], {"main": "t"}, {"main": 1})
