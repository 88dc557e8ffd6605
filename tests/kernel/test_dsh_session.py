"""A deepseek-harness session goes on in a real kernel: imported by magic and by command line, history, images and all."""

from __future__ import annotations

import base64
import hashlib
import json
import sys
import zlib
from pathlib import Path
from typing import Any

from plan_mode_nb.hosts.cli.moving import import_command
from plan_mode_nb.log.dsh import write_jsonl
from plan_mode_nb.log.events import Header, SessionId
from plan_mode_nb.log.messages import attachment_id, text_block
from plan_mode_nb.log.vocabulary import draft, surface
from plan_mode_nb.models.script import say, usage
from plan_mode_nb.store.notebook import load_document
from plan_mode_nb.testing import logs

from .agent_kernel import SECTION, AgentKernel


def png() -> bytes:
    """One grey pixel."""

    def chunk(kind: bytes, body: bytes) -> bytes:
        return len(body).to_bytes(4) + kind + body + zlib.crc32(kind + body).to_bytes(4)

    head = chunk(b"IHDR", (1).to_bytes(4) + (1).to_bytes(4) + bytes([8, 0, 0, 0, 0]))
    return b"\x89PNG\r\n\x1a\n" + head + chunk(b"IDAT", zlib.compress(b"\0\x80")) + chunk(b"IEND", b"")


PICTURE = png()
DIGEST = hashlib.sha256(PICTURE).hexdigest()
TOOLS = [{"name": "web_search", "description": "Search.", "parameters": {"type": "object"}}]


def cut_off() -> bytes:
    """A log that ends in the middle of a call: a picture was shown, a plan was asked for, access was full."""
    header = Header(id=SessionId("from-dsh"), created_at=1, cwd="/somewhere")
    session = logs.new_session(header=header)
    about = {"attachmentId": attachment_id(DIGEST), "mediaType": "image/png", "bytes": len(PICTURE), "width": 1, "height": 1}
    prompt = {"content": [{"type": "image", "attachment": about}, text_block("Look at it.")], "source": {"kind": "user"}, "role": "user"}
    session.append(draft("sandbox/mode", {"mode": "danger-full-access"}), logs.command_run("c1", "plan it"), logs.command_done("c1"))
    session.append(logs.turn_start(1), logs.step_start(1, 1), surface("user/message", {**prompt, "id": "u1"}))
    session.append(
        logs.request_header(tools=TOOLS), logs.assistant(1, 1, "Looking.", logs.call_block("k1", "web_search", {"query": "penguins"}))
    )
    session.append(logs.tool_call(1, 1, "k1", "web_search", {"query": "penguins"}))
    return write_jsonl(session.header, session.lines)


def placed(home: Path) -> Path:
    """The log and its picture, where deepseek-harness has them."""
    log = home / "sessions" / "--somewhere--" / "from-dsh" / "session.jsonl"
    picture = home / "attachments" / "v1" / "objects" / DIGEST[:2] / DIGEST
    for path, data in ((log, cut_off()), (picture, PICTURE)):
        path.parent.mkdir(parents=True)
        path.write_bytes(data)
    log.chmod(0o400)
    return log


def check_request(body: dict[str, Any]) -> None:
    """The first request here: what was said there, the picture, the closed call, what is missing here, and plan mode."""
    text = json.dumps(body["messages"])
    assert base64.b64encode(PICTURE).decode() in text
    for said in ("Look at it.", "Looking.", "Its outcome is unknown", "do not exist here: web_search", "go on", SECTION):
        assert said in text, said
    assert "kernel was restarted" not in text
    assert body["messages"][-1]["content"].endswith("now.\n\ngo on\n\nThe user switched this session to plan mode.")


def check_fold(fold: dict[str, Any]) -> None:
    """Closed as interrupted, then a turn of ours; the choice that waited applied; full access ended."""
    assert fold["session"] == "from-dsh"
    assert [turn["end"]["kind"] for turn in fold["turns"]] == ["interrupted", "completed"]
    assert fold["plan"] == {"active": True, "pending": None}
    assert fold["sandbox_mode"] == "workspace-write"


def test_an_imported_session_goes_on_with_its_history_its_images_and_its_plan() -> None:
    """By ``%session import``, and in another kernel by the command line's import; the source is as it was."""
    with AgentKernel(sys.executable, [[say("I see."), usage(1, 1)], [say("I see."), usage(1, 1)]]) as agent:
        log = placed(agent.folder / "home")
        before = (log.read_bytes(), log.stat().st_mtime_ns)
        assert "from-dsh" in agent.run(f"%session import {log}").text
        assert agent.run("%agent go on").shown[-1] == "I see."
        check_request(agent.server.requests[0].body)
        check_fold(agent.fold())
        exported = agent.folder / "out" / "session.jsonl"
        exported.parent.mkdir()
        assert str(exported.parent / "attachments") in agent.run(f"%session export {exported}").text
        assert (exported.parent / "attachments/v1/objects" / DIGEST[:2] / DIGEST).read_bytes() == PICTURE
        imported = agent.fold()

        import_command(log, agent.notebook, session=None)
        assert load_document(agent.notebook).attachments == {DIGEST: base64.b64encode(PICTURE).decode()}
        for file in (agent.folder / "runtime" / "plan_mode_nb").iterdir():
            file.unlink()
        agent.replace_kernel()
        agent.kernel.must("%load_ext plan_mode_nb")
        assert agent.fold()["turns"] == [{"turn": 1, "steps": 1, "end": None}]
        assert agent.run("%agent go on").shown[-1] == "I see."
        check_request(agent.server.requests[1].body)
        check_fold(agent.fold())
        assert len(agent.fold()["messages"]) == len(imported["messages"])
        assert (log.read_bytes(), log.stat().st_mtime_ns) == before
