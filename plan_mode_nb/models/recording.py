"""A model that plays the answers of a recorded session, in order. What it is asked is not compared here: that is replay's task."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct, field

from plan_mode_nb.agent.compaction import COMPACT
from plan_mode_nb.agent.model import Chunk, Finish, FinishKind, ReasoningDelta, Request, TextDelta, ToolCallDelta, Usage, UsageChunk
from plan_mode_nb.exceptions import ModelError
from plan_mode_nb.log.events import Event
from plan_mode_nb.models.script import words

RECORDING: Mapping[str, Any] = {"provider": "recording", "model": "recording"}
_DELTAS: Mapping[str, type[TextDelta | ReasoningDelta | ToolCallDelta]] = {
    "text-delta": TextDelta,
    "reasoning-delta": ReasoningDelta,
    "tool-call-delta": ToolCallDelta,
}
_DONE = ("stop", "tool-calls", "max-tokens")


class RecordedAnswer(Struct, frozen=True):
    """One request's answer: its chunks, then its failure if it had one. ``config``: of the header in force when it was asked.

    ``window``: what its model could read, where the log says. ``is_summary``: the request asked for a summary (compaction).
    """

    config: Mapping[str, Any]
    chunks: tuple[Chunk, ...]
    error: ModelError | None = None
    window: int | None = None
    is_summary: bool = False


class _Attempt(Struct):
    """One request while its events are read. ``ending``: the data of its ``finish`` chunk."""

    config: Mapping[str, Any]
    window: int | None = None
    deltas: list[Chunk] = field(default_factory=list)
    usage: list[Chunk] = field(default_factory=list)
    ending: dict[str, Any] | None = None
    message: dict[str, Any] | None = None
    interrupted: bool = False

    @property
    def is_over(self) -> bool:
        """Whether what comes next in the step belongs to another request (a retry)."""
        if self.message is not None and not self.interrupted:
            return True
        return self.ending is not None and self.ending["kind"] not in _DONE

    def answer(self, reason: Mapping[str, Any]) -> RecordedAnswer:
        """The answer, given how its turn ended."""
        chunks = [*(self.deltas or _chunks_of(self.message)), *self.usage]
        if self.message is None or self.interrupted:
            return RecordedAnswer(self.config, tuple(chunks), _failure(self.ending, reason), self.window)
        called = any(block["type"] == "tool-call" for block in self.message["content"])
        kind: FinishKind = self.ending["kind"] if self.ending else "tool-calls" if called else "stop"
        finish = Finish(kind, self.message["source"].get("replayState"))
        return RecordedAnswer(self.config, (*chunks, finish), window=self.window)


class _Summarizing(Struct):
    """The request for a summary (compaction) while its events are read. ``error``: why there is none."""

    config: Mapping[str, Any]
    window: int | None = None
    summary: dict[str, Any] | None = None
    error: str | None = None

    def answer(self, reason: Mapping[str, Any]) -> RecordedAnswer:
        """The answer. What a failed attempt got is not recorded, but why it failed is; of one that a process left, nothing is."""
        if self.summary is None:
            told = _failure(None, reason) if self.error is None else ModelError(self.error, code="BAD_SUMMARY")
            return RecordedAnswer(self.config, (), told, self.window, is_summary=True)
        blocks = self.summary.get("rawOutput") or self.summary["summary"]
        chunks = _chunks_of({"content": blocks})
        if self.summary.get("usage"):
            chunks.append(UsageChunk(msgspec.convert(self.summary["usage"], Usage)))
        return RecordedAnswer(self.config, (*chunks, Finish("stop")), window=self.window, is_summary=True)


class _Reader:
    """Events -> answers. Requests of a step are told apart by their ``finish`` chunks and messages; a step may hold several (retries)."""

    def __init__(self) -> None:
        self.answers: list[RecordedAnswer] = []
        self._config: Mapping[str, Any] = RECORDING
        self._window: int | None = None
        self._turn: list[_Attempt | _Summarizing] = []
        self._unasked = False
        self._in_step = False

    def read(self, event: Event) -> None:
        """Take one more event."""
        data = event.data
        match event.type:
            case "request/header":
                self._config = data["header"]["config"]
            case "request/context":
                self._window = data.get("contextWindow")
            case "step/start":
                self._unasked = self._in_step = True
            case "step/end":
                self._in_step = False
            case "llm/retry-started":
                self._begin()
            case "assistant/chunk":
                self._chunk(data["chunk"])
            case "assistant/message":
                self._message(data)
            case "compaction/start":
                # Ahead of its step: the request that the step makes is still to come.
                self._turn.append(_Summarizing(self._config, self._window))
            case "compaction/summary" | "compaction/end":
                self._summarized(event.type, data)
            case "turn/end":
                self.end(data["reason"])

    def end(self, reason: Mapping[str, Any]) -> None:
        """The turn is over; how it ended says why its last request failed. An entered step that got nothing at all was a request, too."""
        if self._unasked and reason["kind"] in ("error", "aborted", "interrupted"):
            self._begin()
        self.answers.extend(attempt.answer(reason) for attempt in self._turn)
        self._turn, self._unasked, self._in_step = [], False, False

    def _begin(self) -> _Attempt:
        self._unasked = False
        attempt = _Attempt(self._config, self._window)
        self._turn.append(attempt)
        return attempt

    def _summarized(self, type: str, data: dict[str, Any]) -> None:
        last = self._turn[-1] if self._turn else None
        if isinstance(last, _Summarizing):
            if type == "compaction/summary":
                last.summary = data
                return
            last.error = data.get("error")
            # Within a step it makes room for the step's request, which is then made again.
            self._unasked = self._in_step and last.error is None

    def _attempt(self) -> _Attempt:
        last = self._turn[-1] if self._turn and not self._unasked else None
        if isinstance(last, _Attempt) and not last.is_over:
            return last
        return self._begin()

    def _chunk(self, chunk: dict[str, Any]) -> None:
        kind = chunk["type"]
        if kind in _DELTAS:
            self._attempt().deltas.append(msgspec.convert(chunk, _DELTAS[kind]))
        elif kind == "usage":
            self._attempt().usage.append(UsageChunk(msgspec.convert(chunk["usage"], Usage)))
        elif kind == "finish":
            self._attempt().ending = chunk["reason"]

    def _message(self, data: dict[str, Any]) -> None:
        """A kept prefix may stand behind the failed ``finish`` that cut it: it belongs to that request, not to a new one."""
        interrupted = data.get("interrupted") is True
        last = self._turn[-1] if self._turn and not self._unasked else None
        is_its = isinstance(last, _Attempt) and interrupted and last.message is None
        attempt = last if is_its and isinstance(last, _Attempt) else self._attempt()
        attempt.message, attempt.interrupted = data["message"], interrupted
        if not attempt.usage and data.get("usage"):
            attempt.usage.append(UsageChunk(msgspec.convert(data["usage"], Usage)))


def _chunks_of(message: Mapping[str, Any] | None) -> list[Chunk]:
    """A message streamed again, the same way every time: text word by word, a call's arguments in one piece."""
    chunks: list[Chunk] = []
    for index, block in enumerate(message["content"] if message else ()):
        match block["type"]:
            case "text":
                chunks.extend(TextDelta(index, piece) for piece in words(block["text"]))
            case "reasoning":
                chunks.extend(ReasoningDelta(index, piece) for piece in words(block["text"]))
            case "tool-call":
                chunks.append(ToolCallDelta(index, block["id"], block["name"], block["arguments"]))
    return chunks


