"""The journal: a private file that the kernel appends each event to before the event has any visible effect (log.md, Who writes it, 1).

A journal is a whole copy of its session, so it can be reconciled with any other copy. Its first row names the session's header, the agent,
the kernel and the notebook; further rows hold images (before the events that name them), and where the notebook was moved. It goes once its
events are in the notebook.
"""

from __future__ import annotations

import json
import os
import re
import stat
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

from msgspec import UNSET, Struct, field

from plan_mode_nb.document.chunks import is_count
from plan_mode_nb.document.document import Document, StoredSession, one_session
from plan_mode_nb.exceptions import FormatError, StoreError
from plan_mode_nb.log.events import Header
from plan_mode_nb.log.headers import read_header
from plan_mode_nb.log.messages import digests_in_lines
from plan_mode_nb.store.files import Appender, prepare_folder, read_bytes, reason, replace
from plan_mode_nb.store.locks import is_locked, lock

FOLDER: Final = "plan_mode_nb"
SUFFIX: Final = ".journal"
_TURN_END: Final = '{"type":"turn/end"'
_ROW: Final = '{"type":"journal'
_NAME_LENGTH: Final = 100


def journal_folder(create: bool = True) -> Path:
    """``<jupyter runtime folder>/plan_mode_nb``, readable by its owner alone.

    Raises:
        StoreError: it cannot be made, or it is not a folder of this user.
    """
    from jupyter_core.paths import jupyter_runtime_dir

    folder = Path(jupyter_runtime_dir()) / FOLDER
    if create:
        prepare_folder(folder)
    return folder


class Journal:
    """The sink of one session in one kernel. The file appears with the first write, so that looking leaves nothing behind."""

    def __init__(
        self,
        folder: Path,
        header: Header,
        lines: Sequence[str],
        *,
        kernel: str,
        notebook: str | None,
        pid: int,
        agent: str | None = None,
        chosen: int = 0,
        images: Callable[[], Mapping[str, bytes]] = dict,
    ) -> None:
        """``lines``: the session's list, which grows after each write (``Session.lines``). ``notebook``: its absolute path, if known.

        ``agent``: the name that the session answers to, if any; ``chosen``: how often that name was sent to another session. ``images()``:
        by sha256, those that are nowhere else yet; each is kept with the first event that names it.
        """
        self._folder, self._header, self._lines = folder, header, lines
        self._kernel, self._notebook, self._pid, self._agent, self._chosen = kernel, notebook, pid, agent, chosen
        self._images = images
        self._kept_images: set[str] = set()
        self._appender: Appender | None = None

    @property
    def path(self) -> Path | None:
        """The file, None before the first write."""
        return None if self._appender is None else self._appender.path

    def write(self, lines: Sequence[str]) -> None:
        """Keep these lines, all or none; they survive ``kill -9`` when this returns, and a power cut if they end a turn.

        Raises:
            StoreError: they could not be kept; the file is as it was.
        """
        ends_turn = any(line.startswith(_TURN_END) for line in lines)
        if self._appender is None or self._appender.is_gone:
            self._open([*self._lines, *lines])
        else:
            images = self._images_of(lines)
            self._appender.write([*_image_rows(images), *lines], sync=ends_turn)
            self._kept_images.update(images)

    def keep(self) -> None:
        """Have the file, though no event is new: that the agent goes on with this session is worth keeping.

        Raises:
            StoreError: as :meth:`write`.
        """
        if self._appender is None or self._appender.is_gone:
            self._open(list(self._lines))

    def sync(self) -> None:
        """Bring what was written to the disk."""
        if self._appender is not None:
            self._appender.sync()

    def moved(self, notebook: str) -> None:
        """Record that the notebook has another path now."""
        if notebook == self._notebook:
            return
        self._notebook = notebook
        if self._appender is not None:
            self._appender.write([_compact({"type": "journal/path", "path": notebook})])

    def close(self) -> None:
        """Let the file go; it stays for whoever reads it next."""
        if self._appender is not None:
            self._appender.close()
            self._appender = None

    def drop(self) -> None:
        """Remove the file: its events are in the notebook. A later write starts a new one."""
        path = self.path
        self.close()
        if path is not None:
            path.unlink(missing_ok=True)

    def _open(self, lines: Sequence[str]) -> None:
        """Start the file with everything so far. It takes the place of an older one of this session and kernel that holds no more."""
        self.close()
        prepare_folder(self._folder)
        path = self._free_name(lines)
        whose = {"header": self._header.to_json(), "agent": self._agent, **({"chosen": self._chosen} if self._chosen else {})}
        row = {"type": "journal", **whose, "kernel": self._kernel, "path": self._notebook, "pid": self._pid}
        self._kept_images.clear()
        images = self._images_of(lines)
        replace(path, "".join(f"{line}\n" for line in (_compact(row), *_image_rows(images), *lines)).encode(), mode=0o600)
        self._kept_images.update(images)
        self._appender = Appender(path)
        lock(self._appender.fileno())

    def _images_of(self, lines: Sequence[str]) -> dict[str, bytes]:
        named = digests_in_lines(lines) - self._kept_images
        images = self._images() if named else {}
        return {digest: images[digest] for digest in sorted(named & images.keys())}

    def _free_name(self, lines: Sequence[str]) -> Path:
        stem = f"{segment(self._header.id)}.{segment(self._kernel)}"
        for count in range(1000):
            path = self._folder / (f"{stem}{SUFFIX}" if count == 0 else f"{stem}-{count}{SUFFIX}")
            if not os.path.lexists(path):
                return path
            try:
                old = read_journal(path)
            except (StoreError, FormatError):
                continue
            if not old.is_live and old.session.header.id == self._header.id and list(lines[: len(old.lines)]) == list(old.lines):
                return path
        raise StoreError(f"{self._folder} holds too many journals of session {self._header.id}; run plan-mode-nb doctor")


