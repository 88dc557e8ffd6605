"""A model server on 127.0.0.1 that answers from a script: real HTTP, three wire formats, and every fault a provider has.

In a test: ``with LoopbackServer([[say("Hello")], [status(429)]]) as server`` and point a base URL at ``server.url``. In another process:
``python -m plan_mode_nb.testing.loopback --script FILE.json --port N``, where the file holds a list of answers, each a list of parts.
"""

from __future__ import annotations

import argparse
import json
import select
import socket
import struct
import sys
import threading
from collections.abc import Callable, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, TypeAlias, cast

import msgspec
from msgspec import Struct

from plan_mode_nb.agent.model import Finish
from plan_mode_nb.exceptions import ModelError
from plan_mode_nb.models.script import Call, Say, Think, play
from plan_mode_nb.testing.faults import (
    Cut,
    Drop,
    Fault,
    Filtered,
    Garbage,
    Nothing,
    ServerPart,
    Slow,
    Stall,
    Status,
    Trouble,
    fault_of,
)
from plan_mode_nb.testing.wire import AnthropicWire, ChatWire, ResponsesWire, Wire

ServerStep: TypeAlias = ServerPart | Sequence[ServerPart] | Callable[[dict[str, Any]], ServerPart | Sequence[ServerPart]]
"""One answer: a part, several, or a function of the request's body."""


class Received(Struct, frozen=True):
    """One request as it came. ``headers`` in lower case; a key stands in ``authorization`` or ``x-api-key``. ``raw``: the body's bytes."""

    path: str
    headers: dict[str, str]
    body: dict[str, Any]
    raw: bytes


class LoopbackServer:
    """Each POST takes the next step, whatever its format. Counts are read with a bounded wait, never by sleeping."""

    def __init__(self, steps: Sequence[ServerStep] = (), *, port: int = 0) -> None:
        self.requests: list[Received] = []
        self.disconnects = 0
        self._steps = list(steps)
        self._changed = threading.Condition()
        self._closing, self._wake = socket.socketpair()
        self._server = _Server(("127.0.0.1", port), _Handler)
        self._server.owner = self
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, name="loopback", daemon=True)

    @property
    def url(self) -> str:
        """What ``OPENAI_BASE_URL`` takes (``…/v1``)."""
        return f"{self.root}/v1"

    @property
    def root(self) -> str:
        """What ``ANTHROPIC_BASE_URL`` takes."""
        return f"http://127.0.0.1:{self._server.server_port}"

    def add(self, *steps: ServerStep) -> None:
        """Put more steps at the end."""
        self._steps.extend(steps)

    def wait_for_requests(self, count: int, timeout: float = 60.0) -> bool:
        """Whether that many requests came within ``timeout`` seconds."""
        with self._changed:
            return self._changed.wait_for(lambda: len(self.requests) >= count, timeout)

    def wait_for_disconnects(self, count: int, timeout: float = 60.0) -> bool:
        """Whether that many clients went away in the middle of an answer within ``timeout`` seconds."""
        with self._changed:
            return self._changed.wait_for(lambda: self.disconnects >= count, timeout)

    def start(self) -> LoopbackServer:
        """Serve in a thread."""
        self._thread.start()
        return self

    def close(self) -> None:
        """Stop serving; stalled answers end."""
        self._wake.close()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(5)
        self._closing.close()

    def __enter__(self) -> LoopbackServer:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.close()

    def take(self, received: Received) -> tuple[int, Sequence[ServerPart]]:
        """The next step for a request, by its number from 0."""
        with self._changed:
            number = len(self.requests)
            self.requests.append(received)
            self._changed.notify_all()
        if number >= len(self._steps):
            return number, [Status(500, f"the script ends here: it has {len(self._steps)} answers")]
        step = self._steps[number]
        said = step(received.body) if callable(step) else step
        return number, said if isinstance(said, Sequence) else [said]

    def lost(self) -> None:
        """A client went away."""
        with self._changed:
            self.disconnects += 1
            self._changed.notify_all()

    def client_left(self, client: socket.socket, seconds: float | None) -> bool:
        """Wait; True as soon as the client is gone (False: the time is over, or the server closes)."""
        ready, _, _ = select.select([client, self._closing], [], [], seconds)
        return client in ready and self._closing not in ready


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    owner: LoopbackServer


