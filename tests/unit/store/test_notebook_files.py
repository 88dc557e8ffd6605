"""A notebook on disk changes in what was meant to change, and in nothing else."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path
from typing import Any

import nbformat
import pytest

from plan_mode_nb.document.document import StoredSession, one_session
from plan_mode_nb.document.reconcile import merge_documents
from plan_mode_nb.exceptions import FormatError, StoreError
from plan_mode_nb.log.events import Header, SessionId
from plan_mode_nb.store.files import replace
from plan_mode_nb.store.notebook import change_notebook, load_document, read_notebook, save_document, write_notebook

DOCUMENT = one_session(StoredSession(Header(id=SessionId("s"), created_at=1), ["a", "é"]), agent="main")


def plain() -> dict[str, Any]:
    cell = {"cell_type": "code", "execution_count": None, "id": "x", "metadata": {}, "outputs": [], "source": ["a = 1\n", "a"]}
    return {"cells": [cell], "metadata": {"kernelspec": {"display_name": "P", "name": "p"}, "z": 1.0}, "nbformat": 4, "nbformat_minor": 5}


def text(notebook: dict[str, Any], **how: Any) -> str:
    return json.dumps(notebook, ensure_ascii=False, **{"indent": 1, **how}) + "\n"


def test_a_document_comes_back_from_the_file_and_the_notebook_stays_valid(tmp_path: Path) -> None:
    path = tmp_path / "n.ipynb"
    path.write_text(text(plain()))
    assert save_document(path, DOCUMENT)
    assert list(load_document(path).sessions["s"].lines) == ["a", "é"]
    nbformat.validate(nbformat.read(path, as_version=4))
    assert read_notebook(path)["cells"] == plain()["cells"]


@pytest.mark.parametrize(
    "style",
    [
        lambda: text(plain()),
        lambda: text(plain(), indent=2),
        lambda: text(plain(), indent="\t"),
        lambda: text(plain(), indent=4)[:-1],
        lambda: text(plain()).replace("\n", "\r\n"),
        lambda: "\ufeff" + text(plain()),
        lambda: json.dumps(plain(), separators=(",", ":")),
        lambda: text({**plain(), "metadata": {"x": "\x1b[0m é"}}),
        lambda: json.dumps({**plain(), "metadata": {"x": "é"}}, indent=1) + "\n",
        lambda: json.dumps({**plain(), "metadata": {"x": "\ud800"}}, indent=1) + "\n",
        lambda: text(dict(reversed(plain().items()))),
    ],
)
def test_layout_key_order_numbers_and_line_ends_stay_as_they_were(tmp_path: Path, style: Any) -> None:
    path = tmp_path / "n.ipynb"
    before = style()
    path.write_bytes(before.encode())
    added = {"cell_type": "markdown", "id": "added", "metadata": {}, "source": ""}
    assert change_notebook(path, lambda notebook: {**notebook, "cells": [*notebook["cells"], added]})
    assert change_notebook(path, lambda notebook: {**notebook, "cells": notebook["cells"][:-1]})
    assert path.read_bytes().decode() == before


def test_an_unchanged_notebook_is_not_touched(tmp_path: Path) -> None:
    path = tmp_path / "n.ipynb"
    path.write_text(text(plain()))
    save_document(path, DOCUMENT)
    os.utime(path, ns=(1, 1))
    before = path.stat()
    assert not save_document(path, merge_documents(load_document(path), DOCUMENT))
    assert (path.stat().st_mtime_ns, path.stat().st_ino) == (before.st_mtime_ns, before.st_ino)


def test_permissions_and_links_stay(tmp_path: Path) -> None:
    path, link = tmp_path / "n.ipynb", tmp_path / "link.ipynb"
    path.write_text(text(plain()))
    path.chmod(0o640)
    link.symlink_to(path)
    save_document(link, DOCUMENT)
    assert link.is_symlink()
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert load_document(path).sessions
    assert sorted(each.name for each in tmp_path.iterdir()) == ["link.ipynb", "n.ipynb"]


def test_metadata_keys_are_sorted_where_they_were_so_that_jupyters_next_save_moves_nothing(tmp_path: Path) -> None:
    path = tmp_path / "n.ipynb"
    path.write_text(text({**plain(), "metadata": {"a": 1, "z": 1}}))
    save_document(path, DOCUMENT)
    assert list(read_notebook(path)["metadata"]) == ["a", "plan_mode_nb", "plan_mode_nb/s/0000000", "z"]
    written = path.read_text()
    nbformat.write(nbformat.read(path, as_version=4), path)
    assert path.read_text() == written


NO_NOTEBOOK = [
    "",
    "{}",
    "[1]",
    "{oops",
    '{"nbformat": 4}',
    '{"nbformat": 4, "cells": [1], "metadata": {}}',
    '{"nbformat": 4, "cells": [], "metadata": 1}',
    "[" * 9000,
]


@pytest.mark.parametrize("content", NO_NOTEBOOK)
def test_what_is_no_notebook_is_refused_and_left_as_it_is(tmp_path: Path, content: str) -> None:
    path = tmp_path / "n.ipynb"
    path.write_text(content)
    for act in (load_document, lambda each: save_document(each, DOCUMENT)):
        with pytest.raises(FormatError, match=r"n\.ipynb is not a notebook"):
            act(path)
    assert path.read_text() == content


def test_an_older_format_says_how_to_bring_it_forward(tmp_path: Path) -> None:
    path = tmp_path / "n.ipynb"
    path.write_text('{"nbformat": 3, "worksheets": []}')
    with pytest.raises(FormatError, match="open it in Jupyter and save it"):
        read_notebook(path)


def test_bytes_that_are_no_text_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "n.ipynb"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(FormatError, match="not UTF-8"):
        read_notebook(path)


def test_a_change_that_would_not_be_a_notebook_is_refused_and_the_file_stays(tmp_path: Path) -> None:
    path = tmp_path / "n.ipynb"
    path.write_text(text(plain()))
    with pytest.raises(FormatError, match="would not be a valid notebook"):
        change_notebook(path, lambda notebook: {**notebook, "cells": [{"cell_type": "nonsense"}]})
    assert path.read_text() == text(plain())


def test_a_notebook_that_was_not_valid_before_keeps_its_log_all_the_same(tmp_path: Path) -> None:
    path = tmp_path / "n.ipynb"
    path.write_text(text({**plain(), "metadata": {"kernelspec": {"name": "no display_name"}}}))
    assert save_document(path, DOCUMENT)
    assert load_document(path).sessions.keys() == {"s"}


def test_a_new_notebook_is_written_as_jupyter_writes_it(tmp_path: Path) -> None:
    path = tmp_path / "n.ipynb"
    write_notebook(path, plain())
    assert path.read_text() == text(plain())


def test_a_missing_file_and_a_missing_folder_say_so(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="cannot be read"):
        load_document(tmp_path / "none.ipynb")
    with pytest.raises(StoreError, match="it is as it was"):
        replace(tmp_path / "none" / "x", b"")


def test_a_new_file_gets_the_usual_permissions_or_those_asked_for(tmp_path: Path) -> None:
    usual, private = tmp_path / "usual", tmp_path / "private"
    replace(usual, b"x")
    replace(private, b"x", mode=0o600)
    (tmp_path / "reference").write_text("x")
    assert usual.stat().st_mode == (tmp_path / "reference").stat().st_mode
    assert stat.S_IMODE(private.stat().st_mode) == 0o600
