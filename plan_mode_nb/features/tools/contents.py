"""What a file holds, told from its first bytes: text in which encoding, or what kind of binary."""

from __future__ import annotations

import codecs
from typing import Final, NamedTuple

HEAD: Final = 65_536
"""Bytes that are looked at."""
NOTEBOOK_SUFFIX: Final = ".ipynb"
_MARKS: Final = (  # the longer mark first: UTF-32's little-endian mark begins with UTF-16's
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_KINDS: Final = (
    (0, b"%PDF-", "a PDF document"),
    (0, b"PK\x03\x04", "a ZIP archive (also .xlsx, .docx, .npz, .whl)"),
    (0, b"\x1f\x8b", "gzip data"),
    (0, b"BZh", "bzip2 data"),
    (0, b"\xfd7zXZ\x00", "xz data"),
    (0, b"\x28\xb5\x2f\xfd", "zstandard data"),
    (257, b"ustar", "a tar archive"),
    (0, b"SQLite format 3\x00", "an SQLite database"),
    (0, b"PAR1", "a Parquet table"),
    (0, b"ARROW1", "an Arrow table"),
    (0, b"\x89HDF\r\n\x1a\n", "an HDF5 file"),
    (0, b"\x93NUMPY", "a NumPy array"),
    (0, b"\x80\x04", "a Python pickle"),
    (0, b"\x80\x05", "a Python pickle"),
    (0, b"\x7fELF", "an ELF program or library"),
    (0, b"MZ", "a Windows program or library"),
    (0, b"\xcf\xfa\xed\xfe", "a macOS program or library"),
    (0, b"\xca\xfe\xba\xbe", "a macOS program or Java class"),
    (0, b"OggS", "Ogg audio"),
    (0, b"ID3", "MP3 audio"),
    (0, b"fLaC", "FLAC audio"),
    (8, b"WAVE", "WAVE audio"),
    (4, b"ftyp", "MP4 media"),
    (0, b"\x1aE\xdf\xa3", "Matroska or WebM media"),
    (0, b"II*\x00", "a TIFF image"),
    (0, b"MM\x00*", "a TIFF image"),
    (0, b"BM", "a BMP image"),
)
_CONTROLS: Final = bytes(set(range(32)) - set(b"\t\n\r\f\x08\x1b"))


class Text(NamedTuple):
    """Text in an encoding; decode with ``errors="replace"``, the head may be cleaner than the rest."""

    encoding: str

    @property
    def note(self) -> str:
        """A line about it where it is not plain UTF-8."""
        return "" if self.encoding in ("utf-8", "utf-8-sig") else f"[read as {self.encoding}: it is not UTF-8]"


class Binary(NamedTuple):
    """Not text. ``kind``: what it looks like, in words."""

    kind: str


def kind_of(head: bytes, *, whole: bool) -> Text | Binary:
    """What the first bytes say. ``whole``: there are no more, so a character cut in the middle is an error."""
    for mark, encoding in _MARKS:
        if head.startswith(mark):
            return Text(encoding)
    if b"\0" in head:
        return Binary(_binary(head))
    try:
        codecs.getincrementaldecoder("utf-8")().decode(head, final=whole)
    except UnicodeDecodeError:
        strange = len(head) - len(head.translate(None, _CONTROLS))
        return Binary(_binary(head)) if strange * 50 > len(head) or _known(head) else Text("cp1252")
    return Binary(_binary(head)) if _known(head) and not head.isascii() else Text("utf-8")


def _known(head: bytes) -> str | None:
    return next((kind for place, magic, kind in _KINDS if head[place : place + len(magic)] == magic and len(magic) > 2), None)


def _binary(head: bytes) -> str:
    return next((kind for place, magic, kind in _KINDS if head[place : place + len(magic)] == magic), "binary data of no kind known here")


def split_lines(text: str) -> list[str]:
    """Lines as `read` numbers them: ended by LF, CRLF or CR alone; no empty line after the last end."""
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    if lines[-1] == "":
        del lines[-1]
    return lines
