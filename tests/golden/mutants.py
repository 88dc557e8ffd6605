"""One changed word: copies of a recorded notebook that differ from it in one place, each of which a replay has to notice.

A change is made wherever the log says the same thing (what a model said stands once, a call's arguments twice), as somebody would who edits
a log by hand and with care; outputs and cells stay as they are.
"""

from __future__ import annotations

import copy
import random
import re
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
from msgspec.structs import replace

from plan_mode_nb.document.chunks import read_metadata, write_metadata
from plan_mode_nb.document.document import StoredSession
from plan_mode_nb.log.codec import decode, encode
from plan_mode_nb.log.events import Event

WORD = re.compile(r"[^\W\d_]{2,}")
Data = dict[str, Any]
Notebook = dict[str, Any]
Edit = Callable[[Event, random.Random], Data | None]
"""An event's data with one word changed, or None where it holds no such thing."""


def worded(text: str, chance: random.Random, start: int = 0) -> str | None:
    """The text with one word changed, at or behind ``start``; None where it has none."""
    found = [word for word in WORD.finditer(text) if word.start() >= start]
    if not found:
        return None
    word = chance.choice(found)
    new = "other" if word[0] != "other" else "another"
    return text[: word.start()] + new + text[word.end() :]


def _blocks(
    blocks: list[Data], kind: str, key: str, chance: random.Random, start: Callable[[str], int] = lambda text: 0
) -> list[Data] | None:
    places = [index for index, block in enumerate(blocks) if block.get("type") == kind and WORD.search(block[key])]
    if not places:
        return None
    place = chance.choice(places)
    changed = worded(blocks[place][key], chance)
    return [{**block, key: changed} if index == place else block for index, block in enumerate(blocks)]


def _values(arguments: str) -> int:
    """Where the first value of a call's raw arguments begins: a changed key is another call."""
    return arguments.find(":") + 1


def model_text(event: Event, chance: random.Random) -> Data | None:
    if event.type != "assistant/message":
        return None
    content = _blocks(event.data["message"]["content"], "text", "text", chance)
    return None if content is None else {**event.data, "message": {**event.data["message"], "content": content}}


def _arguments_of(*names: str) -> Edit:
    def edit(event: Event, chance: random.Random) -> Data | None:
        if event.type != "tool/call" or (names and event.data["name"] not in names):
            return None
        changed = worded(event.data["arguments"], chance, _values(event.data["arguments"]))
        return None if changed is None else {**event.data, "arguments": changed}

    return edit


def tool_result(event: Event, chance: random.Random) -> Data | None:
    if event.type != "tool/result":
        return None
    message = event.data["message"]
    block = message["content"][0]
    content = _blocks(block["content"], "text", "text", chance)
    return None if content is None else {**event.data, "message": {**message, "content": [{**block, "content": content}]}}


def inner_result(event: Event, chance: random.Random) -> Data | None:
    """What a call that a program made gave it."""
    if event.type != "tool/code-dispatch":
        return None
    content = _blocks(event.data["content"], "text", "text", chance)
    return None if content is None else {**event.data, "content": content}


def inner_arguments(event: Event, chance: random.Random) -> Data | None:
    if event.type != "tool/code-dispatch-start":
        return None
    arguments = event.data["arguments"]
    names = [name for name, value in arguments.items() if isinstance(value, str) and WORD.search(value)]
    if not names:
        return None
    name = chance.choice(names)
    return {**event.data, "arguments": {**arguments, name: worded(arguments[name], chance)}}


def plan(event: Event, chance: random.Random) -> Data | None:
    if event.type != "question/asked" or not event.data["questions"][0].get("detail"):
        return None
    question = event.data["questions"][0]
    return {**event.data, "questions": [{**question, "detail": worded(question["detail"], chance)}]}


def feedback(event: Event, chance: random.Random) -> Data | None:
    if event.type != "question/answered":
        return None
    answers = copy.deepcopy(event.data.get("answers", []))
    for answer in answers:
        if answer.get("custom") and WORD.search(answer["custom"]):
            answer["custom"] = worded(answer["custom"], chance)
            return {**event.data, "answers": answers}
    return None


def recorded_answer(event: Event, chance: random.Random) -> Data | None:
    if event.type == "approval/decided":
        other = {"allowed-once": "rejected"}.get(event.data["outcome"], "allowed-once")
        return {**event.data, "outcome": other}
    if event.type != "question/answered" or not event.data.get("answers"):
        return None
    answers = copy.deepcopy(event.data["answers"])
    for answer in answers:
        # Beside words a label means nothing (text never approves), so there the words go.
        if answer.pop("custom", None):
            return {**event.data, "answers": answers}
        if answer["selected"]:
            answer["selected"] = [{"Approve": "Keep planning", "Keep planning": "Approve", "feet": "metres"}[answer["selected"][0]]]
            return {**event.data, "answers": answers}
    return None


def section(event: Event, chance: random.Random) -> Data | None:
    if event.type != "request/header" or not event.data["header"].get("system"):
        return None
    return {**event.data, "header": {**event.data["header"], "system": worded(event.data["header"]["system"], chance)}}


