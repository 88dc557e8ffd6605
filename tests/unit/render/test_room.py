"""The room: pure, quick to load."""

from __future__ import annotations

import subprocess
import sys

from plan_mode_nb.render.highlight import code_block
from plan_mode_nb.render.style import style_sheet


def test_loading_the_room_loads_neither_the_parser_nor_the_highlighter_nor_jupyter() -> None:
    code = (
        "import sys, plan_mode_nb.render.turn_view, plan_mode_nb.render.transcript, plan_mode_nb.render.diff\n"
        "heavy = {'markdown_it', 'pygments', 'linkify_it', 'IPython', 'ipywidgets', 'nbformat'} & set(sys.modules)\n"
        "print(sorted(heavy))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_style_sheet_names_no_colour_of_its_own_for_text() -> None:
    colours = [rule for rule in style_sheet().split("\n") if "{ color:" in rule]
    assert colours
    assert all("var(--jp-mirror-editor-" in rule and ", inherit)" in rule for rule in colours)


def test_every_class_that_code_carries_for_its_keywords_and_strings_is_styled() -> None:
    html = code_block('import a\n"s"  # c\nx = 1\n', "python")
    for cls in ("kn", "s2", "c1", "o", "mi"):
        assert f'class="{cls}"' in html
        assert f".pmnb-code .{cls}" in style_sheet()
