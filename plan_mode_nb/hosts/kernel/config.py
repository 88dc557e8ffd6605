"""Settings: ``plan_mode_nb.json`` along the Jupyter configuration path, IPython's own configuration, and ``%config``; below them all, what
the installation ships.

Every reading gives one frozen value or one sentence that names the key and where it goes. traitlets only warns of unknown keys; these
classes raise.
"""

from __future__ import annotations

import json
import os
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from msgspec import Struct
from traitlets import Bool, Dict, Enum, Float, Int, TraitError, Unicode
from traitlets.config import Configurable

from plan_mode_nb.agent.mcp import Server
from plan_mode_nb.exceptions import ConfigError
from plan_mode_nb.features.mcp import configured
from plan_mode_nb.plan import PlanModeConfig, resolve_config

FILE_NAME = "plan_mode_nb.json"
SHIPPED = "plan_mode_nb"
"""The folder, in Jupyter's data folders, of the file that the installation ships: a configuration folder of an environment would outrank
the person's own."""
INSTRUCTIONS = (
    "You are the agent of a Jupyter notebook, working for the person whose notebook it is. You share their kernel: the python tool runs "
    "code in their namespace, so their variables and imports are yours to use, and figures and tables that your code displays appear in "
    "their notebook under the cell. Look before you assume: check variables, columns and files. Keep answers short and concrete. Keep a "
    "todo list with todo_write when a task has several parts."
)


class Strict(Configurable):  # type: ignore[misc]
    """A Configurable that refuses what it does not know."""

    def __init__(self, **kwargs: Any) -> None:
        parent = kwargs.get("parent")
        section = getattr(parent, "config", {}).get(type(self).__name__, {}) if parent is not None else {}
        for key in section:
            self._require(key)
        super().__init__(**kwargs)

    def __setattr__(self, key: str, value: Any) -> None:
        # traitlets swaps some of its own methods on the instance while it loads.
        if not key.startswith("_") and not hasattr(type(self), key):
            self._require(key)
        super().__setattr__(key, value)

    @classmethod
    def _require(cls, key: str) -> None:
        known = cls.class_trait_names(config=True)
        if key in known or key in cls.class_trait_names():
            return
        close = get_close_matches(key, known, 1)
        hint = f"did you mean {close[0]!r}?" if close else f"it has {', '.join(sorted(known))}"
        raise ConfigError(f"{cls.__name__} has no setting {key!r}; {hint}")


class PlanAgent(Strict):
    """The notebook's agent. Changes take effect with the next turn."""

    model = Unicode("", help="Which model, as provider:name (openai-chat:NAME for any compatible server); empty: by environment keys.").tag(
        config=True
    )
    plan_model = Unicode("", help="The model that answers while plan mode is on, as provider:name; empty: the same as otherwise.").tag(
        config=True
    )
    max_steps = Int(50, min=1, max=10_000, help="Requests that one turn may make.").tag(config=True)
    temperature = Float(None, allow_none=True, min=0, max=2, help="The model's temperature; unset: the provider's default.").tag(
        config=True
    )
    max_tokens = Int(None, allow_none=True, min=1, help="Tokens that one answer may have; unset: the provider's default.").tag(config=True)
    reasoning_effort = Enum(
        ["minimal", "low", "medium", "high"], None, allow_none=True, help="How hard the model thinks, where it can be told."
    ).tag(config=True)
    context_window = Int(
        None, allow_none=True, min=1, help="Tokens that the model can read, answer included; unset: as the public list of models says."
    ).tag(config=True)
    compact_at = Float(
        0.8, min=0, max=1, help="Compact the conversation at this share of what the model can read; 0: only when %session compact asks."
    ).tag(config=True)
    request_timeout = Float(120.0, min=1, help="Seconds that a model may be silent before the request fails.").tag(config=True)
    max_retries = Int(2, min=0, max=10, help="How often a request that failed in passing is made again within its step.").tag(config=True)
    max_child_depth = Int(3, min=0, max=10, help="How deep agents may hand tasks to child agents; 0: not at all.").tag(config=True)
    sandbox_network = Bool(False, help="Whether commands that the sandbox confines may use the network.").tag(config=True)
    code_mode = Bool(False, help="Whether the model may also call its tools from a Python program of its own, with run_code.").tag(
        config=True
    )
    mcp_servers = Dict(
        help="MCP servers whose tools the model may use, by name: command, args, env, cwd, or url, headers; as in other tools' files."
    ).tag(config=True)
    record_chunks = Bool(False, help="Log every streamed chunk, not only usage and finish.").tag(config=True)
    instructions = Unicode(INSTRUCTIONS, help="The first section of the system prompt.").tag(config=True)
    answers = Enum(
        ["person", "recording"],
        "person",
        help="Who answers reviews: a person, or (with a recording as the model) the recording; such answers are marked as replayed.",
    ).tag(config=True)
    log_file = Unicode("", help="Where a terminal keeps the log (a .jsonl file); empty: memory only.").tag(config=True)

    def model_settings(self) -> dict[str, Any]:
        """The settings of a model, without the unset ones."""
        named = {
            "temperature": self.temperature,
            "max_tokens": self.max_tokens,
            "reasoning_effort": self.reasoning_effort,
            "context_window": self.context_window,
        }
        return {key: value for key, value in named.items() if value is not None}


