"""The card of one tool call: what was asked of the tool, readable as what it is, and what came back."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from textwrap import indent
from typing import Any, Literal, NamedTuple

from plan_mode_nb.plan.visible import visible, visible_line
from plan_mode_nb.render.highlight import code_block, languages
from plan_mode_nb.render.html import Bundle, card, element, indented, label, text, unix_lines, verbatim
from plan_mode_nb.render.markdown import to_html
from plan_mode_nb.render.source import fenced

ToolStatus = Literal["running", "done", "failed", "no result"]

SHOWN = 8_000
SHOWN_LINES = 120
"""What of a result the HTML shows, two thirds from the head and the rest from the tail; ``text/plain`` has it whole."""

_TITLE_LENGTH = 60
_COLOUR = re.compile(r"\x1b\[[0-9;:]*m")
_LANGUAGES = {"code": "python", "script": "python", "command": "bash", "cmd": "bash", "sql": "sql", "query": "sql", "plan": "markdown"}
_ONE_LINE = 100


class Argument(NamedTuple):
    """One argument of a call. ``language`` is "" for prose; ``block`` asks for lines of its own."""

    name: str
    value: str
    language: str
    block: bool


def tool_card(
    name: str,
    arguments_raw: str,
    result_blocks: Sequence[Mapping[str, Any]] | None,
    status: ToolStatus,
    title: str | None = None,
    inner: Sequence[Bundle] = (),
    did: Sequence[str] = (),
) -> Bundle:
    """A collapsed card.

    ``arguments_raw`` is the model's JSON text, which may be broken; ``result_blocks`` the content blocks of the result, None before
    there is one; ``title`` what stands beside the tool's name (by default the first words of what it was given); ``inner``: the cards of
    the calls that this one made itself, in order; ``did``: a heading, and lines on what somebody did for it.
    """
    arguments = read_arguments(arguments_raw)
    shown = visible_line(title if title is not None else call_title(arguments))
    result = None if result_blocks is None else result_text(result_blocks)
    head = f"{visible_line(name)} ({status})" + (f": {shown}" if shown else "")
    summary = element("code", text(visible_line(name)), dir="ltr") + (f" {element('bdi', text(shown))}" if shown else "")
    body = _arguments_html(arguments)
    if did:
        body += label(did[0]) + verbatim("\n".join(did[1:]), cls="pmnb-did")
    if inner:
        body += label("Calls") + "".join(each["text/html"] for each in inner)
    if result is not None:
        body += label("Result") + verbatim(shortened(result), cls="pmnb-result")
    return {
        "text/plain": "\n\n".join([head, *_plain(arguments), *_plain_did(did), *_plain_inner(inner), *_plain_result(result)]),
        "text/markdown": "\n\n".join([f"**{fenced_name(name)}** ({status})", *_markdown(arguments, did, inner, result)]),
        "text/html": card("tool", element("details", element("summary", f"{summary} {element('em', status)}") + indented(body))),
    }


def read_arguments(raw: str) -> list[Argument]:
    """The arguments in the model's order.

    What is not one JSON object with distinct keys is shown as the text it is, so that nothing is lost in reading it.
    """
    try:
        given = json.loads(raw or "{}", object_pairs_hook=_distinct)
    except (ValueError, RecursionError):
        return [Argument("", raw, "", True)]
    if not isinstance(given, dict):
        return [Argument("", raw, "json", True)]
    return [_argument(name, value) for name, value in given.items()]


def _distinct(items: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(dict(items)) < len(items):
        raise ValueError("a key is given twice")
    return dict(items)


def _argument(name: str, value: object) -> Argument:
    if isinstance(value, str):
        language = _LANGUAGES.get(name, "")
        return Argument(name, value, language, bool(language) or "\n" in value or len(value) > _ONE_LINE)
    written = json.dumps(value, ensure_ascii=False)
    long = len(written) > _ONE_LINE
    return Argument(name, json.dumps(value, ensure_ascii=False, indent=2) if long else written, "json", long)


def call_title(arguments: Sequence[Argument]) -> str:
    """The first visible line of the first argument, bounded: enough to tell one call from the next."""
    for argument in arguments:
        for line in argument.value.splitlines():
            if any(char.isalnum() for char in line):
                words = visible_line(line)
                return words if len(words) <= _TITLE_LENGTH else words[: _TITLE_LENGTH - 1].rstrip() + "…"
    return ""


def result_text(blocks: Sequence[Mapping[str, Any]]) -> str:
    """A result's blocks as text. Colours of a terminal are dropped, everything else that could hide text is made visible."""
    return "\n".join(_block_text(block) for block in blocks)