def _failure(ending: Mapping[str, Any] | None, reason: Mapping[str, Any]) -> ModelError:
    """The failure as recorded: by the ``finish`` chunk, else by the turn's end; a stopped turn has none and gets a sentence."""
    told = (ending or {}).get("failure") or (reason.get("error") if reason["kind"] == "error" else None)
    if not isinstance(told, Mapping):
        return ModelError("the recorded answer stops here: its turn was stopped or interrupted", code="ABORTED")
    message, code = str(told.get("message", "")), str(told.get("code", "UNKNOWN"))
    return ModelError(message, code=code, status=told.get("status"), retry_after_ms=told.get("providerRetryAfterMs"))


def recorded_answers(events: Iterable[Event]) -> list[RecordedAnswer]:
    """Every request's answer in the order of the log, failed and retried ones and summaries too. An open turn counts as interrupted."""
    reader = _Reader()
    for event in events:
        reader.read(event)
    reader.end({"kind": "interrupted"})
    return reader.answers


class RecordedModel:
    """Plays the answers of ``events`` (a session's, from its start), one a request; summaries to requests for one, wherever they come.

    ``config`` is the recorded header's as of the next answer, so that the header of a replayed request equals the recorded one.
    """

    def __init__(self, events: Sequence[Event]) -> None:
        answers = recorded_answers(events)
        self._answers = [answer for answer in answers if not answer.is_summary]
        self._summaries = iter([answer for answer in answers if answer.is_summary])
        self._next = 0

    @property
    def config(self) -> Mapping[str, Any]:
        """Of the next answer; after the last one, of the last."""
        answer = self._answer()
        return RECORDING if answer is None else answer.config

    async def context_window(self) -> int | None:
        """As recorded, of the next answer."""
        answer = self._answer()
        return None if answer is None else answer.window

    def _answer(self) -> RecordedAnswer | None:
        return self._answers[min(self._next, len(self._answers) - 1)] if self._answers else None

    @property
    def remaining(self) -> int:
        """Answers that no request has taken yet."""
        return len(self._answers) - self._next

    @property
    def place(self) -> int:
        """Which answer comes next, from 0."""
        return self._next

    def skip_to(self, place: int) -> None:
        """Go on with another answer than the next."""
        self._next = place

    async def stream(self, request: Request) -> AsyncIterator[Chunk]:
        """The next recorded answer.

        Raises:
            ModelError: as recorded; or the recording has no more answers (code ``CONFIG``: asking again cannot help).
        """
        if request.messages and request.messages[-1]["source"].get("plugin") == COMPACT:
            answer = next(self._summaries, None)
        else:
            answer = self._answers[self._next] if self.remaining else None
            self._next += answer is not None
        if answer is None:
            raise ModelError(
                "the recording ends here; to go on with a live model, set %config PlanAgent.model, for example 'openai-chat:NAME'",
                code="CONFIG",
            )
        for chunk in answer.chunks:
            yield chunk
        if answer.error is not None:
            raise answer.error
