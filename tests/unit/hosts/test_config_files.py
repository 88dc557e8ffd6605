"""Whose setting wins: a person's, an environment's, and last of all what the installation ships."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from traitlets.config import Config, Configurable

from plan_mode_nb.exceptions import ConfigError
from plan_mode_nb.hosts.kernel import config

SHIPPED = json.loads((Path(__file__).resolve().parents[3] / "jupyter-config" / "plan_mode_nb.json").read_text())


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A person's own configuration folder, which ranks below that of the environment they are in."""
    for name in ("JUPYTER_PATH", "JUPYTER_CONFIG_PATH"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("JUPYTER_PREFER_ENV_PATH", "1")
    monkeypatch.setenv("JUPYTER_CONFIG_DIR", str(tmp_path / "own"))
    monkeypatch.setenv("JUPYTER_DATA_DIR", str(tmp_path / "data"))
    (tmp_path / "own").mkdir()
    return tmp_path / "own"


def put(folder: Path, content: object) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / config.FILE_NAME).write_text(json.dumps(content))


def section(**shell: dict[str, str]) -> str:
    return config.load(Configurable(config=Config(shell))).plan.section


def test_without_a_word_of_anybody_the_installations_guidance_is_in_force(own: Path) -> None:
    assert list(own.iterdir()) == []
    assert section() == SHIPPED["PlanMode"]["section"]


def test_a_persons_own_guidance_outranks_what_the_environment_ships(own: Path) -> None:
    put(own, {"PlanMode": {"section": "Mine."}})
    assert section() == "Mine."
    assert section(PlanMode={"section": "IPython's."}) == "IPython's."


def test_a_data_folder_named_by_whoever_deploys_replaces_the_shipped_file(
    own: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JUPYTER_PATH", str(tmp_path / "site"))
    put(tmp_path / "site" / config.SHIPPED, {"PlanMode": {"section": "The laboratory's."}})
    assert section() == "The laboratory's."
    put(own, {"PlanMode": {"section": "Mine."}})
    assert section() == "Mine."


def test_where_nothing_is_shipped_and_nothing_set_loading_says_where_it_goes(
    own: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("jupyter_core.paths.jupyter_path", lambda *_: [os.fspath(tmp_path / "data")])
    with pytest.raises(ConfigError, match=r"PlanMode\.section is missing.* in plan_mode_nb\.json in a folder that `jupyter --paths`"):
        section()