def tool_description(event: Event, chance: random.Random) -> Data | None:
    if event.type != "request/header" or not event.data["header"].get("tools"):
        return None
    tools = copy.deepcopy(event.data["header"]["tools"])
    tool = chance.choice(tools)
    tool["description"] = worded(tool["description"], chance)
    return {**event.data, "header": {**event.data["header"], "tools": tools}}


def prompt(event: Event, chance: random.Random) -> Data | None:
    if event.type != "user/message":
        return None
    content = _blocks(event.data["content"], "text", "text", chance)
    return None if content is None else {**event.data, "content": content}


def command(event: Event, chance: random.Random) -> Data | None:
    if event.type != "command/done":
        return None
    changed = worded(event.data["text"], chance)
    return None if changed is None else {**event.data, "text": changed}


def summary(event: Event, chance: random.Random) -> Data | None:
    if event.type != "compaction/summary":
        return None
    blocks = _blocks(event.data["summary"], "text", "text", chance)
    return None if blocks is None else {**event.data, "summary": blocks, "rawOutput": blocks}


EDITS: dict[str, Edit] = {
    "model text": model_text,
    "model arguments": _arguments_of(),
    "tool code": _arguments_of("python"),
    "tool result": tool_result,
    "inner result": inner_result,
    "inner arguments": inner_arguments,
    "plan": plan,
    "submitted plan": _arguments_of("exit_plan_mode"),
    "feedback": feedback,
    "recorded answer": recorded_answer,
    "section": section,
    "tool description": tool_description,
    "prompt": prompt,
    "command": command,
    "summary": summary,
}


def mutants(notebook: Notebook, chance: random.Random) -> Iterator[tuple[str, Notebook]]:
    """One mutant of each kind that the notebook has anything of, with the kind's name."""
    for kind, edit in EDITS.items():
        changed = _edited(notebook, edit, chance)
        if changed is not None:
            yield kind, changed
    yield from _cells(notebook, chance)


def _edited(notebook: Notebook, edit: Edit, chance: random.Random) -> Notebook | None:
    document = read_metadata(notebook["metadata"])
    candidates = [
        (id, event, data)
        for id, stored in document.sessions.items()
        for event in map(decode, stored.lines[stored.header.seed_length or 0 :])
        if (data := edit(event, chance)) is not None
    ]
    if not candidates:
        return None
    id, event, data = chance.choice(candidates)
    events = [decode(line) for line in document.sessions[id].lines]
    before = events[event.seq].data
    events[event.seq] = msgspec.structs.replace(events[event.seq], data=data)
    lines = [encode(_followed(each, event, before, data)) for each in events]
    sessions = {**document.sessions, id: StoredSession(document.sessions[id].header, lines, document.sessions[id].raw)}
    changed = copy.deepcopy(notebook)
    changed["metadata"] = write_metadata(replace(document, sessions=sessions), notebook["metadata"])
    return changed


def _followed(event: Event, changed: Event, before: Data, after: Data) -> Event:
    """Where else the log says the same: a call's arguments in the answer that made it, a message in the queue it waited in, a summary in
    the message that stands for what it summarizes."""
    if changed.type == "tool/call" and event.type == "assistant/message":
        content = [
            {**block, "arguments": after["arguments"]} if block.get("id") == changed.data["callId"] else block
            for block in event.data["message"]["content"]
        ]
        return msgspec.structs.replace(event, data={**event.data, "message": {**event.data["message"], "content": content}})
    if changed.type == "tool/code-dispatch-start" and event.data.get("subCallId") == changed.data["subCallId"]:
        return msgspec.structs.replace(event, data={**event.data, "arguments": after["arguments"]})
    if changed.type == "compaction/summary" and event.type == "user/message" and changed.seq in event.sources:
        now = {block["text"]: new["text"] for block, new in zip(before["summary"], after["summary"], strict=True)}
        content = [{**block, "text": now.get(block["text"], block["text"])} for block in event.data["content"]]
        return msgspec.structs.replace(event, data={**event.data, "content": content})
    if changed.type == "user/message" and event.type == "agent/inbox/spliced":
        inserted = [after if message["id"] == before["id"] else message for message in event.data["inserted"]]
        return msgspec.structs.replace(event, data={**event.data, "inserted": inserted})
    return event


def _cells(notebook: Notebook, chance: random.Random) -> Iterator[tuple[str, Notebook]]:
    """Two cells that asked exchanged, one with a word changed, one left out."""
    asked = [
        index
        for index, cell in enumerate(notebook["cells"])
        if "".join(cell["source"]).startswith(("%agent", "%plan ", "%%agent", "%%plan"))
    ]
    if len(asked) > 1:
        first, second = sorted(chance.sample(asked, 2))
        if notebook["cells"][first]["source"] != notebook["cells"][second]["source"]:
            changed = copy.deepcopy(notebook)
            changed["cells"][first], changed["cells"][second] = changed["cells"][second], changed["cells"][first]
            yield "cell order", changed
    for kind in ("cell", "missing cell"):
        index = chance.choice(asked)
        changed = copy.deepcopy(notebook)
        if kind == "missing cell":
            del changed["cells"][index]
        else:
            source = "".join(changed["cells"][index]["source"])
            changed["cells"][index]["source"] = worded(source, chance, source.index(" ") if " " in source else 0)
        yield kind, changed
