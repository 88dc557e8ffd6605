"""Which notebook this kernel writes to: one. A second one attached to it is refused with a sentence (log.md, Who writes it).

Pages name their notebook by the server's path, and never say that they close. So before another path is refused, those that show the first
are asked whether they are still there.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Protocol

from plan_mode_nb.exceptions import HostError
from plan_mode_nb.hosts.kernel.carrier import Carrier, Page

ANSWER_S = 0.5
"""How long a page has for its hello; one on this machine takes 0.05."""
Wait = Callable[[Callable[[], bool], float], None]
"""Handle comm messages until something is so, or the seconds are over."""


class Known(Protocol):
    """What the kernel itself knows."""

    def sessions(self) -> Collection[str]:
        """Ids of its sessions that hold anything."""

    def is_moved(self) -> bool:
        """Whether the file that it began with is gone from where it was; False where it cannot see."""


class Attachment:
    """Asked before everything that a cell does with an agent, on the main thread."""

    def __init__(self, carrier: Carrier, known: Known) -> None:
        self._carrier = carrier
        self._known = known
        self._silent: set[str | None] = set()

    def check(self, wait: Wait) -> None:
        """Settle which notebook the running cell stands in.

        Raises:
            HostError: it is another one than this kernel writes to.
        """
        carrier = self._carrier
        if not carrier.pages:
            return
        self._ask_who_runs_it(wait)
        page = carrier.pages.get(carrier.home or "")
        if page is None or carrier.is_of_notebook(page):
            carrier.notebook = carrier.notebook or (page.path if page is not None else None)
            return
        if self._may_move(page, wait):
            carrier.notebook = page.path
            return
        raise HostError(
            f"This kernel keeps the conversation of {carrier.notebook}, and a kernel writes to one notebook; choose a kernel of its own "
            f"for {page.path} (Kernel menu, Change Kernel), or restart this one."
        )

    def _may_move(self, page: Page, wait: Wait) -> bool:
        """Whether it is the same notebook under another name, or the first to hold anything."""
        mine = self._known.sessions()
        if not mine:
            return True
        return not self._is_shown(wait) and (page.session in mine or self._known.is_moved())

    def _ask_who_runs_it(self, wait: Wait) -> None:
        """A notebook that had nothing to do with plan mode so far keeps silent until it is asked; a console always does."""
        carrier, home = self._carrier, self._carrier.home
        if home in carrier.pages or home in self._silent:
            return
        carrier.send({"op": "hello"})
        wait(lambda: home in carrier.pages, ANSWER_S)
        if home not in carrier.pages:
            self._silent.add(home)

    def _is_shown(self, wait: Wait) -> bool:
        """Whether a page still shows the notebook that this kernel writes to."""
        carrier = self._carrier
        for client in [client for client, page in carrier.pages.items() if carrier.is_of_notebook(page)]:
            del carrier.pages[client]
        carrier.send({"op": "hello"})
        wait(lambda: any(map(carrier.is_of_notebook, carrier.pages.values())), ANSWER_S)
        return any(map(carrier.is_of_notebook, carrier.pages.values()))
