"""What goes out to a provider: history in its form, and nothing of the log changed on the way."""

from __future__ import annotations

import base64
from typing import Any, cast

import pytest
from live_model import over
from openai._utils import _transform

from plan_mode_nb.agent.model import Finish, ToolCallDelta
from plan_mode_nb.log.messages import assistant_message, text_block, tool_result_message, user_message
from plan_mode_nb.models.pydantic_ai import PydanticAIModel
from plan_mode_nb.models.script import call, say, think
from plan_mode_nb.models.settings import ModelSettings
from plan_mode_nb.testing.loopback import LoopbackServer
from plan_mode_nb.testing.model_contract import TOOL, a_request, blocks_of, chunks_of

PNG = base64.b64decode("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGNgYGAAAAAEAAH2FzhVAAAAAElFTkSuQmCC")
IMAGE = {"type": "image", "attachment": {"attachmentId": "abc", "mediaType": "image/png", "bytes": len(PNG), "name": "figure.png"}}
RAW = '{"name":  "x", "n": 1e1, "u": "\\u00e9"}'
REASONS = "gpt-6.1-sol"
"""A name whose profile says that it reasons; the loopback server does not care."""
FILLER = "(no result: the turn was interrupted)"


def calls(*blocks: tuple[str, str], provider: str, text: str = "") -> dict[str, Any]:
    content = [text_block(text)] if text else []
    content += [{"type": "tool-call", "id": id, "name": "look", "arguments": arguments} for id, arguments in blocks]
    return assistant_message(content, id="a-1", provider=provider, model="loopback")


def result(id: str, *blocks: dict[str, Any], is_error: bool = False) -> dict[str, Any]:
    return tool_result_message(id, blocks, id=f"r-{id}", is_error=is_error)


def sent(provider: str, messages: list[Any], **more: Any) -> dict[str, Any]:
    """The body that these messages become."""
    bodies: list[dict[str, Any]] = []

    async def body(model: PydanticAIModel, server: LoopbackServer) -> None:
        _, error = await chunks_of(model, a_request(messages=messages, **more))
        assert error is None, error
        bodies.append(server.requests[0].body)

    over(provider, [say("Fine.")], body)
    return bodies[0]


def said(provider: str, body: dict[str, Any]) -> list[Any]:
    return cast("list[Any]", body["input" if provider == "openai" else "messages"])


@pytest.mark.parametrize("provider", ["openai-chat", "deepseek"])
def test_arguments_go_back_byte_for_byte_where_the_wire_takes_text(provider: str) -> None:
    body = sent(provider, [user_message("x?", id="u"), calls(("c-1", RAW), provider=provider), result("c-1", text_block("3"))])
    assert said(provider, body)[2]["tool_calls"][0]["function"]["arguments"] == RAW


def test_arguments_go_back_byte_for_byte_on_the_responses_wire() -> None:
    body = sent("openai", [user_message("x?", id="u"), calls(("c-1", RAW), provider="openai"), result("c-1", text_block("3"))])
    assert [item["arguments"] for item in body["input"] if item.get("type") == "function_call"] == [RAW]


def test_arguments_go_back_as_an_object_where_the_wire_takes_objects() -> None:
    body = sent("anthropic", [user_message("x?", id="u"), calls(("c-1", RAW), provider="anthropic"), result("c-1", text_block("3"))])
    assert body["messages"][1]["content"][0]["input"] == {"name": "x", "n": 10.0, "u": "é"}


@pytest.mark.parametrize("raw", ['{"name": "x', "[1]", '"x"'])
def test_malformed_arguments_go_back_wrapped_so_that_no_server_refuses_the_conversation(raw: str) -> None:
    messages = [user_message("x?", id="u"), calls(("c-1", raw), provider="openai-chat"), result("c-1", text_block("Error: not an object"))]
    arguments = said("openai-chat", sent("openai-chat", messages))[2]["tool_calls"][0]["function"]["arguments"]
    assert arguments.startswith('{"INVALID_JSON":')


def test_a_call_without_a_result_gets_a_filler_on_the_wire_only() -> None:
    answer = calls(("c-1", RAW), ("c-2", "{}"), provider="openai-chat")
    messages = [user_message("x?", id="u"), answer, result("c-2", text_block("2")), user_message("and?", id="v")]
    kept = list(messages)
    wire = said("openai-chat", sent("openai-chat", messages))
    assert [(each["role"], each.get("content")) for each in wire[3:]] == [("tool", "2"), ("tool", FILLER), ("user", "and?")]
    assert messages == kept


