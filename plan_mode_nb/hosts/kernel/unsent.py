"""Words that waited for the model and were not sent: never run unasked, never lost.

A killed kernel, a session from elsewhere, a steer that came too late can leave messages in the queue. A cell that says something else takes
them out and says so, in a form that can be run again; ``%agent`` alone sends them. All of it follows from the log, live and replayed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from plan_mode_nb.exceptions import CommandError
from plan_mode_nb.folds.inbox import Inbox, Message, inbox_fold
from plan_mode_nb.log.messages import text_of
from plan_mode_nb.log.session import Session
from plan_mode_nb.loop.agent import LoopAgent

if TYPE_CHECKING:
    from plan_mode_nb.hosts.kernel.host import KernelHost

WAITED = "Not sent: this waited from before, and the cell says something else."
TOO_LATE = "Not sent: the turn ended before it came to this."
NOTHING = "nothing waits to be sent; say something to the agent: %agent MESSAGE"
_SHOWN = 60


def waiting(host: KernelHost, session: Session) -> Inbox:
    """The queues as they are."""
    found: Inbox = host.on_agent(lambda: session.fold(inbox_fold(session.header)))
    return found


def said(messages: Iterable[Message]) -> list[Message]:
    """Those that a person said."""
    return [message for message in messages if message["source"].get("kind") == "user"]


def note(queues: Inbox) -> str:
    """One line on what a person said and no model has heard; "" where there is nothing."""
    messages = said((*queues.next_step, *queues.next_turn))
    if not messages:
        return ""
    count = "a message was" if len(messages) == 1 else f"{len(messages)} messages were"
    return f"{count} never sent ({_short(messages[0])}); %agent alone sends {'it' if len(messages) == 1 else 'them'}"


def before_turn(host: KernelHost, agent: LoopAgent, queues: Inbox) -> None:
    """A cell's own message is in the inbox, behind what had been in ``queues``: that is handed back. Main thread."""
    before = said((*queues.next_step, *queues.next_turn))
    if not before:
        return
    host.on_agent(lambda: agent.inbox.hand_back(queues))
    now = waiting(host, agent.session)
    # A cell that was run again after the kernel died in it is that message.
    asked = [message["content"] for message in (*now.next_step, *now.next_turn)]
    left = [message for message in before if message["content"] not in asked]
    if left:
        print(f"{WAITED} To send it:\n{_again(agent, left)}")


def refuse_nothing(host: KernelHost, agent: LoopAgent) -> None:
    """``%agent`` alone, where nothing waits. Main thread.

    Raises:
        CommandError: nothing does.
    """
    if not _next(waiting(host, agent.session)):
        raise CommandError(NOTHING)


def tell_sent(host: KernelHost, agent: LoopAgent) -> None:
    """``%agent`` alone: say what is about to be sent. Main thread."""
    print("Sending what waited: " + "\n".join(_words(message) for message in _next(waiting(host, agent.session))))


def after_turn(host: KernelHost, agent: LoopAgent, canceled: int) -> None:
    """The turn is over: hand back what it did not come to. ``canceled``: how many had been taken out before it began."""
    queues = waiting(host, agent.session)
    left = said(queues.canceled[canceled:])
    if left:
        print(f"{TOO_LATE} To send it:\n{_again(agent, left)}")
    more = note(queues)
    if more:
        print(f"{more[0].upper()}{more[1:]}.")


def _next(queues: Inbox) -> list[Message]:
    """What a turn takes that is for nothing newer."""
    return said((*queues.next_step, *queues.next_turn[:1]))


def _again(agent: LoopAgent, messages: Sequence[Message]) -> str:
    named = "" if agent.name == "main" else f" --as {agent.name}"
    cells = []
    for message in messages:
        words = _words(message)
        short = not named and "\n" not in words and words == words.strip()
        cells.append(f"%agent {words}" if short else f"%%agent{named}\n{words}")
    return "\n\n".join(cells)


def _words(message: Message) -> str:
    images = sum(block.get("type") == "image" for block in message["content"])
    with_images = f"(with {images} image{'' if images == 1 else 's'}) " if images else ""
    return f"{with_images}{text_of(message['content'])}"


def _short(message: Message) -> str:
    line = " ".join(_words(message).split())
    return line if len(line) <= _SHOWN else f"{line[: _SHOWN - 1]}…"
