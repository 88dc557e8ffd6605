"""Every model passes the same rules: the script, the recording, and the adapter over a real connection in each wire format."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager

import pytest

from plan_mode_nb.agent.model import Model
from plan_mode_nb.models.pydantic_ai import PydanticAIModel
from plan_mode_nb.models.recording import RecordedModel
from plan_mode_nb.models.script import Call, WirePart, say
from plan_mode_nb.models.scripted import ScriptedModel
from plan_mode_nb.models.settings import ModelSettings
from plan_mode_nb.testing.loopback import LoopbackServer
from plan_mode_nb.testing.model_contract import ModelContract
from plan_mode_nb.testing.workbench import Workbench


class TestScriptedModel(ModelContract):
    @asynccontextmanager
    async def serve(self, steps: Sequence[Sequence[WirePart]]) -> AsyncIterator[Model]:
        yield ScriptedModel(steps)


class TestRecordedModel(ModelContract):
    """What a scripted model said in real turns, played from their log."""

    @asynccontextmanager
    async def serve(self, steps: Sequence[Sequence[WirePart]]) -> AsyncIterator[Model]:
        calls = any(isinstance(part, Call) for part in steps[-1])
        bench = Workbench(*steps, *([say("Done.")] if calls else []))
        while bench.model.remaining:
            await bench.ask("go on")
        yield RecordedModel(bench.session.events)


class _OverLoopback(ModelContract):
    provider = ""

    @asynccontextmanager
    async def serve(self, steps: Sequence[Sequence[WirePart]]) -> AsyncIterator[Model]:
        with LoopbackServer(list(steps)) as server:
            model = PydanticAIModel(self.provider, "loopback", ModelSettings(), environ_for(server))
            try:
                yield model
            finally:
                await model.aclose()


class TestOpenAIChat(_OverLoopback):
    provider = "openai-chat"


class TestOpenAIResponses(_OverLoopback):
    provider = "openai"


class TestDeepSeek(_OverLoopback):
    provider = "deepseek"


class TestAnthropic(_OverLoopback):
    provider = "anthropic"


def environ_for(server: LoopbackServer) -> Mapping[str, str]:
    return {"OPENAI_BASE_URL": server.url, "DEEPSEEK_BASE_URL": server.url, "ANTHROPIC_BASE_URL": server.root}


del _OverLoopback
pytestmark = pytest.mark.timeout(40)
