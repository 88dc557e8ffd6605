"""The plugin's configuration. The package has no guidance of its own: the deployment supplies it."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any, Final

from msgspec import Struct

from plan_mode_nb.exceptions import ConfigError

WHERE = 'put {"PlanMode": {"section": "…"}} in plan_mode_nb.json in a folder that `jupyter --paths` lists under config'

KNOWN: Final = ("section",)


class PlanModeConfig(Struct, frozen=True):
    """``section``: the guidance that is part of every request while plan mode is active, inserted exactly.

    ``model``: the name of the model that answers while it is active; None: the agent's.
    """

    section: str
    model: str | None = None


def resolve_config(raw: Mapping[str, Any], *, model: str | None = None) -> PlanModeConfig:
    """Read a configuration once, as a frozen value. ``model``: from the agent's configuration, which knows what names mean.

    Raises:
        ConfigError: ``section`` is missing, blank or no string, or a key is unknown; names the key and where it goes.
    """
    for key in raw:
        if key not in KNOWN:
            close = get_close_matches(str(key), KNOWN, 1)
            hint = f"did you mean {close[0]!r}?" if close else f"it has {', '.join(KNOWN)}"
            raise ConfigError(f"PlanMode has no setting {key!r}; {hint}")
    if "section" not in raw:
        raise ConfigError(f"PlanMode.section is missing: plan mode needs its guidance; {WHERE}")
    section = raw["section"]
    if not isinstance(section, str):
        raise ConfigError(f"PlanMode.section must be a string, not {type(section).__name__}; {WHERE}")
    if not section.strip():
        raise ConfigError(f"PlanMode.section is blank: write the guidance for plan mode there; {WHERE}")
    return PlanModeConfig(section, model)
