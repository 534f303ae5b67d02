"""What is known of a child agent, read from rows and from the end of its newest turn.

A child works in `main` and in no other thread. Its log is the only place where its words and what is left of its grant
stand.
"""

from typing import NamedTuple

from wakeful.contracts.budgets import Limits
from wakeful.contracts.conversation import AssistantItem
from wakeful.contracts.envelope import MAIN_THREAD
from wakeful.contracts.events import AssistantRecorded, GrantCounted, TurnFailed, TurnRetried
from wakeful.contracts.events.turns import Terminal
from wakeful.decisions.child_ends import ChildStanding, ChildWords
from wakeful.decisions.grants import nothing_of
from wakeful.decisions.spawn_terms import delegation_id
from wakeful.engine.brief_texts import brief_text
from wakeful.engine.run_request import Engine
from wakeful.gate.large_content import resolve
from wakeful.ports import Store, TurnRow
from wakeful.ports.tasks import TaskRow
from wakeful.runtime.child_places import worktree_of
from wakeful.runtime.closures import standing_of
from wakeful.views.child_agents import ActiveChild, ChildFacts, active_child

STILL_AT_WORK = "a child agent that is still at work"
"""Why its words are nobody's instruction yet: what is behind them is known when its turn has ended."""
MOST_BRIEFS = 20
"""Newest briefs that are looked at."""


class LastTurn(NamedTuple):
    """How the newest turn of a child ended."""

    words: ChildWords = ChildWords()
    left: Limits | None = None
    """None: it ended without saying so."""
    left_before: Limits | None = None
    """What was left when it had failed, of one that is tried again."""
    retried_by: str | None = None
    """Who had it tried again; None: nobody ever did."""
    stop_reason: str = ""
    message: str = ""


async def last_turn(store: Store, turn: TurnRow) -> LastTurn:
    """What a turn leaves behind: its words, and what is left of the grant."""
    found = LastTurn()
    reply: AssistantRecorded | None = None
    for entry in await store.read(turn.agent_id, turn_id=turn.turn_id):
        event = entry.fact.event
        if isinstance(event, AssistantRecorded) and entry.fact.level is None:
            reply = event
        elif isinstance(event, GrantCounted):
            found = found._replace(left=event.left, words=ChildWords(untrusted=event.untrusted))
        elif isinstance(event, TurnRetried):
            found = found._replace(left=None, left_before=found.left, retried_by=event.requested_by)
        elif isinstance(event, Terminal):
            message = event.message if isinstance(event, TurnFailed) else ""
            found = found._replace(stop_reason=event.stop_reason, message=message)
    if reply is not None:
        whole = await resolve(reply.item, store.get_blob)
        assert isinstance(whole, AssistantItem)
        found = found._replace(words=found.words._replace(text=whole.text))
    return found


async def newest_words(store: Store, child: ChildFacts) -> ChildWords:
    """What a child said last, and why that, and all that is shown of it, is nobody's instruction."""
    turn = await newest_ended(store, child.spec.agent_id)
    words = ChildWords() if turn is None else (await last_turn(store, turn)).words
    if not words.untrusted and child.is_at_work and (child.progress or child.work_summary):
        return words._replace(untrusted=STILL_AT_WORK)
    return words


async def newest_ended(store: Store, agent_id: str) -> TurnRow | None:
    rows = await store.turns_of_thread(agent_id, MAIN_THREAD, last=2)
    return next((row for row in rows[::-1] if not row.is_open), None)


class RetriedTurn(NamedTuple):
    """A turn of a child that is open again."""

    turn_id: str
    requested_by: str
    left: Limits | None
    """What was left of the grant when it had failed; None: nobody knows."""


async def retried_turn(store: Store, agent_id: str) -> RetriedTurn | None:
    """The turn of a child that somebody has opened again; None: there is none, or it is over."""
    newest = await store.turns_of_thread(agent_id, MAIN_THREAD, last=1)
    if not newest or not newest[0].is_open:
        return None
    found = await last_turn(store, newest[0])
    if found.retried_by is None:
        return None
    return RetriedTurn(newest[0].turn_id, found.retried_by, found.left_before)


async def limits_left(store: Store, agent_id: str, grant: Limits) -> Limits:
    """What the next turn of a child may use: the grant, or what its newest turn left of it."""
    turn = await newest_ended(store, agent_id)
    if turn is None:
        return grant
    left = (await last_turn(store, turn)).left
    return left if left is not None else nothing_of(grant)


