"""What a kernel finds of a conversation on its disk."""

from __future__ import annotations

from pathlib import Path

import stored

from plan_mode_nb.hosts.kernel.sources import from_disk
from plan_mode_nb.store.notebook import write_notebook


def test_journals_of_this_notebook_are_read_whoever_writes_them_still(tmp_path: Path) -> None:
    """A server that died may leave a kernel behind that goes on: what it said is found by the kernel that takes its place."""
    notebook, folder = tmp_path / "a.ipynb", tmp_path / "journals"
    write_notebook(notebook, stored.notebook(stored.metadata({"s": stored.lines(1), "t": stored.lines(1, id="t")})))
    left = stored.journal(folder, "s", stored.lines(3), kernel="left behind", path=notebook)
    gone = stored.journal(folder, "t", stored.lines(2, id="t"), kernel="gone", path=notebook)
    gone.close()
    copy = stored.journal(folder, "s", stored.lines(4), kernel="of a copy", path=tmp_path / "b.ipynb")
    unknown = stored.journal(folder, "other", stored.lines(1), kernel="gone too", path=notebook)
    found = from_disk(notebook, folder, "this one")
    assert {id: list(session.lines) for id, session in found.sessions.items()} == {"s": stored.lines(3), "t": stored.lines(2, id="t")}
    for journal in (left, copy, unknown):
        journal.close()


def test_a_restarted_kernel_reads_what_it_wrote_before_also_where_no_file_can_be_read(tmp_path: Path) -> None:
    stored.journal(tmp_path, "s", stored.lines(2), kernel="this one", path=None, agent="main").close()
    found = from_disk(None, tmp_path, "this one")
    assert (found.agents, list(found.sessions["s"].lines)) == ({"main": "s"}, stored.lines(2))
