"""The kernel's side of the lab extension: a comm with a fixed id, registered and never opened, so that no client can claim or lose it.

Pages read it from the kernel's iopub stream and answer by id. Every send and every handler is on the main thread.
"""

from __future__ import annotations

import itertools
import logging
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, Protocol

from msgspec import Struct

from plan_mode_nb.document.document import Document
from plan_mode_nb.folds.plan import PlanState
from plan_mode_nb.hosts.kernel.fetching import Fetch
from plan_mode_nb.hosts.kernel.outbox import Outbox
from plan_mode_nb.hosts.kernel.pieces import Pieces
from plan_mode_nb.log.session import Session

COMM = "plan_mode_nb"
_logger = logging.getLogger(__name__)


class CarrierHost(Protocol):
    """What the carrier carries."""

    def sessions_to_carry(self) -> Mapping[str, Session]:
        """The live sessions by id; empty before the log was restored."""

    def agent_sessions(self) -> Mapping[str, str]:
        """Agent name -> session id, for the document's index."""

    def agent_choices(self) -> Mapping[str, int]:
        """Agent name -> how often it was sent to another session."""

    def images(self) -> Mapping[str, str]:
        """Attachment id -> base64."""

    def push_plans(self) -> None:
        """Tell the pages again what plan mode is in each session."""

    def on_select(self, active: bool) -> None:
        """A chip or palette selected plan mode, or left it."""

    def on_renamed(self, before: str, now: str) -> None:
        """The notebook has another path, as the server has it."""

    def on_page(self) -> None:
        """A page said hello, or a fetch ended: what was waited for may be there now."""


class Page(Struct, frozen=True):
    """A front end that said hello: its connection, the notebook's path as it has it, and how much of which session it holds.

    ``has_more``: its notebook holds other sessions than that.
    """

    client: str
    path: str
    session: str
    length: int
    has_more: bool = False


def _place(path: str) -> str:
    """A server's path without the drive's name that collaboration puts before it (``RTC:``)."""
    return path.partition(":")[2] or path


