"""A log for people: a timeline for a terminal, and a conversation as markdown cells."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from plan_mode_nb.agent.compaction import COMPACT
from plan_mode_nb.plan.visible import visible_line
from plan_mode_nb.render import compaction, facts
from plan_mode_nb.render.cards import end_phrase, plan_card, plan_title, question_card
from plan_mode_nb.render.facts import EventLike, mapping
from plan_mode_nb.render.source import inert_markdown
from plan_mode_nb.render.tool_card import ToolStatus, call_title, image_text, read_arguments, result_text, tool_card

Clock = Callable[[int], str]
"""An event's time (integer Unix milliseconds) as words; whoever prints knows the time zone."""

_WIDTH = 100
Data = Mapping[str, Any]
Result = tuple[str, Sequence[Mapping[str, Any]], bool]


def timeline(events: Iterable[EventLike], *, clock: Clock | None = None) -> str:
    """One line for each event worth one: where it stands (``turn.step``), what happened, and who decided.

    No raw control character of the log reaches the terminal. ``clock`` adds a column of times.
    """
    sayings = Sayings()
    lines = []
    step = ""
    for event in events:
        data = mapping(event.data)
        if event.type in ("turn/start", "step/start"):
            step = f"{data.get('turn')}" + (f".{data.get('step')}" if "step" in data else "")
        said = sayings.of(event)
        if said:
            when = f"{clock(event.time)}  " if clock is not None else ""
            lines.append(f"{event.seq:>6}  {when}{visible_line(step):<6}{said}")
        if event.type == "turn/end":
            step = ""
    return "\n".join(lines)


class Sayings:
    """A log's events in words, given in order: it remembers the names of what is answered later."""

    def __init__(self) -> None:
        self._asked: dict[str, str] = {}

    def of(self, event: EventLike) -> str:
        """One visible line of at most a hundred characters; "" for an event that is worth none."""
        say = _LINES.get(event.type)
        said = say(mapping(event.data), self._asked) if say is not None else ""
        return _bounded(said) if said else ""


def _message(data: Data, asked: dict[str, str]) -> str:
    source = mapping(data.get("source"))
    if source.get("plugin") == COMPACT and source.get("compactionId"):
        return ""  # the line of its summary says it
    if source.get("kind") == "user":
        return f"{asked.pop('speaker', 'you')}: {_words(data)}"
    return f"{source.get('plugin', 'plugin')}: {source.get('summary') or _words(data)}"


def _descriptor(data: Data, asked: dict[str, str]) -> str:
    """A child's own part begins: what is said to it is its task, and whoever says so is its parent."""
    asked["speaker"] = "task"
    label = f" “{data['label']}”" if isinstance(data.get("label"), str) else ""
    return f"child agent ({data.get('provider')}){label}"


def _assistant(data: Data, asked: dict[str, str]) -> str:
    words = _words(data.get("message"))
    return f"assistant{' (interrupted)' if data.get('interrupted') else ''}: {words}" if words else ""


def _call(data: Data, asked: dict[str, str]) -> str:
    name = str(data.get("name", ""))
    asked[f"call:{data.get('callId')}"] = name
    return f"tool {name}: {call_title(read_arguments(str(data.get('arguments', ''))))}"


def _result(data: Data, asked: dict[str, str]) -> str:
    call_id, blocks, is_error = facts.result_of(data)
    name = asked.get(f"call:{call_id}", "tool")
    return f"{'error of' if is_error else 'result of'} {name}: {result_text(blocks)}"


def _inside_start(data: Data, asked: dict[str, str]) -> str:
    _, name, _ = facts.inside_of(data)
    return f"  calls {name}: {call_title(read_arguments(facts.inside_arguments(data)))}"


def _inside(data: Data, asked: dict[str, str]) -> str:
    _, name, is_error = facts.inside_of(data)
    return f"  {'error of' if is_error else 'result of'} {name}: {result_text(facts.blocks(data))}"


