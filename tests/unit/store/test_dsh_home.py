"""Where deepseek-harness keeps sessions and images: found there, put there."""

from __future__ import annotations

import hashlib
import os
import stat
from pathlib import Path
from typing import Any

import pytest
from msgspec import UNSET

from plan_mode_nb.exceptions import StoreError
from plan_mode_nb.log.events import Header, SessionId
from plan_mode_nb.log.messages import attachment_id
from plan_mode_nb.store.dsh_home import default_home, find_images, images_named, keep_images, missing_images, session_place
from plan_mode_nb.testing import logs

DATA = b"the bytes of a picture"
DIGEST = hashlib.sha256(DATA).hexdigest()


@pytest.mark.parametrize(
    ("cwd", "project"),
    [
        ("/Users/qyj/work/deepseek-harness", "--Users-qyj-work-deepseek-harness--"),
        ("/a-b/c", "--a-b-c--"),
        ("C:\\work\\agent", "--C-work-agent--"),
        ("/开发/~agent", "--~5F00~53D1-~007Eagent--"),
        ("/a b/😀/", "--a~0020b-~D83D~DE00---"),
        ("/", "--root--"),
        ("/" + "x" * 1000, f"--{'x' * 251}--"),
        (UNSET, "_no-cwd"),
    ],
)
def test_a_session_lies_in_a_folder_named_by_where_it_worked(cwd: Any, project: str) -> None:
    """deepseek-harness's own examples, and what it does with units that are not safe in a name."""
    place = session_place(Header(id=SessionId("s1"), created_at=1, cwd=cwd))
    assert place.as_posix() == f"sessions/{project}/s1/session.jsonl"


@pytest.mark.parametrize(
    ("id", "folder"), [(".", "~002E"), ("..", "~002E~002E"), ("a/../b", "a~002F..~002Fb"), ("~", "~007E"), ("a.b", "a.b")]
)
def test_an_id_never_leaves_its_folder(id: str, folder: str) -> None:
    """An id is any text; its escape is a single segment."""
    assert session_place(Header(id=SessionId(id), created_at=1)).parent.name == folder


def test_the_home_is_what_the_environment_names() -> None:
    """A blank name is none."""
    assert default_home({"DSH_HOME": "/x/y"}) == Path("/x/y")
    assert default_home({"DSH_HOME": "  "}) == default_home({}) == Path.home() / ".dsh"


def placed(home: Path, data: bytes = DATA, digest: str = DIGEST) -> Path:
    target = home / "attachments" / "v1" / "objects" / digest[:2] / digest
    target.parent.mkdir(parents=True)
    target.write_bytes(data)
    return target


def test_images_are_found_in_the_home_that_the_log_lies_in_then_in_the_default_one(tmp_path: Path) -> None:
    """Whatever the environment says of homes, a log in one belongs to it."""
    log = tmp_path / "sessions" / "--x--" / "s" / "session.jsonl"
    assert find_images([DIGEST], log, {"DSH_HOME": str(tmp_path / "none")}) == {}
    placed(tmp_path)
    assert find_images([DIGEST, "0" * 64], log, {"DSH_HOME": str(tmp_path / "none")}) == {DIGEST: DATA}
    assert find_images([DIGEST], Path("/elsewhere/s.jsonl"), {"DSH_HOME": str(tmp_path)}) == {DIGEST: DATA}


def test_bytes_that_are_not_what_their_name_says_are_not_found(tmp_path: Path) -> None:
    """A name is a promise of content."""
    placed(tmp_path, b"something else")
    assert find_images([DIGEST], tmp_path / "s.jsonl", {"DSH_HOME": str(tmp_path)}) == {}


def test_images_are_put_into_the_home_of_a_log_or_beside_it_and_only_once(tmp_path: Path) -> None:
    """Private files, in deepseek-harness's folders."""
    inside = tmp_path / "home" / "sessions" / "--x--" / "s" / "session.jsonl"
    inside.parent.mkdir(parents=True)
    for log, home in ((inside, tmp_path / "home"), (tmp_path / "s.jsonl", tmp_path)):
        assert keep_images({DIGEST: DATA}, log) == home / "attachments"
        kept = home / "attachments" / "v1" / "objects" / DIGEST[:2] / DIGEST
        assert kept.read_bytes() == DATA
        assert stat.S_IMODE(kept.stat().st_mode) == 0o600
        before = kept.stat().st_mtime_ns
        keep_images({DIGEST: DATA}, log)
        assert kept.stat().st_mtime_ns == before
        assert find_images([DIGEST], log, {"DSH_HOME": "/none"}) == {DIGEST: DATA}


def test_a_folder_that_cannot_be_made_is_one_sentence(tmp_path: Path) -> None:
    """Such as where a file stands in its place."""
    (tmp_path / "attachments").write_text("a file")
    with pytest.raises(StoreError, match="cannot be made"):
        keep_images({DIGEST: DATA}, tmp_path / "s.jsonl")


def test_every_image_that_an_event_names_is_named_old_ids_too() -> None:
    """At any depth; what is no digest of bytes names nothing."""
    session = logs.new_session()
    first, second = "1" * 64, "2" * 64
    blocks = [
        {"type": "image", "attachment": {"attachmentId": name}}
        for name in (attachment_id(first), second, "../../etc", f"sha256:{'A' * 64}")
    ]
    session.append(logs.turn_start(1), logs.step_start(1, 1))
    session.append(logs.assistant(1, 1, logs.call_block("c", "read", {})), logs.tool_call(1, 1, "c", "read", {}))
    result = logs.tool_result(1, 1, "c", "x")
    result.data["message"]["content"][0]["content"] += blocks
    session.append(result, logs.user('the text "attachmentId" is no image'))
    assert images_named(session) == [first, second]


@pytest.mark.parametrize(("named", "found", "says"), [("ab", "ab", ""), ("ab", "a", "an image"), ("abc", "a", "2 images")])
def test_what_is_missing_is_one_sentence_that_says_what_to_do(named: str, found: str, says: str) -> None:
    """And nothing is said where nothing is missing."""
    sentence = missing_images(named, found)
    assert sentence.startswith(says)
    assert bool(says) == ("import again" in sentence)
    assert os.linesep not in sentence