def test_results_stand_before_what_the_person_said_meanwhile() -> None:
    """Anthropic refuses a user message whose results do not come first."""
    answer = calls(("c-1", RAW), ("c-2", "{}"), provider="anthropic")
    messages = [
        user_message("x?", id="u"),
        answer,
        result("c-1", text_block("1")),
        user_message("wait", id="v"),
        result("c-2", text_block("2")),
    ]
    content = sent("anthropic", messages)["messages"][2]["content"]
    assert [block["type"] for block in content] == ["tool_result", "tool_result", "text"]


def test_a_result_that_answers_no_call_is_told_as_text() -> None:
    messages = [user_message("x?", id="u"), result("c-9", text_block("late")), user_message("go on", id="v")]
    wire = said("deepseek", sent("deepseek", messages))
    assert [each["role"] for each in wire[1:]] == ["user", "user", "user"]
    assert "late" in wire[2]["content"]


@pytest.mark.parametrize("content", [[], [text_block("")], [text_block(" \n")]])
def test_an_empty_result_says_so(content: list[Any]) -> None:
    messages = [user_message("x?", id="u"), calls(("c-1", "{}"), provider="openai-chat"), result("c-1", *content)]
    assert said("openai-chat", sent("openai-chat", messages))[3]["content"] == "(no output)"


def test_an_error_result_is_marked_where_the_wire_can_and_its_text_is_never_changed() -> None:
    for provider in ("anthropic", "openai-chat"):
        messages = [
            user_message("x?", id="u"),
            calls(("c-1", "{}"), provider=provider),
            result("c-1", text_block("Error: no"), is_error=True),
        ]
        wire = said(provider, sent(provider, messages))
        if provider == "anthropic":
            assert wire[2]["content"][0]["is_error"] is True
            assert [block["text"] for block in wire[2]["content"][0]["content"]] == ["Error: no"]
        else:
            assert wire[3]["content"] == "Error: no"


def test_an_image_of_the_person_goes_out_in_every_wire() -> None:
    encoded = base64.b64encode(PNG).decode()
    for provider in ("openai-chat", "openai", "deepseek", "anthropic"):
        body = sent(provider, [user_message([text_block("See:"), IMAGE], id="u")], images={"abc": PNG})
        assert encoded in str(said(provider, body)), provider


def test_an_image_in_a_result_follows_the_results_where_a_result_cannot_hold_it() -> None:
    answer = calls(("c-1", "{}"), ("c-2", "{}"), provider="deepseek")
    messages = [user_message("x?", id="u"), answer, result("c-1", text_block("drawn"), IMAGE), result("c-2", text_block("2"))]
    wire = said("deepseek", sent("deepseek", messages, images={"abc": PNG}))
    assert [each["role"] for each in wire[3:]] == ["tool", "tool", "user"]
    assert wire[3]["content"] == "drawn\n(the image follows)"
    assert wire[5]["content"][1]["type"] == "image_url"


def test_an_image_in_a_result_stays_in_it_where_it_can() -> None:
    messages = [user_message("x?", id="u"), calls(("c-1", "{}"), provider="anthropic"), result("c-1", text_block("drawn"), IMAGE)]
    content = sent("anthropic", messages, images={"abc": PNG})["messages"][2]["content"]
    assert [block["type"] for block in content[0]["content"]] == ["text", "image"]


def test_an_image_whose_bytes_are_gone_is_said_to_be() -> None:
    wire = said("openai-chat", sent("openai-chat", [user_message([text_block("See:"), IMAGE], id="u")]))
    assert "figure.png" in str(wire[1])
    assert "no longer available" in str(wire[1])


def test_neighbouring_user_messages_become_one_for_a_compatible_server_and_stay_apart_for_deepseek() -> None:
    """Chat templates of local models may insist on alternation."""
    messages = [user_message("one", id="u"), user_message("two", id="v")]
    assert [each["content"] for each in said("openai-chat", sent("openai-chat", messages))[1:]] == ["one\n\ntwo"]
    assert [each["content"] for each in said("deepseek", sent("deepseek", messages))[1:]] == ["one", "two"]


def test_an_answer_with_nothing_to_send_back_disappears() -> None:
    """Thinking of another provider and blank text: what remains is one user turn."""
    empty = assistant_message([{"type": "reasoning", "text": "hm"}, text_block(" ")], id="a", provider="other", model="m")
    messages = [user_message("one", id="u"), empty, user_message("two", id="v")]
    assert [each["role"] for each in sent("anthropic", messages)["messages"]] == ["user"]


