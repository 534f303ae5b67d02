"""All agents at a glance, from rows that are read as a whole: the cost does not grow with what agents did before today.

Of the agents that are not shown nothing is looked up but how they stand.
"""

from collections import Counter
from collections.abc import Sequence

from wakeful.contracts.envelope import MAIN_THREAD
from wakeful.engine.run_request import Engine
from wakeful.ports.mailbox import BusyThread
from wakeful.ports.runtime_agents import RuntimeAgentRow
from wakeful.ports.waits import WaitRow
from wakeful.service.file_reloads import file_problems
from wakeful.service.queries.agent_records import is_listed, providers_waited_for, running_threads
from wakeful.service.queries.costs import costs_of, today_began
from wakeful.views.agent_state import StatusFacts, status_of, waited_for
from wakeful.views.overview import AgentLine, AgentsOverview
from wakeful.views.presentation.plain_text import one_line

OF_A_RUN = "run"
BROKEN = "broken"
"""A child that could not be run: its parent was told, and it does not go on."""
QUESTION = 80
"""Characters of what an agent waits for."""
BY_ITSELF = ("operator", "runtime")
"""Causes of a pause that no person has to mend."""


async def overview(engine: Engine, limit: int | None) -> AgentsOverview:
    """The first `limit` agents; None: all of them."""
    store = engine.store
    lives = {row.agent_id: row for row in await store.runtime_agents()}
    names = {name for name in await store.agent_names() if name not in lives}
    listed = {name for name, row in lives.items() if is_listed(row)}
    asked = Counter(row.agent_name for row in await store.actions(pending_only=True) if row.kind != "client_tool")
    unknown = await store.unknown()
    lost = Counter([await _owner(engine, row.turn_id) for row in unknown])
    busy, threads = await store.busy_threads(), dict[str, list[BusyThread]]()
    for each in busy:
        threads.setdefault(each.agent_id, []).append(each)
    running = {each.agent_id for each in await running_threads(engine, busy)}
    waits: dict[str, list[WaitRow]] = {}
    for wait in await store.open_waits():
        waits.setdefault(wait.agent_id, []).append(wait)
    needs = {
        name: tuple(_needs(lives.get(name), asked[name], lost[name], waits.get(name, ())))
        for name in {*asked, *lost, *waits, *(row.agent_id for row in await store.held_agents())}
    }
    order = sorted(
        {*listed, *names, *(name for name in needs if name in lives and needs[name])},
        key=lambda name: (not needs.get(name), name not in running, name),
    )
    shown = order if limit is None else order[:limit]
    costs = await costs_of(store, "agent", day=str, since=today_began(engine))
    lines = []
    for name in shown:
        row, mine = lives.get(name), waits.get(name, [])
        cost = costs.groups.get(name)
        state = _state(row, name in running, mine) if row is not None else OF_A_RUN
        lines.append(
            AgentLine(
                agent=name,
                state=state,
                waiting_for=waited_for(state, await providers_waited_for(store, threads.get(name, []))),
                next_wake=await _next_wake(engine, name, mine) if row is not None else None,
                spent_today_usd=cost.spent if cost is not None else "0",
                cut_off_today_usd=cost.cut_off if cost is not None else "0",
                spent_is_complete=name not in costs.unread and (cost is None or not cost.unpriced_calls),
                needs=needs.get(name, ()),
            )
        )
    hold = await store.runtime_hold()
    return AgentsOverview(
        agents=tuple(lines),
        more=len(order) - len(shown),
        held=f"{hold.control} by {hold.changed_by}" if hold is not None and hold.control != "running" else "",
        approvals=sum(asked.values()),
        unknown_outcomes=len(unknown),
        file_problems=tuple(await file_problems(store)),
    )


def _state(row: RuntimeAgentRow, is_running: bool, waits: list[WaitRow]) -> str:
    if (row.control, row.cause) == ("stopped", "failure"):
        return BROKEN
    return status_of(StatusFacts(row.control, bool(row.revision), is_running, [wait.wake for wait in waits]))


def _needs(row: RuntimeAgentRow | None, approvals: int, unknown: int, waits: Sequence[WaitRow]) -> list[str]:
    found = []
    if approvals:
        found.append(f"{approvals} to decide")
    if unknown:
        found.append(f"{unknown} to resolve")
    is_for_people = row is not None and row.ownership == "self_owned"  # a private child asks its parent
    asks = [wait for wait in waits if is_for_people and wait.wake == "operator_input" and not wait.is_sleep]
    found += [f"asks you{_in_thread(wait)}: {one_line(wait.reason, QUESTION)}" for wait in asks]
    if row is not None and row.control != "running" and row.cause not in BY_ITSELF:
        found.append(row.reason or row.cause)
    return found


def _in_thread(wait: WaitRow) -> str:
    return "" if wait.thread_id == MAIN_THREAD else f" (--thread {wait.thread_id})"


async def _owner(engine: Engine, turn_id: str) -> str:
    row = await engine.store.turn(turn_id)
    return row.agent_name if row is not None else ""


async def _next_wake(engine: Engine, agent: str, waits: list[WaitRow]) -> float | None:
    timers = await engine.store.armed_timers(agent)
    times = [each.due_at for each in timers if each.due_at is not None] + [wait.due_at for wait in waits]
    return min(times) / 1e6 if times else None
