"""The room: pure, quick to load."""

from __future__ import annotations

import subprocess
import sys

from plan_mode_nb.render.highlight import code_block


def test_loading_the_room_loads_neither_the_parser_nor_the_highlighter_nor_jupyter() -> None:
    code = (
        "import sys, plan_mode_nb.render.turn_view, plan_mode_nb.render.transcript, plan_mode_nb.render.diff\n"
        "heavy = {'markdown_it', 'pygments', 'linkify_it', 'IPython', 'ipywidgets', 'nbformat'} & set(sys.modules)\n"
        "print(sorted(heavy))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_code_carries_the_classes_that_jupyter_styles_and_elements_that_need_no_style() -> None:
    html = code_block('import a\n"s"  # c\n', "python")
    assert html.startswith('<pre class="pmnb-code highlight" dir="ltr" style="white-space: pre-wrap; ')
    assert '<b class="kn">import</b>' in html
    assert '<span class="s2">' in html
    assert '<i class="c1"># c</i>' in html