def _question(data: Data, asked: dict[str, str]) -> str:
    plan = facts.reviewed_plan(data)
    questions = " / ".join(str(question.get("question", "")) for question in facts.items(data.get("questions")))
    asked[str(data.get("requestId"))] = "review" if plan is not None else "question"
    return f"plan review: {plan_title(plan)}" if plan is not None else f"question: {questions}"


def _answer(data: Data, asked: dict[str, str]) -> str:
    what = asked.get(str(data.get("requestId")), "question")
    picked = [str(label) for answer in facts.items(data.get("answers")) for label in answer.get("selected") or ()]
    said = f" — {', '.join(picked)}" if picked else ""
    words = facts.custom_text(data)
    return f"{what} {data.get('outcome')}{_by(data)}{said}" + (f" — “{words}”" if words else "")


def _approval(data: Data, asked: dict[str, str]) -> str:
    asked[f"approval:{data.get('id')}"] = str(data.get("toolName", ""))
    return f"approval of {data.get('toolName')} asked" + (f": {data['reason']}" if data.get("reason") else "")


def _decision(data: Data, asked: dict[str, str]) -> str:
    tool = asked.get(f"approval:{data.get('id')}", "a tool")
    return f"approval of {tool}: {data.get('outcome')}{_by(data)}"


def _by(data: Data) -> str:
    """Who decided; deepseek-harness's own logs do not say."""
    return f" by {data['by']}" if data.get("by") else ""


def _retry(data: Data, asked: dict[str, str]) -> str:
    failure = mapping(data.get("failure"))
    return f"retry {data.get('retry')} of {data.get('maxRetries')}: {failure.get('code')} {failure.get('message', '')}"


def _compacted(data: Data, asked: dict[str, str]) -> str:
    return _lower(f"{compaction.done(data)} {' '.join(_words({'content': data.get('summary')}).split())}")


def _lower(sentence: str) -> str:
    return f"{sentence[:1].lower()}{sentence[1:]}"


def _end(data: Data, asked: dict[str, str]) -> str:
    reason = mapping(data.get("reason"))
    error = mapping(reason.get("error"))
    return f"turn ends: {end_phrase(reason) or 'completed'}" + (f" ({error.get('code')}: {error.get('message')})" if error else "")


_ON = {True: "on", False: "off"}
_LINES: dict[str, Callable[[Data, dict[str, str]], str]] = {
    "turn/start": lambda data, asked: f"turn {data.get('turn')} starts",
    "turn/end": _end,
    "user/message": _message,
    "assistant/message": _assistant,
    "subagent/descriptor": _descriptor,
    "tool/call": _call,
    "tool/result": _result,
    "tool/code-dispatch-start": _inside_start,
    "tool/code-dispatch": _inside,
    "question/asked": _question,
    "question/answered": _answer,
    "approval/asked": _approval,
    "approval/decided": _decision,
    "approval/policy": lambda data, asked: f"approval policy: {data.get('policy')}",
    "sandbox/mode": lambda data, asked: f"sandbox mode: {data.get('mode')}",
    "plan/mode": lambda data, asked: f"plan mode {_ON.get(data.get('active') is True)}",
    "plan/selected": lambda data, asked: f"plan mode {_ON.get(data.get('active') is True)} selected, from the next step",
    "command/run": lambda data, asked: f"command {data.get('name')} {data.get('args', '')}",
    "command/done": lambda data, asked: f"command {data.get('kind')}: {data.get('text', '')}",
    "llm/retry": _retry,
    "compaction/summary": _compacted,
    "compaction/end": lambda data, asked: _lower(compaction.failed(data)) if "error" in data else "",
    "session/end-seed": lambda data, asked: "session resumed or forked here",
    "session/title": lambda data, asked: f"titled: {data.get('title')}",
    "todo/write": lambda data, asked: f"todos: {_todo_counts(data)}",
}


