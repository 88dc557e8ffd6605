"""Settings of every test: in CI, properties are tried on the same examples each time, so that a run says something about the change."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import settings

settings.register_profile("ci", derandomize=True)
if os.environ.get("CI") == "true":
    settings.load_profile("ci")

BROWSER = Path(__file__).with_name("browser")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The tests with a browser come last: Playwright keeps an event loop running in this thread, beside which no other may run."""
    items.sort(key=lambda item: BROWSER in item.path.parents)