@pytest.mark.parametrize("provider", ["openai-chat", "openai", "deepseek", "anthropic"])
def test_thinking_goes_back_unchanged_to_the_provider_that_made_it(provider: str) -> None:
    async def body(model: PydanticAIModel, server: LoopbackServer) -> None:
        first, error = await chunks_of(model)
        assert error is None
        finish = cast(Finish, first[-1])
        answer = assistant_message(blocks_of(first), id="a", provider=provider, model="loopback", replay_state=finish.replay_state)
        await chunks_of(model, a_request(messages=[user_message("x?", id="u"), answer, result("c-1", text_block("3"))]))
        wire = said(provider, server.requests[1].body)
        match provider:
            case "anthropic":
                assert wire[1]["content"][0] == {"type": "thinking", "thinking": "Let me look.", "signature": "SIGNED"}
            case "openai":
                reasoning = next(item for item in wire if item.get("type") == "reasoning")
                assert reasoning["encrypted_content"] == "SIGNED"
            case _:
                assert wire[2]["reasoning_content"] == "Let me look."

    over(provider, [[think("Let me look.", "SIGNED"), call("look", {"name": "x"}, "c-1")], say("3.")], body, model=REASONS)


def test_thinking_without_text_goes_back_too() -> None:
    """Encrypted reasoning has nothing to show, and the next call is refused without it."""

    async def body(model: PydanticAIModel, server: LoopbackServer) -> None:
        first, error = await chunks_of(model)
        assert error is None
        assert [block["type"] for block in blocks_of(first)] == ["tool-call"]
        finish = cast(Finish, first[-1])
        answer = assistant_message(blocks_of(first), id="a", provider="openai", model="loopback", replay_state=finish.replay_state)
        await chunks_of(model, a_request(messages=[user_message("x?", id="u"), answer, result("c-1", text_block("3"))]))
        kinds = [item.get("type", item.get("role")) for item in server.requests[1].body["input"]]
        assert kinds == ["user", "reasoning", "function_call", "function_call_output"]

    over("openai", [[think("", "SIGNED"), call("look", {"name": "x"}, "c-1")], say("3.")], body, model=REASONS)


def test_thinking_never_goes_to_another_provider() -> None:
    state = {"response": {"adapter": "pydantic-ai", "system": ["anthropic", None]}, "blocks": [{"signature": "SIGNED"}, None]}
    blocks = [{"type": "reasoning", "text": "secret thought"}, text_block("Yes.")]
    answer = assistant_message(blocks, id="a", provider="anthropic", model="m", replay_state=state)
    for provider in ("openai-chat", "openai", "deepseek"):
        body = sent(provider, [user_message("x?", id="u"), answer, user_message("so?", id="v")])
        assert "secret thought" not in str(body), provider
        assert "SIGNED" not in str(body), provider


def test_a_state_that_no_longer_fits_its_message_is_left_out() -> None:
    """An answer that lost its cut-off call has fewer blocks than its state."""
    state = {"response": {"adapter": "pydantic-ai", "system": ["anthropic", None]}, "blocks": [{"signature": "SIGNED"}, None]}
    answer = assistant_message([text_block("Yes.")], id="a", provider="anthropic", model="m", replay_state=state)
    body = sent("anthropic", [user_message("x?", id="u"), answer, user_message("so?", id="v")])
    assert [block["type"] for block in body["messages"][1]["content"]] == ["text"]


def test_deepseek_gets_recorded_thinking_back_even_without_any_state() -> None:
    """A log that deepseek-harness wrote has none."""
    blocks = [{"type": "reasoning", "text": "let me see"}, text_block("Yes.")]
    answer = assistant_message(blocks, id="a", provider="deepseek", model="deepseek-flash")
    body = sent("deepseek", [user_message("x?", id="u"), answer, user_message("so?", id="v")])
    assert body["messages"][2]["reasoning_content"] == "let me see"


def test_call_ids_of_other_providers_fit_anthropics_pattern() -> None:
    messages = [
        user_message("x?", id="u"),
        calls(("functions.look:0", "{}"), provider="openai-chat"),
        result("functions.look:0", text_block("3")),
    ]
    wire = sent("anthropic", messages)["messages"]
    assert wire[1]["content"][0]["id"] == wire[2]["content"][0]["tool_use_id"] == "functions_look_0"


