"""Reading the log out of an open page: what is asked, and what it amounts to."""

from __future__ import annotations

import base64
import itertools
from collections.abc import Mapping
from hashlib import sha256
from typing import Any

import stored
from pages import Page

from plan_mode_nb.document.chunks import KEY, chunk_key, read_metadata
from plan_mode_nb.document.document import Document
from plan_mode_nb.hosts.kernel.fetching import Fetch
from plan_mode_nb.hosts.kernel.sources import from_page
from plan_mode_nb.log.messages import user_message
from plan_mode_nb.testing import logs

PICTURES = {sha256(data).hexdigest(): base64.b64encode(data).decode() for data in (b"one", b"two", b"three")}


def shown(*digests: str, id: str = "s") -> list[str]:
    """A conversation that shows these images."""
    session = logs.new_session(id)
    blocks = [{"type": "image", "attachment": {"attachmentId": f"sha256:{each}", "mediaType": "image/png"}} for each in digests]
    session.append(logs.turn_start(1), logs.step_start(1, 1), logs.surface("user/message", user_message(blocks, id="u")))
    session.append(logs.assistant(1, 1, "Seen.", id="a"), logs.step_end(1, 1), logs.turn_end(1))
    return list(session.lines)


def fetched(page: Page, held: Document = Document(), session: str = "s") -> Fetch:  # noqa: B008 - frozen
    """Ask until it is done, or the page is silent."""
    sent: list[dict[str, Any]] = []
    fetch = Fetch("client", session, held, sent.append, itertools.count(1))
    fetch.ask()
    while not fetch.done:
        answer = page.answer(sent[-1])
        if answer is None:
            break
        assert fetch.take("client", answer)
    return fetch


def document(metadata: Mapping[str, Any]) -> Document:
    return read_metadata(metadata)


def test_everything_that_a_page_holds_comes_in_bounded_answers() -> None:
    """Every session, that of agent main first, then the images that any of them shows; no image that none shows."""
    digests = list(PICTURES)
    sessions = {"s": shown(digests[0]), "helper": shown(digests[1], id="helper"), "old": stored.lines(3, id="old")}
    metadata = stored.metadata(sessions, agents={"main": "s", "aide": "helper"}, chosen={"main": 2}, attachments=PICTURES)
    page = Page(metadata)
    fetch = fetched(page)
    wanted = document(metadata)
    assert fetch.done
    assert fetch.document.sessions == wanted.sessions
    assert (fetch.document.agents, fetch.document.chosen) == (wanted.agents, wanted.chosen)
    assert fetch.document.attachments == {digest: PICTURES[digest] for digest in digests[:2]}
    asked = [(question.get("session"), question.get("start")) for question in page.asked if "images" not in question]
    assert [each for each in asked if not each[1]] == [("s", 0), ("helper", 0), ("old", 0)]


def test_what_was_found_elsewhere_is_not_asked_for_again() -> None:
    digests = list(PICTURES)
    metadata = stored.metadata({"s": shown(*digests), "old": stored.lines(3, id="old")}, attachments=PICTURES)
    one = {digests[0]: PICTURES[digests[0]]}
    held = document(stored.metadata({"s": shown(*digests), "old": stored.lines(3, id="old")}, attachments=one))
    page = Page(metadata)
    fetch = fetched(page, held)
    assert {question.get("session") for question in page.asked if "images" not in question} == {"s"}
    assert fetch.document.attachments == {digest: PICTURES[digest] for digest in digests[1:]}
    grown = Page(stored.metadata({"s": stored.lines(1), "old": stored.lines(4, id="old")}))
    assert len(fetched(grown, held).document.sessions["old"].lines) == len(stored.lines(4))


def test_a_notebook_whose_main_session_is_empty_gives_the_other_agents() -> None:
    metadata = stored.metadata({"helper": stored.lines(2, id="helper")}, agents={"main": "none", "aide": "helper"})
    assert fetched(Page(metadata), session="none").document.agents == {"aide": "helper"}


def test_an_image_that_the_page_has_not_ends_nothing() -> None:
    digests = list(PICTURES)
    metadata = stored.metadata({"s": shown(*digests)}, attachments={digests[2]: PICTURES[digests[2]]})
    fetch = fetched(Page(metadata))
    assert fetch.done
    assert fetch.document.attachments == {digests[2]: PICTURES[digests[2]]}


def test_a_page_of_an_older_version_sends_no_images_and_is_not_asked_for_ever() -> None:
    class Older(Page):
        def _page(self, message: Mapping[str, Any]) -> dict[str, Any]:
            answer = super()._page({"session": "s", "start": 0, **{key: message[key] for key in ("session", "start") if key in message}})
            return {key: answer[key] for key in answer if key != "lengths"}

    fetch = fetched(Older(stored.metadata({"s": shown(*PICTURES)})))
    assert fetch.done
    assert fetch.document.attachments == {}


def test_half_a_session_is_none() -> None:
    """A page that goes silent in the middle leaves what was complete by then."""
    metadata = stored.metadata({"s": stored.lines(1), "old": stored.lines(3, id="old")})
    fetch = fetched(Page(metadata, silent_after=3))
    assert not fetch.done
    assert list(fetch.document.sessions) == ["s"]
    assert fetch.document.agents == {"main": "s"}


def test_a_session_that_the_page_cannot_read_to_its_end_is_said_to_be_damaged() -> None:
    metadata = stored.metadata({"s": stored.lines(1)})
    index = metadata[KEY]
    answer = {"index": index, "session": "s", "start": 0, "events": stored.lines(1), "length": 6, "damaged": True}
    fetch = Fetch("client", "s", Document(), lambda message: None, itertools.count(1))
    fetch.ask()
    assert fetch.take("client", {**answer, "n": 1})
    assert (fetch.document.sessions, fetch.document.agents) == ({}, {})
    assert fetch.document.problems == ("session 's' in the open notebook cannot be read to its end; it was left as it is",)


def test_other_answers_are_not_taken() -> None:
    """Another page's, an answer to an earlier question, nonsense."""
    fetch = Fetch("client", "s", Document(), lambda message: None, itertools.count(5))
    fetch.ask()
    assert not fetch.take("other", {"n": 5, "events": []})
    assert not fetch.take("client", {"n": 4, "events": []})
    assert not fetch.take("client", {"events": []})
    odd_index = {"index": {"sessions": [], "agents": {"main": 3}}}
    for nonsense in ({"events": [1], "length": "x"}, {"index": [], "lengths": 3, "events": None}, odd_index):
        again = Fetch("client", "s", Document(), lambda message: None, itertools.count(5))
        again.ask()
        assert again.take("client", {"n": 5, **nonsense})
        assert again.done
        assert again.document.sessions == {}


def test_a_header_that_names_another_session_is_a_problem_and_no_session() -> None:
    metadata = stored.metadata({"s": stored.lines(1)})
    index = {**metadata[KEY], "sessions": {"s": stored.header("t").to_json()}}
    found = from_page({"s": metadata[chunk_key("s", 0)]}, index)
    assert found.sessions == {}
    assert "its header says that it is session 't'" in found.problems[0]
