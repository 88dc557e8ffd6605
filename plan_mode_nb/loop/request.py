"""A step's request: derived from the log, and proven to be."""

from __future__ import annotations

from typing import Any, Literal

from msgspec.structs import replace

from plan_mode_nb.agent.model import Model, Request
from plan_mode_nb.agent.prompt import PromptContext
from plan_mode_nb.agent.seams import Seams, stable_length
from plan_mode_nb.exceptions import InvariantError
from plan_mode_nb.folds.context import CONTEXT
from plan_mode_nb.folds.header import HEADER, HEADER_SEQ, canonical
from plan_mode_nb.folds.history import HISTORY, message_of
from plan_mode_nb.log.codec import decode
from plan_mode_nb.log.events import Replace
from plan_mode_nb.log.session import Session
from plan_mode_nb.log.vocabulary import draft

Check = Literal["new", "full"]
"""How much of a request is compared with the log's text: the header and the messages new since the last step, or all of it."""


def log_header(session: Session, seams: Seams, model: Model, context: PromptContext, *, resumed: bool) -> None:
    """Append a ``request/header`` when this step's differs from the last one, or when this is the agent's first after reopening."""
    system = seams.redactions.text(seams.sections.assemble(context))
    header = canonical({"config": dict(model.config), "system": system, "tools": seams.tools.schemas()})
    last = session.fold(HEADER)
    if last is None or resumed or header != last:
        reason = "initial" if last is None else "resume" if resumed else "change"
        session.append(draft("request/header", {"header": header, "reason": reason}))


def log_context(session: Session, model: Model, window: int | None) -> None:
    """Append a ``request/context`` when provider, model or what the model can read differ from the last one (dsh's rule).

    Until a window is known there is nothing to say.
    """
    last = session.fold(CONTEXT).said
    config = model.config
    said = {"provider": config["provider"], "model": config["model"], **({} if window is None else {"contextWindow": window})}
    if said != last and not (last is None and window is None):
        session.append(draft("request/context", said))


def derive(session: Session, seams: Seams, context: PromptContext | None = None) -> Request:
    """The request that the log says comes next. ``context``: where its prompt was assembled, to tell how much of it is stable."""
    header = session.fold(HEADER)
    if header is None:
        raise InvariantError("a request needs a request/header before it")
    system = header.get("system", "")
    return Request(
        config=header["config"],
        system=system,
        tools=header.get("tools", []),
        messages=session.fold(HISTORY),
        images=seams.attachments,
        stable=None if context is None else stable_length(system, seams, context),
    )


def derive_again(request: Request, session: Session) -> Request:
    """An open step's request once its history was replaced: the header it had, and the messages as they are now.

    Raises:
        InvariantError: it is not what the log says.
    """
    again = replace(request, messages=session.fold(HISTORY))
    prove(again, session, 0, "full")
    return again


def prove(request: Request, session: Session, since: int, check: Check) -> None:
    """Compare a request with what the log's own lines say: its header, and the messages from event ``since`` on (``full``: all).

    What was in memory may have been changed by a careless listener; the lines cannot.

    Raises:
        InvariantError: they differ; names the first message that does.
    """
    events = [decode(line) for line in session.lines[0 if check == "full" else since :]]
    if check == "new" and any(isinstance(event.surface_op, Replace) for event in events):
        return prove(request, session, 0, "full")
    _compare_header(request, session)
    expected = _surface_messages(events) if check == "full" else [m for m in map(message_of, events) if m is not None]
    offset = len(request.messages) - len(expected)
    if offset < 0 or (check == "full" and offset):
        raise InvariantError(f"the request holds {len(request.messages)} messages, the log says {len(expected)}")
    for index, message in enumerate(expected):
        if request.messages[offset + index] != message:
            raise InvariantError(f"message {offset + index + 1} of the request is not what the log says: {message.get('id')}")
    return None


def _compare_header(request: Request, session: Session) -> None:
    seq = session.fold(HEADER_SEQ)
    if seq is None:
        raise InvariantError("a request needs a request/header before it")
    header = canonical(decode(session.lines[seq]).data["header"])
    sent = {"config": dict(request.config), "system": request.system, "tools": list(request.tools)}
    said = {"config": header["config"], "system": header.get("system", ""), "tools": header.get("tools", [])}
    for key, value in said.items():
        if sent[key] != value:
            raise InvariantError(f"the request's {key} is not what the last request/header says")


def _surface_messages(events: list[Any]) -> list[dict[str, Any]]:
    state = HISTORY.start()
    for event in events:
        if event.type in HISTORY.types:
            state = HISTORY.step(state, event)
    return list(HISTORY.value(state))
