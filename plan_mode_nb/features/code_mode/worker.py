"""Runs one program whose functions are the agent's tools: ``worker.py``, a script of its own, confined like any program.

Lines of JSON go in and out over what were its standard input and output. In: ``{code, tools: [{name, parameters, signature}]}``, then one
answer a call, ``{value}`` or ``{error}``. Out: ``{ready: true}``, ``{out: text}`` as the program prints, ``{call: name, arguments}``, and
at the end ``{done: "ok" | "error" | "exit"}``. Nothing but the standard library is imported, and nothing of this package.
"""

from __future__ import annotations

import ast
import asyncio
import builtins
import codecs
import contextlib
import ctypes
import inspect
import itertools
import json
import keyword
import linecache
import os
import pprint
import select
import signal
import sys
import threading
import traceback
import types
from collections.abc import Callable, Generator
from typing import Any, BinaryIO, Final

FILE: Final = "<run_code>"
_SHOW, _RETURN = "__show__", "__return__"
_PIPE: Final = 1_048_576
"""More bytes than the pipe holds: read once, it is empty, even while another thread prints on and on."""
HEAD: Final = 1_000_000
TAIL: Final = 200_000
"""Characters of output that are sent on, from its two ends."""


class ToolCallError(Exception):
    """A tool failed, or was not allowed to run. ``tool``: its name; the message is what the tool answered."""

    def __init__(self, tool: str, message: str) -> None:
        super().__init__(message)
        self.tool = tool


class _Returned(BaseException):
    """A ``return`` outside any function ends the program with a value."""


def _there(value: Any) -> Generator[None, None, Any]:
    return value
    yield


_AWAITABLE: Final[dict[type, Any]] = {kind: type(kind.__name__, (kind,), {"__await__": _there}) for kind in (str, list, dict)}
"""A value that is there already may be awaited all the same."""


class Channel:
    """The two pipes. One call at a time, whichever thread makes it; from another process none."""

    def __init__(self, given: BinaryIO, said: BinaryIO) -> None:
        self._given, self._said = given, said
        self._process = os.getpid()
        self._speaking, self._asking = threading.Lock(), threading.Lock()
        self._is_over = False
        self.before_call: Callable[[], None] = lambda: None

    def hear(self) -> dict[str, Any]:
        """The next line; ends the process when there is none, for then nobody waits for it."""
        line = self._given.readline()
        return dict(json.loads(line)) if line else os._exit(0)

    def say(self, line: dict[str, Any]) -> None:
        """Send a line."""
        data = json.dumps(line, allow_nan=False).encode() + b"\n"
        with self._speaking:
            self._said.write(data)
            self._said.flush()

    def ask(self, tool: str, arguments: dict[str, Any]) -> Any:
        """Call a tool and wait for what it returns."""
        if os.getpid() != self._process:
            raise RuntimeError(f"{tool} can be called from the program itself, not from a process that it started")
        with self._asking:
            if self._is_over:
                raise RuntimeError(f"{tool} was not called: the program is over")
            self.before_call()
            try:
                self.say({"call": tool, "arguments": arguments})
            except (TypeError, ValueError, RecursionError) as error:
                raise TypeError(f"the arguments of {tool} must be plain JSON values: {error}") from None
            answer = self.hear()
        if "error" in answer:
            raise ToolCallError(tool, answer["error"])
        value = answer.get("value")
        made = _AWAITABLE.get(type(value))
        return value if made is None else made(value)

    def end(self, how: str) -> None:
        """The last line; a call that a thread makes from now on is refused."""
        with self._asking:
            self._is_over = True
            self.say({"done": how})


class Tool:
    """One tool as a function."""

    def __init__(self, channel: Channel, name: str, parameters: list[str] | None, signature: str) -> None:
        self._channel, self._parameters = channel, parameters
        self.__name__ = self.__qualname__ = name
        self.__doc__ = signature

    def __call__(self, *given: Any, **named: Any) -> Any:
        names = self._parameters
        if names is not None:
            if len(given) == 1 and not named and isinstance(given[0], dict) and given[0] and set(given[0]) <= set(names):
                named, given = given[0], ()
            unknown = next((name for name in named if name not in names), None)
            if unknown is not None:
                raise TypeError(f"{self.__name__} takes no argument {unknown!r}: {self.__doc__}")
        placed = dict(zip(names or (), given, strict=False))
        if len(placed) < len(given) or placed.keys() & named.keys():
            raise TypeError(f"{self.__name__} was given an argument too many: {self.__doc__}")
        return self._channel.ask(self.__name__, {**placed, **named})


class Tools(dict[str, Tool]):
    """All of them, for names that are none of Python's: ``tools["a-name"](…)``; as attributes, too."""

    def __missing__(self, name: str) -> Tool:
        raise AttributeError(f"there is no tool {name!r}; the tools are {', '.join(self)}")

    __getattr__ = dict.__getitem__


