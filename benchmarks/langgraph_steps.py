"""``peers.langgraph``: the same step by LangGraph's prebuilt agent with a fake chat model, after that many *messages*.

Without a checkpointer: nothing of the conversation is kept anywhere, which is in its favour.
"""

from __future__ import annotations

import statistics
import time
import warnings
from typing import Any

from benchmarks.measuring import NotMeasured, gaps, rounded
from benchmarks.steps import LENGTHS, STEPS, note

TEXT = "The quick brown fox jumps over the lazy dog. " * 4
ROUNDS = {0: 5, 1_000: 5, 10_000: 3, 100_000: 1}


def measure() -> dict[str, Any]:
    """``{"peers": {"langgraph": {length: µs}}}``.

    Raises:
        NotMeasured: it is not installed.
    """
    try:
        from langchain_core.language_models.chat_models import BaseChatModel
        from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
        from langchain_core.outputs import ChatGeneration, ChatResult
        from langgraph.prebuilt import create_react_agent
    except ImportError as error:
        raise NotMeasured(f"LangGraph is not installed ({error}): pip install -e '.[bench]'") from None
    moments: list[float] = []

    def asks(number: int) -> Any:
        return AIMessage(content="", tool_calls=[{"name": "note", "args": {"text": "x"}, "id": f"c{number}"}])

    class Fake(BaseChatModel):  # type: ignore[misc]  # untyped here
        _llm_type = "fake"

        def bind_tools(self, tools: Any, **_: Any) -> Any:
            return self

        def _generate(self, messages: Any, stop: Any = None, run_manager: Any = None, **_: Any) -> Any:
            moments.append(time.process_time())
            answer = asks(len(moments)) if len(moments) <= STEPS else AIMessage(content="Done.")
            return ChatResult(generations=[ChatGeneration(message=answer)])

    def before(length: int) -> list[Any]:
        exchanges = [
            [HumanMessage(TEXT), asks(-number), ToolMessage(TEXT, tool_call_id=f"c{-number}"), AIMessage(TEXT)]
            for number in range(1, length // 4 + 1)
        ]
        return [message for exchange in exchanges for message in exchange]

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        agent = create_react_agent(Fake(), [note])

    def seconds(length: int) -> list[float]:
        messages = [*before(length), HumanMessage("Take notes.")]
        moments.clear()
        agent.invoke({"messages": messages}, {"recursion_limit": 4 * STEPS})
        return gaps(moments)

    steps = {length: [each for _ in range(ROUNDS[length]) for each in seconds(length)] for length in LENGTHS}
    return {"peers": {"langgraph": {str(length): rounded(statistics.median(each) * 1e6) for length, each in steps.items()}}}
