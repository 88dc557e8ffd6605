"""The save hook in real Jupyter servers, saved to as a front end saves: over REST."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import stored
from serving import Server

from plan_mode_nb.document.strip import strip_notebook
from plan_mode_nb.store.notebook import read_notebook, write_notebook

SHORT, LONG = stored.lines(1), stored.lines(3)
MANAGERS = {
    "sync": "jupyter_server.services.contents.largefilemanager.LargeFileManager",
    "async": "jupyter_server.services.contents.largefilemanager.AsyncLargeFileManager",
}


@pytest.fixture(scope="module", params=MANAGERS)
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with Server(tmp_path_factory.mktemp(request.param), manager=MANAGERS[request.param]) as server:
        yield server


def test_a_tab_with_an_old_copy_erases_no_event(server: Server) -> None:
    server.save("old.ipynb", stored.notebook(stored.metadata({"s": LONG}), "1"))
    server.save("old.ipynb", stored.notebook(stored.metadata({"s": SHORT}), "2"))
    assert stored.held(server.metadata("old.ipynb")) == {"s": LONG}
    assert read_notebook(server.root / "old.ipynb")["cells"][0]["source"] == ["2"], "the tab's cells were saved"
    assert "12 more events of session s" in server.logged("old.ipynb was saved with")
    server.save("old.ipynb", stored.notebook({}, "3"))
    assert stored.held(server.metadata("old.ipynb")) == {"s": LONG}


def test_a_notebook_that_has_nothing_of_ours_is_saved_without_a_word(server: Server) -> None:
    before = server.log
    server.save("plain.ipynb", stored.notebook({"kernelspec": stored.KERNEL}, "1"))
    server.save("plain.ipynb", stored.notebook({"kernelspec": stored.KERNEL}, "2"))
    assert server.metadata("plain.ipynb") == {"kernelspec": stored.KERNEL}
    assert server.log == before


def test_a_diverged_tab_that_saves_five_times_makes_one_fork(server: Server) -> None:
    ours, theirs = stored.lines(2, "plan it"), stored.lines(2, "do it")
    server.save("two.ipynb", stored.notebook(stored.metadata({"s": theirs})))
    for _ in range(5):
        server.save("two.ipynb", stored.notebook(stored.metadata({"s": ours})))
    assert sorted(stored.held(server.metadata("two.ipynb")).values()) == sorted([ours, theirs])


def test_what_was_stripped_from_the_file_stays_stripped(server: Server) -> None:
    tab = stored.notebook(stored.metadata({"s": LONG}), "1")
    server.save("strip.ipynb", tab)
    file = server.root / "strip.ipynb"
    write_notebook(file, strip_notebook(read_notebook(file)))
    stripped = read_notebook(file)["metadata"]
    for _ in range(2):
        server.save("strip.ipynb", tab)
        assert server.metadata("strip.ipynb") == stripped


def test_what_a_newer_version_wrote_is_left_alone_and_said_once(server: Server) -> None:
    newer = {**stored.metadata({"s": LONG}), "plan_mode_nb": {"format": 2, "all": "new"}}
    write_notebook(server.root / "newer.ipynb", stored.notebook(newer))
    for _ in range(2):
        server.save("newer.ipynb", stored.notebook({}, "1"))
    assert server.metadata("newer.ipynb") == {key: value for key, value in newer.items() if key != "kernelspec"}
    server.logged("upgrade plan_mode_nb")
    assert len([line for line in server.log if "upgrade plan_mode_nb" in line]) == 1


def test_a_damaged_file_does_not_block_the_save(server: Server) -> None:
    file = server.root / "damaged.ipynb"
    file.write_text('<<<<<<< ours\n{"metadata": {"plan_mode_nb": {}}}\n')
    server.save("damaged.ipynb", stored.notebook(stored.metadata({"s": SHORT})))
    assert stored.held(server.metadata("damaged.ipynb")) == {"s": SHORT}
    server.logged("the file of damaged.ipynb is damaged")


def test_the_journal_of_the_notebooks_kernel_is_merged_and_goes_when_the_kernel_is_gone(server: Server) -> None:
    server.save("live.ipynb", stored.notebook({"kernelspec": stored.KERNEL}, "1"))
    body = {"path": "live.ipynb", "name": "", "type": "notebook", "kernel": {"name": "python3"}}
    session = server.ask("POST", "sessions", body)
    journal = stored.journal(server.journals, "s", LONG, kernel=session["kernel"]["id"], path=None)
    file = journal.path
    assert file is not None
    server.save("live.ipynb", stored.notebook({"kernelspec": stored.KERNEL}, "2"))
    assert server.metadata("live.ipynb") == stored.metadata({"s": LONG})
    assert file.exists(), "a kernel still writes it"

    server.ask("PATCH", f"sessions/{session['id']}", {"path": "renamed.ipynb"})
    server.save("renamed.ipynb", stored.notebook({}, "3"))
    assert stored.held(server.metadata("renamed.ipynb")) == {"s": LONG}, "the server follows a rename"

    journal.close()
    server.save("renamed.ipynb", stored.notebook({}, "4"))
    assert not file.exists()
    assert stored.held(server.metadata("renamed.ipynb")) == {"s": LONG}
    server.ask("DELETE", f"sessions/{session['id']}")


def test_a_replaced_kernels_journal_is_merged_where_it_names_this_path_and_a_session_of_the_file(server: Server) -> None:
    server.save("again.ipynb", stored.notebook(stored.metadata({"s": SHORT})))
    stored.journal(server.journals, "s", LONG, kernel="gone", path=server.root / "again.ipynb").close()
    stored.journal(server.journals, "other", LONG, kernel="gone", path=server.root / "again.ipynb").close()
    stored.journal(server.journals, "s", stored.lines(4), kernel="elsewhere", path=server.root / "copy.ipynb").close()
    server.save("again.ipynb", stored.notebook(stored.metadata({"s": SHORT})))
    assert stored.held(server.metadata("again.ipynb")) == {"s": LONG}
    left = sorted(path.name for path in server.journals.iterdir())
    assert left == ["other.gone.journal", "s.elsewhere.journal"], "only what is in the file is removed, and nothing else is merged"
    for name in left:
        (server.journals / name).unlink()


def test_a_kernel_that_two_notebooks_share_writes_to_the_one_its_journal_names(server: Server) -> None:
    kernel = server.ask("POST", "kernels", {"name": "python3"})["id"]
    sessions = []
    for name in ("mine.ipynb", "second.ipynb"):
        server.save(name, stored.notebook({}, "1"))
        body = {"path": name, "name": "", "type": "notebook", "kernel": {"id": kernel}}
        sessions.append(server.ask("POST", "sessions", body))
    journal = stored.journal(server.journals, "s", LONG, kernel=kernel, path=server.root / "mine.ipynb")
    server.save("second.ipynb", stored.notebook({}, "2"))
    server.save("mine.ipynb", stored.notebook({}, "2"))
    assert stored.held(server.metadata("second.ipynb")) == {}
    assert stored.held(server.metadata("mine.ipynb")) == {"s": LONG}
    journal.drop()
    for session in sessions[:1]:
        server.ask("DELETE", f"sessions/{session['id']}")


def test_a_journal_that_cannot_be_read_costs_nobody_a_save(server: Server, tmp_path: Path) -> None:
    server.save("broken.ipynb", stored.notebook(stored.metadata({"s": LONG})))
    server.journals.mkdir(parents=True, exist_ok=True)
    (server.journals / "s.broken.journal").write_bytes(b"\x00not a journal")
    (server.journals / "s.link.journal").symlink_to(tmp_path / "nowhere")
    server.save("broken.ipynb", stored.notebook(stored.metadata({"s": SHORT})))
    assert stored.held(server.metadata("broken.ipynb")) == {"s": LONG}
    (server.journals / "s.broken.journal").unlink()
    (server.journals / "s.link.journal").unlink()
