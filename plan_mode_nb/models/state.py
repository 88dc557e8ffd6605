"""What a provider needs back unchanged with its own answer (signatures of thinking, ids), as it is kept in the log.

dsh's replay envelope: ``{"response": {…}, "blocks": [state or null, one a block of the answer]}``. It is used only for the provider that
made it, and only while it still fits the message: an answer that lost a block (a cut-off call) goes out in neutral form.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from plan_mode_nb.log.messages import Message

PartState = dict[str, Any]
"""Of one part: ``id``, ``signature``, ``provider_name``, ``provider_details``, where there is one."""
ADAPTER = "pydantic-ai"


class States(Struct, frozen=True):
    """``blocks``: one state or None a block, or empty; ``hidden``: (the block it stands before, its state) of parts without any text.

    ``system``: the provider's own name and the one its signatures are checked by. ``own``: the answer is this provider's.
    """

    own: bool = False
    blocks: tuple[PartState | None, ...] = ()
    hidden: tuple[tuple[int, PartState], ...] = ()
    system: tuple[str | None, str | None] = (None, None)


NEUTRAL = States()


def envelope(
    system: tuple[str | None, str | None], blocks: Sequence[PartState | None], hidden: Sequence[tuple[int, PartState]]
) -> dict[str, Any] | None:
    """The envelope of one answer; None where nothing needs to go back."""
    if not hidden and not any(blocks):
        return None
    response: dict[str, Any] = {"adapter": ADAPTER, "system": list(system)}
    if hidden:
        response["hidden"] = [[at, state] for at, state in hidden]
    return {"response": response, "blocks": [state or None for state in blocks]}


def states_of(answer: Message, provider: str) -> States:
    """The states that an answer keeps for ``provider``; neutral for another provider's answer."""
    source = answer["source"]
    if source.get("provider") != provider:
        return NEUTRAL
    kept = source.get("replayState")
    response = kept.get("response") if isinstance(kept, Mapping) else None
    if not isinstance(kept, Mapping) or not isinstance(response, Mapping) or response.get("adapter") != ADAPTER:
        return States(own=True)
    if len(kept["blocks"]) != len(answer["content"]):
        return States(own=True)
    name, canonical = response["system"]
    hidden = tuple((at, state) for at, state in response.get("hidden", ()))
    return States(True, tuple(kept["blocks"]), hidden, (name, canonical))
