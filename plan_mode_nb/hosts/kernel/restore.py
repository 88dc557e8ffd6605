"""Finding the log again, once, before the first use: on disk, in journals, and in the page that has the notebook open."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Any

from plan_mode_nb.document.document import Document
from plan_mode_nb.document.reconcile import merge_documents
from plan_mode_nb.exceptions import HostError
from plan_mode_nb.hosts.kernel.attached import Attachment
from plan_mode_nb.hosts.kernel.interrupts import InterruptGate
from plan_mode_nb.hosts.kernel.pump import Wake, pump_for
from plan_mode_nb.hosts.kernel.refusals import one_line
from plan_mode_nb.hosts.kernel.tombstones import Tombstones
from plan_mode_nb.hosts.kernel.turn import active_turn

if TYPE_CHECKING:
    from plan_mode_nb.hosts.kernel.host import KernelHost

HELLO_S = 0.5
"""How long a first use waits for an open page to say hello when the file itself can be read; a page on this machine takes 0.05."""
REMOTE_HELLO_S = 1.5
"""The same where no file can be read: then the page is the only place that has the log."""
FETCH_S = 30.0
"""How long a page may take for one answer; it gives a million characters at a time."""
SILENT = "The open notebook began to send its conversation and went silent; run this cell again, or reload the page first."


class Known:
    """Satisfies attached.Known."""

    def __init__(self, host: KernelHost) -> None:
        self._host = host

    def sessions(self) -> Collection[str]:
        """Those that the pages get."""
        return self._host.sessions_to_carry().keys()

    def is_moved(self) -> bool:
        """Whether the file is gone from where it was."""
        path = self._host.front_end.notebook
        return path is not None and not path.exists()


class Restore:
    """Opens ``host.agents`` with everything that can be found. Headless runs start a new session: running twice must not double it."""

    def __init__(self, host: KernelHost) -> None:
        self._host = host
        self._attachment = Attachment(host.carrier, Known(host)) if host.carrier is not None else None
        self._tombstones = Tombstones()
        self._waiting: list[Callable[[], None]] = []

    @property
    def _kernel(self) -> Any:
        return getattr(self._host.shell, "kernel", None)

    def before_use(self) -> None:
        """Open the agents if they are not: from a magic, on the main thread. Waits for an open page, within bounds.

        Raises:
            HostError: the cell stands in another notebook than the one that this kernel writes to, or the page went silent.
        """
        if active_turn(self._host.shell) is not None:
            if not self._host.agents.is_open:
                raise HostError("A turn from before the extension was loaded again still runs; wait until its cell has ended.")
            return
        if self._host.agents.is_open:
            self._check_notebook()
            self._obey_tombstones()
            return
        kernel = self._kernel
        if not self._host.led.carries:
            self._open(Document())
            return
        if kernel is None:
            self._open(self._host.front_end.found())
            return
        if not kernel._allow_stdin:
            self._open(Document())
            return
        self._pump_until(lambda: self._host.carrier is None or bool(self._host.carrier.pages), self._patience())
        self._check_notebook()
        self._start_fetch()
        self._pump_until(self._is_fetched, FETCH_S, self._answers)
        if not self._is_fetched():
            self._do_without_page()
        self._open(self._found())

    def then(self, work: Callable[[], None]) -> None:
        """Do something once the agents are open; from a comm handler, which must not wait."""
        if self._host.agents.is_open:
            work()
            return
        self._waiting.append(work)
        self._start_fetch()
        self.on_page()

    def on_page(self) -> None:
        """A page said hello or sent a part of its log. Opens the agents when somebody waits for them and all is there."""
        if self._host.agents.is_open or not self._waiting or active_turn(self._host.shell) is not None:
            return
        self._start_fetch()
        if self._is_fetched():
            self._open(self._found())

    def _check_notebook(self) -> None:
        if self._attachment is not None:
            try:
                self._attachment.check(self._pump_until)
            except HostError as error:
                raise one_line(error) from None

    def _obey_tombstones(self) -> None:
        host, agents = self._host, self._host.agents
        answered = host.carrier.stripped if host.carrier is not None else ()
        gone = self._tombstones.gone(list(agents.sessions), answered, host.front_end.notebook)
        if gone:
            for agent in host.on_agent(lambda: agents.strip(gone)):
                host.watch(agent)
            agents.problems.append("the conversation was removed from this notebook (strip); a new one begins")

    def _patience(self) -> float:
        path = self._host.front_end.notebook
        return HELLO_S if path is not None and path.exists() else REMOTE_HELLO_S

    def _start_fetch(self) -> None:
        carrier = self._host.carrier
        page = carrier.page if carrier is not None else None
        if carrier is not None and page is not None and (page.length or page.has_more) and carrier.fetch is None:
            carrier.start_fetch(page, self._host.front_end.found())

    def _is_fetched(self) -> bool:
        carrier = self._host.carrier
        return carrier is None or carrier.fetch is None or carrier.fetch.done

    def _answers(self) -> int:
        carrier = self._host.carrier
        return 0 if carrier is None or carrier.fetch is None else carrier.fetch.answers

    def _do_without_page(self) -> None:
        """The page that is being read was closed. What it had saved is in the file; where that cannot be read, half a log must not go on.

        Raises:
            HostError: there is no file to read.
        """
        assert self._host.carrier is not None
        self._host.carrier.give_up_fetch()
        path = self._host.front_end.notebook
        if path is None or not path.exists():
            raise one_line(HostError(SILENT))

    def _found(self) -> Document:
        found = self._host.front_end.found()
        fetch = self._host.carrier.fetch if self._host.carrier is not None else None
        return found if fetch is None else merge_documents(found, fetch.document)

    def _open(self, document: Document) -> None:
        host = self._host
        host.on_agent(lambda: host.agents.open(document))
        for agent in host.agents.by_name.values():
            host.watch(agent)
        if host.carrier is not None:
            for session in host.sessions_to_carry().values():
                host.carrier.adopt(session, host.agents.images)
            host.push_plans()
            host.carrier.kick()
        waiting, self._waiting = self._waiting, []
        for work in waiting:
            work()

    def _pump_until(self, ready: Callable[[], bool], seconds: float, progress: Callable[[], int] = lambda: 0) -> None:
        """Handle comm messages inside this cell until ``ready``, or the time is up since there was last ``progress``. Ctrl-C ends it early,
        and then the cell."""
        if ready() or active_turn(self._host.shell) is not None:
            return
        interrupted = threading.Event()
        wake = Wake()

        def interrupt() -> None:
            interrupted.set()
            wake()

        gate = InterruptGate(interrupt)
        end, before = time.monotonic() + seconds, progress()
        try:
            with gate.installed(), pump_for(self._host.shell, wake, gate) as pump:
                while not ready() and not interrupted.is_set() and time.monotonic() < end:
                    pump.poll(0.05)
                    wake.clear()
                    if progress() != before:
                        end, before = time.monotonic() + seconds, progress()
        finally:
            wake.close()
        if interrupted.is_set():
            raise KeyboardInterrupt
