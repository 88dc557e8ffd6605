"""The agent thread, in this process."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from types import SimpleNamespace

import pytest

from plan_mode_nb.exceptions import HostError
from plan_mode_nb.hosts.kernel import thread
from plan_mode_nb.hosts.kernel.thread import AgentThread


@pytest.fixture
def agent() -> Iterator[AgentThread]:
    agent = AgentThread()
    yield agent
    agent.stop()


def ended(agent: AgentThread) -> threading.Event:
    event = threading.Event()
    agent.on_death(event.set)
    return event


def test_run_gives_back_what_a_function_or_a_coroutine_returns(agent: AgentThread) -> None:
    async def name() -> str:
        await asyncio.sleep(0)
        return threading.current_thread().name

    assert agent.run(name) == agent.run(lambda: threading.current_thread().name) == "plan-mode-nb-agent"


@pytest.mark.parametrize("error", [ValueError("no"), TimeoutError("its own"), SystemExit(3), StopIteration(1)])
def test_run_raises_what_the_work_raised_and_the_thread_lives_on(agent: AgentThread, error: BaseException) -> None:
    def fail() -> None:
        raise error

    with pytest.raises(type(error)) as caught:
        agent.run(fail)
    assert caught.value is error
    assert agent.run(lambda: 1) == 1


def test_run_gives_up_after_its_timeout_and_cancels_the_work(agent: AgentThread) -> None:
    cancelled = threading.Event()

    async def wait() -> None:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            cancelled.set()
            raise

    with pytest.raises(HostError, match=r"did not answer within 0\.05 s"):
        agent.run(wait, timeout=0.05)
    assert cancelled.wait(5)


def test_run_from_the_agent_thread_itself_is_refused(agent: AgentThread) -> None:
    with pytest.raises(HostError, match="wait for its own thread"):
        agent.run(lambda: agent.run(lambda: 1))


def test_calls_run_in_the_order_in_which_they_were_made(agent: AgentThread) -> None:
    seen: list[int] = []
    assert all(agent.call(seen.append, number) for number in range(100))
    agent.run(lambda: None)
    assert seen == list(range(100))


def test_a_stopped_thread_takes_no_work_and_says_so(agent: AgentThread) -> None:
    agent.stop()
    assert not agent.alive
    assert agent.death is None
    assert agent.call(print) is False
    with pytest.raises(HostError, match="has ended; run the cell again"):
        agent.run(lambda: 1)


def test_stop_lets_tasks_clean_up(agent: AgentThread) -> None:
    done: list[str] = []

    async def work() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            await asyncio.sleep(0.01)
            done.append("cleaned")

    agent.run(lambda: agent.loop.create_task(work()) and None)
    agent.run(lambda: asyncio.sleep(0))
    agent.stop(timeout=5)
    assert done == ["cleaned"]


def test_a_task_that_will_not_end_does_not_hold_stop_for_more_than_its_bound(agent: AgentThread) -> None:
    async def stubborn() -> None:
        while True:
            try:
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                continue

    agent.run(lambda: agent.loop.create_task(stubborn()) and None)
    started = time.monotonic()
    agent.stop(timeout=5)
    assert time.monotonic() - started < 3
    assert not agent.call(print)


def test_a_system_exit_in_a_task_ends_the_thread_and_tells_why(agent: AgentThread) -> None:
    async def leave() -> None:
        raise SystemExit(3)

    event = ended(agent)
    agent.call(lambda: agent.loop.create_task(leave()))
    assert event.wait(5)
    assert not agent.alive
    assert agent.death == "SystemExit: 3"
    with pytest.raises(HostError, match=r"has ended \(SystemExit: 3\)"):
        agent.run(lambda: 1)


def test_run_returns_when_the_thread_ends_under_it(agent: AgentThread) -> None:
    async def stop_under() -> None:
        agent.loop.stop()
        while True:
            try:
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                continue

    with pytest.raises(HostError):
        agent.run(stop_under, timeout=30)


def test_death_callbacks_run_once_and_can_be_undone(agent: AgentThread) -> None:
    seen: list[str] = []
    agent.on_death(lambda: seen.append("kept"))
    agent.on_death(lambda: seen.append("undone"))()
    event = ended(agent)
    agent.stop()
    assert event.wait(5)
    assert seen == ["kept"]
    agent.on_death(lambda: seen.append("late"))
    assert seen == ["kept", "late"]


def test_a_death_callback_that_fails_does_not_keep_the_others_from_being_told(agent: AgentThread) -> None:
    agent.on_death(lambda: 1 // 0)
    event = ended(agent)
    agent.stop()
    assert event.wait(5)


def test_the_thread_hangs_on_the_shell_and_is_replaced_only_when_it_has_ended() -> None:
    shell = SimpleNamespace()
    first = thread.get(shell)
    assert thread.get(shell) is first
    first.stop()
    second = thread.get(shell)
    assert second is not first
    thread.drop(shell)
    assert not second.alive
    assert vars(shell) == {}
    thread.drop(shell)
