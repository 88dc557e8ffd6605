"""A strict reader of deepseek-harness's session logs, written from the facts of its format and independent of this package.

It refuses what deepseek-harness 0.1.1-rc.2 refuses to load, and keys in an order that its writer never has. Only current shapes: an export
has no old ones.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from pathlib import PurePosixPath, PureWindowsPath
from typing import Any, NoReturn

SAFE = 2**53 - 1
KNOWN = frozenset(
    """
    agent-preset/selected agent/inbox/spliced approval/asked approval/decided approval/policy assistant/chunk assistant/message
    command/done command/run compaction/end compaction/prune compaction/start compaction/summary feedback/record goal/change
    hook/invoked hook/result llm/retry llm/retry-started permission/preset plan/mode request/context request/header sandbox/mode
    schedule/change session/end-seed session/title session/title-llm-request step/end step/start subagent/descriptor team/member
    team/message/delivered team/message/queued team/task todo/write tool-workflow/agent-end tool-workflow/agent-start
    tool-workflow/run-end tool-workflow/run-start tool/call tool/code-dispatch tool/code-dispatch-start tool/result turn/end
    turn/start user/message web/deepseek-search-llm-request
    """.split()
)
SURFACE = ("user/message", "assistant/message", "tool/result")
ENVELOPE = {"type", "seq", "time", "data", "surfaceOp", "sourceEventSeqs", "ignorable"}
ATTACHMENT = re.compile(r"sha256:[a-f0-9]{64}")
Row = dict[str, Any]


class Refused(Exception):
    """The line and the rule."""


@dataclass
class Read:
    """What the reader keeps: the header row, the events, the seqs on the surface, and the history derived from them."""

    header: Row
    events: list[Row] = field(default_factory=list)
    nodes: list[int] = field(default_factory=list)

    @property
    def history(self) -> list[Row]:
        """One message a node, unchanged; none for an assistant message without content."""
        nodes = [self.events[seq] for seq in self.nodes]
        found = [event["data"] if event["type"] == "user/message" else event["data"]["message"] for event in nodes]
        return [message for message in found if message["role"] == "user" or message["content"]]


def read(data: bytes) -> Read:
    """Read a whole file.

    Raises:
        Refused: it breaks a rule.
    """
    text = data.decode()
    _must(text.endswith("\n"), 1, "the last line has no newline")
    lines = text[:-1].split("\n")
    result = Read(_header(_parsed(lines[0], 1)))
    for number, line in enumerate(lines[1:], start=2):
        event = _parsed(line, number)
        _envelope(event, number, len(result.events))
        _payload(event, number)
        _surface(event, number, result)
        result.events.append(event)
    return result


def _refuse(line: int, rule: str) -> NoReturn:
    raise Refused(f"line {line}: {rule}")


def _must(holds: bool, line: int, rule: str) -> None:
    if not holds:
        _refuse(line, rule)


def _parsed(line: str, number: int) -> Row:
    _must(bool(line), number, "an empty line")
    try:
        value = json.loads(line, parse_constant=lambda name: _refuse(number, f"{name} is not JSON"))
    except ValueError as error:
        _refuse(number, f"not JSON: {error}")
    _must(isinstance(value, dict), number, "not an object")
    _must(_is_lossless(value), number, "not lossless JSON")
    return dict(value)


def _is_lossless(value: Any) -> bool:
    if isinstance(value, float):
        return value == value and abs(value) != float("inf") and not (value == 0 and str(value).startswith("-"))
    if isinstance(value, int):
        return abs(value) <= SAFE
    if isinstance(value, dict):
        return all(map(_is_lossless, value.values()))
    return all(map(_is_lossless, value)) if isinstance(value, list) else True


def _count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= SAFE


def _filled(value: Any) -> bool:
    return isinstance(value, str) and value != ""


def _header(row: Row) -> Row:
    _must(row.get("version") == 0 and not isinstance(row.get("version"), bool), 1, "the version is not 0")
    _must(row.get("type") == "session", 1, "not a session header")
    _must(_filled(row.get("id")), 1, "the header has no id")
    for key in ("createdAt", "delegationDepth"):
        _must(_count(row.get(key)), 1, f"`{key}` is required")
    for key in ("cwd", "parentSession", "agentPreset"):
        _must(isinstance(row.get(key, ""), str), 1, f"`{key}` is no string")
    if "cwd" in row:
        _must(PurePosixPath(row["cwd"]).is_absolute() or PureWindowsPath(row["cwd"]).is_absolute(), 1, "`cwd` is not absolute")
    _must(_count(row.get("seedLength", 0)), 1, "`seedLength` is no count")
    _must(row.get("origin", "subagent") == "subagent", 1, "`origin` is not subagent")
    _must(not {"sandboxMode", "approvalPolicy"} & row.keys(), 1, "a retired key")
    return row


def _envelope(event: Row, number: int, seq: int) -> None:
    _must(event.keys() <= ENVELOPE and {"type", "seq", "time", "data"} <= event.keys(), number, "not exactly the envelope")
    _must(list(event) == [key for key in ENVELOPE_ORDER if key in event], number, "keys out of order")
    _must(event["seq"] == seq and _count(event["seq"]), number, f"expected seq {seq}")
    time = event["time"]
    _must(isinstance(time, int) and not isinstance(time, bool) and abs(time) <= SAFE, number, "`time` is no safe integer")
    _must("ignorable" not in event or event["ignorable"] is True, number, "`ignorable` is not true")
    kind = event["type"]
    _must(kind not in ("request/header-delta", "mode/set", "steering/message"), number, f"the retired type {kind}")
    _must(kind in KNOWN or event.get("ignorable") is True, number, f"the unknown type {kind} is not ignorable")
    _must(kind in KNOWN or not {"surfaceOp", "sourceEventSeqs"} & event.keys(), number, "an unknown type is on the surface")


ENVELOPE_ORDER = ("type", "seq", "time", "data", "surfaceOp", "sourceEventSeqs", "ignorable")


def _payload(event: Row, number: int) -> None:
    kind, data = event["type"], event["data"]
    _must(isinstance(data, dict), number, "`data` is no object")
    match kind:
        case "request/header":
            config = data["header"]["config"]
            _must(_filled(config.get("provider")) and _filled(config.get("model")), number, "the header lacks provider or model")
            _must(data["reason"] in ("initial", "change", "resume"), number, f"reason {data['reason']}")
            _must("reasoningEffort" not in config or _filled(config["reasoningEffort"]), number, "an empty reasoningEffort")
        case "user/message":
            _message(data, "user", number)
        case "assistant/message":
            _message(data["message"], "assistant", number)
            source = data["message"]["source"]
            _must(source["kind"] == "model" and _filled(source.get("provider")) and _filled(source.get("model")), number, "no model source")
        case "tool/result":
            _message(data["message"], "user", number)
            _result(data["message"], number)
        case "plan/mode":
            _must(isinstance(data.get("active"), bool), number, "`active` is no boolean")
        case "turn/end":
            _must("kind" in data["reason"] and data["reason"] != {"kind": "aborted"}, number, "an old end reason")
        case "turn/start":
            _must("trigger" not in data, number, "an old turn start")


def _message(message: Row, role: str, number: int) -> None:
    _must(_filled(message.get("id")), number, "a message without identity")
    _must(message.get("role") == role, number, f"the role is not {role}")
    _must(_filled(message.get("source", {}).get("kind")), number, "a message without source")
    _must(isinstance(message.get("content"), list), number, "content is no list")
    for image in (block for block in message["content"] if block.get("type") == "image"):
        _must(ATTACHMENT.fullmatch(image["attachment"]["attachmentId"]) is not None, number, "an attachment id that its store refuses")


def _result(message: Row, number: int) -> None:
    source, content = message["source"], message["content"]
    _must(source["kind"] == "tool" and _filled(source.get("callId")), number, "a result without a tool source")
    _must(
        len(content) == 1 and content[0]["type"] == "tool-result" and isinstance(content[0]["content"], list),
        number,
        "not one result block",
    )
    _must(content[0]["toolCallId"] == source["callId"], number, "call ids that differ")


def _surface(event: Row, number: int, log: Read) -> None:
    op, sources, seq = event.get("surfaceOp"), event.get("sourceEventSeqs"), event["seq"]
    if event["type"] not in SURFACE:
        _must(op is None and sources is None, number, f"{event['type']} is not on the surface")
        return
    _must(op is not None, number, f"{event['type']} needs a surfaceOp")
    if sources is not None:
        _must(all(_count(each) and each < seq for each in sources), number, "a source that is not earlier")
        _must(len(set(sources)) == len(sources), number, "a source named twice")
        _must(bool(sources) or event["type"] == "assistant/message", number, "no sources")
    if op == "append":
        log.nodes.append(seq)
        return
    _must(isinstance(op, dict) and op.keys() == {"op", "start", "end"} and op["op"] == "replace", number, "an invalid surfaceOp")
    _must(op["start"] in log.nodes and op["end"] in log.nodes, number, "replaces what is not on the surface")
    first, last = log.nodes.index(op["start"]), log.nodes.index(op["end"])
    _must(first <= last, number, "a span that ends before it starts")
    _must(set(log.nodes[first : last + 1]) <= set(sources or ()), number, "a shadowed node is no source")
    if event["type"] == "tool/result":
        replaced = log.events[log.nodes[first]]
        _must(first == last and replaced["type"] == "tool/result", number, "rewrites more than one result")
        _must(_emptied(event["data"]) == _emptied(replaced["data"]), number, "rewrites more than the content")
    log.nodes[first : last + 1] = [seq]


def _emptied(data: Row) -> Row:
    message = data["message"]
    return {**data, "message": {**message, "content": [{**message["content"][0], "content": None}]}}


def plan_projection(events: list[Row]) -> Row:
    """deepseek-harness's plan projection: what its interface shows."""
    active, wanted, running = False, None, None
    for event in events:
        data = event["data"]
        if event["type"] == "command/run" and data["name"] == "plan":
            if "args" in data:
                running = (data["commandId"], data["args"].strip() != "off")
        elif event["type"] == "command/done" and running is not None and data["commandId"] == running[0]:
            wanted = running[1] if data["kind"] == "success" and running[1] != active else None
            running = None
        elif event["type"] == "plan/mode":
            active, wanted = data["active"], None
    shown = wanted if running is None else running[1]
    return {"active": active, "pending": shown is not None and shown != active}
