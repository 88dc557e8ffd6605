"""Static cards: what remains in a notebook when a widget is gone. Each function returns one deterministic bundle."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from typing import Any, Literal, assert_never

from plan_mode_nb.plan.plan_text import PlanTextError, parse_plan
from plan_mode_nb.plan.visible import visible, visible_line
from plan_mode_nb.render.html import Bundle, card, element, label, paragraph, text, verbatim
from plan_mode_nb.render.markdown import to_html
from plan_mode_nb.render.source import fenced, inert_markdown
from plan_mode_nb.render.tool_card import image_text

ReviewState = Literal["waiting", "approved", "keep planning", "dismissed", "interrupted", "unavailable", "left"]
QuestionState = Literal["waiting", "answered", "dismissed", "interrupted", "unavailable"]
ApprovalState = Literal["waiting", "allowed", "rejected", "interrupted", "unavailable"]

FIGURE = "Figure of the scratch process"
"""How the text of such a figure begins: it tells one from a figure that the notebook's own code displayed."""
_TODO_MARKS = {"pending": "☐", "in_progress": "▶", "completed": "☑"}


def plan_card(plan_text: str, outcome: ReviewState, feedback: str | None = None) -> Bundle:
    """A submitted plan, whole, with what became of it and the person's words verbatim."""
    said = _plan_sentence(outcome)
    has_feedback = feedback is not None and feedback.strip() != ""
    plain, marked, html = (
        [said, visible(plan_text.removeprefix("\ufeff"))],
        [f"**{said}**", inert_markdown(plan_text)],
        [_state(said, outcome), to_html(plan_text)],
    )
    if feedback is not None and has_feedback:
        plain += ["Feedback:", visible(feedback)]
        marked += ["**Feedback**", fenced(visible(feedback))]
        html += [label("Feedback"), verbatim(feedback, cls="pmnb-feedback")]
    return {"text/plain": "\n\n".join(plain), "text/markdown": "\n\n".join(marked), "text/html": card("plan", "".join(html))}


def plan_title(plan_text: str) -> str:
    """The plan's heading, or "Plan" for a text that has none."""
    try:
        return parse_plan(plan_text).title
    except PlanTextError:
        return "Plan"


def _plan_sentence(outcome: ReviewState) -> str:
    match outcome:
        case "waiting":
            return "Plan review: waiting for you"
        case "approved":
            return "Plan review: approved"
        case "keep planning":
            return "Plan review: not approved, keep planning"
        case "dismissed":
            return "Plan review: not approved, set aside to talk (say `%agent present it again` when ready)"
        case "interrupted":
            return "Plan review: not approved, interrupted"
        case "unavailable":
            return "Plan review: not approved, nobody was there to answer"
        case "left":
            return "Plan review: not approved, plan mode was switched off"
        case _:
            assert_never(outcome)


def question_card(
    questions: Sequence[Mapping[str, Any]], answers: Sequence[Mapping[str, Any]] | None, outcome: QuestionState, of: str = ""
) -> Bundle:
    """Questions as in ``question/asked`` with the answers of ``question/answered`` (matched by id) marked in them. ``of``: who asks, in
    words, where it is not the agent itself."""
    given = {answer.get("id"): answer for answer in answers or ()}
    how = "nobody was there to answer" if outcome == "unavailable" else _waiting(outcome)
    said, marked_as = (f"Question{f' of {who}' if who else ''}: {how}" for who in (of, inert_markdown(of)))
    parts = [_question(question, given.get(question.get("id"), {})) for question in questions]
    return {
        "text/plain": "\n\n".join([said, *(part["text/plain"] for part in parts)]),
        "text/markdown": "\n\n".join([f"**{marked_as}**", *(part["text/markdown"] for part in parts)]),
        "text/html": card("question", _state(said, outcome) + "".join(part["text/html"] for part in parts)),
    }


def _question(question: Mapping[str, Any], answer: Mapping[str, Any]) -> Bundle:
    asked, detail, custom = (str(value or "") for value in (question.get("question"), question.get("detail"), answer.get("custom")))
    picked = answer.get("selected") or ()
    options = question.get("options") or ()
    lines = [f"{'☑' if option.get('label') in picked else '☐'} {_option(option)}" for option in options]
    plain = [visible(asked), visible(detail), "\n".join(lines)]
    marked = [inert_markdown(asked), inert_markdown(detail), "\n".join(f"- {inert_markdown(line)}" for line in lines)]
    html = label(asked) + (to_html(detail) if detail else "") + _list(lines)
    if custom:
        plain.append(f"Answer:\n{visible(custom)}")
        marked += ["**Answer**", fenced(visible(custom))]
        html += label("Answer") + verbatim(custom, cls="pmnb-answer")
    return {"text/plain": "\n\n".join(filter(None, plain)), "text/markdown": "\n\n".join(filter(None, marked)), "text/html": html}


