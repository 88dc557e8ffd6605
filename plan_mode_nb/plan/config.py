"""The plugin's configuration. The package has no guidance of its own: the deployment supplies it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from difflib import get_close_matches
from typing import Any

from plan_mode_nb.exceptions import ConfigError

WHERE = 'put {"PlanMode": {"section": "…"}} in plan_mode_nb.json in a folder that `jupyter --paths` lists under config'


@dataclass(frozen=True)
class PlanModeConfig:
    """``section``: the guidance that is part of every request while plan mode is active, inserted exactly."""

    section: str


def resolve_config(raw: Mapping[str, Any]) -> PlanModeConfig:
    """Read a configuration once, as a frozen value.

    Raises:
        ConfigError: ``section`` is missing, blank or no string, or a key is unknown; names the key and where it goes.
    """
    known = [field.name for field in fields(PlanModeConfig)]
    for key in raw:
        if key not in known:
            close = get_close_matches(str(key), known, 1)
            hint = f"did you mean {close[0]!r}?" if close else f"it has {', '.join(known)}"
            raise ConfigError(f"PlanMode has no setting {key!r}; {hint}")
    if "section" not in raw:
        raise ConfigError(f"PlanMode.section is missing: plan mode needs its guidance; {WHERE}")
    section = raw["section"]
    if not isinstance(section, str):
        raise ConfigError(f"PlanMode.section must be a string, not {type(section).__name__}; {WHERE}")
    if not section.strip():
        raise ConfigError(f"PlanMode.section is blank: write the guidance for plan mode there; {WHERE}")
    return PlanModeConfig(section)
