"""How the agents of a store stand, from the rows that the store keeps of them.

An agent is known by its name: what its threads and its single runs have used is added up.
"""

from collections import Counter
from collections.abc import Mapping, Sequence

from wakeful.contracts.errors import InvalidConfig
from wakeful.contracts.events import TurnCompleted
from wakeful.contracts.models import AgentTokenUsageSummary, TokenUsage
from wakeful.ports import Store, TurnRow
from wakeful.views.agent_status import AgentStatus


async def agents_status(store: Store, agent: str | None = None) -> list[AgentStatus]:
    """Every agent that had a turn, by name, or one of them. Raises InvalidConfig for one that there is not."""
    turns: dict[str, list[TurnRow]] = {}
    for row in await store.turns():
        turns.setdefault(row.agent_name, []).append(row)
    known = sorted(turns)
    if agent is not None and agent not in turns:
        hint = f"there are: {', '.join(known[:20])}" if known else "nothing has been run here yet"
        raise InvalidConfig(f"there is no agent {agent!r} in {store.location}", hint)
    actions = Counter(row.agent_name for row in await store.actions(pending_only=True))
    queued = Counter[str]()
    for thread in await store.busy_threads():
        queued[thread.agent_id] += thread.queued
    unknown = Counter(row.agent_id for row in await store.unknown())
    return [
        AgentStatus(
            agent=name,
            open_turns=sum(row.is_open for row in turns[name]),
            queued_messages=sum(queued[stream] for stream in {row.agent_id for row in turns[name]}),
            pending_actions=actions[name],
            unknown_outcomes=sum(unknown[stream] for stream in {row.agent_id for row in turns[name]}),
            token_usage=await _usage(store, turns[name]),
        )
        for name in (known if agent is None else [agent])
    ]


async def _usage(store: Store, turns: Sequence[TurnRow]) -> AgentTokenUsageSummary:
    kept = {stream: await store.usage(stream) for stream in dict.fromkeys(row.agent_id for row in turns)}
    total = TokenUsage()
    for each in kept.values():
        total += each.total
    return AgentTokenUsageSummary(
        total=total,
        total_model_rounds=sum(each.total_model_rounds for each in kept.values()),
        last_turn=await _last(store, turns, kept),
    )


async def _last(
    store: Store, turns: Sequence[TurnRow], kept: Mapping[str, AgentTokenUsageSummary]
) -> TokenUsage | None:
    """Of the turns that completed, the newest with token data. Where several streams know one, they are asked."""
    reported = {stream: each.last_turn for stream, each in kept.items() if each.last_turn is not None}
    if len(reported) < 2:
        return next(iter(reported.values()), None)
    of_stream = Counter(row.agent_id for row in turns)
    ended = [row for row in turns if row.ended_at is not None and row.agent_id in reported]
    for row in sorted(ended, key=lambda row: row.ended_at or 0, reverse=True):
        if of_stream[row.agent_id] == 1:
            return reported[row.agent_id]
        for entry in await store.read(row.agent_id, turn_id=row.turn_id):
            event = entry.fact.event
            if isinstance(event, TurnCompleted) and event.token_usage is not None:
                return event.token_usage
    return None
