"""Images: sizes from header bytes, kept once, and nothing in the history that a provider would refuse."""

from __future__ import annotations

import hashlib

import pytest
from small_images import gif, jpeg, png, webp

from plan_mode_nb.agent.attachments import MAX_BYTES, MAX_SIDE, ImageError, image_block, image_facts, looks_like_image

IMAGES = {
    "image/png": png(640, 480),
    "image/jpeg": jpeg(640, 480),
    "image/gif": gif(640, 480),
    "image/webp lossy": webp("lossy", 640, 480),
    "image/webp lossless": webp("lossless", 640, 480),
    "image/webp extended": webp("extended", 640, 480),
}


@pytest.mark.parametrize("kind", IMAGES)
def test_kind_and_size_are_read_from_the_bytes(kind: str) -> None:
    """Without a library."""
    facts = image_facts(IMAGES[kind])
    assert (facts.media_type, facts.width, facts.height) == (kind.split()[0], 640, 480)


@pytest.mark.parametrize("kind", IMAGES)
def test_an_image_cut_off_anywhere_is_refused(kind: str) -> None:
    """Never another error, never a block: the provider would refuse every later request."""
    data = IMAGES[kind]
    for length in range(len(data)):
        with pytest.raises(ImageError):
            image_facts(data[:length])


@pytest.mark.parametrize("data", [b"", b"\x89PNG", b"GIF", b"RIFF\0\0\0\0WAVE", b"<svg/>", b"%PDF-1.7", b"\xff\xd8", b"\0" * 100])
def test_other_bytes_are_no_image(data: bytes) -> None:
    """And say so."""
    assert not looks_like_image(data)
    with pytest.raises(ImageError, match="not a PNG, JPEG, GIF or WebP"):
        image_facts(data)


@pytest.mark.parametrize("data", [png(0, 5), png(5, 0), gif(0, 0), jpeg(0, 1)])
def test_an_image_without_an_area_is_refused(data: bytes) -> None:
    """Whatever its other bytes say."""
    with pytest.raises(ImageError, match="damaged"):
        image_facts(data)


def test_the_block_names_the_bytes_by_hash_and_keeps_them_once() -> None:
    """deepseek-harness's attachment, in its order of keys."""
    attachments: dict[str, bytes] = {}
    data = png(3, 2)
    block = image_block(attachments, data, name="a.png")
    digest = hashlib.sha256(data).hexdigest()
    assert list(block["attachment"].items()) == [
        ("attachmentId", f"sha256:{digest}"),
        ("mediaType", "image/png"),
        ("bytes", len(data)),
        ("width", 3),
        ("height", 2),
        ("name", "a.png"),
    ]
    assert "name" not in image_block(attachments, data)["attachment"]
    assert attachments == {digest: data}


@pytest.mark.parametrize("data", [png(MAX_SIDE + 1, 1), png() + b"\0" * MAX_BYTES])
def test_an_image_that_providers_refuse_is_not_kept(data: bytes) -> None:
    """Too many pixels or bytes: a sentence that says what to make instead."""
    attachments: dict[str, bytes] = {}
    with pytest.raises(ImageError, match="make a smaller copy"):
        image_block(attachments, data)
    assert attachments == {}


def test_a_real_figure_has_the_size_it_was_drawn_in() -> None:
    """Matplotlib's own PNG and JPEG."""
    import io

    from matplotlib.figure import Figure

    for kind in ("png", "jpeg", "webp"):
        written = io.BytesIO()
        Figure(figsize=(3, 2), dpi=50).savefig(written, format=kind)
        facts = image_facts(written.getvalue())
        assert (facts.media_type, facts.width, facts.height) == (f"image/{kind}", 150, 100)
