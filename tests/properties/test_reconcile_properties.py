"""Reconcile is deterministic, idempotent and commutative, obeys tombstones, and loses no line."""

from __future__ import annotations

import itertools

from hypothesis import given, settings
from hypothesis import strategies as st

from plan_mode_nb.document.chain import Chain, chained
from plan_mode_nb.document.chunks import read_metadata, write_metadata
from plan_mode_nb.document.document import Document, StoredSession
from plan_mode_nb.document.reconcile import common_prefix, merge_documents, reconcile, with_agents
from plan_mode_nb.log.events import Header, SessionId

LINES = st.lists(st.sampled_from(["a", "b", "c"]), max_size=6)
IDS = st.sampled_from(["s", "t"])


def stored(id: str, lines: list[str], created_at: int = 1) -> StoredSession:
    return StoredSession(Header(id=SessionId(id), created_at=created_at), lines)


@st.composite
def documents(draw: st.DrawFn) -> Document:
    sessions = {id: stored(id, lines, draw(st.integers(0, 2))) for id, lines in draw(st.dictionaries(IDS, LINES)).items()}
    agents = draw(st.dictionaries(st.sampled_from(["main", "other"]), st.sampled_from([*sessions] or ["s"])))
    chosen = {name: draw(st.integers(1, 2)) for name in agents if draw(st.booleans())}
    attachments = draw(st.dictionaries(st.sampled_from(["0" * 64, "1" * 64]), st.sampled_from(["x", "y"])))
    gone = frozenset(draw(st.sets(IDS, max_size=1))) if not draw(st.integers(0, 3)) else frozenset()
    kept = {name: count for name, count in chosen.items() if not Document(stripped=gone).is_stripped(agents[name])}
    return Document(agents=agents, chosen=kept, sessions=sessions, attachments=attachments, stripped=gone)


def everything(document: Document) -> object:
    sessions = {id: (session.header, list(session.lines)) for id, session in document.sessions.items()}
    return dict(document.agents), dict(document.chosen), sessions, dict(document.attachments), document.stripped


def prefixes(document: Document) -> set[tuple[str, ...]]:
    return {tuple(session.lines[:end]) for session in document.sessions.values() for end in range(len(session.lines) + 1)}


@settings(max_examples=300, deadline=None)
@given(a=LINES, b=LINES)
def test_two_copies_become_one_session_or_one_and_a_fork_the_same_in_either_order(a: list[str], b: list[str]) -> None:
    one, two = reconcile(stored("s", a), stored("s", b)), reconcile(stored("s", b), stored("s", a))
    assert one == two
    at = common_prefix(a, b)
    if at in (len(a), len(b)):
        assert [list(session.lines) for session in one] == [max(a, b, key=len)]
    else:
        kept, fork = one
        assert sorted([list(kept.lines), list(fork.lines)]) == sorted([a, b])
        assert kept.header.id == "s"
        assert (fork.header.parent_session, fork.header.seed_length) == ("s", at)
        assert fork.header.id.startswith(f"s~{at}~")


@settings(max_examples=300, deadline=None)
@given(a=documents(), b=documents())
def test_merging_is_commutative(a: Document, b: Document) -> None:
    assert everything(merge_documents(a, b)) == everything(merge_documents(b, a))


@settings(max_examples=300, deadline=None)
@given(a=documents(), b=documents())
def test_merging_again_changes_nothing(a: Document, b: Document) -> None:
    merged = merge_documents(a, b)
    for again in (merge_documents(merged, a), merge_documents(b, merged), merge_documents(merged, merged), merge_documents(merged, a, b)):
        assert everything(again) == everything(merged)


@settings(max_examples=300, deadline=None)
@given(parts=st.lists(documents(), min_size=1, max_size=4))
def test_no_line_is_lost_but_of_what_was_stripped(parts: list[Document]) -> None:
    merged = merge_documents(*parts)
    kept = [Document(sessions={i: s for i, s in part.sessions.items() if not merged.is_stripped(i)}) for part in parts]
    assert set[tuple[str, ...]]().union(*map(prefixes, kept)) == prefixes(merged)
    assert not merged.sessions.keys() & merged.stripped
    assert merged.attachments.keys() == {sha for part in parts for sha in part.attachments}


@settings(max_examples=200, deadline=None)
@given(parts=st.lists(documents(), min_size=2, max_size=3))
def test_order_changes_at_most_the_names_of_forks(parts: list[Document]) -> None:
    merged = [merge_documents(*order) for order in itertools.permutations(parts)]
    contents = [{id.split("~")[0]: prefixes(each) for id in each.sessions} for each in merged]
    assert all(each == contents[0] for each in contents)


@settings(max_examples=200, deadline=None)
@given(base=LINES, ours=LINES, growth=LINES)
def test_a_diverged_copy_that_saves_as_it_grows_makes_one_fork(base: list[str], ours: list[str], growth: list[str]) -> None:
    document = Document(sessions={"s": stored("s", [*base, "ours", *ours])})
    for end in range(len(growth) + 1):
        document = merge_documents(document, Document(sessions={"s": stored("s", [*base, "theirs", *growth[:end]])}))
    assert len(document.sessions) == 2


@settings(max_examples=200, deadline=None)
@given(a=documents(), b=documents())
def test_a_merge_survives_being_written_and_read(a: Document, b: Document) -> None:
    merged = merge_documents(a, b)
    assert everything(read_metadata(write_metadata(merged, {}))) == everything(merged)


@settings(max_examples=200, deadline=None)
@given(a=documents(), b=documents(), agent=st.sampled_from(["main", "other"]), target=IDS)
def test_a_choice_is_in_force_against_every_older_copy(a: Document, b: Document, agent: str, target: str) -> None:
    before = merge_documents(a, b)
    if target in before.sessions and agent in before.agents:
        after = with_agents(before, {agent: target})
        for merged in (merge_documents(after, a, b), merge_documents(before, after)):
            assert merged.agents[agent] == target
            assert everything(merged) == everything(merge_documents(after, merged))


@settings(max_examples=200, deadline=None)
@given(a=LINES, b=LINES, id=IDS)
def test_the_chained_hash_tells_how_far_two_copies_agree(a: list[str], b: list[str], id: str) -> None:
    mine, theirs = Chain(id, a), Chain(id, b)
    at = common_prefix(a, b)
    for length in range(min(len(a), len(b)) + 1):
        assert (mine.at(length) == theirs.at(length)) is (length <= at)
    assert mine.at(len(a)) == chained(id, a)
