"""Images as attachments: bytes kept once by their sha256, and the block that names them in a message.

Sizes are read from the header bytes of the four formats that every provider takes. A file cut off in the middle is refused here: once
in the history, the provider would refuse every later request because of it.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from typing import Final, Literal

from msgspec import Struct

from plan_mode_nb.exceptions import PlanModeError
from plan_mode_nb.log.messages import Block, attachment_id, digest_of

MediaType = Literal["image/png", "image/jpeg", "image/gif", "image/webp"]
MAX_BYTES: Final = 3_750_000
"""The strictest provider's limit is 5 MB of base64."""
MAX_SIDE: Final = 8_000
"""Pixels, the strictest provider's limit."""
_Size = tuple[int, int]


class ImageError(PlanModeError):
    """Bytes that no model can be shown; says why."""


class ImageFacts(Struct, frozen=True):
    """What the bytes say of themselves. Sides in pixels."""

    media_type: MediaType
    width: int
    height: int


def looks_like_image(data: bytes) -> bool:
    """Whether the first bytes are those of one of the four formats."""
    return _format(data) is not None


def image_facts(data: bytes) -> ImageFacts:
    """Read an image's kind and size.

    Raises:
        ImageError: it is none of the four formats, or it is damaged or cut off.
    """
    found = _format(data)
    if found is None:
        raise ImageError("it is not a PNG, JPEG, GIF or WebP image")
    media_type, measure = found
    try:
        width, height = measure(data)
    except (struct.error, IndexError, ValueError):
        raise ImageError(f"the {media_type.removeprefix('image/').upper()} image is damaged or cut off") from None
    return ImageFacts(media_type, width, height)


def image_block(attachments: MutableMapping[str, bytes], data: bytes, *, name: str | None = None) -> Block:
    """Keep an image and return the block for a message: ``{type, attachment: {attachmentId, mediaType, bytes, width, height, name?}}``.

    Raises:
        ImageError: see :func:`image_facts`; or it is larger than providers take.
    """
    facts = image_facts(data)
    if len(data) > MAX_BYTES or max(facts.width, facts.height) > MAX_SIDE:
        raise ImageError(
            f"the image has {facts.width} x {facts.height} pixels and {len(data):,} bytes; a model takes at most "
            f"{MAX_SIDE:,} pixels a side and {MAX_BYTES:,} bytes, so make a smaller copy"
        )
    digest = hashlib.sha256(data).hexdigest()
    attachments.setdefault(digest, data)
    attachment: Block = {
        "attachmentId": attachment_id(digest),
        "mediaType": facts.media_type,
        "bytes": len(data),
        "width": facts.width,
        "height": facts.height,
    }
    return {"type": "image", "attachment": attachment if name is None else {**attachment, "name": name}}


def images_of(attachments: Mapping[str, bytes]) -> Callable[[str], bytes | None]:
    """An ``attachmentId`` -> the bytes, None where they are not here. Follows what is added later."""
    return lambda attachment_id: attachments.get(digest_of(attachment_id))


def _format(data: bytes) -> tuple[MediaType, Callable[[bytes], _Size]] | None:
    if data[:8] == b"\x89PNG\r\n\x1a\n":
        return "image/png", _png
    if data[:3] == b"\xff\xd8\xff":
        return "image/jpeg", _jpeg
    if data[:6] in (b"GIF87a", b"GIF89a"):
        return "image/gif", _gif
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp", _webp
    return None


def _sized(width: int, height: int) -> _Size:
    if width < 1 or height < 1:
        raise ValueError("an image without an area")
    return width, height


def _png(data: bytes) -> _Size:
    """The first chunk holds the size; the chunks must run on to ``IEND``."""
    place, size = 8, None
    while True:
        length, kind = struct.unpack_from(">I4s", data, place)
        if size is None:
            if kind != b"IHDR":
                raise ValueError("the first chunk is not IHDR")
            size = struct.unpack_from(">II", data, place + 8)
        place += 12 + length
        if place > len(data):
            raise ValueError("cut off")
        if kind == b"IEND":
            return _sized(*size)


def _jpeg(data: bytes) -> _Size:
    """The size stands in the start-of-frame segment; the image must have an end marker behind it."""
    for marker, place in _jpeg_segments(data):
        if 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC):
            height, width = struct.unpack_from(">HH", data, place + 5)
            if data.find(b"\xff\xd9", place) < 0:
                raise ValueError("cut off")
            return _sized(width, height)
    raise ValueError("no frame")


def _jpeg_segments(data: bytes) -> Iterator[tuple[int, int]]:
    """``(marker, place of its marker)`` up to the image's own bytes."""
    place = 2
    while data[place] == 0xFF:
        marker = data[place + 1]
        if marker == 0xFF:  # padding
            place += 1
            continue
        if marker == 0xDA:
            return
        yield marker, place
        place += 2 + struct.unpack_from(">H", data, place + 2)[0]


def _gif(data: bytes) -> _Size:
    width, height = struct.unpack_from("<HH", data, 6)
    if data.rstrip(b"\x00")[-1:] != b"\x3b":
        raise ValueError("cut off")
    return _sized(width, height)


def _webp(data: bytes) -> _Size:
    (length,) = struct.unpack_from("<I", data, 4)
    if length + 8 > len(data):
        raise ValueError("cut off")
    match data[12:16]:
        case b"VP8 ":
            width, height = struct.unpack_from("<HH", data, 26)
            return _sized(width & 0x3FFF, height & 0x3FFF)
        case b"VP8L":
            (bits,) = struct.unpack_from("<I", data, 21)
            return _sized((bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1)
        case b"VP8X":
            return _sized(int.from_bytes(data[24:27], "little") + 1, int.from_bytes(data[27:30], "little") + 1)
        case _:
            raise ValueError("no WebP chunk that has a size")
