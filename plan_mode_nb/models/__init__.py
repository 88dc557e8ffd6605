"""MODELS: a script, a recording, and everything that pydantic-ai reaches. Importing this never imports pydantic_ai."""

from __future__ import annotations

from plan_mode_nb.models.choose import Choice, choose
from plan_mode_nb.models.local import LocalModel
from plan_mode_nb.models.pydantic_ai import PydanticAIModel
from plan_mode_nb.models.recording import RecordedModel
from plan_mode_nb.models.scripted import ScriptedModel
from plan_mode_nb.models.settings import ModelSettings, read_settings

__all__ = ["Choice", "LocalModel", "ModelSettings", "PydanticAIModel", "RecordedModel", "ScriptedModel", "choose", "read_settings"]
