"""``read``: numbered lines of text, cells of a notebook, images as images, and of anything hostile one sentence."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import sys
import threading
from pathlib import Path

import pytest
from calling import Files
from small_images import gif, jpeg, png, webp

from plan_mode_nb.features.tools import read as reading
from plan_mode_nb.features.tools.closed import Closed
from plan_mode_nb.features.tools.work import Budget


def test_lines_are_numbered_from_one(tmp_path: Path) -> None:
    """Number, tab, line."""
    (tmp_path / "a.txt").write_text("one\n\nthree\n")
    assert Files(tmp_path).text("read", path="a.txt") == "     1\tone\n     2\t\n     3\tthree"


@pytest.mark.parametrize("text", ["one\ntwo", "one\ntwo\n", "one\r\ntwo\r\n", "one\rtwo"])
def test_every_line_end_counts_once(tmp_path: Path, text: str) -> None:
    """LF, CRLF, CR, and none at the end."""
    (tmp_path / "a.txt").write_bytes(text.encode())
    assert Files(tmp_path).text("read", path="a.txt") == "     1\tone\n     2\ttwo"


def test_offset_and_limit_choose_lines_and_the_note_says_how_to_go_on(tmp_path: Path) -> None:
    """Following the notes reads the whole file once."""
    (tmp_path / "a.txt").write_text("".join(f"line {n}\n" for n in range(1, 11)))
    tools = Files(tmp_path)
    part = tools.text("read", path="a.txt", offset=4, limit=3).splitlines()
    assert part == [
        "     4\tline 4",
        "     5\tline 5",
        "     6\tline 6",
        "[lines 4 to 6; there are more: go on with offset 7]",
    ]
    assert tools.text("read", path="a.txt", offset=7, limit=4).splitlines()[-1] == "    10\tline 10"


def test_reading_on_by_the_notes_shows_every_line_once(tmp_path: Path) -> None:
    """Also where characters, not lines, fill a result."""
    (tmp_path / "a.txt").write_text("".join(f"{n} {'x' * (n % 700)}\n" for n in range(1, 1_501)))
    tools, offset, seen = Files(tmp_path), 1, []
    while offset:
        text = tools.text("read", path="a.txt", offset=offset)
        assert len(text) < 33_000
        *lines, last = text.splitlines()
        more = last.startswith("[lines ")
        seen += [int(line.split("\t")[1].split()[0]) for line in (lines if more else [*lines, last])]
        offset = int(last.split("offset ")[1].rstrip("]")) if more else 0
    assert seen == list(range(1, 1_501))


def test_past_the_end_says_how_many_lines_there_are(tmp_path: Path) -> None:
    """An error with the number; an empty file is no error."""
    (tmp_path / "a.txt").write_text("one\ntwo\n")
    (tmp_path / "empty").write_text("")
    assert Files(tmp_path).error("read", path="a.txt", offset=3) == ("a.txt has only 2 lines; send a smaller offset", "BAD_ARGUMENTS")
    assert Files(tmp_path).text("read", path="empty", offset=3) == "empty is empty."


def test_a_line_of_any_length_is_cut_and_the_next_one_still_read(tmp_path: Path) -> None:
    """A hundred megabytes without an end are one line."""
    with (tmp_path / "long.txt").open("w") as file:
        for _ in range(100):
            file.write("x" * 1_000_000)
        file.write("\nshort\n")
    lines = Files(tmp_path).text("read", path="long.txt").splitlines()
    assert len(lines[0]) == 7 + 2_000 + 1
    assert lines[1:] == ["     2\tshort", "[lines longer than 2,000 characters are cut]"]


@pytest.mark.parametrize(
    ("data", "line", "note"),
    [
        ("grün 🙂".encode(), "grün 🙂", ""),
        (b"\xef\xbb\xbf" + "grün".encode(), "grün", ""),
        ("grün".encode("utf-16"), "grün", "[read as utf-16: it is not UTF-8]"),
        ("grün".encode("utf-32"), "grün", "[read as utf-32: it is not UTF-8]"),
        ("grün, caf\xe9".encode("latin-1"), "grün, café", "[read as cp1252: it is not UTF-8]"),
        (b"a\x81b", "a\ufffdb", "[read as cp1252: it is not UTF-8]"),
        (b"x" * 65_535 + "é".encode(), "x" * 2_000 + "…", "[lines longer than 2,000 characters are cut]"),
    ],
)
def test_text_in_any_encoding_is_read_and_told(tmp_path: Path, data: bytes, line: str, note: str) -> None:
    """A character across the looked-at head is no fault of the file."""
    (tmp_path / "a.txt").write_bytes(data)
    assert Files(tmp_path).text("read", path="a.txt").splitlines() == [f"     1\t{line}", *([note] if note else [])]


def test_bytes_that_are_no_utf8_late_in_a_file_become_marks(tmp_path: Path) -> None:
    """The read does not fail after it began."""
    (tmp_path / "a.txt").write_bytes(b"fine\n" * 20_000 + b"bad \xff\n")
    assert Files(tmp_path).text("read", path="a.txt", offset=20_001) == " 20001\tbad \ufffd"


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (b"\x7fELF\x02\x01\x01\0\0", "an ELF program or library"),
        (b"PK\x03\x04\x14\0", "a ZIP archive"),
        (b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n", "a PDF document"),
        (b"SQLite format 3\0", "an SQLite database"),
        (b"PAR1\x15\0", "a Parquet table"),
        (b"\x80\x04\x95\0", "a Python pickle"),
        (b"\x1f\x8b\x08\0", "gzip data"),
        (bytes(range(256)) * 4, "binary data of no kind known here"),
        (b"\0", "binary data of no kind known here"),
        (b"\x01\x02\x03\x80\x81" * 100, "binary data of no kind known here"),
    ],
)
def test_binary_is_told_by_its_kind_and_size(tmp_path: Path, data: bytes, kind: str) -> None:
    """No error, no bytes."""
    (tmp_path / "a").write_bytes(data)
    text = Files(tmp_path).text("read", path="a")
    assert text.startswith(f"a is no text: it is {kind}")
    assert f", {len(data):,} bytes. " in text


@pytest.mark.parametrize("data", [png(), jpeg(), gif(), webp("lossy")])
def test_an_image_is_shown_as_one(tmp_path: Path, data: bytes) -> None:
    """By its bytes, whatever its name says."""
    (tmp_path / "a.txt").write_bytes(data)
    tools = Files(tmp_path)
    said, image = tools.result("read", path="a.txt").content
    assert ", 3 x 2 pixels, " in said["text"]
    assert image["attachment"]["name"] == "a.txt"
    assert {f"sha256:{digest}": kept for digest, kept in tools.seams.attachments.items()} == {image["attachment"]["attachmentId"]: data}


def test_an_image_that_cannot_be_shown_is_told(tmp_path: Path) -> None:
    """Damaged or too large: a sentence, no attachment."""
    (tmp_path / "a.png").write_bytes(png()[:-5])
    (tmp_path / "b.png").write_bytes(png(9_000, 1))
    tools = Files(tmp_path)
    assert "damaged or cut off" in tools.text("read", path="a.png")
    assert "make a smaller copy" in tools.text("read", path="b.png")
    assert tools.seams.attachments == {}


def notebook(*cells: dict[str, object]) -> str:
    log = {"plan_mode_nb/s/0000000": ["THE CONVERSATION"]}
    return json.dumps({"nbformat": 4, "nbformat_minor": 5, "metadata": log, "cells": cells})


def test_a_notebook_is_shown_as_its_cells_and_outputs(tmp_path: Path) -> None:
    """Metadata, which may hold a conversation, is left out; images are named, long outputs bounded."""
    cells = notebook(
        {"cell_type": "markdown", "source": ["# Title\n", "words"]},
        {
            "cell_type": "code",
            "execution_count": 3,
            "source": "print(1)",
            "outputs": [
                {"output_type": "stream", "name": "stdout", "text": "1\n"},
                {"output_type": "display_data", "data": {"text/plain": ["<Figure>"], "image/png": "iVBORw0KGgo="}},
                {"output_type": "error", "ename": "ValueError", "evalue": "bad", "traceback": ["\x1b[31mlong"]},
                {"output_type": "stream", "text": "".join(f"{n}\n" for n in range(100))},
            ],
        },
    )
    (tmp_path / "n.ipynb").write_text(cells)
    lines = [line.split("\t")[-1] for line in Files(tmp_path).text("read", path="n.ipynb").splitlines()]
    assert lines[:14] == [
        "# Cell 1 [markdown]",
        "# Title",
        "words",
        "",
        "# Cell 2 [code] In[3]",
        "print(1)",
        "# Output:",
        "1",
        "# Output:",
        "<Figure>",
        "[image/png]",
        "# Output:",
        "ValueError: bad",
        "# Output:",
    ]
    assert "[60 more lines of output]" in lines
    assert lines[-1].startswith("[a notebook, shown as its cells")
    assert not any("CONVERSATION" in line or "iVBOR" in line for line in lines)


@pytest.mark.parametrize(
    "text",
    [
        "{}",
        "[]",
        '{"cells": 3}',
        '{"cells": [3]}',
        '{"cells": [{"outputs": [3]}]}',
        "{",
        '{"cells": [{"source": 1, "outputs": 1}]}',
        "[" * 100_000,
    ],
)
def test_what_only_looks_like_a_notebook_is_read_as_text(tmp_path: Path, text: str) -> None:
    """As it stands in the file."""
    (tmp_path / "n.ipynb").write_text(text)
    assert Files(tmp_path).text("read", path="n.ipynb").startswith(f"     1\t{text[:50]}")


def test_paths_inside_the_workspace_are_shown_relative_and_outside_absolute(tmp_path: Path) -> None:
    """Reading outside is allowed."""
    inner = tmp_path / "inner"
    inner.mkdir()
    (tmp_path / "out.txt").write_text("out\n")
    tools = Files(inner)
    assert tools.text("read", path="../out.txt") == "     1\tout"
    assert tools.text("read", path=str(tmp_path / "out.txt")) == "     1\tout"
    assert tools.error("read", path="../none.bin")[0].startswith(f"{tmp_path}/none.bin does not exist")
    assert tools.error("read", path=f"{inner}/none.bin")[0].startswith("none.bin does not exist")


def hostile(folder: Path) -> None:
    """What must not hold or break a read."""
    (folder / "folder").mkdir()
    os.mkfifo(folder / "pipe")
    (folder / "loop").symlink_to("loop")
    (folder / "a").symlink_to("b")
    (folder / "b").symlink_to("a")
    (folder / "dangling").symlink_to("nowhere")
    (folder / "to_pipe").symlink_to("pipe")
    (folder / "script.py").write_text("")


@pytest.mark.skipif(sys.platform == "win32", reason="pipes and links of POSIX")
@pytest.mark.parametrize(
    ("path", "code", "said"),
    [
        ("folder", "NOT_A_FILE", "is a folder; list it with glob"),
        (".", "NOT_A_FILE", "is a folder; list it with glob"),
        ("pipe", "NOT_A_FILE", "a pipe, device or socket"),
        ("to_pipe", "NOT_A_FILE", "a pipe, device or socket"),
        ("/dev/zero", "NOT_A_FILE", "a pipe, device or socket"),
        ("loop", "UNREADABLE", "leads back to itself"),
        ("a", "UNREADABLE", "leads back to itself"),
        ("dangling", "NOT_FOUND", "does not exist"),
        ("scirpt.py", "NOT_FOUND", "did you mean script.py?"),
        ("script.py/x", "NOT_FOUND", "does not exist"),
        ("x" * 5_000, "BAD_ARGUMENTS", "longer than the file system allows"),
        ("", "BAD_ARGUMENTS", "the path is empty"),
        ("a\0b", "BAD_ARGUMENTS", "NUL"),
        ("~nobody-of-that-name/x", "BAD_ARGUMENTS", "home folder"),
    ],
)
def test_what_is_no_readable_file_is_one_sentence(tmp_path: Path, path: str, code: str, said: str) -> None:
    """At once, without opening what would wait."""
    hostile(tmp_path)
    sentence, found = Files(tmp_path).error("read", path=path)
    assert found == code
    assert said in sentence


@pytest.mark.skipif(sys.platform == "win32", reason="sockets of POSIX")
def test_a_socket_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It cannot even be opened."""
    monkeypatch.chdir(tmp_path)
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind("socket")
        assert Files(tmp_path).error("read", path="socket")[1] == "UNREADABLE"


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read_says_so(tmp_path: Path) -> None:
    """Permission denied, by name."""
    (tmp_path / "a").write_text("x")
    (tmp_path / "a").chmod(0)
    assert Files(tmp_path).error("read", path="a") == ("a may not be read: permission denied", "UNREADABLE")


