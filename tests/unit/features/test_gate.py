"""Who may run code in the kernel: three sandbox modes, two approval policies, every answer a person can give, and nobody there."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any, Literal

import pytest

from plan_mode_nb.agent.approval import ApprovalProvider, ApprovalRequest, Decided
from plan_mode_nb.agent.permission import Allowed, Permissions
from plan_mode_nb.agent.seams import Seams
from plan_mode_nb.agent.tools import ToolCall, ToolError
from plan_mode_nb.features import approval_policy, sandbox
from plan_mode_nb.features.approval_policy import ApprovalPolicy
from plan_mode_nb.features.sandbox import SandboxMode
from plan_mode_nb.features.tools import kernel
from plan_mode_nb.log.vocabulary import draft
from plan_mode_nb.models.script import call, say
from plan_mode_nb.plan import PlanModeConfig
from plan_mode_nb.plan import install as install_plan
from plan_mode_nb.testing.approvals import ScriptedApprovals
from plan_mode_nb.testing.shells import PlainShell
from plan_mode_nb.testing.workbench import Workbench

CODE = "# Count\nx = 1\nx + 1"
MODES: tuple[SandboxMode, ...] = ("read-only", "workspace-write", "danger-full-access")
POLICIES: tuple[ApprovalPolicy, ...] = ("ask", "never")
Answer = Literal["allowed-once", "rejected", "cancelled", "unavailable", "nobody", "raises", "junk"]
ANSWERS: tuple[Answer, ...] = ("allowed-once", "rejected", "cancelled", "unavailable", "nobody", "raises", "junk")


class Raises:
    """A provider that fails."""

    async def decide(self, request: ApprovalRequest) -> Decided:
        raise RuntimeError("no card today")


class Junk:
    """A provider that answers with something else that looks like consent."""

    async def decide(self, request: ApprovalRequest) -> Decided:
        return True  # type: ignore[return-value]


@dataclass
class Gate:
    """One notebook with the python tool and both axes."""

    bench: Workbench
    shell: PlainShell
    provider: ApprovalProvider | None

    @property
    def presented(self) -> list[ApprovalRequest]:
        return self.provider.requests if isinstance(self.provider, ScriptedApprovals) else []

    def result(self) -> tuple[bool, str, str | None]:
        """Whether it is an error, its text, and its error code."""
        (event,) = self.bench.events("tool/result")
        block = event.data["message"]["content"][0]
        return block["isError"], block["content"][0]["text"], event.data.get("error", {}).get("code")


def provider_of(answer: Answer) -> ApprovalProvider | None:
    match answer:
        case "nobody":
            return None
        case "raises":
            return Raises()
        case "junk":
            return Junk()
        case _:
            return ScriptedApprovals([answer])


def gate(mode: SandboxMode | None, policy: ApprovalPolicy | None, answer: Answer, *, plan: bool = False) -> Gate:
    """One turn in which the model runs code once."""
    shell, provider = PlainShell(), provider_of(answer)

    def provide(seams: Seams) -> Any:
        return seams.approvals.provide(provider) if provider is not None else lambda: None

    bench = Workbench(
        call("python", {"code": CODE}),
        say("done"),
        install=[
            approval_policy.install,
            sandbox.install,
            lambda seams: kernel.install(seams, shell),
            lambda seams: install_plan(seams, PlanModeConfig("Only look.")),
            provide,
        ],
    )
    if mode is not None:
        bench.session.append(draft("sandbox/mode", {"mode": mode}))
    if policy is not None:
        bench.session.append(draft("approval/policy", {"policy": policy}))
    if plan:
        bench.session.append(draft("plan/mode", {"active": True}))
    asyncio.run(bench.ask("go"))
    return Gate(bench, shell, provider)


@pytest.mark.parametrize("plan", [False, True], ids=["default", "plan"])
@pytest.mark.parametrize("answer", ANSWERS)
@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("mode", MODES)
def test_code_runs_exactly_under_full_access_or_after_allowed_once(
    mode: SandboxMode, policy: ApprovalPolicy, answer: Answer, plan: bool
) -> None:
    """Everything else denies, and plan mode changes nothing of it."""
    tried = gate(mode, policy, answer, plan=plan)
    may_run = mode == "danger-full-access" or (policy == "ask" and answer == "allowed-once")
    assert [code for _, code in tried.shell.ran] == ([CODE] if may_run else [])
    is_error, text, code = tried.result()
    assert is_error is not may_run
    assert text == "2\n" if may_run else text.startswith("Error: ")
    assert "did not run" in text or may_run
    assert (code is None) if may_run else (code in ("APPROVAL_REJECTED", "APPROVAL_CANCELLED", "APPROVAL_UNAVAILABLE"))


@pytest.mark.parametrize("answer", ANSWERS)
@pytest.mark.parametrize("mode", ["read-only", "workspace-write"])
def test_never_denies_without_asking_anybody(mode: SandboxMode, answer: Answer) -> None:
    """The provider sees nothing; the log says that the policy rejected it, and the model is told how that can change."""
    tried = gate(mode, "never", answer)
    assert tried.presented == []
    (decided,) = tried.bench.events("approval/decided")
    assert (decided.data["outcome"], decided.data["by"]) == ("rejected", "policy")
    assert tried.result()[1].count("%approval ask") == 1


@pytest.mark.parametrize("policy", POLICIES)
def test_full_access_asks_nobody_and_logs_no_approval(policy: ApprovalPolicy) -> None:
    """What needs no approval leaves no trace of one."""
    tried = gate("danger-full-access", policy, "rejected")
    assert tried.presented == []
    assert not tried.bench.events("approval/asked", "approval/decided")


def test_by_default_the_person_is_asked() -> None:
    """Nothing set: workspace-write and ask."""
    assert len(gate(None, None, "allowed-once").presented) == 1


def test_a_mode_of_a_newer_version_does_not_open_the_gate() -> None:
    """Only the one word opens it."""
    tried = gate("danger-full-access-plus", None, "rejected")  # type: ignore[arg-type]
    assert tried.shell.ran == []


def test_the_person_sees_exactly_the_code_that_would_run() -> None:
    """The preview is the argument byte for byte, and the request names call and reason."""
    tried = gate("read-only", "ask", "allowed-once")
    (request,) = tried.presented
    (asked,) = tried.bench.events("approval/asked")
    assert (request.tool, request.preview, request.call_id) == ("python", CODE, "call-0-0")
    assert "read-only" in request.reason
    assert asked.data == {"id": request.id, "toolName": "python", "reason": request.reason, "callId": "call-0-0"}


def test_asked_and_decided_are_a_pair_inside_the_step_between_call_and_result() -> None:
    """In this order, whatever the answer."""
    for answer in ANSWERS:
        types = gate("read-only", "ask", answer).bench.types
        start = types.index("tool/call")
        assert types[start : start + 4] == ["tool/call", "approval/asked", "approval/decided", "tool/result"]


@pytest.mark.parametrize(
    ("answer", "code", "said"),
    [
        ("rejected", "APPROVAL_REJECTED", "the user rejected this call of python"),
        ("cancelled", "APPROVAL_CANCELLED", "the approval of python was cancelled"),
        ("unavailable", "APPROVAL_UNAVAILABLE", "an approval that nobody could give"),
        ("nobody", "APPROVAL_UNAVAILABLE", "nobody is here to approve it"),
        ("raises", "APPROVAL_UNAVAILABLE", "the request could not be shown"),
        ("junk", "APPROVAL_UNAVAILABLE", "the request could not be shown"),
    ],
)
def test_a_denied_call_tells_the_model_what_happened(answer: Answer, code: str, said: str) -> None:
    """One sentence with the truth, and a code."""
    is_error, text, found = gate("workspace-write", "ask", answer).result()
    assert is_error
    assert found == code
    assert said in text


def test_each_call_is_asked_for_on_its_own() -> None:
    """Allowed once means once."""
    shell, provider = PlainShell(), ScriptedApprovals(["allowed-once", "rejected"])
    bench = Workbench(
        [call("python", {"code": "a = 1"}), call("python", {"code": "a = 2"})],
        say("done"),
        install=[
            approval_policy.install,
            sandbox.install,
            lambda seams: kernel.install(seams, shell),
            lambda seams: seams.approvals.provide(provider),
        ],
    )
    asyncio.run(bench.ask("go"))
    assert [request.preview for request in provider.requests] == ["a = 1", "a = 2"]
    assert shell.variables["a"] == 1


def test_a_switch_by_the_person_between_two_calls_holds_for_the_second() -> None:
    """The mode is read when a call asks, not when the turn began."""
    shell = PlainShell()

    class Tightens:
        async def decide(self, request: ApprovalRequest) -> Decided:
            request.agent.session.append(draft("approval/policy", {"policy": "never"}))
            return Decided("allowed-once")

    bench = Workbench(
        [call("python", {"code": "a = 1"}), call("python", {"code": "a = 2"})],
        say("done"),
        install=[
            approval_policy.install,
            sandbox.install,
            lambda seams: kernel.install(seams, shell),
            lambda seams: seams.approvals.provide(Tightens()),
        ],
    )
    asyncio.run(bench.ask("go"))
    assert [code for _, code in shell.ran] == ["a = 1"]


def test_stopped_while_the_person_is_asked_nothing_runs_and_the_result_says_so() -> None:
    """The pair is closed as cancelled, the call's result is the truth."""
    shell = PlainShell()

    async def main() -> Workbench:
        shown = asyncio.Event()

        async def forever() -> None:
            shown.set()
            await asyncio.Event().wait()

        bench = Workbench(
            call("python", {"code": CODE}),
            install=[
                approval_policy.install,
                sandbox.install,
                lambda seams: kernel.install(seams, shell),
                lambda seams: seams.approvals.provide(ScriptedApprovals(wait=forever)),
            ],
        )
        turn = asyncio.ensure_future(bench.ask("go"))
        await asyncio.wait_for(shown.wait(), 60)
        bench.agent.cancel({"kind": "user"})
        with pytest.raises(asyncio.CancelledError):
            await turn
        return bench

    bench = asyncio.run(main())
    (decided,) = bench.events("approval/decided")
    (result,) = bench.events("tool/result")
    assert decided.data["outcome"] == "cancelled"
    assert result.data["error"]["code"] == "APPROVAL_CANCELLED"
    assert "it did not run" in result.data["message"]["content"][0]["content"][0]["text"]
    assert shell.ran == []
    assert bench.types[-2:] == ["step/end", "turn/end"]