def _block_text(block: Mapping[str, Any]) -> str:
    match block.get("type"):
        case "text" | "reasoning":
            return visible(_COLOUR.sub("", str(block.get("text", ""))))
        case "image":
            return image_text(block)
        case kind:
            return f"[{visible_line(str(kind))}]"


def image_text(block: Mapping[str, Any]) -> str:
    """An image block in words: what it is, never its bytes."""
    about = block.get("attachment")
    if not isinstance(about, Mapping):
        return "[image]"
    size = f"{about['width']}×{about['height']}" if "width" in about and "height" in about else ""
    return "[" + " ".join(visible_line(str(part)) for part in ("image", about.get("name"), about.get("mediaType"), size) if part) + "]"


def shortened(value: str, limit: int = SHOWN, lines: int = SHOWN_LINES) -> str:
    """Head and tail of a long text with a sentence between them, cut at line ends where that loses little."""
    head = _cut_head(value, limit * 2 // 3, lines * 2 // 3)
    tail = _cut_head(value[::-1], limit // 3, lines // 3)[::-1]
    left = len(value) - len(head) - len(tail)
    if left <= 0 or (len(value) <= limit and value.count("\n") < lines):
        return value
    return f"{head.rstrip(chr(10))}\n… {left:,} characters left out here; the plain text holds all of them …\n{tail.lstrip(chr(10))}"


def _cut_head(value: str, limit: int, lines: int) -> str:
    head = "\n".join(value[:limit].split("\n")[:lines])
    line_end = head.rfind("\n")
    return head[:line_end] if len(head) == limit and line_end >= limit // 2 else head


def fenced_name(name: str) -> str:
    """A tool's name as inline code."""
    return "`" + visible_line(name).replace("`", "'") + "`"


def _arguments_html(arguments: Sequence[Argument]) -> str:
    written = []
    for name, value, language, block in arguments:
        if not block:
            written.append(element("p", f"{text(name)}: {element('code', text(value), dir='ltr')}"))
            continue
        named = label(name) if name else ""
        if language == "markdown":
            written.append(named + to_html(value))
        elif language in languages():
            written.append(named + code_block(unix_lines(value), language))
        else:
            written.append(named + verbatim(value, cls="pmnb-argument"))
    return "".join(written)


def _plain(arguments: Sequence[Argument]) -> list[str]:
    return [_plain_argument(argument) for argument in arguments]


def _plain_argument(argument: Argument) -> str:
    name, value = visible_line(argument.name), visible(argument.value)
    if not argument.block:
        return f"{name}: {value}"
    return f"{name}:\n{value}" if name else value


def _plain_result(result: str | None) -> list[str]:
    return [] if result is None else [f"Result:\n{result}"]


def _plain_did(did: Sequence[str]) -> list[str]:
    return [] if not did else ["\n".join([f"{did[0]}:", *did[1:]])]


def _plain_inner(inner: Sequence[Bundle]) -> list[str]:
    return [] if not inner else ["Calls:", *(indent(each["text/plain"], "  ", lambda line: bool(line.strip())) for each in inner)]


def _markdown(arguments: Sequence[Argument], did: Sequence[str], inner: Sequence[Bundle], result: str | None) -> list[str]:
    parts = [fenced(visible(argument.value), argument.language) if argument.block else _plain_argument(argument) for argument in arguments]
    if did:
        parts += [did[0], fenced("\n".join(did[1:]))]
    if inner:
        parts += ["Calls", *(each["text/markdown"] for each in inner)]
    return parts if result is None else [*parts, "Result", fenced(shortened(result))]
