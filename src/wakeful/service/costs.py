"""What the turns of a store cost, for whoever asks afterwards. Read from the log: nothing is kept beside it."""

from collections.abc import Callable
from difflib import get_close_matches
from typing import Literal, TypeAlias

from wakeful.contracts.costs import CostReport
from wakeful.contracts.envelope import iso
from wakeful.contracts.errors import InvalidConfig
from wakeful.decisions.costs import ModelCall, cost_report, model_calls
from wakeful.ports import Store, TurnRow
from wakeful.service.queries import find_turn, turn_events

Grouping: TypeAlias = Literal["model", "agent", "day", "depth"]


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

    `day` names the day of a moment as the reader's calendar has it. Raises TurnNotFound, or InvalidConfig for an agent
    that has no turn.
    """
    rows = [await find_turn(store, turn_id)] if turn_id is not None else await _of_agent(store, agent)
    names = {row.turn_id: row.agent_name for row in rows}
    calls: list[ModelCall] = []
    for row in sorted(rows, key=lambda row: row.created_at):
        if since is None or row.ended_at is None or row.ended_at >= since:
            made = model_calls(await turn_events(store, row))
            calls += [call for call in made if since is None or call.at >= since]
    keys: dict[Grouping, Callable[[ModelCall], str]] = {
        "model": lambda call: call.model_ref,
        "agent": lambda call: names.get(call.turn_id, ""),
        "day": lambda call: day(call.at),
        "depth": lambda call: str(call.depth),
    }
    report = cost_report(calls, by, keys[by])
    asked = {"since": iso(since) if since is not None else None, "agent": agent, "turn_id": turn_id}
    return report.model_copy(update=asked)


async def _of_agent(store: Store, agent: str | None) -> list[TurnRow]:
    rows = await store.turns()
    if agent is None:
        return rows
    found = [row for row in rows if row.agent_name == agent]
    if not found:
        names = sorted({row.agent_name for row in rows})
        near = get_close_matches(agent, names, n=3, cutoff=0.5) or names[:5]
        hint = f"there are: {', '.join(near)}" if near else "nothing has been run in it yet"
        raise InvalidConfig(f"no agent {agent!r} has a turn in {store.location}", hint)
    return found
