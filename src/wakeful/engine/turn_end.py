"""What goes on record with the end of a turn besides the end itself, in the same transaction: a brief for the people
the agent works for, the blocker of the item that the turn was bound to, when the agent is woken for its own work, and
what the turn adds to the agent's memory.

For agents of a runtime alone, and for those with memory: any other run of the library writes nothing more than it did.
"""

from collections.abc import Iterable, Sequence

from wakeful.contracts.envelope import MAIN_THREAD, Fact, StoredFact, before
from wakeful.contracts.events import (
    AnyEvent,
    AssistantRecorded,
    BriefCreated,
    GrantCounted,
    Terminal,
    ToolResult,
    WaitCancelled,
    WaitCreated,
    WorkItemBlockerChanged,
    WorkItemCompleted,
    WorkItemCreated,
    WorkItemUpdated,
    WorkQueueScheduled,
)
from wakeful.contracts.waking import CHECK_THREAD
from wakeful.contracts.work_items import ActiveWait, WorkItem
from wakeful.decisions.briefs import brief_visibility, turn_brief
from wakeful.decisions.grants import left_after
from wakeful.decisions.memory.readers import belongs_to
from wakeful.decisions.policy.provenance import is_instruction
from wakeful.decisions.waking.backoff import Sign, TurnSigns, is_self_started
from wakeful.decisions.work_items.activation import activation, goes_on_by_itself, spacing_after, work_signs
from wakeful.decisions.work_items.blockers import (
    SLEEPING,
    no_progress_blocker,
    sleep_blocker,
    sleep_over,
    turn_end_blocker,
    wait_over,
)
from wakeful.engine.memory_turns import memory_facts
from wakeful.engine.prepare.conversation import Conversation, checkpoint
from wakeful.engine.turn_work import TurnWork
from wakeful.engine.work_items import NEEDS_INPUT, active_wait, active_waits, written_from
from wakeful.ports.runtime_agents import RuntimeAgentRow
from wakeful.ports.wakes import WORK


async def close_turn(work: TurnWork, conversation: Conversation, facts: list[Fact]) -> None:
    """Add to the facts with which a turn ends. Its end stays the last of them."""
    own = await work.place.store.runtime_agent(work.place.row.agent_id)
    if own is not None:
        ended = _place_of_end(facts)
        entries = await work.place.known.all()
        facts[ended:ended] = await _work_facts(work, conversation, facts, entries, own)
        _add_briefs(work, conversation, facts, entries)
        if own.ownership == "parent_supervised":
            facts.insert(_place_of_end(facts), work.fact(_counted(work)))
    if work.config.options.get("memory") is True:
        added = await memory_facts(work, conversation, facts, await work.place.known.all())
        ended = _place_of_end(facts)
        facts[ended:ended] = [work.fact(event) for event in added]
    await checkpoint(work, conversation, facts)
    if own is not None:
        _name_end(facts)


def _place_of_end(facts: Sequence[Fact]) -> int:
    return next(place for place, fact in enumerate(facts) if isinstance(fact.event, Terminal))


def _counted(work: TurnWork) -> GrantCounted:
    """What the next turn of a child begins with, and what is behind its words."""
    state = work.state
    untrusted = state.thread.exposure.untrusted
    if not untrusted and not is_instruction(state.terms.derived_from):
        untrusted = f"the child's own input: {state.terms.derived_from}"
    return GrantCounted(left=left_after(state.limits, state.ledger, work.active_seconds()), untrusted=untrusted)


# --- briefs ------------------------------------------------------------------------------------------------------


def _add_briefs(work: TurnWork, conversation: Conversation, facts: list[Fact], entries: Sequence[StoredFact]) -> None:
    """One for each report of a completed item, and one for the turn, unless it would say the same again."""
    if work.place.row.thread_id.startswith(CHECK_THREAD):
        return  # a check says nothing: the agent is woken when there is something to tell
    place = _place_of_end(facts)
    ended = facts[place].event
    assert isinstance(ended, Terminal)
    events: list[AnyEvent] = [*(entry.fact.event for entry in entries), *(fact.event for fact in facts)]
    awaits = _asks_operator(events)
    items = work.state.work_items
    shared = {
        "workspace_id": work.workspace_id,
        "related_message_id": conversation.messages[0].message_id,
        "related_task_id": conversation.messages[0].task_id,
        "principal": belongs_to(conversation.messages[0]),
        "derived_from": written_from(work.state),
    }
    reports = [event for event in events if isinstance(event, WorkItemCompleted) and event.text_ref is not None]
    turn_id = work.place.row.turn_id
    made = [
        BriefCreated(
            brief_id=f"brief_{turn_id}_{event.work_item_id}",
            brief_kind="result",
            visibility=brief_visibility(awaits_operator=awaits, completed_item=True),
            text_ref=event.text_ref,
            work_item_id=event.work_item_id,
            **shared,
        )
        for event in reports
    ]
    final = work.state.answer.final_text
    is_told = bool(reports) and (not final.strip() or final in _told_in(reports, entries))
    planned = turn_brief(ended, has_text=bool(final.strip()), awaits_operator=awaits)
    if planned is not None and not (planned.kind == "result" and is_told):
        ref = _reply_ref(facts, entries, place + len(made)) if planned.text_from == "reply" else None
        made.append(
            BriefCreated(
                brief_id=f"brief_{turn_id}",
                brief_kind=planned.kind,
                visibility=planned.visibility,
                text_ref=_END if planned.text_from == "end" else ref,
                work_item_id=items.bound or items.focus,
                **shared,
            )
        )
    facts[place:place] = [work.fact(event) for event in made]