def test_a_composition_that_forgot_its_limits_runs_nothing() -> None:
    """No check registered: denied, not allowed."""
    shell = PlainShell()
    bench = Workbench(call("python", {"code": CODE}), say("done"), install=[lambda seams: kernel.install(seams, shell)])
    asyncio.run(bench.ask("go"))
    assert shell.ran == []
    assert bench.events("tool/result")[0].data["error"]["code"] == "NOT_PERMITTED"


def test_every_check_must_allow_and_the_first_that_raises_ends_it() -> None:
    """A check that fails runs nothing."""

    async def fails(run: object) -> Allowed:
        raise RuntimeError("broken")

    async def allows(run: object) -> Allowed:
        return Allowed()

    bench, permissions = Workbench(), Permissions()
    permissions.register("first", allows)
    permissions.register("second", fails)
    with pytest.raises(RuntimeError):
        asyncio.run(permissions.require(ToolCall("python", "{}", "c", 1, 1, bench.agent), CODE))


def test_nobodys_call_is_denied() -> None:
    """Without an agent there is no session whose limits would apply."""
    with pytest.raises(ToolError, match="needs a calling agent"):
        asyncio.run(Permissions().require(ToolCall("python", "{}", "c", 1, 1, None), CODE))


def test_a_policy_that_fails_denies() -> None:
    """Fail closed: the provider is not asked either."""
    shell, provider = PlainShell(), ScriptedApprovals(["allowed-once"])

    def broken(request: ApprovalRequest) -> Decided | None:
        raise RuntimeError("broken")

    bench = Workbench(
        call("python", {"code": CODE}),
        say("done"),
        install=[
            sandbox.install,
            lambda seams: seams.approvals.govern("broken", broken),
            lambda seams: kernel.install(seams, shell),
            lambda seams: seams.approvals.provide(provider),
        ],
    )
    asyncio.run(bench.ask("go"))
    assert (shell.ran, provider.requests) == ([], [])
    assert bench.events("approval/decided")[0].data["outcome"] == "unavailable"


def test_without_the_approval_axis_the_person_is_asked() -> None:
    """Taking a policy out takes its `never` out, and nothing else."""
    shell, provider = PlainShell(), ScriptedApprovals(["allowed-once"])
    bench = Workbench(
        call("python", {"code": CODE}),
        say("done"),
        install=[
            sandbox.install,
            lambda seams: kernel.install(seams, shell),
            lambda seams: seams.approvals.provide(provider),
        ],
    )
    bench.session.append(draft("approval/policy", {"policy": "never"}))
    asyncio.run(bench.ask("go"))
    assert len(provider.requests) == len(shell.ran) == 1
