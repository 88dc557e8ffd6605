"""Small images made by hand: whole files, from nothing but their formats' rules."""

from __future__ import annotations

import struct
import zlib


def png(width: int = 3, height: int = 2) -> bytes:
    """A grey PNG."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows = b"".join(b"\0" + b"\x80" * width for _ in range(height))
    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def jpeg(width: int = 3, height: int = 2) -> bytes:
    """The segments of a JPEG: application data with an embedded end marker, a table, the frame, some scan bytes, the end."""
    exif = b"\xff\xe1" + struct.pack(">H", 10) + b"Exif\0\0\xff\xd9"
    table = b"\xff\xc4" + struct.pack(">H", 4) + b"\0\0"
    frame = b"\xff\xff\xc2" + struct.pack(">HBHH", 11, 8, height, width) + b"\1\1\x11\0"
    return b"\xff\xd8" + exif + table + frame + b"\xff\xda\0\2scan\xff\xd9"


def gif(width: int = 3, height: int = 2) -> bytes:
    """A GIF without frames."""
    return b"GIF89a" + struct.pack("<HH", width, height) + b"\0\0\0" + b"\x3b"


def webp(kind: str, width: int = 3, height: int = 2) -> bytes:
    """The first chunk of a WebP of one of its three kinds."""
    match kind:
        case "lossy":
            chunk = b"VP8 " + struct.pack("<I", 10) + b"\0\0\0\x9d\x01\x2a" + struct.pack("<HH", width, height)
        case "lossless":
            chunk = b"VP8L" + struct.pack("<I", 5) + b"\x2f" + struct.pack("<I", (width - 1) | (height - 1) << 14) + b"\0"
        case _:
            sides = (width - 1).to_bytes(3, "little") + (height - 1).to_bytes(3, "little")
            chunk = b"VP8X" + struct.pack("<I", 10) + b"\0\0\0\0" + sides
    return b"RIFF" + struct.pack("<I", 4 + len(chunk)) + b"WEBP" + chunk
