"""``--image FILE``: a file as an image block, its bytes kept once as an attachment."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, MutableMapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from plan_mode_nb.agent.attachments import ImageError, image_block
from plan_mode_nb.exceptions import CommandError
from plan_mode_nb.log.messages import Block

LARGEST_BYTES = 20_000_000


@contextmanager
def attached(names: Sequence[str], attachments: MutableMapping[str, bytes], is_named: Callable[[str], bool]) -> Iterator[list[Block]]:
    """The blocks of these files, for a message that is sent meanwhile.

    ``is_named(sha256)``: whether the log names an attachment. One that it does not name afterwards, because the message was refused, is
    not kept: it would travel into the notebook.

    Raises:
        CommandError: as :func:`read_images`.
    """
    before = set(attachments)
    try:
        yield read_images(names, attachments)
    finally:
        for digest in set(attachments) - before:
            if not is_named(digest):
                del attachments[digest]


def read_images(names: Sequence[str], attachments: MutableMapping[str, bytes]) -> list[Block]:
    """The blocks, in order. All files are read before anything is kept.

    Raises:
        CommandError: a file is missing, too large, or no PNG, JPEG, GIF or WebP; names it.
    """
    blocks: list[Block] = []
    read = [(name, _read(name)) for name in names]
    for name, data in read:
        try:
            blocks.append(image_block(attachments, data, name=os.path.basename(name)))
        except ImageError as error:
            raise CommandError(f"{name} cannot be sent: {error}") from None
    return blocks


def _read(name: str) -> bytes:
    path = Path(name).expanduser()
    try:
        if path.stat().st_size > LARGEST_BYTES:
            raise CommandError(f"{name} is larger than {LARGEST_BYTES // 1_000_000} MB; send a smaller image")
        return path.read_bytes()
    except OSError as error:
        raise CommandError(f"{name} cannot be read ({error.strerror}); check the file's name") from None