def _asks_operator(events: Iterable[AnyEvent]) -> bool:
    """Did the turn leave something that waits for its operator: a wait, or an item that needs input?"""
    plans: dict[str, str] = {}
    for event in events:
        if isinstance(event, WaitCreated) and event.wake == "operator_input":
            return True
        if isinstance(event, WorkItemCreated | WorkItemUpdated) and event.plan_status is not None:
            plans[event.work_item_id] = event.plan_status
        elif isinstance(event, WorkItemCompleted):
            plans.pop(event.work_item_id, None)
    return NEEDS_INPUT in plans.values()


def _told_in(reports: Sequence[WorkItemCompleted], entries: Sequence[StoredFact]) -> list[str]:
    """The words of these reports, as far as they are replies."""
    named = {report.text_ref for report in reports}
    replies = [(each.event_id, each.fact.event) for each in entries]
    return [event.item.text for name, event in replies if name in named and isinstance(event, AssistantRecorded)]


def _reply_ref(facts: Sequence[Fact], entries: Sequence[StoredFact], at: int) -> str | None:
    """The newest reply of the root, as a fact that will stand at this place names it."""
    for place in range(len(facts) - 1, -1, -1):
        if isinstance(facts[place].event, AssistantRecorded) and facts[place].level is None:
            return before(at - place)
    found = [each for each in entries if isinstance(each.fact.event, AssistantRecorded) and each.fact.level is None]
    return found[-1].event_id if found else None


_END = "end"
"""In a brief that is about to be written: its words are those of the turn's end, wherever that will stand."""


def _name_end(facts: list[Fact]) -> None:
    place = _place_of_end(facts)
    for index, fact in enumerate(facts):
        if isinstance(fact.event, BriefCreated) and fact.event.text_ref == _END:
            fact.event = fact.event.model_copy(update={"text_ref": before(index - place)})


# --- work items --------------------------------------------------------------------------------------------------


async def _work_facts(
    work: TurnWork,
    conversation: Conversation,
    facts: Sequence[Fact],
    entries: Sequence[StoredFact],
    own: RuntimeAgentRow,
) -> list[Fact]:
    if work.config.options.get("work_items") is not True:
        return []
    store, row, now = work.place.store, work.place.row, work.clock.now()
    events = [*(entry.fact.event for entry in entries), *(fact.event for fact in facts)]
    cancelled = {event.wait_id for event in events if isinstance(event, WaitCancelled)}
    waits = [wait for wait in await active_waits(store, row.agent_id, events) if wait.wait_id not in cancelled]
    bound_id = work.state.work_items.bound
    bound = await store.work_item(bound_id) if bound_id is not None else None
    freed = await _freed(work, cancelled, waits, facts)
    made: list[AnyEvent] = [*freed.values()]
    blocker = turn_end_blocker(bound, waits)
    if blocker is not None:
        made.append(blocker)
    focus = await store.current_work_item_id(row.agent_id)
    items = await store.open_work_items(row.agent_id)
    items = [_blocked(item, None) if item.work_item_id in freed else item for item in items]
    if blocker is not None:
        items = [_blocked(item, blocker.blocked_by) if item == bound else item for item in items]
    slept = next((event for event in events if isinstance(event, WaitCreated) and event.is_endless), None)
    if row.thread_id == MAIN_THREAD:
        changes = await _after_sleep(work, items, events, slept)
        made += changes
        now_blocked = {change.work_item_id: change.blocked_by for change in changes}
        items = [_blocked(item, now_blocked.get(item.work_item_id, item.blocked_by)) for item in items]
    found = activation(items, focus, waits)
    is_planned = await store.wake(row.agent_id, MAIN_THREAD, WORK) is not None
    if found is None:
        # An item of the round that a limit cut short is written with the turn's end: nobody has a row of it yet.
        new = [fact.event.work_item_id for fact in facts if isinstance(fact.event, WorkItemCreated)]
        if new and slept is not None and row.thread_id == MAIN_THREAD:
            made.append(sleep_blocker(new.pop(0), None, slept, await _rests_until(work, events)))
        if new and not is_planned:
            made.append(WorkQueueScheduled(work_item_id=new[0], due_at=now))
        return [
            Fact(event, now, MAIN_THREAD) if isinstance(event, WorkQueueScheduled) else work.fact(event)
            for event in made
        ]
    if row.thread_id != MAIN_THREAD:
        # Work goes on in `main`. A turn elsewhere sees to it that somebody looks, and changes no plan that is there.
        return [*map(work.fact, made), *(() if is_planned else (Fact(_scheduled(found.item, now), now, MAIN_THREAD),))]
    ended = facts[_place_of_end(facts)].event
    assert isinstance(ended, Terminal)
    if own.control == "running" and not goes_on_by_itself(ended, found.signal, events):
        return [*map(work.fact, [*made, *([WorkQueueScheduled()] if is_planned else [])])]
    if slept is not None:
        resting = sleep_blocker(found.item.work_item_id, None, slept, await _rests_until(work, events))
        rest = [_blocked(item, SLEEPING) if item == found.item else item for item in items]
        following = activation(rest, focus, waits)
        plans = [WorkQueueScheduled()] if is_planned else []
        return [*map(work.fact, [*made, resting, *(plans if following is None else [_scheduled(following.item, now)])])]
    kinds = [(message.message_kind, message.authority_class) for message in conversation.messages]
    spacing = spacing_after(found.item, TurnSigns(is_self_started(kinds), frozenset(_signs(work, events))))
    stuck = no_progress_blocker(found.item) if spacing.pause.is_stalled else None
    if stuck is None:
        counted = found.item._replace(idle_turns=spacing.idle_turns, plan_turns=spacing.plan_turns)
        return [*map(work.fact, [*made, _scheduled(counted, now + spacing.pause.microseconds)])]
    rest = [_blocked(item, stuck.blocked_by) if item == found.item else item for item in items]
    following = activation(rest, focus, waits)
    planned = [] if following is None else [_scheduled(following.item, now)]
    return [*map(work.fact, [*made, stuck, *planned, _stalled_brief(work, found.item)])]


