"""Money over time, for whoever asks: what is spent in which window, more for one, and whether a turn still waits.

Grants are facts, in a stream of their own: a window belongs to no single agent.
"""

from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Any, TypeAlias

from wakeful.contracts.amounts import checked_money
from wakeful.contracts.budgets import Money, SpendWindow
from wakeful.contracts.envelope import Fact, StoredFact
from wakeful.contracts.errors import AgentNotFound, EventRefused, InvalidConfig
from wakeful.contracts.events import BudgetGranted, TurnPauseLifted
from wakeful.contracts.spending import (
    RUNTIME,
    Period,
    SpendRow,
    WindowPassed,
    WindowRef,
    nanodollars,
    principal_scope,
)
from wakeful.decisions.spend_windows import OwnerWindows, has_room, scope_words, window_at
from wakeful.engine.agent import Agent
from wakeful.engine.run_request import Engine
from wakeful.engine.spend_windows import window_rested_on
from wakeful.ports import TurnRow
from wakeful.runtime.own_streams import append_to_stream
from wakeful.service.queries.known_agents import names_like

STREAM = "budget-grants"
"""The agent whose stream grants are in."""
FindAgent: TypeAlias = Callable[[str], Awaitable[Agent[Any, Any] | None]]


async def spending(engine: Engine) -> list[SpendRow]:
    """Every window that is under way, also those of the owner's file in which nothing was spent yet."""
    now, owner = engine.clock.now(), engine.owner_windows
    rows = {row.key: row for row in await engine.store.spending(after=now) if row.began <= now}
    for window in _of_the_owner(owner, now):
        row = rows.get(window.key)
        limit = nanodollars(window.usd)  # what holds for the next request
        rows[window.key] = row._replace(limit=limit) if row is not None else SpendRow(*window.key, window.turns, limit)
    return sorted(rows.values(), key=lambda row: (row.scope, row.turns))


async def grant(
    engine: Engine, scope: str, usd: Money, period: Period | None = None, *, by: str = "program", reason: str = ""
) -> SpendRow:
    """Allow more in the window that is under way. Without a period: of the scope's only one. Raises InvalidConfig, and
    AgentNotFound for an agent that nothing is known of.

    Agents of a runtime that rest on the window go on by themselves.
    """
    amount = checked_money("grant: usd", usd)
    if amount is None or nanodollars(amount) == 0:
        raise InvalidConfig(f"a grant cannot be {usd!r} dollars", "give an amount above 0, for example 5")
    known = [row for row in await spending(engine) if row.scope == scope]
    kind, _, name = scope.partition(":")
    if kind == "agent" and not known and not await _is_known(engine, name):
        words = f"there is no agent {name!r} in {engine.store.location}"
        raise AgentNotFound(words, await names_like(engine.store, name))
    now, zone = engine.clock.now(), engine.owner_windows.zone
    if period is None:
        if len(known) != 1:
            several = f"has limits for: {', '.join(row.period for row in known)}"
            none = "has no spending limit that was used in this hour, day or month"
            raise InvalidConfig(
                f"{scope_words(scope)} {several if known else none}",
                'name the limit to raise: --window day, or window="day" in Python',
            )
        period = known[0].period
    said = {window.key: window.usd for window in _of_the_owner(engine.owner_windows, now)}
    window = window_at(scope, SpendWindow(period, 0), now, zone)
    window = window.model_copy(update={"usd": said.get(window.key, "0")})
    granted = BudgetGranted(window=window, usd=amount, granted_by=by, reason=reason)
    await append_to_stream(engine.store, STREAM, [Fact(granted, now)])
    await _go_on(engine, window, by)
    return next(row for row in await spending(engine) if row.key == window.key)


async def _is_known(engine: Engine, agent: str) -> bool:
    """An agent of a runtime, or one that had a run here."""
    return await engine.store.runtime_agent(agent) is not None or agent in await engine.store.agent_names()


async def _go_on(engine: Engine, granted: WindowRef, by: str) -> None:
    """Turns of a runtime's agents that rest on the window are due now; one that needs more still rests again."""
    for turn, passed in await _resting(engine):
        if passed.key == granted.key:
            await _lift(engine, turn, by)


async def go_on_with_new_limits(engine: Engine, find: FindAgent, *, by: str) -> None:
    """Turns of a runtime's agents that rest on a window are due now where somebody raised its limit, or took it away,
    so far that there is room. `find` gives an agent as it is defined by now; None: that is not known here."""
    for turn, passed in await _resting(engine):
        kind, _, name = passed.scope.partition(":")
        agent = await find(name) if kind == "agent" else None
        if (agent is not None or kind != "agent") and not await _is_full(engine, passed, agent):
            await _lift(engine, turn, by)


async def _resting(engine: Engine) -> list[tuple[TurnRow, WindowPassed]]:
    """Turns of a runtime's agents that rest on a window, each with that window."""
    store = engine.store
    found = []
    for turn in [turn async for turn in store.open_turns() if turn.state == "suspended"]:
        wake = await store.wake(turn.agent_id, turn.thread_id, turn.turn_id)
        if wake is None or wake.cause != "window" or await store.runtime_agent(turn.agent_id) is None:
            continue
        passed = window_rested_on(await store.read(turn.agent_id, turn_id=turn.turn_id))
        if passed is not None:
            found.append((turn, passed))
    return found


async def _lift(engine: Engine, turn: TurnRow, by: str) -> None:
    lifted = Fact(TurnPauseLifted(requested_by=by), engine.clock.now(), turn.thread_id, turn.turn_id)
    with suppress(EventRefused):  # it has ended meanwhile
        await engine.store.admit(turn.agent_id, [lifted])


async def still_full(engine: Engine, agent: Agent[Any, Any], recorded: Sequence[StoredFact]) -> bool:
    """Does a turn that rests on a spend window rest on it still? Then taking it up would change nothing."""
    passed = window_rested_on(recorded)
    return passed is not None and await _is_full(engine, passed, agent)


async def _is_full(engine: Engine, passed: WindowPassed, agent: Agent[Any, Any] | None) -> bool:
    if not passed.began <= engine.clock.now() < passed.turns:
        return False
    window = _today(passed, engine.owner_windows, agent)
    if window is None:
        return False  # nobody limits it any more
    rows = {row.key: row for row in await engine.store.spending([passed.scope], after=engine.clock.now())}
    return not has_room(window, rows.get(window.key), nanodollars(passed.needed))


def _today(passed: WindowPassed, owner: OwnerWindows, agent: Agent[Any, Any] | None) -> WindowRef | None:
    """The same window with the limit that holds now; an agent's own is the agent's to say."""
    kind, _, name = passed.scope.partition(":")
    if passed.scope == RUNTIME:
        said: Sequence[SpendWindow] = owner.runtime
    elif kind == "principal":
        said = owner.of_principal(name)
    elif agent is not None and agent.name == name:
        said = agent.spend_windows
    else:
        return passed
    found = next((window for window in said if window.period == passed.period), None)
    return None if found is None else passed.model_copy(update={"usd": found.usd})


def _of_the_owner(owner: OwnerWindows, now: int) -> list[WindowRef]:
    said = [(RUNTIME, window) for window in owner.runtime]
    for name, windows in (owner.principals or {}).items():
        said += [(principal_scope(name), window) for window in windows]
    return [window_at(scope, window, now, owner.zone) for scope, window in said]