def _todo_counts(data: Data) -> str:
    todos = facts.items(data.get("todos"))
    done = sum(todo.get("status") == "completed" for todo in todos)
    return f"{done} of {len(todos)} done"


def _words(message: object) -> str:
    """A message's text, with its images in words."""
    parts = [image_text(block) if block.get("type") == "image" else str(block.get("text", "")) for block in _said(message)]
    return "\n\n".join(part for part in parts if part.strip())


def _said(message: object) -> list[Mapping[str, Any]]:
    return [block for block in facts.blocks(message) if block.get("type") in ("text", "image")]


def _bounded(said: str) -> str:
    line = visible_line(said)
    return line if len(line) <= _WIDTH else line[: _WIDTH - 1].rstrip() + "…"


def transcript(events: Iterable[EventLike]) -> list[str]:
    """The conversation as the sources of markdown cells, in order: what was said, done, submitted and decided.

    Raw HTML and images in it are inert, since whoever opens the file has not asked for either.
    """
    rows = list(events)
    answers = {mapping(event.data).get("requestId"): event.data for event in rows if event.type == "question/answered"}
    results = _results(rows)
    reviews = {mapping(event.data).get("callId") for event in rows if event.type == "question/asked"} - {None}
    cells, speaker = [], "You"
    for event in rows:
        data = mapping(event.data)
        match event.type:
            case "subagent/descriptor":
                speaker = "Task"
            case "user/message":
                cells.append(_user_cell(data, speaker))
            case "assistant/message":
                cells.append(inert_markdown(_words(data.get("message"))))
            case "tool/call" if data.get("callId") not in reviews:
                cells.append(_call_cell(data, results.get(str(data.get("callId")))))
            case "tool/code-dispatch-start" if data.get("subCallId") not in reviews:
                call = {"name": data.get("name"), "arguments": facts.inside_arguments(data)}
                cells.append(_call_cell(call, results.get(str(data.get("subCallId")))))
            case "question/asked":
                cells.append(_asked_cell(data, answers.get(data.get("requestId")), results.get(str(data.get("callId")))))
            case "compaction/summary":
                cells.append(compaction.cell(data))
            case "plan/mode":
                cells.append(f"*Plan mode {_ON[data.get('active') is True]}.*")
            case "turn/end" if end_phrase(mapping(data.get("reason"))):
                cells.append(f"*{inert_markdown(_end(data, {}))}*")
    return [cell for cell in cells if cell.strip()]


def _results(events: Iterable[EventLike]) -> dict[str, Result]:
    """What each call gave, by its id; those that a call made itself too."""
    found: dict[str, Result] = {}
    for event in events:
        if event.type == "tool/result":
            result = facts.result_of(event.data)
            found[result[0]] = result
        elif event.type == "tool/code-dispatch":
            call_id, _, is_error = facts.inside_of(event.data)
            found[call_id] = (call_id, facts.blocks(event.data), is_error)
    return found


def _user_cell(data: Data, speaker: str) -> str:
    source = mapping(data.get("source"))
    words = inert_markdown(_words(data))
    if source.get("kind") == "user":
        return f"**{speaker}**\n\n{words}"
    summary = source.get("summary")
    return f"*{inert_markdown(visible_line(str(summary)))}*" if summary else ""


def _call_cell(data: Data, result: Result | None) -> str:
    status: ToolStatus = "no result" if result is None else "failed" if result[2] else "done"
    card = tool_card(str(data.get("name", "")), str(data.get("arguments", "")), result[1] if result else None, status)
    return card["text/markdown"]


def _asked_cell(data: Data, answered: object, result: Result | None) -> str:
    plan = facts.reviewed_plan(data)
    if plan is not None:
        _, blocks, is_error = result or ("", None, False)
        return plan_card(plan, facts.plan_outcome(answered, blocks, is_error), facts.custom_text(answered))["text/markdown"]
    answers = facts.items(mapping(answered).get("answers"))
    return question_card(facts.items(data.get("questions")), answers, facts.question_outcome(answered))["text/markdown"]