async def child_standing(engine: Engine, row: TaskRow, child_id: str) -> tuple[ChildStanding, LastTurn] | None:
    """Everything that is decided about a child from; None: it is not there yet."""
    store = engine.store
    agent, parent = await store.runtime_agent(child_id), await store.runtime_agent(row.agent_id)
    if agent is None:
        return None
    standing = await standing_of(engine, child_id, MAIN_THREAD)
    newest = standing.turns[-1] if standing.turns else None
    last = await last_turn(store, newest) if newest is not None and not newest.is_open else LastTurn()
    busy = await store.busy_threads(child_id)
    state = newest.state if newest is not None else None
    tasks = [task.task_id for task in await store.tasks_of(child_id) if not task.is_over]
    first = await store.message(delegation_id(row.task_id))
    # Looked at again, last: a turn may have come and gone since the first look.
    has_begun = newest is not None or bool(await store.turns_of_thread(child_id, MAIN_THREAD, last=1))
    found = ChildStanding(
        status=row.status,
        control=agent.control,
        cause=agent.cause,
        reason=agent.reason,
        closure=standing.closure,
        has_begun=has_begun,
        is_running=any([await store.is_held(child_id, thread.thread_id) for thread in busy if thread.turns]),
        has_open_turn=any(thread.turns for thread in busy),
        has_messages=any(thread.queued for thread in busy) or bool(await store.deferred(child_id, MAIN_THREAD)),
        open_tasks=tuple(tasks),
        turn_status=state if state in ("completed", "incomplete", "failed", "cancelled") else None,
        turn_message=last.message,
        stop_reason=last.stop_reason,
        parent_control="running" if parent is None else parent.control,
        is_called_off=first is not None and first.state == "expired",
        changed_at=agent.changed_at,
    )
    return found, last


async def child_facts(engine: Engine, row: TaskRow) -> ChildFacts | None:
    """How a child is doing, for whoever is shown it; None for a task that supervises none."""
    store, spec = engine.store, row.child
    if spec is None or spec.preset != "private_child":
        return None
    agent = await store.runtime_agent(spec.agent_id)
    standing = await standing_of(engine, spec.agent_id, MAIN_THREAD)
    busy = await store.busy_threads(spec.agent_id)
    newest = standing.turns[-1] if standing.turns else None
    is_resting = newest is not None and newest.state == "suspended"
    tasks = [task for task in await store.tasks_of(spec.agent_id) if not task.is_over]
    oldest = tasks[-1] if tasks else None
    focus = await store.current_work_item_id(spec.agent_id)
    item = await store.work_item(focus) if focus is not None else None
    progress, result = await _briefs(store, spec.agent_id)
    waits = await store.open_waits(spec.agent_id)
    return ChildFacts(
        task_id=row.task_id,
        parent=row.agent_id,
        spec=spec,
        status=row.status,
        is_over=row.is_over,
        control="running" if agent is None else agent.control,
        reason="" if agent is None else agent.reason,
        closure=standing.closure,
        resting=newest.waiting_for or ("somebody outside",) if newest is not None and is_resting else (),
        is_at_work=agent is None or any(thread.turns or thread.queued for thread in busy),
        open_task="" if oldest is None else f"task {oldest.task_id} is {oldest.status}: {oldest.summary}",
        work_item_id=focus,
        work_summary=item.objective if item is not None else None,
        progress=progress,
        result=result,
        worktree=await worktree_of(store, row),
        waits_for=waits[-1].reason if waits else None,
    )


async def active_children(engine: Engine, agent_id: str) -> list[ActiveChild]:
    """The private children of an agent that are not over, the oldest first."""
    return [child for child, _ in await children_and_words(engine, agent_id)]


async def children_and_words(engine: Engine, agent_id: str) -> list[tuple[ActiveChild, ChildWords]]:
    """The same, each with what it said last."""
    rows = [row for row in (await _supervising(engine, agent_id))[::-1] if not row.is_over]
    found = [(row, await child_facts(engine, row)) for row in rows]
    return [
        (active_child(facts, row.summary, row.created_at / 1e6), await newest_words(engine.store, facts))
        for row, facts in found
        if facts is not None
    ]


async def _supervising(engine: Engine, agent_id: str) -> list[TaskRow]:
    return [row for row in await engine.store.tasks_of(agent_id) if row.kind == "child_agent_task"]


async def _briefs(store: Store, agent_id: str) -> tuple[str | None, str | None]:
    """The words of the newest brief of progress, and of the newest one that tells an end."""
    progress = result = None
    for row in await store.briefs(agent_id, limit=MOST_BRIEFS):
        if row.kind == "progress" and progress is None:
            progress = await brief_text(store, row.text_event_id)
        elif row.kind in ("result", "failure") and result is None:
            result = await brief_text(store, row.text_event_id) or None
    return progress, result


async def told_briefs(store: Store, agent_id: str) -> list[tuple[str, str]]:
    """What a child wanted to be known before its end: ids and words, the oldest first."""
    rows = [row for row in await store.briefs(agent_id, limit=MOST_BRIEFS) if row.kind == "progress"]
    return [(row.brief_id, await brief_text(store, row.text_event_id)) for row in rows[::-1]]
