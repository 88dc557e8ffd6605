"""What is installed and enabled: packages, the extensions of JupyterLab and of the server, configuration files. Nothing is started."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from importlib.metadata import PackageNotFoundError, requires, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from plan_mode_nb import __version__
from plan_mode_nb.hosts.cli.findings import Finding, fix, ok

PACKAGE: Final = "plan-mode-nb"
LAB_EXTENSION: Final = "plan-mode-nb"
SERVER_EXTENSION: Final = "plan_mode_nb.hosts.server"
CONFIG: Final = "plan_mode_nb.json"
SHIPPED: Final = "plan_mode_nb"
_NAMED: Final = ("ipykernel", "ipython", "ipywidgets", "anywidget", "nbclient", "pydantic-ai-slim")
_FRONT_ENDS: Final = ("jupyterlab", "notebook")
_WIDGETS: Final = {"@jupyter-widgets/jupyterlab-manager": "jupyterlab-widgets", "anywidget": "anywidget"}


def packages() -> Iterator[Finding]:
    """This package, Python, and the packages that it stands on, each against what it requires."""
    python = f"Python {'.'.join(map(str, sys.version_info[:3]))}"
    supported = sys.version_info >= (3, 11)
    yield ok("python", f"{python} at {sys.executable}") if supported else fix("python", f"{python} is too old; use 3.11 or newer")
    yield ok(PACKAGE, __version__)
    wanted = dict(_required())
    for name in _NAMED:
        yield _package(name, wanted.get(name, ""))


def _required() -> Iterator[tuple[str, str]]:
    from packaging.requirements import Requirement

    try:
        lines = requires(PACKAGE) or []
    except PackageNotFoundError:
        return
    for requirement in map(Requirement, lines):
        if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
            yield requirement.name, str(requirement.specifier)


def _package(name: str, wanted: str) -> Finding:
    from packaging.specifiers import SpecifierSet

    try:
        there = version(name)
    except PackageNotFoundError:
        return fix(name, f"it is not installed; pip install '{name}{wanted}'")
    if not SpecifierSet(wanted).contains(there, prereleases=True):
        return fix(name, f"{there} is not supported; pip install '{name}{wanted}'")
    return ok(name, there)


def front_ends() -> Iterator[Finding]:
    """JupyterLab and Notebook, and what of ours must be in them."""
    there = {name: found for name in _FRONT_ENDS if (found := _version(name))}
    if "jupyterlab" not in there:
        yield ok("jupyterlab", "it is not installed here; only JupyterLab and the demo need it (pip install 'plan-mode-nb[demo]')")
        return
    for name, found in there.items():
        yield ok(name, found)
    yield from lab_extensions(_page_config(), _lab_folders())
    yield server_extension(_config_folders())


def lab_extensions(page: Mapping[str, Any], folders: list[Path]) -> Iterator[Finding]:
    """Our lab extension, and the widgets that the cards are made of. ``page``: JupyterLab's page configuration."""
    yield _lab_extension(LAB_EXTENSION, PACKAGE, page, folders, __version__)
    for name, package in _WIDGETS.items():
        yield _lab_extension(name, package, page, folders, None)


def _lab_extension(name: str, package: str, page: Mapping[str, Any], folders: list[Path], wanted: str | None) -> Finding:
    what = "lab extension"
    found = next((folder / name for folder in folders if (folder / name / "package.json").is_file()), None)
    if found is None:
        return fix(what, f"{name} is not where JupyterLab looks; pip install --force-reinstall --no-deps {package}")
    if any(each == name or each.startswith(f"{name}:") for each in page.get("disabledExtensions", ())):
        return fix(what, f"{name} is disabled; jupyter labextension enable {name}")
    there = _json(found / "package.json").get("version")
    if wanted is not None and there != wanted:
        return fix(what, f"{name} {there} at {found} is not of this version ({wanted}); remove that folder and reinstall {package}")
    return ok(what, f"{name} {there}, enabled")


def server_extension(folders: list[Path]) -> Finding:
    """Whether Jupyter's server loads our save hook: the first folder that says anything about it decides."""
    for folder in folders:
        for file in (folder / "jupyter_server_config.json", *sorted((folder / "jupyter_server_config.d").glob("*.json"), reverse=True)):
            extensions = _json(file).get("ServerApp", {}).get("jpserver_extensions", {})
            if SERVER_EXTENSION in extensions:
                if extensions[SERVER_EXTENSION]:
                    return ok("server extension", f"enabled by {file}")
                return fix("server extension", f"it is disabled by {file}; jupyter server extension enable {SERVER_EXTENSION}")
    return fix("server extension", f"it is not enabled; jupyter server extension enable {SERVER_EXTENSION}")


def config_files(folders: list[Path]) -> Iterator[Finding]:
    """Each configuration file of a person or an administrator, and what it sets, names only. Whether the keys are right is for the kernel
    to say. None need be there.
    """
    for path in _files(folders):
        try:
            named = [f"{part}.{key}" for part, settings in json.loads(path.read_text(encoding="utf-8")).items() for key in settings]
        except (OSError, ValueError, AttributeError, TypeError) as error:
            yield fix("configuration", f'{path} is not an object of objects ({error}); mend it, as in {{"PlanAgent": {{"model": "…"}}}}')
            continue
        yield ok("configuration", f"{path} sets {', '.join(named) or 'nothing'}")


def guidance(folders: list[Path]) -> Finding:
    """Whose guidance plan mode has. ``folders``: the configuration path, and behind it where the installation's own file lies."""
    for path in _files(folders):
        settings = _json(path).get("PlanMode")
        if isinstance(settings, dict) and "section" in settings:
            return ok("guidance", f"PlanMode.section of {path}")
    return fix("guidance", f"PlanMode.section is set nowhere; pip install --force-reinstall --no-deps {PACKAGE} brings one back")


def mcp_servers(folders: list[Path]) -> Iterator[Finding]:
    """Whether what speaks to the configured MCP servers is installed. Nothing where there are none; none is started."""
    for path in _files(folders):
        settings = _json(path).get("PlanAgent")
        if isinstance(settings, dict) and "mcp_servers" in settings:
            if settings["mcp_servers"]:
                there = find_spec("fastmcp") is not None
                said = f"{path} names MCP servers"
                yield ok("mcp", said) if there else fix("mcp", f"{said}; pip install '{PACKAGE}[mcp]' brings what speaks to them")
            return


def _files(folders: list[Path]) -> list[Path]:
    return [folder / CONFIG for folder in folders if (folder / CONFIG).is_file()]


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _config_folders() -> list[Path]:
    from jupyter_core.paths import jupyter_config_path

    return [Path(each) for each in jupyter_config_path()]


def _lab_folders() -> list[Path]:
    from jupyter_core.paths import jupyter_path

    return [Path(each) for each in jupyter_path("labextensions")]


def _page_config() -> dict[str, Any]:
    from jupyterlab.commands import get_app_dir
    from jupyterlab_server.config import get_page_config

    settings = str(Path(get_app_dir()) / "settings")
    page: dict[str, Any] = get_page_config([str(each) for each in _lab_folders()], app_settings_dir=settings)
    return page


def _json(path: Path) -> dict[str, Any]:
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return value if isinstance(value, dict) else {}