def _option(option: Mapping[str, Any]) -> str:
    description = option.get("description")
    return visible_line(f"{option.get('label', '')}: {description}" if description else str(option.get("label", "")))


def approval_card(tool: str, reason: str, outcome: ApprovalState, of: str = "", given: str = "") -> Bundle:
    """A question before a tool ran. ``reason``: why it asked, as prose. ``of``: who asked, in words, where it is not the agent itself;
    ``given``: what would run, where no card of the call shows it."""
    asks, how = f"Approval of {visible_line(tool)}", "nobody was there to answer" if outcome == "unavailable" else _waiting(outcome)
    said, marked_as = (f"{asks}{f' for {who}' if who else ''}: {how}" for who in (of, inert_markdown(of)))
    plain = "\n\n".join(filter(None, [said, visible(reason), visible(given)]))
    marked = "\n\n".join(filter(None, [f"**{marked_as}**", inert_markdown(reason), given and fenced(visible(given))]))
    html = _state(said, outcome) + (paragraph(reason, cls="pmnb-asked") if reason else "") + (verbatim(given) if given else "")
    return {"text/plain": plain, "text/markdown": marked, "text/html": card("approval", html)}


def todo_list(todos: Sequence[Mapping[str, Any]]) -> Bundle:
    """The agent's list in its own order; an item's state is a sign, never colour alone."""
    lines = [f"{_TODO_MARKS.get(str(todo.get('status')), '☐')} {visible_line(str(todo.get('content', '')))}" for todo in todos]
    if not lines:
        return notice("No todos.")
    return {
        "text/plain": "\n".join(lines),
        "text/markdown": "\n".join(f"- {inert_markdown(line)}" for line in lines),
        "text/html": card("todos", _list(lines)),
    }


def turn_summary(
    steps: int, tokens_in: int, tokens_out: int, cached: int, end_reason: Mapping[str, Any] | None, retries: int = 0
) -> Bundle:
    """One line. ``tokens_in`` includes ``cached``; ``end_reason`` is the reason object of ``turn/end``, None while it runs."""
    parts = [f"{steps} step{'' if steps == 1 else 's'}"]
    if tokens_in or tokens_out:
        parts += [f"{tokens_in:,} tokens in" + (f" ({cached:,} cached)" if cached else ""), f"{tokens_out:,} out"]
    if retries:
        parts.append(f"{retries} retr{'y' if retries == 1 else 'ies'}")
    said = end_phrase(end_reason)
    return notice(" · ".join([*parts, said] if said else parts), kind="summary")


def end_phrase(reason: Mapping[str, Any] | None) -> str:
    """How a turn ended, in words; "" for a completed one."""
    if reason is None:
        return "running"
    match reason.get("kind"):
        case "completed":
            return ""
        case "aborted":
            return {"user": "stopped by you", "parent": "stopped by its parent", "hook": "stopped by a hook"}.get(_kind(reason), "stopped")
        case "blocked":
            return "blocked by a hook"
        case "error":
            return "failed"
        case "max-tokens":
            return "cut at the model's token limit"
        case "interrupted":
            return "interrupted"
        case kind:
            return visible_line(str(kind))


def notice(value: str, *, kind: str = "notice") -> Bundle:
    """One line that is not the model's."""
    line = visible_line(value)
    return {"text/plain": line, "text/html": card(kind, paragraph(line))}


def figure(block: Mapping[str, Any], data: bytes | None) -> Bundle:
    """A figure that a tool's result carries, as an image where its bytes are here. ``block``: the result's image block."""
    said = f"{FIGURE}: {image_text(block).strip('[]').removeprefix('image ')}"
    media_type = str((block.get("attachment") or {}).get("mediaType", ""))
    if data is None or not media_type.startswith("image/"):
        return notice(said)
    return {"text/plain": said, media_type: base64.b64encode(data).decode("ascii")}


def assistant_text(value: str) -> Bundle:
    """The model's own markdown."""
    return {"text/plain": visible(value), "text/markdown": inert_markdown(value), "text/html": to_html(value)}


def error_line(value: str) -> Bundle:
    """Why a turn failed, in one line. Text, never an ``error`` output: the cell's own status says the rest."""
    line = visible_line(value)
    return {"text/plain": f"Error: {line}", "text/html": card("error", element("p", f"<strong>Error:</strong> {text(line)}", dir="auto"))}


def _waiting(outcome: str) -> str:
    return "waiting for you" if outcome == "waiting" else outcome


def _state(said: str, outcome: str) -> str:
    return element("p", element("strong", text(said)), cls=f"pmnb-outcome pmnb-outcome-{outcome.replace(' ', '-')}")


def _list(lines: Sequence[str]) -> str:
    items = "".join(element("li", text(line)) for line in lines)
    return element("ul", items, dir="auto", style="list-style-type: none") if items else ""


def _kind(reason: Mapping[str, Any]) -> str:
    inner = reason.get("reason")
    return str(inner.get("kind")) if isinstance(inner, Mapping) else ""