async def _freed(
    work: TurnWork, cancelled: Iterable[str], waits: Sequence[ActiveWait], facts: Sequence[Fact]
) -> dict[str, WorkItemBlockerChanged]:
    """By item, the end of the blocker that a wait had set which the turn cancelled. Another wait may go on with it."""
    store = work.place.store
    events = [fact.event for fact in facts]
    changed = {event.work_item_id for event in events if isinstance(event, WorkItemUpdated | WorkItemCompleted)}
    goes_on = {(wait.work_item_id, wait.reason) for wait in waits}
    found: dict[str, WorkItemBlockerChanged] = {}
    for name in sorted(cancelled):
        row = await store.wait(name)
        if row is None or row.work_item_id is None or row.work_item_id in changed:
            continue
        change = wait_over(await store.work_item(row.work_item_id), active_wait(row))
        if change is not None and (row.work_item_id, row.reason) not in goes_on:
            found[row.work_item_id] = change
    return found


async def _after_sleep(
    work: TurnWork, items: Sequence[WorkItem], events: Sequence[AnyEvent], slept: WaitCreated | None
) -> list[WorkItemBlockerChanged]:
    """What becomes of items that the agent slept over before: they are slept over again, or may go on."""
    said = {event.work_item_id for event in events if isinstance(event, WorkItemUpdated)}
    over = [item for item in items if item.blocked_by == SLEEPING and item.work_item_id not in said]
    if slept is None:
        return [sleep_over(item) for item in over]
    until = await _rests_until(work, events) if over else 0
    return [sleep_blocker(item.work_item_id, SLEEPING, slept, until) for item in over]


async def _rests_until(work: TurnWork, events: Sequence[AnyEvent]) -> int:
    """When an agent that sleeps without an end is woken by a wait of its own: else from now on nothing wakes it."""
    row = work.place.row
    waits = [each for each in await work.place.store.open_waits(row.agent_id) if each.thread_id == row.thread_id]
    begun = [event.due_at for event in events if isinstance(event, WaitCreated) and event.due_at is not None]
    return min([*(wait.due_at for wait in waits), *begun], default=work.clock.now())


def _scheduled(item: WorkItem, due_at: int) -> WorkQueueScheduled:
    return WorkQueueScheduled(
        work_item_id=item.work_item_id, due_at=due_at, idle_turns=item.idle_turns, plan_turns=item.plan_turns
    )


def _blocked(item: WorkItem, blocked_by: str | None) -> WorkItem:
    return item._replace(blocked_by=blocked_by)


def _signs(work: TurnWork, events: Sequence[AnyEvent]) -> set[Sign]:
    found: set[Sign] = work_signs(events)
    for event in events:
        declared = work.config.tool(event.tool_name) if isinstance(event, ToolResult) else None
        if declared is not None and not declared.is_read_only:
            found.add("effect")
        elif isinstance(event, BriefCreated) and event.brief_kind == "progress":
            found.add("brief")
    return found


def _stalled_brief(work: TurnWork, item: WorkItem) -> BriefCreated:
    words = (
        f"Work item {item.work_item_id} is blocked: turn after turn brought it no further. It waits for your word. "
        f"Its objective: {item.objective[:500]}"
    )
    return BriefCreated(
        brief_id=f"brief_{work.place.row.turn_id}_stalled",
        brief_kind="progress",
        visibility="action_required",
        text=words,
        work_item_id=item.work_item_id,
    )