class _End(Exception):
    """The answer ends here without its proper end."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    _delay = 0.0

    def log_message(self, format: str, *args: object) -> None:
        """Quiet: a test's own output says what it asserts."""

    @property
    def _owner(self) -> LoopbackServer:
        return cast(_Server, self.server).owner

    def do_GET(self) -> None:
        """The list of models, which clients ask for to see whether a server is there."""
        self._json(200, {"object": "list", "data": [{"id": "loopback", "object": "model"}]})

    def do_POST(self) -> None:
        """One answer."""
        raw = self.rfile.read(int(self.headers["content-length"]))
        body = json.loads(raw)
        headers = {name.lower(): value for name, value in self.headers.items()}
        number, parts = self._owner.take(Received(self.path, headers, body, raw))
        self._delay = 0.0
        try:
            self._answer(_wire_for(self.path, str(body.get("model")), _signatures(parts)), number, parts)
        except _End:
            self.close_connection = True
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True
            self._owner.lost()

    def _answer(self, wire: Wire, number: int, parts: Sequence[ServerPart]) -> None:
        started = False
        for item in play(parts, number):
            told: Any = fault_of(item, started=started) if isinstance(item, ModelError) else item
            if isinstance(told, Status):
                return self._status(told)
            if not started:
                started = True
                self._begin()
                for frame in wire.open():
                    self._send(frame)
            if isinstance(told, Fault):
                if self._fault(wire, told):
                    break
                continue
            for frame in wire.chunk(told):
                self._send(frame)
        self._raw(b"0\r\n\r\n")
        return None

    def _fault(self, wire: Wire, fault: Fault) -> bool:
        """Do it; True ends the body properly."""
        match fault:
            case Drop():
                # A zero linger makes the close a reset, as a died server's is.
                self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                raise _End
            case Stall():
                if self._owner.client_left(self.connection, None):
                    self._owner.lost()
                raise _End
            case Slow(seconds):
                self._delay = seconds
                return False
            case Garbage():
                self._send("event: content_block_delta\ndata: {this is not JSON\n\n")
                return False
            case Cut():
                return True
            case Trouble(message):
                frames = wire.trouble(message)
            case Filtered():
                frames = wire.filtered()
            case Nothing():
                frames = wire.chunk(Finish("stop"))
            case Status():
                raise ValueError("a status stands first in its step: the answer has begun")
        for frame in frames:
            self._send(frame)
        return True

    def _begin(self) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()

    def _send(self, frame: str) -> None:
        if self._delay and self._owner.client_left(self.connection, self._delay):
            raise BrokenPipeError
        data = frame.encode()
        self._raw(b"%x\r\n%s\r\n" % (len(data), data))

    def _raw(self, data: bytes) -> None:
        self.wfile.write(data)
        self.wfile.flush()

    def _status(self, told: Status) -> None:
        kinds = {401: "authentication_error", 404: "not_found_error", 429: "rate_limit_error", 529: "overloaded_error"}
        kind = kinds.get(told.status, "invalid_request_error" if told.status < 500 else "api_error")
        error = {"message": told.message, "type": told.code if told.code == "insufficient_quota" else kind, "code": told.code}
        self._json(told.status, {"type": "error", "error": error}, _retry_after(told.retry_after))

    def _json(self, status: int, body: dict[str, Any], headers: dict[str, str] | None = None) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        for name, value in {"content-type": "application/json", "content-length": str(len(data)), **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        self._raw(data)


def _retry_after(seconds: float | None) -> dict[str, str]:
    """Whole seconds have a header of HTTP's own; for parts of one, providers send milliseconds."""
    if seconds is None:
        return {}
    return {"retry-after": f"{seconds:.0f}"} if seconds == int(seconds) else {"retry-after-ms": f"{seconds * 1000:g}"}


def _wire_for(path: str, model: str, signatures: dict[int, str]) -> Wire:
    if path.partition("?")[0].endswith("/messages"):
        return AnthropicWire(model, signatures)
    if path.partition("?")[0].endswith("/responses"):
        return ResponsesWire(model, signatures)
    return ChatWire(model, signatures)


def _signatures(parts: Sequence[ServerPart]) -> dict[int, str]:
    blocks = [part for part in parts if isinstance(part, Say | Think | Call)]
    return {index: part.signature for index, part in enumerate(blocks) if isinstance(part, Think) and part.signature}


def main(argv: Sequence[str] | None = None) -> int:
    """Serve a script until standard input closes; prints the base URL first."""
    parser = argparse.ArgumentParser(prog="python -m plan_mode_nb.testing.loopback", description=main.__doc__)
    parser.add_argument("--script", type=Path, required=True, help="JSON: a list of answers, each a list of parts")
    parser.add_argument("--port", type=int, default=0, help="default: any free one")
    options = parser.parse_args(argv)
    steps = msgspec.json.decode(options.script.read_bytes(), type=list[list[ServerPart]])
    with LoopbackServer(steps, port=options.port) as server:
        print(server.url, flush=True)
        sys.stdin.read()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
