"""The setting ``PlanAgent.mcp_servers`` as values. It has the shape of other tools' configuration files; what is wrong is one sentence."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from plan_mode_nb.agent.mcp import Address, Program, Server
from plan_mode_nb.exceptions import ConfigError

SETTING: Final = "PlanAgent.mcp_servers"
_OUTER: Final = "mcpServers"
_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,32}")
_VARIABLE: Final = re.compile(r"\$\{(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?::-(?P<default>[^}]*))?\}")
_PROGRAM: Final = ("command", "args", "env", "cwd")
_ADDRESS: Final = ("url", "headers")
_BOTH: Final = ("type", "disabled")
_TYPES: Final = {"stdio": _PROGRAM, "http": _ADDRESS, "streamable-http": _ADDRESS, "sse": _ADDRESS}


def configured(setting: object, environ: Mapping[str, str]) -> tuple[Server, ...]:
    """The servers in the setting's order; those that are ``disabled`` are left out.

    ``${NAME}`` and ``${NAME:-otherwise}`` in any text are replaced from ``environ``, so that no secret has to stand in a file.

    Raises:
        ConfigError: one sentence that names the server and the key.
    """
    if not isinstance(setting, Mapping):
        raise ConfigError(f'{SETTING} must be an object of servers by name, such as {{"shop": {{"command": "shop-mcp"}}}}')
    entries = setting[_OUTER] if set(setting) == {_OUTER} and _is_outer(setting[_OUTER]) else setting
    return tuple(server for name, entry in entries.items() if (server := _server(name, entry, environ)) is not None)


def _is_outer(inner: object) -> bool:
    """Whether the whole of another tool's file was given. A server could bear that name; its entry holds no objects."""
    return isinstance(inner, Mapping) and all(isinstance(each, Mapping) for each in inner.values())


def _server(name: object, entry: object, environ: Mapping[str, str]) -> Server | None:
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise ConfigError(f"{SETTING}: {name!r} cannot name a server; use up to 32 letters, digits, '_' and '-'")
    where = f"{SETTING}: the server {name!r}"
    if not isinstance(entry, Mapping):
        raise ConfigError(f"{where} must be an object with a command or a url")
    keys = _keys(where, entry)
    if entry.get("disabled"):
        return None
    if keys is _PROGRAM:
        args, env = _texts(where, entry, "args", environ), _named(where, entry, "env", environ)
        cwd = _text(where, "cwd", entry["cwd"], environ) if entry.get("cwd") is not None else None
        return Server(name, Program(_text(where, "command", entry["command"], environ), args, env, cwd))
    url = _text(where, "url", entry["url"], environ)
    if not url.startswith(("http://", "https://")):
        raise ConfigError(f"{where} has the url {url!r}; it must begin with http:// or https://")
    return Server(name, Address(url, _named(where, entry, "headers", environ)))


def _keys(where: str, entry: Mapping[Any, Any]) -> tuple[str, ...]:
    """Which kind of server it is, by its keys; all of them are known, and fit together."""
    if ("command" in entry) == ("url" in entry):
        raise ConfigError(f"{where} must have either a command or a url")
    keys = _PROGRAM if "command" in entry else _ADDRESS
    unknown = next((key for key in entry if key not in (*keys, *_BOTH)), None)
    if unknown is not None:
        raise ConfigError(f"{where} has no key {unknown!r}; it may have {', '.join((*keys, *_BOTH))}")
    kind = entry.get("type")
    if kind is not None and (not isinstance(kind, str) or _TYPES.get(kind) is not keys):
        fit = ", ".join(name for name, of in _TYPES.items() if of is keys)
        raise ConfigError(f"{where} has the type {kind!r}; with a {keys[0]} it can be {fit}")
    if not isinstance(entry.get("disabled", False), bool):
        raise ConfigError(f"{where}: `disabled` must be true or false")
    return keys


def _text(where: str, key: str, value: object, environ: Mapping[str, str]) -> str:
    if not isinstance(value, str) or not value:
        raise ConfigError(f"{where}: `{key}` must be a text that is not empty")
    return _expanded(where, key, value, environ)


def _texts(where: str, entry: Mapping[Any, Any], key: str, environ: Mapping[str, str]) -> tuple[str, ...]:
    values = entry.get(key)
    if values is None:
        return ()
    if not isinstance(values, list | tuple) or not all(isinstance(each, str) for each in values):
        raise ConfigError(f"{where}: `{key}` must be a list of texts")
    return tuple(_expanded(where, key, each, environ) for each in values)


def _named(where: str, entry: Mapping[Any, Any], key: str, environ: Mapping[str, str]) -> dict[str, str]:
    values = entry.get(key)
    if values is None:
        return {}
    if not isinstance(values, Mapping) or not all(isinstance(name, str) and isinstance(value, str) for name, value in values.items()):
        raise ConfigError(f"{where}: `{key}` must be an object of texts")
    return {name: _expanded(where, key, value, environ) for name, value in values.items()}


def _expanded(where: str, key: str, text: str, environ: Mapping[str, str]) -> str:
    def value(found: re.Match[str]) -> str:
        name, default = found["name"], found["default"]
        if name in environ:
            return environ[name]
        if default is None:
            raise ConfigError(f"{where}: `{key}` names the environment variable {name}, which is not set; set it, or write ${{{name}:-…}}")
        return str(default)

    return _VARIABLE.sub(value, text)