@pytest.mark.parametrize("arguments", [{}, {"path": 3}, {"path": "a", "offset": 0}, {"path": "a", "limit": 0}, {"path": "a", "line": 1}])
def test_wrong_arguments_say_what_is_wrong(tmp_path: Path, arguments: dict[str, object]) -> None:
    """Before any file is touched."""
    assert Files(tmp_path).error("read", **arguments)[1] == "BAD_ARGUMENTS"


@pytest.mark.skipif(sys.platform != "linux", reason="names of bytes that are no UTF-8")
def test_a_name_that_is_no_utf8_can_be_told(tmp_path: Path) -> None:
    """Escaped, so that the log can keep it."""
    with open(os.fsencode(tmp_path) + b"/caf\xe9.txt", "w") as file:
        file.write("x\n")
    tools = Files(tmp_path)
    assert tools.text("glob", pattern="*") == "caf\\xe9.txt"
    assert "caf\\xe9.txt" in tools.error("read", path="caf.txt")[0]


def test_a_secret_of_several_lines_is_taken_out_before_numbers_are_put_in(tmp_path: Path) -> None:
    """And the reader is told that numbers after it are off."""
    secret = "-----BEGIN KEY-----\nabc\n-----END KEY-----"
    (tmp_path / "a.txt").write_text(f"one\n{secret}\nlast\n")
    text = Files(tmp_path, redact=lambda it: it.replace(secret, "[redacted:KEY]")).text("read", path="a.txt")
    assert text.splitlines()[:3] == ["     1\tone", "     2\t[redacted:KEY]", "     3\tlast"]
    assert "a secret of several lines was taken out" in text


