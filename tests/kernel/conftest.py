"""Which kernels the tests run on: this interpreter's always, others where the environment names a Python that has them."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from .driver import Kernel, Route

HERE = Path(__file__).resolve().parent
STARTUP = "import kernel_bodies as B\nfrom kernel_bodies import *"

# name -> variable that holds the path of a Python with that ipykernel
OTHERS = {"6.29": "PLAN_MODE_NB_KERNEL_629", "7.3": "PLAN_MODE_NB_KERNEL_73"}
ELSEWHERE = "PLAN_MODE_NB_ELSEWHERE"
"""Somebody else's environment: pytest 8 with xdist, and papermill."""


def _python(name: str) -> str:
    return sys.executable if name == "current" else named_python(OTHERS[name], f"ipykernel {name}")


def named_python(variable: str, having: str) -> str:
    """The Python that a variable of the environment names; the test is skipped where it names none, and fails in CI."""
    python = os.environ.get(variable)
    if python:
        return python
    why = f"{variable} does not name a Python with {having}"
    if os.environ.get("CI") == "true":
        pytest.fail(why)
    pytest.skip(why)


@pytest.fixture(scope="module", params=["current", *OTHERS])
def python(request: pytest.FixtureRequest) -> str:
    """A Python whose ipykernel is to be tested."""
    return _python(request.param)


@pytest.fixture(scope="module", params=["current-main", "current-subshell", "6.29-main", "7.3-main", "7.3-subshell"])
def kernel(request: pytest.FixtureRequest) -> Iterator[Kernel]:
    """A running kernel, shared by the tests of a module, for each version and each route that comm messages can take."""
    name, route = request.param.split("-")
    with start(_python(name), route) as kernel:
        yield kernel


@pytest.fixture
def fresh() -> Iterator[Callable[..., Kernel]]:
    """Start kernels that the test may break: ``fresh(python)``."""
    kernels: list[Kernel] = []

    def make(python: str, route: Route = "main") -> Kernel:
        kernels.append(start(python, route))
        return kernels[-1]

    yield make
    for kernel in kernels:
        kernel.close()


def start(python: str, route: Route = "main") -> Kernel:
    """A kernel with the bodies of turns imported."""
    return Kernel(python, route=route, path=HERE, startup=STARTUP)
