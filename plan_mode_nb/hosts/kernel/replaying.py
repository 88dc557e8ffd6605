"""``%session replay on``: after a restart, Run All runs the recorded turns again without asking the model, so that what they made exists.

The conversation does not grow meanwhile: each recorded session is led along in a copy that is kept nowhere. At the first cell, or the first
event, that is not as recorded, the session is forked there and everything goes on live. A notebook cannot switch this on by itself, and
what runs, runs under the present sandbox mode and approval policy.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from plan_mode_nb.agent.commands import CommandCall, CommandResult
from plan_mode_nb.agent.registry import Undo
from plan_mode_nb.exceptions import CommandError, ReplayError, TurnError
from plan_mode_nb.folds.policies import SANDBOX_MODE
from plan_mode_nb.hosts.front_end import People
from plan_mode_nb.hosts.kernel.agents import unix_milliseconds
from plan_mode_nb.hosts.kernel.led import AlongARecording, Kind, NotLed, button
from plan_mode_nb.log.session import Session
from plan_mode_nb.loop.agent import LoopAgent
from plan_mode_nb.replay.matching import Matching, Place, read_children, read_sessions
from plan_mode_nb.replay.replay import Replay, Rules

if TYPE_CHECKING:
    from plan_mode_nb.hosts.kernel.host import KernelHost


_AXES = ("sandbox/mode", "approval/policy")
"""What a recording must not set here: the person does, by the cells that they run."""


class Replaying(AlongARecording, NotLed):
    """Satisfies Led. Agent ``main`` is replayed, every session that it had; other agents are live."""

    is_replaying = True

    def __init__(self, host: KernelHost) -> None:
        """Read what was restored; nothing runs yet.

        Raises:
            CommandError: there is nothing to replay, or the conversation has gone on in this kernel.
        """
        super().__init__(host)
        main = host.agent().session
        if host.agents.restored.get(main.id) != len(main):
            raise CommandError("replay is for what was recorded before this kernel started; restart the kernel, then %session replay on")
        document = host.agents.document()
        sessions, _ = read_sessions(document)
        others = {id for name, id in document.agents.items() if name != "main"}
        parts = [Place(id, part) for id, session in sessions.items() if id not in others for part in session.parts]
        parts.sort(key=lambda place: place.part.time)
        if not parts:
            raise CommandError("nothing of this conversation was said in a cell, so there is nothing to replay")
        self.replay = Replay(
            Matching([], sessions, document.agents, {}, children=read_children(document)),
            Rules(approves=False, feeds=lambda command: command == "plan", plays=lambda type: type not in _AXES),
            stop=button(host.shell),
            places=[(None, place) for place in parts],
        )
        self._people = self.replay.people(lambda: (host.front_end.people, host.front_end.people))
        self._shadows: dict[str, LoopAgent] = {}
        self._undo: Undo = host.on_agent(lambda: self.replay.install(host.composition.seams))
        self._began: Place | None = None

    @property
    def turns_left(self) -> int:
        """Recorded turns that have not run yet."""
        return self.replay.turns_left

    @property
    def people(self) -> People:
        """The recorded person for reviews and questions, the present one for approvals."""
        return self._people

    def perform(self, name: str, act: Callable[[LoopAgent], Any]) -> Any:
        """Run a cell's act as recorded; where it is not, fork, say so, and run it live."""
        if name != "main":
            return super().perform(name, act)
        upcoming = self.replay.upcoming
        if upcoming is None:
            return self._go_on(act)
        self._began = upcoming[1]
        try:
            return act(self._shadow(self._began.session))
        except ReplayError as error:
            if isinstance(error.__context__, KeyboardInterrupt):
                raise error.__context__ from None
            live = self._diverge(error)
            return act(live)
        except (TurnError, CommandError, KeyboardInterrupt):
            # It ended in this error when it was recorded. What the person wants now is the cells that follow.
            if self._ended_well():
                raise
            return CommandResult("success", "", turn=True)

    def ready(self, agent: LoopAgent, kind: Kind) -> LoopAgent:
        """Lead the copy to its next part.

        Raises:
            ReplayError: this cell is not the next one.
        """
        if not self._is_shadow(agent):
            return agent
        source = self._host.cell.reference["source"]
        led: LoopAgent = self._host.on_agent(lambda: self.replay.lead(agent, source, kind, self._reopened))  # type: ignore[assignment]
        return led

    def done(self, agent: LoopAgent) -> None:
        """Compare to the end of the part.

        Raises:
            ReplayError: it was not as recorded.
        """
        self.replay.arrive(agent)

    def close(self) -> None:
        """Replay no more; the conversation is as it was."""
        self._undo()
        self.replay.close()
        self._host.led = NotLed(self._host)

    # -- inside

    def _shadow(self, id: str) -> LoopAgent:
        """The copy of a session. It begins with what no cell did: a fork's seed, an imported conversation.

        Raises:
            ReplayError: that part grants full access, which nobody did in this kernel.
        """
        if id not in self._shadows:
            recorded = self.replay.matching.sessions[id]
            lines = list(recorded.stored.lines[: recorded.parts[0].start])
            session = Session(recorded.stored.header, clock=unix_milliseconds, lines=lines)
            if session.fold(SANDBOX_MODE) == "danger-full-access":
                raise ReplayError("the session begins with full access, which was granted in another kernel")
            self._host.on_agent(lambda: self._follow(session, reopened=False))
        return self._shadows[id]

    def _follow(self, session: Session, *, reopened: bool) -> LoopAgent:
        """On the agent thread."""
        composition = self._host.composition
        shadow = LoopAgent("main", session, composition.seams, composition.model, composition.loop_config, reopened=reopened)
        self._shadows[session.id] = shadow
        return shadow

    def _reopened(self, agent: LoopAgent) -> LoopAgent:
        return self._follow(agent.session, reopened=True)

    def _is_shadow(self, agent: LoopAgent) -> bool:
        return any(agent.session is shadow.session for shadow in self._shadows.values())

    def _ended_well(self) -> bool:
        courses = self.replay.courses.values()
        return all(course.part is None or course.part.ended_well for course in courses)

    def _go_on(self, act: Callable[[LoopAgent], Any]) -> Any:
        """Every recorded part has run: live from here, in the session itself."""
        self.close()
        live = self._host.agent()
        self._take_over_mode(live)
        return act(live)

    def _diverge(self, error: ReplayError) -> LoopAgent:
        """The first difference: fork the session before this cell's part, and leave the replay."""
        host, place = self._host, self._began
        assert place is not None
        self.close()
        host.agent()

        def fork() -> LoopAgent:
            if host.agents.get("main").session.id != place.session:
                host.agents.use("main", place.session)
            return host.agents.fork("main", place.part.start)

        live: LoopAgent = host.on_agent(fork)
        host.watch(live)
        at = f"before event {place.part.start}"
        print(f"Replay stopped: {error}\nThe session was forked {at}, and this cell goes on live; the recorded one stays in the notebook.")
        self._take_over_mode(live)
        return live

    def _take_over_mode(self, live: LoopAgent) -> None:
        """A sandbox mode that the person set in this kernel, while it replayed, holds for the live session too."""
        host = self._host
        shadow = self._shadows.get(self._began.session if self._began is not None else "")
        commands = host.composition.seams.commands
        if shadow is None or commands is None or commands.get("sandbox") is None:
            return
        mode = shadow.session.fold(SANDBOX_MODE)
        if mode is not None:
            run = commands.run
            host.on_agent(lambda: run("sandbox", CommandCall(live, mode)))  # type: ignore[unused-coroutine]
