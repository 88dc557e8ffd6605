"""Settings of every test: in CI, properties are tried on the same examples each time, so that a run says something about the change."""

from __future__ import annotations

import os

from hypothesis import settings

settings.register_profile("ci", derandomize=True)
if os.environ.get("CI") == "true":
    settings.load_profile("ci")
