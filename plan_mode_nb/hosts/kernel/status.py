"""What ``%session`` prints: everything a person may want to know of the conversation, as plain lines."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from plan_mode_nb.document.document import StoredSession
from plan_mode_nb.exceptions import LogError, PlanModeError
from plan_mode_nb.folds.context import CONTEXT, Context
from plan_mode_nb.folds.plan import PLAN, PlanState
from plan_mode_nb.folds.policies import APPROVAL_POLICY, SANDBOX_MODE
from plan_mode_nb.folds.spending import SPENDING, Route
from plan_mode_nb.folds.tokens import MEASURE, Measure
from plan_mode_nb.folds.turns import TURNS
from plan_mode_nb.folds.usage import USAGE, Usage
from plan_mode_nb.hosts.kernel import unsent
from plan_mode_nb.log.fold import fold_values
from plan_mode_nb.models.prices import price_of
from plan_mode_nb.render.lineage import child_line, descendants, is_child, own_events

if TYPE_CHECKING:
    from plan_mode_nb.hosts.kernel.host import KernelHost


def status(host: KernelHost) -> str:
    """One line a fact."""
    agent = host.agent()
    session = agent.session
    plan, turns, usage = host.on_agent(lambda: (session.fold(PLAN), session.fold(TURNS), session.fold(USAGE)))
    spent, context, measure = host.on_agent(lambda: (session.fold(SPENDING), session.fold(CONTEXT), session.fold(MEASURE)))
    policy, mode = host.on_agent(lambda: (session.fold(APPROVAL_POLICY), session.fold(SANDBOX_MODE)))
    restored = host.agents.restored.get(session.id)
    children = descendants(session.id, host.agents.all_stored)
    lines = [
        f"session      {session.id}" + (f" (restored with {restored} events)" if restored else ""),
        f"turns        {len(turns)}",
        f"plan mode    {_plan(plan)}",
        f"model        {_model(host)}",
        f"tokens       {usage.uncached_input:,} in, {usage.cache_read:,} cached, {usage.output:,} out",
        *_price(_all_spent(spent, children)),
        *_context(context, measure, host.settings.agent.compact_at),
        f"size         {len(session)} events, {sum(map(len, session.lines)) / 1000:,.0f} kB",
        f"stored in    {host.front_end.kept_in(session)}",
        f"sandbox      {mode or 'workspace-write'} ({_enforced(host)})",
        f"approval     {policy or 'ask'}",
        *(f"mcp          {each}" for each in _servers(host)),
    ]
    never_sent = unsent.note(unsent.waiting(host, session))
    if never_sent:
        lines.append(f"waiting      {never_sent}")
    lines += [f"child        {child.header.id}  {child_line(child)}" for child in children]
    others = [each.header.id for each in host.agents.all_stored if each.header.id != session.id and not is_child(each.header)]
    if others:
        lines.append(f"also here    {', '.join(others)}")
    return "\n".join(lines)


def _enforced(host: KernelHost) -> str:
    enforced = host.composition.seams.confinement.enforced()
    return f"enforcement: {enforced.enforcement}; {enforced.sentence}; code in the kernel process cannot be confined"


def _servers(host: KernelHost) -> Iterator[str]:
    """Each MCP server of the settings, and whether its tools are there."""
    try:
        wanted = host.settings.servers
    except PlanModeError as error:
        yield str(error)
        return
    known = {name: (tools, why) for name, tools, why in host.composition.servers.states()}
    for server in wanted:
        tools, why = known.get(server.name, (None, ""))
        missing = f"not there: {why}" if why else "starts with the next turn"
        yield f"{server.name}: {missing if tools is None else f'{tools} tools' if tools != 1 else '1 tool'}"


def _plan(state: PlanState) -> str:
    now = "on" if state.active else "off"
    return now if state.pending is None else f"{now}, {'on' if state.pending else 'off'} from the next step"


def _model(host: KernelHost) -> str:
    try:
        choice, plan_choice = host.composition.choice, host.composition.plan_choice
    except PlanModeError as error:
        return str(error)
    told = f"{choice.name} ({choice.why})"
    return told if plan_choice is None else f"{told}; in plan mode {plan_choice.name} ({plan_choice.why})"


def _all_spent(spent: Mapping[Route, Usage], children: Iterable[StoredSession]) -> Mapping[Route, Usage]:
    """With what children spent; one that cannot be read says so in its own line."""
    total = dict(spent)
    for child in children:
        try:
            (own,) = fold_values((SPENDING,), own_events(child))
        except LogError:
            continue
        for route, usage in own.items():
            total[route] = total[route] + usage if route in total else usage
    return total


def _price(spent: Mapping[Route, Usage]) -> list[str]:
    """List prices of today, where they are known; a sum that leaves a model out says so."""
    priced = {route: price_of(*route, usage, os.environ) for route, usage in spent.items()}
    known = [price for price in priced.values() if price is not None]
    if not known:
        return []
    unknown = [f"{provider}:{model}" for (provider, model), price in priced.items() if price is None]
    without = f", without {', '.join(unknown)}" if unknown else ""
    return [f"price        ${sum(known):,.4f} at list prices{without}"]


def _context(context: Context, measure: Measure, compact_at: float) -> list[str]:
    """How full it is: as counted for the last request, or estimated where the conversation was compacted since."""
    if context.window is None or (context.used is None and not measure.nodes):
        return []
    used, about = (measure.total, "about ") if context.used is None else (context.used, "")
    then = f"; compacted at {compact_at * 100:.0f} %" if compact_at else ""
    return [f"context      {about}{used * 100 / context.window:.0f} % of the context ({used:,} of {context.window:,} tokens{then})"]