class Printed:
    """What the process and the programs that it starts print: both streams through one pipe, sent on by a thread."""

    def __init__(self, say: Callable[[dict[str, Any]], None]) -> None:
        self._say = say
        self._pipe, written = os.pipe()
        self._wake, self._woken = os.pipe()
        os.set_blocking(self._pipe, False)
        os.dup2(written, 1)
        os.dup2(written, 2)
        os.close(written)
        self._streams = (sys.stdout, sys.stderr)
        for stream in self._streams:
            stream.reconfigure(errors="backslashreplace", line_buffering=True)  # type: ignore[union-attr]
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._room, self._left_out, self._tail = HEAD, 0, ""
        self._reading = threading.Lock()
        self._thread = threading.Thread(target=self._pass_on, daemon=True)
        self._thread.start()

    def send(self) -> None:
        """Send what was printed so far, whichever thread calls: it stands before whatever that thread says next."""
        for stream in (sys.stdout, sys.stderr, *self._streams):
            if hasattr(stream, "flush"):
                with contextlib.suppress(OSError, ValueError):  # the program closed it
                    stream.flush()
        with self._reading:
            self._keep(self._read())

    def close(self) -> None:
        """Send the rest. What is printed afterwards is lost."""
        self.send()
        os.write(self._woken, b".")
        self._thread.join()
        if self._tail:
            left_out = f"\n[{self._left_out:,} characters of output were not kept]\n" if self._left_out else ""
            self._say({"out": left_out + self._tail})

    def _pass_on(self) -> None:
        ending = False
        while not ending:
            ready, _, _ = select.select([self._pipe, self._wake], [], [])
            ending = self._wake in ready
            with self._reading:
                self._keep(self._read())

    def _keep(self, text: str) -> None:
        """Send the first characters as they come, and keep the last ones for the end."""
        now, self._tail = text[: self._room], self._tail + text[self._room :]
        self._room -= len(now)
        if now:
            self._say({"out": now})
        if len(self._tail) > 2 * TAIL:
            self._left_out += len(self._tail) - TAIL
            self._tail = self._tail[-TAIL:]

    def _read(self) -> str:
        with contextlib.suppress(BlockingIOError):
            return self._decoder.decode(os.read(self._pipe, _PIPE))
        return ""


class _Top(ast.NodeTransformer):
    """Outside functions and classes ``return`` ends the program with a value."""

    def visit_Return(self, node: ast.Return) -> ast.AST:
        """Raise in its place."""
        value = node.value or ast.Constant(None)
        return ast.copy_location(ast.Raise(ast.Call(ast.Name(_RETURN, ast.Load()), [value], [])), node)

    def _keep(self, node: ast.AST) -> ast.AST:
        return node

    visit_FunctionDef = visit_AsyncFunctionDef = visit_ClassDef = visit_Lambda = _keep


def compiled(code: str) -> Any:
    """The program: the value of its last expression is shown, top-level ``return`` and ``await`` work. Raises what says that it is none."""
    tree = _Top().visit(ast.parse(code, FILE))
    if tree.body and isinstance(last := tree.body[-1], ast.Expr):
        last.value = ast.copy_location(ast.Call(ast.Name(_SHOW, ast.Load()), [last.value], []), last.value)
    return compile(ast.fix_missing_locations(tree), FILE, "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)


def show(value: Any) -> None:
    """Print a value as its reader wants it: text as it is, structures over several lines."""
    if value is None:
        return
    is_structure = isinstance(value, (dict, list, tuple, set))
    shown = pprint.pformat(value, width=120, sort_dicts=False, compact=True) if is_structure else repr(value)
    print(value if isinstance(value, str) else shown)


def run(code: str, names: dict[str, Any]) -> str:
    """Run the program and print what it ends with; returns how it ended."""
    linecache.cache[FILE] = (len(code), None, code.splitlines(keepends=True), FILE)
    try:
        program = compiled(code)
        ran = eval(program, names)  # a code object of statements
        if inspect.iscoroutine(ran):
            asyncio.run(ran)
    except _Returned as returned:
        show(returned.args[0])
    except SystemExit as error:
        if error.code is None or error.code == 0:
            return "ok"
        print(error.code if isinstance(error.code, str) else f"SystemExit: {error.code}", file=sys.stderr)
        return "exit"
    except BaseException as error:  # noqa: BLE001 -- whatever it raised, a KeyboardInterrupt of its own too, is its end
        print(told(error), file=sys.stderr, end="")
        return "error"
    return "ok"


def told(error: BaseException) -> str:
    """The traceback from the program's first line on."""
    traces = [traceback.TracebackException.from_exception(error)]
    for trace in traces:
        own = itertools.dropwhile(lambda frame: frame.filename != FILE, trace.stack)
        trace.stack = traceback.StackSummary.from_list([frame for frame in own if frame.filename != __file__])
        traces += filter(None, (trace.__cause__, trace.__context__))
    return "".join(traces[0].format())


def bound() -> None:
    """Half of the machine's memory, and no life beyond that of who started it; where a system has no such bounds, without them."""
    with contextlib.suppress(ImportError, ValueError, OSError, AttributeError):
        import resource

        half = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2
        resource.setrlimit(resource.RLIMIT_DATA, (half, half))
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


def main() -> None:
    """Take over the standard streams, run the program, and end, whatever threads it leaves."""
    process = os.getpid()
    channel = Channel(os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb"))
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    bound()
    request = channel.hear()
    printed = Printed(channel.say)
    channel.before_call = printed.send
    sys.path.append(os.getcwd())
    tools = {each["name"]: Tool(channel, each["name"], each["parameters"], each["signature"]) for each in request["tools"]}
    taken = {*keyword.kwlist, *dir(builtins)}
    bare = {name: tool for name, tool in tools.items() if name.isidentifier() and name not in taken}
    program = sys.modules["__main__"] = types.ModuleType("__main__")
    vars(program).update(bare, tools=Tools(tools), ToolCallError=ToolCallError, **{_SHOW: show, _RETURN: _Returned})
    channel.say({"ready": True})
    how = run(request["code"], vars(program))
    if os.getpid() != process:  # a child of the program that ran on to here
        os._exit(0)
    printed.close()
    channel.end(how)
    channel.hear()  # who is told ends this process, whatever threads are left; gone first, it might not be heard


if __name__ == "__main__":
    main()
