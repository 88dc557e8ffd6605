"""A Shell without Jupyter: plain Python in one dict, on the thread of the loop."""

from __future__ import annotations

import ast
import asyncio
import contextlib
import io
import traceback
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from plan_mode_nb.agent.shell import ShellImage, ShellResult


class PlainShell:
    """Satisfies the Shell protocol. ``ran``: each piece of code with its call's id, in order.

    Code may ``show(data, media_type)`` a figure. ``wait``: awaited once the code has run, as a place where a test can hold or cancel a
    call. Cancelled there, the result says interrupted and the cancellation stays pending, as the seam asks.
    """

    def __init__(self, namespace: dict[str, Any] | None = None, *, wait: Callable[[], Awaitable[Any]] | None = None) -> None:
        self.variables: dict[str, Any] = {} if namespace is None else namespace
        self.ran: list[tuple[str, str]] = []
        self._wait = wait

    async def run(self, code: str, *, call_id: str) -> ShellResult:
        """Run the code; the value of its last expression is printed."""
        self.ran.append((call_id, code))
        images: list[ShellImage] = []
        written = io.StringIO()
        hidden = {"show": lambda data, media_type="image/png": images.append(ShellImage(media_type, data))}
        failed = False
        with contextlib.redirect_stdout(written):
            try:
                self._run(code, hidden)
            except Exception:  # noqa: BLE001 -- what code raises is its result
                failed = True
                written.write(traceback.format_exc())
        if self._wait is not None:
            try:
                await self._wait()
            except asyncio.CancelledError:
                return ShellResult("interrupted", written.getvalue(), tuple(images))
        return ShellResult("error" if failed else "ok", written.getvalue(), tuple(images))

    async def namespace(self) -> Mapping[str, Any]:
        """The variables without an underscore."""
        return {name: value for name, value in self.variables.items() if not name.startswith("_")}

    async def inspect(self, function: Callable[..., Any], *args: Any) -> Any:
        """Call the function here."""
        return function(*args)

    def _run(self, code: str, hidden: dict[str, Any]) -> None:
        tree = ast.parse(code)
        last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
        self.variables.update(hidden)
        try:
            exec(compile(tree, "<cell>", "exec"), self.variables)
            if isinstance(last, ast.Expr):
                value = eval(compile(ast.Expression(last.value), "<cell>", "eval"), self.variables)
                if value is not None:
                    print(repr(value))
        finally:
            for name in hidden:
                self.variables.pop(name, None)
