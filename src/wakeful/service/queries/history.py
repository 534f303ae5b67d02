"""The past of a store for readers: its turns by what is known of them, its threads, the messages of one."""

from collections.abc import Sequence
from difflib import get_close_matches

from wakeful.contracts.errors import InvalidRequest
from wakeful.contracts.policies import Rule
from wakeful.contracts.spending import SpendRow, dollars
from wakeful.contracts.waking import CHECK_THREAD
from wakeful.ports import RuleRow, Store, ThreadRow, TurnFilter, TurnRow, Turns, UnknownRow
from wakeful.ports.threads import ThreadPlace
from wakeful.service.queries.turns import EventReader, find_turn
from wakeful.views import tree
from wakeful.views.explanation import rule_words
from wakeful.views.store_records import ApprovalRule, SpendingLimit, ThreadRecord, TurnRecord, UnknownCall
from wakeful.views.tree import ThreadMessage

MOST_AGENTS = 50
"""Of how many agents with a thread of the same name one is looked for."""


def turn_record(row: TurnRow) -> TurnRecord:
    """A turn's row for readers."""
    return TurnRecord(
        turn_id=row.turn_id,
        key=row.key,
        agent=row.agent_name,
        agent_id=row.agent_id,
        thread=row.thread_id,
        state=row.state,
        is_open=row.is_open,
        prompt=row.prompt_preview,
        waiting_for=row.waiting_for,
        created_at=row.created_at / 1_000_000,
        ended_at=row.ended_at / 1_000_000 if row.ended_at is not None else None,
        deleted_at=row.deleted_at / 1_000_000 if row.deleted_at is not None else None,
    )


async def threads(store: Store, agent: str | None, limit: int, before: ThreadPlace | None = None) -> list[ThreadRecord]:
    """The threads of all agents, or of those of one name, that have had a turn: last active first."""
    found: list[ThreadRecord] = []
    while len(found) < limit and (page := await store.threads(agent, limit=limit, before=before)):
        before = ThreadPlace.of(page[-1])
        for row in page:
            last = await store.turn(row.newest_turn)
            if last is not None:
                found.append(_thread_record(row, last))
    return found[:limit]


def _thread_record(row: ThreadRow, last: TurnRow) -> ThreadRecord:
    return ThreadRecord(
        thread=row.thread_id,
        agent=row.agent_name,
        agent_id=row.agent_id,
        turns=row.turns,
        active_at=row.active_at / 1e6,
        last_turn=turn_record(last),
    )


def unknown_record(row: UnknownRow, others: Sequence[UnknownRow] = ()) -> UnknownCall:
    """A call with an unknown outcome, for readers; `others` may have the same id."""
    alone = not any(other.call_id == row.call_id and other.turn_id != row.turn_id for other in others)
    return UnknownCall(
        call_id=row.call_id,
        turn_id=row.turn_id,
        agent_id=row.agent_id,
        thread=row.thread_id,
        step=row.step,
        tool=row.tool,
        arguments=row.arguments,
        reason=row.reason,
        since=row.since / 1_000_000,
        reference=row.call_id if alone else f"{row.turn_id}/{row.call_id}",
    )


async def unknown_calls(store: Store) -> list[UnknownCall]:
    """All calls with an unknown outcome."""
    rows = await store.unknown()
    return [unknown_record(row, rows) for row in rows]


def rule_record(row: RuleRow) -> ApprovalRule:
    """A rule made with `Always`, for readers."""
    return ApprovalRule(
        rule_id=row.rule_id,
        agent=row.agent_name,
        agent_id=row.agent_id,
        words=rule_words(Rule.model_validate(row.rule)),
        rule=row.rule,
        added_at=row.added_at / 1_000_000,
        added_by=row.added_by,
        revoked_at=row.revoked_at / 1_000_000 if row.revoked_at is not None else None,
        revoked_by=row.revoked_by,
    )


def limit_record(row: SpendRow) -> SpendingLimit:
    """A spend window, for readers."""
    return SpendingLimit(
        scope=row.scope,
        window=row.period,
        began_at=row.began / 1_000_000,
        resets_at=row.turns / 1_000_000,
        limit_usd=dollars(row.limit),
        granted_usd=dollars(row.granted),
        spent_usd=dollars(row.spent),
        reserved_usd=dollars(row.held),
        noticed=row.noticed,
    )


async def turns(store: Store, which: TurnFilter, key: str | None, limit: int, before: str | None) -> list[TurnRecord]:
    """A page of turns, newest first. Raises TurnNotFound for a `before` that is no turn.

    Checks of timers that ended well are left out, unless their thread is asked for: there may be one a minute.
    """
    if key is not None:
        row = await store.turn_of_key(key)
        return [turn_record(row)] if row is not None and which.fits(row) else []
    older_than = (await find_turn(store, before)).turn_id if before is not None else None
    found: list[TurnRecord] = []
    while len(found) < limit and (page := await store.find_turns(which, limit=limit, before=older_than)):
        older_than = page[-1].turn_id
        found += [turn_record(row) for row in page if which.thread_id is not None or not _is_quiet_check(row)]
        if len(page) < limit:
            break
    return found[:limit]


def _is_quiet_check(row: TurnRow) -> bool:
    return row.state == "completed" and row.thread_id.startswith(CHECK_THREAD)


async def messages(
    store: Store, thread: str, agent: str | None, limit: int, before: int | None, *, keys: frozenset[str]
) -> list[ThreadMessage]:
    """The newest messages of a thread, oldest first; with `before`, of those before that event.

    Empty for a thread without turns. Raises InvalidRequest where several agents have a thread of that name.
    """
    rows = await _newest_of(store, thread)
    meant = [row for row in rows if agent in (None, row.agent_name, row.agent_id)]
    if len(meant) > 1:
        names = ", ".join(sorted(f"{row.agent_name} ({row.agent_id})" for row in meant))
        raise InvalidRequest(
            f"{len(meant)} agents have a thread {thread!r}: {names}", "say which: agent=NAME or its id"
        )
    if rows and not meant and agent is not None:
        names_there = [row.agent_name for row in rows]
        near = get_close_matches(agent, names_there, n=3, cutoff=0.5) or names_there[:5]
        raise InvalidRequest(f"agent {agent!r} has no thread {thread!r}", f"agents that have one: {', '.join(near)}")
    if not meant:
        return []
    # Every turn has a message at least: so many turns are enough.
    page = await store.turns_of_thread(meant[0].agent_id, thread, last=limit, before=before)
    facts = [recorded for row in page for recorded in await store.read(row.agent_id, turn_id=row.turn_id)]
    reader = EventReader(store, keys=keys)
    await reader.learn(facts)
    said = tree.thread_messages(sorted(facts, key=lambda recorded: recorded.seq), reader.secrets)
    return [message for message in said if before is None or message.event_seq < before][-limit:]


async def _newest_of(store: Turns, thread: str) -> list[TurnRow]:
    """The newest turn of each agent that has a thread of that name."""
    found = [
        await store.turns_of_thread(agent_id, thread, last=1)
        for agent_id in await store.agents_of_thread(thread, limit=MOST_AGENTS)
    ]
    return [row for rows in found for row in rows]
