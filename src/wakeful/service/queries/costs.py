"""What the turns of a store cost. The store keeps what the requests of each ended turn come to. Other turns are read
from the log, and so is one of which only a part is asked for.
"""

from collections import Counter
from collections.abc import Callable
from itertools import groupby
from typing import Any, Literal, TypeAlias

from wakeful.contracts.envelope import iso
from wakeful.contracts.errors import InvalidConfig, StoreDamaged
from wakeful.decisions.spend_windows import bounds
from wakeful.engine.run_request import Engine
from wakeful.ports import MessageLog, Store, TurnRow
from wakeful.service.queries.known_agents import names_like
from wakeful.service.queries.turns import find_turn, turn_events
from wakeful.views.cost import CostReport, cost_report
from wakeful.views.model_calls import CallGroup, TurnCost, call_groups, model_calls

Grouping: TypeAlias = Literal["model", "agent", "day", "depth"]


def today_began(engine: Engine) -> int:
    """The beginning of the owner's day, in microseconds: what everybody who says "today" means, and the spend windows
    of a day."""
    return bounds("day", engine.clock.now(), engine.owner_windows.zone)[0]


async def costs_of(
    store: Store,
    by: Grouping,
    *,
    day: Callable[[int], str],
    since: int | None = None,
    agent: str | None = None,
    turn_id: str | None = None,
) -> CostReport:
    """Requests to models since a moment (microseconds), in groups. A request counts where and when it was sent.

    `day` names the day of a moment as the reader's calendar has it. Turns whose log is damaged are left out, and named.
    Raises TurnNotFound, StoreDamaged for such a turn that is asked for alone, or InvalidConfig for an agent that has no
    turn.
    """
    turns: list[tuple[TurnRow, TurnCost | None]]
    turns = [(await find_turn(store, turn_id), None)] if turn_id is not None else await _of_agent(store, agent, since)
    named: list[tuple[str, CallGroup]] = []
    counted, unread = 0, Counter[str]()
    for row, cost in turns:
        try:
            found = await _named(store, row, cost, by, day, since)
        except StoreDamaged:
            if turn_id is not None:
                raise
            unread[row.agent_name] += 1
            continue
        counted += bool(found)
        named += found
    report = cost_report(named, by, counted)
    asked: dict[str, Any] = {"since": iso(since) if since is not None else None, "agent": agent, "turn_id": turn_id}
    if unread:
        asked |= {"unread": dict(unread), "cost_complete": False}
    return report.model_copy(update=asked)


async def _named(
    store: MessageLog, row: TurnRow, cost: TurnCost | None, by: Grouping, day: Callable[[int], str], since: int | None
) -> list[tuple[str, CallGroup]]:
    """The turn's calls in groups, each with its name. From its row where that tells enough, else from its log."""
    names: dict[Grouping, Callable[[CallGroup], str]] = {
        "model": lambda group: group.model_ref,
        "agent": lambda group: row.agent_name,
        "depth": lambda group: str(group.depth),
    }
    if cost is not None and not cost.groups:
        return []
    # One day, and all of it asked for.
    if cost is not None and (since is None or cost.first_at >= since):
        if by != "day":
            return [(names[by](group), group) for group in cost.groups]
        is_gone = not row.first_seq  # then its log cannot tell the days apart any more
        if (date := day(cost.first_at)) == day(cost.last_at) or is_gone:
            return [(date, group) for group in cost.groups]
    calls = [call for call in model_calls(await turn_events(store, row)) if since is None or call.at >= since]
    if by != "day":
        return [(names[by](group), group) for group in call_groups(calls)]
    return [(date, group) for date, each in groupby(calls, lambda call: day(call.at)) for group in call_groups(each)]


async def _of_agent(store: Store, agent: str | None, since: int | None) -> list[tuple[TurnRow, TurnCost | None]]:
    """Turns that may have asked a model since then, oldest first."""
    turns = await store.turn_costs(since=since)
    if agent is None:
        return turns
    found = [(row, cost) for row, cost in turns if row.agent_name == agent]
    if not found:
        if await store.agents_of_name(agent) or await store.runtime_agent(agent) is not None:
            return []
        raise InvalidConfig(f"there is no agent {agent!r} in {store.location}", await names_like(store, agent))
    return found
