"""Copies of variables for another process, made on the thread that owns them: each as bytes of pickle, or the reason why there is none.

Only what the notebook made leaves it this way; nothing that comes back is ever unpickled.
"""

from __future__ import annotations

import io
import pickle
import types
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import Any, Final

from msgspec import Struct, field

from plan_mode_nb.agent.tools import ToolError
from plan_mode_nb.features.tools.variables import type_name

LIMIT: Final = 256_000_000
"""Bytes of all copies of one call together."""
_NOTEBOOK: Final = "__main__"


class Copies(Struct):
    """``data``: name -> pickle; ``refused``: name -> why there is no copy, as the end of a sentence that begins with the name."""

    data: dict[str, bytes] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)


class _Refused(Exception):
    """Why a value has no copy."""


class _Bounded(io.RawIOBase):
    """Keeps what is written, up to a number of bytes."""

    def __init__(self, limit: int) -> None:
        self.written = bytearray()
        self._limit = limit

    def writable(self) -> bool:
        """Always."""
        return True

    def write(self, data: Any) -> int:
        """Keep it.

        Raises:
            _Refused: it is too much.
        """
        size = memoryview(data).nbytes
        if len(self.written) + size > self._limit:
            raise _Refused(
                f"is larger than the {LIMIT // 1_000_000} MB that are copied in one call; send a part of it, such as its first rows"
            )
        self.written += data
        return size


class _Pickler(pickle.Pickler):
    """Refuses what another process would look for in a notebook that it does not have."""

    def reducer_override(self, obj: Any) -> Any:
        """Called for every object that is not plain.

        Raises:
            _Refused: it is a class or function of the notebook's.
        """
        if isinstance(obj, (type, types.FunctionType)) and obj.__module__ == _NOTEBOOK:
            kind = "class" if isinstance(obj, type) else "function"
            raise _Refused(f"needs the {kind} {obj.__name__}, which only the notebook defines; put its definition into the code instead")
        return NotImplemented


def copy_all(namespace: Mapping[str, Any], names: Sequence[str], limit: int = LIMIT) -> Copies:
    """Copies of the named variables. An object may run its own code to be copied, and raise anything; a KeyboardInterrupt passes."""
    copies = Copies()
    for name in dict.fromkeys(names):
        try:
            copies.data[name] = _copy(namespace, name, limit)
            limit -= len(copies.data[name])
        except _Refused as refused:
            copies.refused[name] = str(refused)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # noqa: BLE001 -- whatever an object raises when it is copied is the reason
            why = next(iter(str(error).splitlines()), "") or type(error).__name__
            copies.refused[name] = f"({type_name(namespace[name])}) cannot be copied: {why[:200]}"
    return copies


def _copy(namespace: Mapping[str, Any], name: str, limit: int) -> bytes:
    if name not in namespace:
        close = get_close_matches(name, namespace, 3)
        hint = f"; did you mean {', '.join(close)}?" if close else "; modules are imported in the code itself"
        raise _Refused(f"is no variable of the notebook{hint}")
    written = _Bounded(limit)
    # Unbuffered, so that a value that is too large is never held whole.
    _Pickler(written, protocol=pickle.HIGHEST_PROTOCOL).dump(namespace[name])
    return bytes(written.written)


def refuse(refused: Mapping[str, str]) -> ToolError:
    """One sentence that names every variable without a copy."""
    named = "; ".join(f"{name} {why}" for name, why in refused.items())
    return ToolError(
        f'nothing ran, because not everything could be copied: {named} (code with where: "kernel" has the variables themselves)',
        code="NOT_COPIED",
    )
