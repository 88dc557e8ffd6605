"""What code displayed, told from a turn's own displays among a cell's saved outputs."""

from __future__ import annotations

from typing import Any

from plan_mode_nb.hosts.kernel.replayed_display import figures_of
from plan_mode_nb.render.cards import assistant_text, figure, notice

IMAGE = {"type": "image", "attachment": {"attachmentId": "sha256:a", "mediaType": "image/png", "name": "figure 1", "width": 3, "height": 2}}


def shown(data: dict[str, Any]) -> dict[str, Any]:
    return {"output_type": "display_data", "data": data, "metadata": {}}


def test_a_figure_of_the_log_is_the_turns_own_and_one_of_the_kernels_code_is_not() -> None:
    """Else a replay would show the one twice, or the other at another place. Texts of a file may be lists of lines."""
    by_code = {"text/plain": "<Figure size 640x480 with 1 Axes>", "image/png": "AAAA"}
    of_the_log = {mime: [text] for mime, text in figure(IMAGE, b"bytes").items()}
    outputs = [shown(notice("1 step")), shown(of_the_log), shown(by_code), shown(figure(IMAGE, None)), shown(assistant_text("Done."))]
    assert figures_of(outputs) == [(2, by_code, {})]
