"""A cell that asked before: after a restart, running it again continues the conversation, and the person should know."""

from __future__ import annotations

from msgspec import UNSET

from plan_mode_nb.log.session import Session


def asked_before(session: Session, source: str) -> str:
    """What to say when a cell with this source (sha256) opened a turn before the last restart of the kernel; "" when it did not."""
    seed = session.header.seed_length
    own = -1 if seed is UNSET else seed
    restarts = [event.seq for event in session.events if event.type == "session/end-seed" and event.seq != own]
    end = len(session) if session.owed else restarts[-1] if restarts else 0
    turns = [
        event.data["turn"]
        for event in session.events[:end]
        if event.type == "notebook/cell" and event.data.get("turn") is not None and event.data["source"] == source
    ]
    if not turns:
        return ""
    return (
        f"This cell opened turn {turns[-1]} of the conversation before the kernel was restarted; it now goes on from there. "
        "%session new starts over, and %session replay on runs recorded turns again without asking the model."
    )
