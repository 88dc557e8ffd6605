"""The two axes that plan mode neither reads nor writes: the last value logged of each, None before the first."""

from __future__ import annotations

from typing import Final

from plan_mode_nb.log.events import Event


class LastValueFold:
    """Events of one type -> one key of the last of them."""

    def __init__(self, type: str, key: str) -> None:
        self.types: frozenset[str] = frozenset({type})
        self._key = key

    def start(self) -> str | None:
        """None logged."""
        return None

    def step(self, state: str | None, event: Event) -> str | None:
        """The last one wins."""
        value: str = event.data[self._key]
        return value

    def value(self, state: str | None) -> str | None:
        """The value in force."""
        return state


APPROVAL_POLICY: Final = LastValueFold("approval/policy", "policy")
SANDBOX_MODE: Final = LastValueFold("sandbox/mode", "mode")
