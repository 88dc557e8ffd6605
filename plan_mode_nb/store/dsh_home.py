"""Where deepseek-harness keeps sessions and their images, so that both find what belongs to a log.

Its home is ``$DSH_HOME``, else ``~/.dsh``. A session's log lies in ``sessions/<project>/<id>/``, an image in
``attachments/v1/objects/<first two digits>/<sha256>``, once for all sessions. A log elsewhere has its images beside it, in folders of these
names.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path, PurePosixPath
from typing import Final

from msgspec import UNSET

from plan_mode_nb.exceptions import StoreError
from plan_mode_nb.log.events import Header
from plan_mode_nb.log.messages import digests_in
from plan_mode_nb.log.session import Session
from plan_mode_nb.store.files import reason, replace

HOME_VARIABLE: Final = "DSH_HOME"
SESSIONS: Final = "sessions"
_OBJECTS: Final = Path("attachments", "v1", "objects")
_SAFE: Final = re.compile(r"[A-Za-z0-9._-]")
_DIGEST: Final = re.compile(r"[0-9a-f]{64}")
_LONGEST_PROJECT: Final = 251
_NAMED: Final = '"attachmentId"'


def session_place(header: Header, suffix: str = ".jsonl") -> PurePosixPath:
    """Where in its home deepseek-harness looks for this session's log: by the header's ``cwd`` and ``id`` (its own rule).

    ``suffix``: the last one of the log's name; any but ``.jsonl`` is a compressed log's.
    """
    cwd = None if header.cwd is UNSET else header.cwd
    project = "_no-cwd" if cwd is None else _project(cwd)
    name = "session.jsonl" if suffix == ".jsonl" else "session.jsonl.zstd"
    return PurePosixPath(SESSIONS, project, _segment(header.id), name)


def images_named(session: Session) -> list[str]:
    """The sha256 of every image that events of the session name, sorted."""
    found: set[str] = set()
    for seq, line in enumerate(session.lines):
        if _NAMED in line:
            found |= digests_in(session.events[seq].data)
    return sorted(digest for digest in found if _DIGEST.fullmatch(digest))


def find_images(digests: Iterable[str], log: Path, environment: Mapping[str, str] = os.environ) -> dict[str, bytes]:
    """Those of these images that lie where deepseek-harness keeps them: near the log, then in its home. Damaged ones are not found."""
    homes = [*log.resolve().parents, default_home(environment)]
    found = {}
    for digest in digests:
        data = next((data for home in homes if (data := _read(home, digest)) is not None), None)
        if data is not None:
            found[digest] = data
    return found


def missing_images(named: Iterable[str], found: Iterable[str]) -> str:
    """What to say of images that a log names and nobody has; "" when none is missing."""
    missing = len(set(named) - set(found))
    if not missing:
        return ""
    what = "an image that the session shows is" if missing == 1 else f"{missing} images that the session shows are"
    return (
        f"{what} not here, so the model will be told that an image was there; to keep what it shows, put the folder `attachments` of the "
        f"home that the log comes from beside the log, or name that home in {HOME_VARIABLE}, and import again"
    )


def keep_images(images: Mapping[str, bytes], log: Path) -> Path:
    """Put images where a reader of this log looks for them: into the home that it lies in, else beside it. Returns that folder.

    Raises:
        StoreError: one cannot be written.
    """
    home = _home_of(log)
    for digest, data in images.items():
        if _read(home, digest) is not None:
            continue
        target = _object(home, digest)
        try:
            target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        except OSError as error:
            raise StoreError(f"{target.parent} cannot be made ({reason(error)}); the images of the log are not there") from error
        replace(target, data, mode=0o600)
    return home / _OBJECTS.parts[0]


def default_home(environment: Mapping[str, str] = os.environ) -> Path:
    """deepseek-harness's home on this machine."""
    named = environment.get(HOME_VARIABLE, "").strip()
    return Path(named).expanduser() if named else Path.home() / ".dsh"


def _home_of(log: Path) -> Path:
    parents = log.resolve().parents
    return parents[3] if len(parents) > 3 and parents[2].name == SESSIONS else parents[0]


def _object(home: Path, digest: str) -> Path:
    return home / _OBJECTS / digest[:2] / digest


def _read(home: Path, digest: str) -> bytes | None:
    try:
        data = _object(home, digest).read_bytes()
    except OSError:
        return None
    return data if hashlib.sha256(data).hexdigest() == digest else None


def _segment(text: str) -> str:
    """One path segment for any text: UTF-16 units that are not safe become ``~XXXX``, and so do the dots of ``.`` and ``..``."""
    return text.replace(".", "~002E") if text in (".", "..") else "".join(_escaped(unit) for unit in _units(text))


def _project(cwd: str) -> str:
    parts = re.split(r"[/\\:]+", cwd)
    readable = "-".join("".join(_escaped(unit) for unit in _units(part)) for part in parts)
    return f"--{(readable.lstrip('-') or 'root')[:_LONGEST_PROJECT]}--"


def _units(text: str) -> list[str]:
    data = text.encode("utf-16-be", "surrogatepass")
    return [chr(int.from_bytes(data[at : at + 2])) for at in range(0, len(data), 2)]


def _escaped(unit: str) -> str:
    return unit if _SAFE.fullmatch(unit) else f"~{ord(unit):04X}"
