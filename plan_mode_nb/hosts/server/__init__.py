"""The server extension: a save hook that lets no saved copy of a notebook erase events (log.md, Who writes it, 3)."""

from __future__ import annotations

from typing import Any


def _jupyter_server_extension_points() -> list[dict[str, str]]:
    """jupyter_server asks for this by name."""
    return [{"module": "plan_mode_nb.hosts.server"}]


def _load_jupyter_server_extension(app: Any) -> None:
    """jupyter_server calls this by name with its application."""
    from plan_mode_nb.hosts.server.hook import SaveHook

    hook = SaveHook(app.session_manager, app.log)
    app.contents_manager.register_pre_save_hook(hook.before_save)
    app.contents_manager.register_post_save_hook(hook.after_save)
