"""``peers.pydantic_ai``: the same step by pydantic-ai's agent and function model, after that many *messages*. It keeps nothing on disk."""

from __future__ import annotations

import statistics
import time
from typing import Any

from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelRequest, ModelResponse, TextPart, ToolCallPart, ToolReturnPart, UserPromptPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

from benchmarks.measuring import gaps, rounded
from benchmarks.steps import LENGTHS, note

TEXT = "The quick brown fox jumps over the lazy dog. " * 4
PLAN = {0: (5, 20), 1_000: (5, 20), 10_000: (2, 8), 100_000: (1, 3)}
"""Rounds, and steps a round: the longest history takes seconds a step."""


def measure() -> dict[str, Any]:
    """``{"peers": {"pydantic_ai": {length: µs}}}``."""
    moments: list[float] = []
    wanted = 0

    def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        moments.append(time.process_time())
        done = len(moments) > wanted
        return ModelResponse(parts=[TextPart("Done.") if done else ToolCallPart("note", {"text": "x"}, f"c{len(moments)}")])

    agent = Agent(FunctionModel(answer), tools=[note])
    taken: dict[str, float] = {}
    for length in LENGTHS:
        rounds, wanted = PLAN[length]
        seconds: list[float] = []
        for _ in range(rounds):
            history = _before(length)
            moments.clear()
            agent.run_sync("Take notes.", message_history=history)
            seconds += gaps(moments)
        taken[str(length)] = rounded(statistics.median(seconds) * 1e6)
    return {"peers": {"pydantic_ai": taken}}


def _before(length: int) -> list[ModelMessage]:
    messages: list[ModelMessage] = []
    for number in range(length // 4):
        messages += [
            ModelRequest(parts=[UserPromptPart(TEXT)]),
            ModelResponse(parts=[ToolCallPart("note", {"text": "x"}, f"h{number}")]),
            ModelRequest(parts=[ToolReturnPart("note", TEXT, f"h{number}")]),
            ModelResponse(parts=[TextPart(TEXT)]),
        ]
    return messages
