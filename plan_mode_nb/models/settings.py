"""Model settings: checked once, when the configuration is read; a wrong one is refused by name."""

from __future__ import annotations

import difflib
import math
from collections.abc import Mapping
from typing import Any, Literal, get_args

from msgspec import Struct
from msgspec.structs import fields

from plan_mode_nb.exceptions import ConfigError

ReasoningEffort = Literal["off", "minimal", "low", "medium", "high", "xhigh", "max"]
EFFORTS: tuple[str, ...] = get_args(ReasoningEffort)


class ModelSettings(Struct, frozen=True):
    """What a person may set for a model; None: the provider's own default.

    ``timeout`` bounds one whole request and ``idle_timeout`` the wait for its next byte (the host's ``PlanAgent.request_timeout``), in
    seconds. Silence is what a dead server looks like; five minutes of it is what deepseek-harness allows, because a model may think, and a
    local one read a long prompt, before it says a word. The whole may take long: a model on a processor writes a few words a second.
    ``context_window``: tokens that it can read, where that is known better here than by the model itself.
    """

    temperature: float | None = None
    max_tokens: int | None = None
    reasoning_effort: ReasoningEffort | None = None
    context_window: int | None = None
    timeout: float = 1800.0
    idle_timeout: float = 300.0

    def config(self) -> dict[str, Any]:
        """What the request header says of them, under deepseek-harness's names: what was set, and no bound that the model never sees."""
        named = {"temperature": self.temperature, "maxTokens": self.max_tokens, "reasoningEffort": self.reasoning_effort}
        return {name: value for name, value in named.items() if value is not None}


def read_settings(given: Mapping[str, Any]) -> ModelSettings:
    """Check settings by their names here; None counts as not set.

    Raises:
        ConfigError: a name is unknown, or a value is of the wrong kind or out of range.
    """
    names = [each.name for each in fields(ModelSettings)]
    for name in given:
        if name not in names:
            close = difflib.get_close_matches(_snake(name), names, 1)
            hint = f"did you mean `{close[0]}`?" if close else f"the settings are {', '.join(names)}"
            raise ConfigError(f"`{name}` is not a model setting; {hint}")
    told = {name: value for name, value in given.items() if value is not None}
    for name in ("temperature", "timeout", "idle_timeout"):
        if name in told:
            told[name] = _number(name, told[name])
    for name in ("max_tokens", "context_window"):
        if name in told and (type(told[name]) is not int or told[name] < 1):
            raise ConfigError(f"`{name}` must be a whole number from 1, not {told[name]!r}")
    if "reasoning_effort" in told and told["reasoning_effort"] not in EFFORTS:
        raise ConfigError(f"`reasoning_effort` must be one of {', '.join(EFFORTS)}, not {told['reasoning_effort']!r}")
    return ModelSettings(**told)


def _number(name: str, value: object) -> float:
    """Temperatures run from 0 to 2 in every API that has them; a bound of zero seconds would refuse every answer."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        raise ConfigError(f"`{name}` must be a number, not {value!r}")
    if name == "temperature" and not 0 <= value <= 2:
        raise ConfigError(f"`temperature` must lie between 0 and 2, not {value!r}")
    if name != "temperature" and value <= 0:
        raise ConfigError(f"`{name}` must be more than 0 seconds, not {value!r}")
    return float(value)


def _snake(name: str) -> str:
    """``maxTokens`` -> ``max_tokens``: the header's spelling is the likeliest mistake."""
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)