def test_a_secret_at_the_end_of_a_cut_line_is_taken_out_whole(tmp_path: Path) -> None:
    """No half of it is shown."""
    secret = "S3CRET" * 20
    (tmp_path / "a.txt").write_text("x" * 1_950 + secret + "y" * 9_000)
    assert "S3" not in Files(tmp_path, redact=lambda it: it.replace(secret, "[redacted:KEY]")).text("read", path="a.txt")


def test_reading_ends_when_its_time_is_over(tmp_path: Path) -> None:
    """With a sentence that says what to do."""
    file = tmp_path / "a.txt"
    file.write_text("line\n" * 1_000)
    ticks = iter(range(1_000_000))
    budget = Budget(20, clock=lambda: next(ticks))
    with pytest.raises(reading.ToolError, match="took longer than 20 seconds"):
        reading.load(file, "a.txt", reading.Part(900, 10, 30_000), budget)


def test_the_loop_stays_free_while_a_file_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The work is another thread's; when the call is cancelled its budget is spent."""
    begun, budgets = threading.Event(), []

    def slow(file: Path, shown: str, part: reading.Part, budget: Budget, closed: Closed) -> tuple[reading.Found, int]:
        budgets.append(budget)
        begun.set()
        while not budget.spent:
            pass
        return reading.Binary("late"), 0

    monkeypatch.setattr(reading, "load", slow)

    async def main() -> None:
        call = asyncio.ensure_future(Files(tmp_path).call("read", path="a"))
        while not begun.is_set():
            await asyncio.sleep(0)
        assert not call.done()
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call

    asyncio.run(main())
    assert budgets[0].spent