class PlanMode(Strict):
    """Plan mode. Changes take effect with the next turn."""

    section = Unicode("", help="The guidance that is part of every request while plan mode is active.").tag(config=True)


class Settings(Struct, frozen=True):
    """The live configurables of one shell. ``plan`` reads PlanMode as the plugin's frozen value."""

    agent: PlanAgent
    plan_mode: PlanMode

    @property
    def servers(self) -> tuple[Server, ...]:
        """The MCP servers now.

        Raises:
            ConfigError: one cannot be what is meant; names it and the key.
        """
        return configured(self.agent.mcp_servers, os.environ)

    @property
    def plan(self) -> PlanModeConfig:
        """The plugin's configuration now.

        Raises:
            ConfigError: the section is missing or blank; says where it goes.
        """
        section = self.plan_mode.section
        return resolve_config({"section": section} if section else {}, model=self.agent.plan_model or None)


def read_files(folders: list[str]) -> dict[str, dict[str, Any]]:
    """``plan_mode_nb.json`` of all folders merged key by key; earlier folders win, as everywhere in Jupyter.

    Raises:
        ConfigError: a file is no JSON object of objects; names it.
    """
    merged: dict[str, dict[str, Any]] = {}
    for folder in reversed(folders):
        path = Path(folder) / FILE_NAME
        if not path.is_file():
            continue
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise ConfigError(f"{path} cannot be read as JSON: {error}; mend or remove it") from None
        if not isinstance(content, dict) or not all(isinstance(section, dict) for section in content.values()):
            raise ConfigError(f'{path} must hold an object of objects, such as {{"PlanMode": {{"section": "…"}}}}')
        for name, section in content.items():
            if name not in ("PlanAgent", "PlanMode"):
                raise ConfigError(f"{path} has an unknown part {name!r}; it may have PlanAgent and PlanMode")
            merged.setdefault(name, {}).update(section)
    return merged


def load(shell: Any) -> Settings:
    """Build the configurables of a shell: files first, the shell's own configuration over them.

    Raises:
        ConfigError: an unknown key or a value of the wrong kind; names it and where it stands.
    """
    from jupyter_core.paths import jupyter_config_path, jupyter_path

    files = read_files([*jupyter_config_path(), *jupyter_path(SHIPPED)])
    agent = _build(PlanAgent, shell, files.get("PlanAgent", {}))
    plan_mode = _build(PlanMode, shell, files.get("PlanMode", {}))
    settings = Settings(agent, plan_mode)
    _ = settings.plan
    return settings


def _build(kind: type[Any], shell: Any, values: dict[str, Any]) -> Any:
    for key in values:
        kind._require(key)
    try:
        built = kind(parent=shell)
        for key, value in values.items():
            if key not in shell.config.get(kind.__name__, {}):
                setattr(built, key, value)
    except TraitError as error:
        raise ConfigError(f"{kind.__name__}: {error}; correct it in {FILE_NAME} or in IPython's configuration") from None
    return built
