"""Plan mode for agents that live in notebooks."""

from __future__ import annotations

__version__ = "0.1.0"
