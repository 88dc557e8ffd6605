"""``%session``: what the conversation is, where it is kept, and the few things that can be done with it."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from plan_mode_nb.exceptions import CommandError
from plan_mode_nb.folds.plan import APPROVED_PLAN
from plan_mode_nb.render.lineage import child_line, descendants, is_child

if TYPE_CHECKING:
    from plan_mode_nb.hosts.kernel.host import KernelHost

SESSION_HELP = """The notebook's conversation.

  %session                 status
  %session log [ID]        a readable timeline, also of a child agent's session
  %session compact [WORDS] replace the older part of the conversation, for the model, by a summary that it writes; WORDS say
                           what to heed. The log keeps everything: %session fork SEQ goes back to before it
  %session new             start a new session; the old one stays in the notebook
  %session fork [SEQ]      go on from an earlier event in a new session
  %session use ID          go back to another session of this notebook
  %session replay on|off   after a restart: run recorded turns again, as their cells run, without asking the model
  %session plan FILE       write the last approved plan to a file
  %session export FILE     write the log as deepseek-harness JSONL (.jsonl or .jsonl.zstd)
  %session import FILE     add a deepseek-harness or notebook session to this notebook and go on with it
"""
REPLAYED = "Replayed: the recorded session that follows is the one from here on."
SUBCOMMANDS = ("log", "compact", "new", "fork", "use", "replay", "plan", "export", "import")


def run_session(host: KernelHost, text: str) -> str:
    """Run one subcommand; returns what to print.

    Raises:
        CommandError: the words are off; says what to type instead.
    """
    first, _, rest_of_line = text.strip().partition(" ")
    if first == "compact":
        from plan_mode_nb.hosts.kernel.compacting import compact

        # Words for the model stand as they were typed, quotes included.
        return compact(host, rest_of_line.strip())
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise CommandError(f"%session: {error}; quote file names that hold spaces") from None
    if not words:
        from plan_mode_nb.hosts.kernel.status import status

        return status(host)
    name, rest = words[0], words[1:]
    action = _ACTIONS.get(name)
    if action is None:
        raise CommandError(f"%session has no {name!r}; it has {', '.join(SUBCOMMANDS)}")
    return action(host, rest)


def _one(words: list[str], what: str) -> str:
    if len(words) != 1:
        raise CommandError(f"%session {what}")
    return words[0]


def _none(words: list[str], name: str) -> None:
    if words:
        raise CommandError(f"%session {name} takes nothing more")


def _log(host: KernelHost, words: list[str]) -> str:
    if len(words) > 1:
        raise CommandError("%session log takes nothing more, or the id of a session of this notebook")
    from plan_mode_nb.log.codec import decode_all
    from plan_mode_nb.render.transcript import timeline

    main = host.agent().session.id
    stored = host.agents.stored(words[0] if words else main)
    if stored is None:
        raise CommandError(f"this notebook has no session {words[0]!r}; %session lists those that it has")
    children = [f"child {child.header.id}  {child_line(child)}" for child in descendants(stored.header.id, host.agents.all_stored)]
    return "\n".join([timeline(decode_all(list(stored.lines))) or "nothing has happened yet", *children])


def _new(host: KernelHost, words: list[str]) -> str:
    _none(words, "new")
    if host.led.is_replaying:
        return REPLAYED
    host.agent()
    agent = host.on_agent(lambda: host.agents.start_new("main"))
    host.watch(agent)
    return "A new session has begun. The one before stays in the notebook: %session shows its id."


def _fork(host: KernelHost, words: list[str]) -> str:
    if len(words) > 1 or (words and not words[0].isdigit()):
        raise CommandError("%session fork takes the number of the last event to keep, such as %session fork 41")
    if host.led.is_replaying:
        return REPLAYED
    session = host.agent().session
    length = int(words[0]) + 1 if words else len(session)
    if length > len(session):
        raise CommandError(f"the session ends at event {len(session) - 1}; fork at that or an earlier one")
    agent = host.on_agent(lambda: host.agents.fork("main", length))
    host.watch(agent)
    return f"Going on in a new session from event {length - 1}. The one before stays in the notebook."


def _use(host: KernelHost, words: list[str]) -> str:
    id = _one(words, "use takes the id of a session of this notebook; %session lists them")
    if host.led.is_replaying:
        return REPLAYED
    host.agent()
    found = host.agents.stored(id)
    if found is not None and is_child(found.header):
        raise CommandError(f"session {id} is a child's, which ended with its task; %session log {id} shows it")
    agent = host.on_agent(lambda: host.agents.use("main", id))
    host.watch(agent)
    return f"Going on with session {id}."


def _replay(host: KernelHost, words: list[str]) -> str:
    from plan_mode_nb.hosts.kernel.replaying import Replaying

    wanted = _one(words, "replay takes on or off")
    if wanted not in ("on", "off"):
        raise CommandError("%session replay takes on or off")
    if not host.led.carries:
        return "This whole kernel replays: nothing to switch."
    if wanted == "off":
        if host.led.is_replaying:
            host.led.close()
        return "Replay is off: cells are live."
    if not host.led.is_replaying:
        try:
            host.led = Replaying(host)
        except CommandError as error:
            # A notebook that begins with this cell must still run where there is nothing yet.
            return f"Replay stays off: {error}."
    left = host.led.turns_left
    return f"Replay is on: the {left} recorded turn{'' if left == 1 else 's'} run again as their cells do, and no model is asked."


def _plan(host: KernelHost, words: list[str]) -> str:
    path = Path(_one(words, "plan takes a file name, such as %session plan plan.md")).expanduser()
    plan = host.agent().session.fold(APPROVED_PLAN)
    if plan is None:
        raise CommandError("no plan was approved in this session yet")
    try:
        path.write_text(plan, encoding="utf-8", newline="")
    except OSError as error:
        raise CommandError(f"{path} cannot be written ({error.strerror}); name another file") from None
    return f"The approved plan is in {path}."


def _export(host: KernelHost, words: list[str]) -> str:
    from plan_mode_nb.store.dsh_home import images_named, keep_images
    from plan_mode_nb.store.jsonl import save_jsonl

    path = Path(_one(words, "export takes a file name, such as %session export session.jsonl")).expanduser()
    session = host.agent().session
    save_jsonl(path, session.header, session.lines)
    kept = host.composition.seams.attachments
    images = {digest: kept[digest] for digest in images_named(session) if digest in kept}
    said = f"{len(session)} events are in {path}."
    return f"{said} The images that it shows are in {keep_images(images, path)}." if images else said


def _import(host: KernelHost, words: list[str]) -> str:
    from plan_mode_nb.document.document import StoredSession
    from plan_mode_nb.hosts.kernel import unsent
    from plan_mode_nb.store.dsh_home import images_named, missing_images
    from plan_mode_nb.store.sources import images_of, open_any

    path = Path(_one(words, "import takes a file name, such as %session import session.jsonl")).expanduser()
    found = open_any(path)
    host.agent()
    agent = host.on_agent(lambda: host.agents.take_in("main", StoredSession(found.header, found.lines)))
    kept = host.composition.seams.attachments
    kept.update(images_of(path, agent.session))
    missing = missing_images(images_named(agent.session), kept)
    host.watch(agent)
    said = f"Session {agent.session.id} with {len(found.lines)} events is now this notebook's."
    never_sent = unsent.note(unsent.waiting(host, agent.session))
    return "\n".join([said, *(f"note: {each}" for each in (*found.problems, missing, never_sent) if each)])


_ACTIONS: dict[str, Callable[[KernelHost, list[str]], str]] = {
    "log": _log,
    "new": _new,
    "fork": _fork,
    "use": _use,
    "replay": _replay,
    "plan": _plan,
    "export": _export,
    "import": _import,
}
