"""Colours for static displays, for hosts that can load a style sheet. Without it everything reads well in one colour."""

from __future__ import annotations

from typing import Final

_COLOURS: Final = {
    "keyword": ("k", "kc", "kd", "kn", "kp", "kr", "kt", "ow"),
    "string": ("s", "sa", "sb", "sc", "dl", "sd", "s2", "se", "sh", "si", "sx", "sr", "s1", "ss"),
    "number": ("m", "mb", "mf", "mh", "mi", "il", "mo"),
    "comment": ("c", "ch", "cm", "cp", "cpf", "c1", "cs"),
    "def": ("nf", "fm", "nc", "nd"),
    "builtin": ("nb", "bp"),
    "operator": ("o",),
    "tag": ("nt",),
    "attribute": ("na",),
    "error": ("err", "gr"),
}


def style_sheet() -> str:
    """CSS for the HTML of this package: JupyterLab's own editor colours, light and dark, or none where its variables are not defined."""
    rules = []
    for name, classes in _COLOURS.items():
        selector = ", ".join(f".pmnb-code .{cls}" for cls in classes)
        rules.append(f"{selector} {{ color: var(--jp-mirror-editor-{name}-color, inherit); }}")
    rules += [
        ".pmnb-info, .pmnb-source, .pmnb-cut, .pmnb-skipped, .pmnb-static-summary { opacity: 0.8; }",
        ".pmnb-static-tool summary { cursor: pointer; }",
        ".pmnb-result { max-height: 24em; overflow: auto; }",
        ".pmnb-added { background: color-mix(in srgb, var(--jp-success-color1, green) 12%, transparent); }",
        ".pmnb-removed { background: color-mix(in srgb, var(--jp-error-color1, red) 12%, transparent); }",
    ]
    return "\n".join(rules) + "\n"
