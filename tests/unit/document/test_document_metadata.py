"""Sessions in a notebook's metadata: the layout, and what is not understood is kept as it is and said."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from plan_mode_nb.document.chain import Chain, chained
from plan_mode_nb.document.chunks import CHUNK_CODE_POINTS, chunked, read_metadata, write_metadata
from plan_mode_nb.document.document import Document, StoredSession, Unread, one_session
from plan_mode_nb.document.reconcile import merge_documents
from plan_mode_nb.log.events import Header, SessionId

HEADER = {"version": 0, "id": "s", "createdAt": 1, "delegationDepth": 0}
SHA = "a" * 64


def metadata(**changes: Any) -> dict[str, Any]:
    index = {"format": 1, "agents": {"main": "s"}, "sessions": {"s": HEADER}}
    return {"kernelspec": {}, "plan_mode_nb": index, "plan_mode_nb/s/0000000": ["a", "b"], "plan_mode_nb/s/0000002": ["c"], **changes}


def session(id: str = "s", *lines: str, created_at: int = 1) -> StoredSession:
    return StoredSession(Header(id=SessionId(id), created_at=created_at), list(lines))


def test_the_layout_is_an_index_and_chunks_keyed_by_session_and_first_seq() -> None:
    lines = ["x" * CHUNK_CODE_POINTS, "y" * (CHUNK_CODE_POINTS - 1), "z", "last"]
    document = Document({"main": "s"}, {"s": session("s", *lines)}, {SHA: "YQ=="}, frozenset({"gone"}))
    written = write_metadata(document, {"kernelspec": {"name": "python3"}})
    assert written == {
        "kernelspec": {"name": "python3"},
        "plan_mode_nb": {"format": 1, "agents": {"main": "s"}, "sessions": {"s": HEADER}, "stripped": ["gone"]},
        "plan_mode_nb/s/0000000": lines[:1],
        "plan_mode_nb/s/0000001": lines[1:3],
        "plan_mode_nb/s/0000003": lines[3:],
        f"plan_mode_nb/attachments/{SHA}": "YQ==",
    }


def test_chunk_sizes_count_code_points_not_bytes_or_utf16_units() -> None:
    assert [len(lines) for _, lines in chunked(["😀" * (CHUNK_CODE_POINTS // 2)] * 4)] == [2, 2]


def test_nothing_of_ours_gives_an_empty_document_and_writes_nothing() -> None:
    assert read_metadata({"kernelspec": {}}) == Document()
    assert write_metadata(Document(), {"kernelspec": {}}) == {"kernelspec": {}}


def test_chunks_of_another_size_are_read_and_brought_to_the_layout() -> None:
    document = read_metadata(metadata())
    assert list(document.sessions["s"].lines) == ["a", "b", "c"]
    assert write_metadata(document, metadata())["plan_mode_nb/s/0000000"] == ["a", "b", "c"]
    assert "plan_mode_nb/s/0000002" not in write_metadata(document, metadata())


def test_unknown_keys_of_a_header_and_of_the_index_come_back() -> None:
    index = {"format": 1, "agents": {}, "sessions": {"s": {**HEADER, "future": 1}}, "later": [1]}
    given = metadata(plan_mode_nb=index)
    assert write_metadata(read_metadata(given), given)["plan_mode_nb"] == index


def test_an_id_may_hold_a_slash() -> None:
    document = one_session(session("a/0000001", "x"))
    assert list(read_metadata(write_metadata(document, {})).sessions["a/0000001"].lines) == ["x"]


@pytest.mark.parametrize(
    "wrong",
    [
        {"plan_mode_nb/s/0000002": "c"},
        {"plan_mode_nb/s/0000002": ["c", 1]},
        {"plan_mode_nb/s/0000000": None},
        {"plan_mode_nb/s/0000005": ["late"]},
        {"plan_mode_nb/s/0000001": ["doubled"]},
        {"plan_mode_nb": {"format": 1, "sessions": {"s": {**HEADER, "id": "other"}}}},
        {"plan_mode_nb": {"format": 1, "sessions": {"s": {**HEADER, "version": 1}}}},
        {"plan_mode_nb": {"format": 1, "sessions": {"s": None}}},
        {"plan_mode_nb": {"format": 1, "sessions": {}}},
    ],
)
def test_a_session_of_the_wrong_shape_is_a_problem_and_stays_as_it_is_beside_a_new_one(wrong: dict[str, Any]) -> None:
    given = metadata(**wrong)
    document = read_metadata(given)
    assert "s" not in document.sessions
    assert len(document.problems) == 1
    assert "session 's'" in document.problems[0]
    beside = merge_documents(document, one_session(session("new", "n"), agent="main"))
    written = write_metadata(beside, given)
    assert {key: written.get(key) for key in given if key != "plan_mode_nb"} == {key: given[key] for key in given if key != "plan_mode_nb"}
    assert written["plan_mode_nb"]["sessions"].get("s") == given["plan_mode_nb"]["sessions"].get("s")
    assert written["plan_mode_nb/new/0000000"] == ["n"]
    again = read_metadata(written)
    assert (list(again.sessions), again.problems) == (["new"], document.problems)


@pytest.mark.parametrize("key", ["plan_mode_nb/what", "plan_mode_nb/s/12", "plan_mode_nb/s/00000012", f"plan_mode_nb/attachments/{SHA}"])
def test_a_key_that_is_not_understood_is_a_problem_and_stays(key: str) -> None:
    given = metadata(**{key: {"any": 1}})
    document = read_metadata(given)
    assert len(document.problems) == 1
    assert write_metadata(document, given)[key] == {"any": 1}


@pytest.mark.parametrize(
    "index",
    [
        "junk",
        None,
        [],
        {},
        {"format": 2, "sessions": {}},
        {"format": "1"},
        {"format": True},
        {"format": 1, "sessions": []},
        {"format": 1, "agents": []},
        {"format": 1, "stripped": {}},
    ],
)
def test_an_index_that_is_not_understood_locks_the_notebook_and_nothing_is_written_over(index: Any) -> None:
    given = metadata(plan_mode_nb=index)
    document = read_metadata(given)
    assert document.locked
    assert document.problems == (document.locked,)
    assert write_metadata(merge_documents(document, one_session(session("new", "n"))), given) == given
    assert write_metadata(one_session(session("new", "n")), given) == given


def test_a_newer_format_says_to_upgrade() -> None:
    assert "upgrade plan_mode_nb" in read_metadata(metadata(plan_mode_nb={"format": 2})).locked


@pytest.mark.parametrize("given", [None, [], "x", 5])
def test_metadata_that_is_no_object_never_raises(given: Any) -> None:
    assert read_metadata(given).locked


def test_reading_and_writing_change_nothing_they_were_given() -> None:
    given = metadata()
    before = copy.deepcopy(given)
    write_metadata(merge_documents(read_metadata(given), one_session(session("n", "x"))), given)
    assert given == before


def test_a_stripped_session_and_its_forks_do_not_return_at_any_length() -> None:
    given = metadata(plan_mode_nb={"format": 1, "agents": {"main": "s"}, "sessions": {"s": HEADER}, "stripped": ["s"]})
    document = read_metadata(given)
    assert (dict(document.sessions), dict(document.agents), document.problems) == ({}, {}, ())
    written = write_metadata(document, given)
    assert not [key for key in written if key.startswith("plan_mode_nb/")]
    merged = merge_documents(document, one_session(session("s", *"abcdefg"), agent="main"), one_session(session("s~1~abc", "a")))
    assert (dict(merged.sessions), dict(merged.agents)) == ({}, {})


def test_a_readable_copy_that_holds_all_of_a_damaged_one_takes_its_place() -> None:
    damaged = metadata()
    del damaged["plan_mode_nb/s/0000000"]
    merged = merge_documents(read_metadata(damaged), one_session(session("s", "a", "b", "c", "d"), agent="main"))
    assert list(merged.sessions) == ["s"]
    assert list(read_metadata(write_metadata(merged, {})).sessions["s"].lines) == ["a", "b", "c", "d"]


def test_a_readable_copy_that_does_not_stands_beside_the_damaged_one() -> None:
    damaged = metadata()
    del damaged["plan_mode_nb/s/0000000"]
    live = one_session(session("s", "a", "b", "other"), agent="main")
    merged = merge_documents(read_metadata(damaged), live)
    assert [id.startswith("s~0~") for id in merged.sessions] == [True]
    written = write_metadata(merged, damaged)
    assert written["plan_mode_nb/s/0000002"] == ["c"]
    assert merge_documents(merged, live).sessions.keys() == merged.sessions.keys()


def test_a_name_goes_to_the_session_made_later_and_on_a_tie_to_the_smaller_id() -> None:
    old, new, tie = (Document({"main": id}, {id: session(id, created_at=at)}) for id, at in (("z", 1), ("b", 2), ("a", 2)))
    assert merge_documents(old, new).agents == {"main": "b"}
    assert merge_documents(new, tie, old).agents == {"main": "a"}


def test_what_two_documents_do_not_understand_is_kept_of_both() -> None:
    one, two = Document(unread=Unread(keys={"plan_mode_nb/x": 1})), Document(unread=Unread(keys={"plan_mode_nb/y": 2}))
    assert dict(merge_documents(one, two).unread.keys) == {"plan_mode_nb/x": 1, "plan_mode_nb/y": 2}


def test_the_chained_hash_is_the_one_that_was_fixed() -> None:
    """sha256 of the session's id; then of the hash before and the line, as text."""
    assert chained("s", []) == "043a718774c572bd8a25adbeb1bfcd5c0256ae11cecf9f9c3f925d0e52beaf89"
    assert chained("s", ["a", "é"]) == "2bb5b55515807d5c59d24f6c060c15a6e290a227373195612e6c623b1200131f"


def test_a_chain_follows_a_list_that_grows() -> None:
    lines = ["a"]
    chain = Chain("s", lines)
    assert chain.at(1) == chained("s", ["a"])
    lines.append("b")
    assert chain.at(2) == chained("s", ["a", "b"])
    with pytest.raises(IndexError):
        chain.at(3)