@pytest.mark.parametrize("provider", ["openai-chat", "openai", "deepseek", "anthropic"])
def test_tools_go_out_with_their_schemas_as_written(provider: str) -> None:
    tool = sent(provider, [user_message("x?", id="u")])["tools"][0]
    told = tool.get("function", tool)
    assert (told["name"], told["description"]) == (TOOL["name"], TOOL["description"])
    assert told.get("parameters", told.get("input_schema")) == TOOL["parameters"]


def test_an_empty_system_prompt_is_not_sent() -> None:
    wire = said("openai-chat", sent("openai-chat", [user_message("x?", id="u")], system="", tools=[]))
    assert [each["role"] for each in wire] == ["user"]


def test_anthropic_is_told_where_to_cache() -> None:
    """After the tools, after the system prompt, and at the end of the conversation; nothing is cached there without being asked for."""
    body = sent("anthropic", [user_message("x?", id="u")])
    assert "cache_control" in body["system"][-1]
    assert "cache_control" in body["tools"][-1]
    assert "cache_control" in body or "cache_control" in str(body["messages"])


def test_settings_go_out() -> None:
    async def body(model: PydanticAIModel, server: LoopbackServer) -> None:
        assert dict(model.config) == {
            "provider": "openai-chat",
            "model": "loopback",
            "temperature": 0.2,
            "maxTokens": 99,
            "reasoningEffort": "high",
        }
        await chunks_of(model)
        told = server.requests[0].body
        assert (told["temperature"], told["max_completion_tokens"], told["reasoning_effort"]) == (0.2, 99, "high")

    over("openai-chat", [say("Fine.")], body, settings=ModelSettings(temperature=0.2, max_tokens=99, reasoning_effort="high"))


def test_a_temperature_that_a_model_would_drop_is_refused_instead() -> None:
    async def body(model: PydanticAIModel, server: LoopbackServer) -> None:
        _, error = await chunks_of(model)
        assert error is not None
        assert error.code == "CONFIG"
        assert "takes no temperature" in str(error)
        assert server.requests == []

    over("anthropic", [say("Fine.")], body, settings=ModelSettings(temperature=0.2), model="claude-sonnet-5-5")


def test_a_local_server_without_a_key_gets_a_placeholder() -> None:
    async def body(model: PydanticAIModel, server: LoopbackServer) -> None:
        _, error = await chunks_of(model)
        assert error is None
        assert server.requests[0].headers["authorization"] == "Bearer no-key"

    over("openai-chat", [say("Fine.")], body, key="")


@pytest.mark.parametrize("provider", ["openai-chat", "openai", "deepseek"])
def test_the_sdk_does_not_walk_a_long_conversation(provider: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """At 10,000 messages that walk took the loop 1.7 s a step: what it looks at must not grow with the conversation."""
    walked = 0
    original = _transform._async_transform_recursive

    async def counting(*args: Any, **kwargs: Any) -> object:
        nonlocal walked
        walked += 1
        return await original(*args, **kwargs)

    monkeypatch.setattr(_transform, "_async_transform_recursive", counting)
    visits = []
    for length in (1, 100):
        answer = assistant_message([text_block("Yes.")], id="a", provider=provider, model="loopback")
        messages = [user_message("So?", id="u"), answer] * length
        walked = 0
        body = sent(provider, [*messages, user_message("And?", id="v")])
        assert len(said(provider, body)) >= 2 * length + 1
        visits.append(walked)
    assert visits[0] == visits[1] > 0


def test_interleaved_calls_are_put_together_by_their_index() -> None:
    """Servers that decode calls in parallel mix their deltas."""
    mixed = [
        ToolCallDelta(0, "c-1", "look"),
        ToolCallDelta(1, "c-2", "look"),
        ToolCallDelta(1, "c-2", None, '{"name"'),
        ToolCallDelta(0, "c-1", None, '{"name": '),
        ToolCallDelta(1, "c-2", None, ':"y"}'),
        ToolCallDelta(0, "c-1", None, '"x"}'),
    ]

    async def body(model: PydanticAIModel, server: LoopbackServer) -> None:
        chunks, error = await chunks_of(model)
        assert error is None
        assert [block["arguments"] for block in blocks_of(chunks)] == ['{"name": "x"}', '{"name":"y"}']

    over("openai-chat", [mixed], body)