class JournalFile(Struct, frozen=True):
    """One journal as read. ``notebook``: the path last recorded; ``is_live``: a running kernel still writes it. ``chosen``: how often its
    agent had been sent to another session; ``attachments``: sha256 -> base64."""

    path: Path
    header: Header
    lines: list[str]
    agent: str | None
    kernel: str
    notebook: str | None
    pid: int | None
    is_live: bool
    chosen: int = 0
    attachments: Mapping[str, str] = field(default_factory=dict)

    @property
    def session(self) -> StoredSession:
        """The copy of the session that it holds."""
        return StoredSession(self.header, self.lines)

    @property
    def answers_to(self) -> str | None:
        """The agent whose session it is: the recorded one, else the main one; None for a child's."""
        return self.agent or ("main" if self.header.origin is UNSET else None)

    @property
    def document(self) -> Document:
        """The same as a document, for merging."""
        return one_session(self.session, agent=self.answers_to, chosen=self.chosen, attachments=self.attachments)

    def remove(self) -> bool:
        """Delete the file unless a running kernel writes it; whether it is gone."""
        if is_locked(self.path):
            return False
        self.path.unlink(missing_ok=True)
        return True


def read_journal(path: Path) -> JournalFile:
    """Read one journal. A last line without its newline is a torn tail and left out.

    Raises:
        StoreError: it cannot be read, or is no file of this user's.
        FormatError: it is no journal.
    """
    _refuse_foreign(path)
    text = read_bytes(path).decode("utf-8", "replace")
    rows = text.split("\n")[:-1]
    first = _row(rows[0]) if rows else {}
    if first.get("type") != "journal":
        raise FormatError(f"{path} is no journal of plan_mode_nb", line=1)
    header = read_header(first.get("header"), line=1)
    notebook, pid, chosen = first.get("path"), first.get("pid"), first.get("chosen")
    lines: list[str] = []
    attachments: dict[str, str] = {}
    for row in rows[1:]:
        if not row.startswith(_ROW):
            lines.append(row)
            continue
        told = _row(row)
        notebook = told.get("path", notebook)
        if isinstance(told.get("sha256"), str) and isinstance(told.get("data"), str):
            attachments[told["sha256"]] = told["data"]
    return JournalFile(
        path=path,
        header=header,
        lines=lines,
        agent=first["agent"] if isinstance(first.get("agent"), str) else None,
        kernel=str(first.get("kernel", "")),
        notebook=notebook if isinstance(notebook, str) else None,
        pid=pid if isinstance(pid, int) else None,
        is_live=is_locked(path),
        chosen=chosen if is_count(chosen) else 0,
        attachments=attachments,
    )


def journals(folder: Path, wanted: Callable[[str], bool] = lambda name: True) -> tuple[list[JournalFile], list[str]]:
    """The journals of a folder whose file names are wanted, by name, and one sentence for each that could not be read."""
    found, problems = [], []
    for path in filter(lambda path: wanted(path.name), _paths(folder)):
        try:
            found.append(read_journal(path))
        except (StoreError, FormatError) as error:
            problems.append(f"the journal {path.name} was left alone: {error}")
    return found, problems


def _paths(folder: Path) -> Iterator[Path]:
    try:
        names = sorted(entry.name for entry in os.scandir(folder) if entry.name.endswith(SUFFIX))
    except FileNotFoundError:
        return
    for name in names:
        yield folder / name


def _refuse_foreign(path: Path) -> None:
    """A link could point anywhere, and another user's file could say anything."""
    try:
        found = path.lstat()
    except OSError as error:
        raise StoreError(f"{path} cannot be read ({reason(error)})") from error
    if not stat.S_ISREG(found.st_mode) or (hasattr(os, "getuid") and found.st_uid != os.getuid()):
        raise StoreError(f"{path} is no file of yours")


def _row(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _image_rows(images: Mapping[str, bytes]) -> list[str]:
    return [_compact({"type": "journal/image", "sha256": each, "data": b64encode(data).decode()}) for each, data in images.items()]


def _compact(row: dict[str, Any]) -> str:
    return json.dumps(row, ensure_ascii=False, separators=(",", ":"))


def segment(text: str) -> str:
    """An id as part of a file name; a long one is cut and told apart by its hash."""
    safe = re.sub(r"[^A-Za-z0-9._-]", lambda found: f"~{ord(found[0]):04X}", text)
    return safe if len(safe) <= _NAME_LENGTH else f"{safe[:60]}~{sha256(text.encode()).hexdigest()[:16]}"
