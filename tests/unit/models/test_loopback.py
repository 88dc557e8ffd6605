"""The model server as a program of its own, and as what it promises to tests."""

from __future__ import annotations

import asyncio
import http.client
import json
import subprocess
import sys
from pathlib import Path

import msgspec
from live_model import over

from plan_mode_nb.models.pydantic_ai import PydanticAIModel
from plan_mode_nb.models.script import call, say, usage
from plan_mode_nb.models.settings import ModelSettings
from plan_mode_nb.testing.faults import Drop, ServerPart, Slow, Stall, Status
from plan_mode_nb.testing.loopback import LoopbackServer
from plan_mode_nb.testing.model_contract import blocks_of, chunks_of


def test_it_serves_a_script_to_another_process(tmp_path: Path) -> None:
    script = tmp_path / "script.json"
    script.write_bytes(msgspec.json.encode([[say("From afar."), usage(3, 2)], [Status(429, "slow", 1.0)]]))
    command = [sys.executable, "-m", "plan_mode_nb.testing.loopback", "--script", str(script)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdin
        assert process.stdout
        assert process.stderr
        url = process.stdout.readline().strip()

        async def body() -> None:
            model = PydanticAIModel("openai-chat", "m", ModelSettings(), {"OPENAI_BASE_URL": url})
            chunks, error = await chunks_of(model)
            assert error is None
            assert blocks_of(chunks) == [{"type": "text", "text": "From afar."}]
            _, error = await chunks_of(model)
            assert error is not None
            assert error.code == "RATE_LIMIT"
            await model.aclose()

        asyncio.run(body())
        process.stdin.close()
        assert process.wait(10) == 0
        assert process.stderr.read() == ""


def test_faults_have_a_json_form_like_the_other_parts() -> None:
    parts = [say("x"), call("look", "{"), Slow(0.1), Stall(), Drop(), Status(401, "no", code="c")]
    assert msgspec.json.decode(msgspec.json.encode(parts), type=list[ServerPart]) == parts


def test_a_step_may_be_a_function_of_the_request() -> None:
    async def body(model: PydanticAIModel, server: LoopbackServer) -> None:
        chunks, _ = await chunks_of(model)
        assert blocks_of(chunks) == [{"type": "text", "text": "2 messages"}]

    over("openai-chat", [lambda body: say(f"{len(body['messages'])} messages")], body)


def test_it_lists_a_model_for_clients_that_ask_whether_it_is_there() -> None:
    with LoopbackServer() as server:
        connection = http.client.HTTPConnection("127.0.0.1", int(server.root.rpartition(":")[2]), timeout=5)
        connection.request("GET", "/v1/models")
        assert json.loads(connection.getresponse().read())["data"][0]["id"] == "loopback"
        connection.close()


def test_closing_it_ends_stalled_answers() -> None:
    """A test that fails in the middle must not hang at its end."""

    async def body(server: LoopbackServer) -> None:
        model = PydanticAIModel("openai-chat", "m", ModelSettings(), {"OPENAI_BASE_URL": server.url})
        asking = asyncio.create_task(chunks_of(model))
        assert await asyncio.to_thread(server.wait_for_requests, 1)
        await asyncio.to_thread(server.close)
        _, error = await asyncio.wait_for(asking, 60)
        assert error is not None
        assert error.code == "TRANSPORT"
        await model.aclose()

    server = LoopbackServer([Stall()]).start()
    asyncio.run(body(server))
