"""What a child agent's log says of it: how it was made, and what for."""

from __future__ import annotations

from typing import Any, Final, Literal

from msgspec import Struct

from plan_mode_nb.log.events import Event

VERSION: Final = 2
"""Of deepseek-harness's descriptor, which this is."""
Kind = Literal["spawn", "fork"]


class Descriptor(Struct, frozen=True):
    """``kind``: deepseek-harness's provider, ``spawn`` or ``fork`` for one made here. ``label``: the task in a few words, "" without."""

    kind: str
    label: str = ""


class DescriptorFold:
    """Events -> the last readable descriptor; None before there is one. A forked child's own comes behind those of its seed."""

    types: Final = frozenset({"subagent/descriptor"})

    def start(self) -> Descriptor | None:
        """None."""
        return None

    def step(self, state: Descriptor | None, event: Event) -> Descriptor | None:
        """The state after one more descriptor. One of another version says nothing (deepseek-harness's rule)."""
        data = event.data
        if not isinstance(data, dict) or data.get("version") != VERSION or not isinstance(data.get("provider"), str):
            return None
        label = data.get("label")
        return Descriptor(data["provider"], label if isinstance(label, str) else "")

    def value(self, state: Descriptor | None) -> Descriptor | None:
        """It."""
        return state


DESCRIPTOR: Final = DescriptorFold()


def descriptor_data(kind: Kind, label: str) -> dict[str, Any]:
    """The data of ``subagent/descriptor`` for a child that does one task, in deepseek-harness's form."""
    return {"version": VERSION, "mode": "one-shot", "provider": kind, **({"label": label} if label else {})}