class Carrier:
    """Create it on the main thread; :meth:`close` takes the comm out again."""

    def __init__(self, shell: Any, host: CarrierHost) -> None:
        self._shell = shell
        self._host = host
        self._outbox = Outbox()
        self._pieces = Pieces()
        self.home: str | None = None
        self.notebook: str | None = None
        self._questions = itertools.count(1)
        self.pages: dict[str, Page] = {}
        self.fetch: Fetch | None = None
        self._one_way = not shell.kernel._allow_stdin
        self._comm = self._register()
        self._shell.events.register("pre_run_cell", self._at_cell)
        self._at_cell()
        self.send({"op": "hello"})

    def _register(self) -> Any:
        import comm
        from comm import get_comm_manager

        # A client that runs a notebook by itself (nbclient) only hears comms that were opened, and answers none.
        opened = {"primary": True, "data": {"op": "hello"}} if self._one_way else {"primary": False}
        channel = comm.create_comm(target_name=COMM, comm_id=COMM, **opened)
        get_comm_manager().register_comm(channel)
        channel.on_msg(self._receive)
        return channel

    def close(self) -> None:
        """Unregister: nothing of the carrier stays in the kernel."""
        from comm import get_comm_manager

        self._shell.events.unregister("pre_run_cell", self._at_cell)
        get_comm_manager().unregister_comm(self._comm)

    def _at_cell(self, info: object = None) -> None:
        """The connection that runs the cell is where its log belongs. A selection from another window does not move it."""
        self._pieces.cell_begins(getattr(info, "cell_id", None))
        header = self._shell.parent_header.get("header", {})
        if header.get("msg_type") == "execute_request":
            self.home = header.get("session")

    @property
    def page(self) -> Page | None:
        """The page that writes: the one that ran the last cell, else the last that said hello; of the kernel's notebook in any case."""
        mine = {client: page for client, page in self.pages.items() if self.is_of_notebook(page)}
        return mine.get(self.home or "") or next(reversed(mine.values()), None)

    def is_of_notebook(self, page: Page) -> bool:
        """Whether a page shows the notebook that this kernel writes to; any does while that is open."""
        return self.notebook is None or _place(page.path) == _place(self.notebook)

    @property
    def runs_once(self) -> bool:
        """Whether a client runs the notebook by itself, with nobody to ask; it is sent everything and answers nothing."""
        return self._one_way

    @property
    def stripped(self) -> Collection[str]:
        """Ids of sessions that a page refused because they were stripped."""
        return self._outbox.stripped

    def send(self, message: Mapping[str, Any]) -> None:
        """To every page; those that are not named in ``to`` ignore it."""
        self._comm.send(dict(message))

    def kick(self) -> None:
        """Send what the page lacks, if nothing is in flight; to a headless client, everything."""
        page = self.page
        if page is None and not self._one_way:
            return
        message = self._next(page.client if page is not None else "")
        if message is not None and page is not None and self.notebook is None:
            self.notebook = page.path
        while message is not None:
            self.send(message)
            if not self._one_way:
                return
            self._outbox.acknowledge({**message, "length": message["start"] + len(message["events"])})
            message = self._next("")

    def _next(self, to: str) -> dict[str, Any] | None:
        chosen = dict(self._host.agent_choices())
        names = {"agents": dict(self._host.agent_sessions()), **({"chosen": chosen} if chosen else {})}
        return self._outbox.next_append(self._host.sessions_to_carry(), to, time.monotonic(), self._host.images(), names)

    @property
    def is_settled(self) -> bool:
        """Whether the page holds everything; true where there is none that answers."""
        return (self.page is None and not self._one_way) or self._outbox.is_settled(self._host.sessions_to_carry(), self._host.images())

    def in_output(self, name: str, session: Session, cell: str | None, children: Iterable[Session] = ()) -> dict[str, Any]:
        """What the output of a turn that is over has to carry, by mime type: nothing where a page has the log. ``children``: theirs too.

        A client that runs a notebook by itself may keep the log or not; it does not say.
        """
        if self.page is not None:
            return {}
        chosen = self._host.agent_choices().get(name, 0)
        return self._pieces.take(name, session, cell, self._host.images(), chosen=chosen, runs_once=self._one_way, children=children)

    def give_up(self) -> None:
        """The page did not answer: it is gone (closed, reloaded). A reloaded one says hello again."""
        flight = self._outbox.in_flight
        if flight is not None:
            self.pages.pop(flight.to, None)

    def adopt(self, session: Session, images: Collection[str] = ()) -> None:
        """A session was opened: what the open page already holds of it need not be sent, nor of ``images`` (by sha256)."""
        self._outbox.images.likely = frozenset(images)
        page = self.page
        if page is not None and page.session == session.id:
            self._outbox.page_holds(session.id, min(page.length, len(session)))

    def push_plan(self, session: Session, state: PlanState) -> None:
        """Tell every page what plan mode is."""
        self.send({"op": "plan", "active": state.active, "pending": state.pending, "session": session.id})

    def _receive(self, message: Mapping[str, Any]) -> None:
        data = message["content"]["data"]
        client = message["header"].get("session", "")
        if not isinstance(data, dict):
            return
        handler: Callable[[str, dict[str, Any]], None] | None = {
            "hello": self._on_hello,
            "ack": self._on_ack,
            "page": self._on_page,
            "select": self._on_select,
        }.get(str(data.get("op")))
        if handler is None:
            _logger.warning("plan_mode_nb: a page sent the unknown op %r", data.get("op"))
            return
        handler(client, data)

    def _on_hello(self, client: str, data: dict[str, Any]) -> None:
        session, length = data.get("session"), data.get("length")
        session, length = session if isinstance(session, str) else "", length if isinstance(length, int) else 0
        page = Page(client, str(data.get("path", "")), session, length, data.get("more") is True)
        before = self.pages.pop(client, None)
        self.pages[client] = page
        if before is not None and before.path != page.path and self.notebook is not None and self.is_of_notebook(before):
            self.notebook = page.path  # renamed, or saved as another file: the log follows the notebook that is open
            self._host.on_renamed(before.path, page.path)
        if not self.is_of_notebook(page):
            return
        ours = self._host.sessions_to_carry().get(page.session)
        if ours is not None:
            self._outbox.page_holds(page.session, min(page.length, len(ours)))
        self._host.push_plans()
        self._host.on_page()
        self.kick()

    def _on_ack(self, client: str, data: dict[str, Any]) -> None:
        if client not in self.pages:
            self.send({"op": "hello"})  # given up, it was only slow: whoever is there says so again
        if not self._outbox.acknowledge(data):
            return
        if self._outbox.has_diverged(str(data["session"])):
            _logger.warning(
                "plan_mode_nb: the open notebook holds another continuation of session %s; both are kept when it is saved", data["session"]
            )
        self._host.on_page()
        self.kick()

    def _on_select(self, client: str, data: dict[str, Any]) -> None:
        page = self.pages.get(client)
        if page is not None and not self.is_of_notebook(page):
            self._host.push_plans()
        elif isinstance(data.get("active"), bool):
            self._host.on_select(data["active"])
            self.kick()

    # -- reading a page's log

    def start_fetch(self, page: Page, held: Document) -> None:
        """Ask a page for its sessions and images, one answer after the other; ``on_page`` is called at each. ``held``: see Fetch."""
        self.fetch = Fetch(page.client, page.session, held, self.send, self._questions)
        self.fetch.ask()

    def give_up_fetch(self) -> None:
        """The page that is being read went silent: it is gone."""
        if self.fetch is not None:
            self.pages.pop(self.fetch.to, None)
            self.fetch = None

    def _on_page(self, client: str, data: dict[str, Any]) -> None:
        if self.fetch is not None and self.fetch.take(client, data):
            self._host.on_page()
