"""What the end of a turn adds to its agent's memory, in the transaction of that end: what the turn did, working memory
as it follows from the records now, and the end of an episode where one is due."""

import asyncio
import re
from collections.abc import Iterable, Sequence
from typing import Any

from wakeful.contracts.envelope import Fact, StoredFact
from wakeful.contracts.events import (
    ActionResolved,
    AnyEvent,
    AssistantRecorded,
    BriefCreated,
    MemoryEpisodeFinalized,
    MemoryTurnRecorded,
    Terminal,
    ToolFailed,
    ToolResult,
    ToolStarted,
    TurnFailed,
    WaitCreated,
    WorkItemCompleted,
    WorkItemCreated,
    WorkItemUpdated,
)
from wakeful.contracts.memory import EpisodeBuilder, MemoryLine, TurnMemoryDelta, WorkingMemorySnapshot
from wakeful.contracts.work_items import ActiveWait
from wakeful.decisions.briefs import failure_text
from wakeful.decisions.memory.episodes import boundary
from wakeful.decisions.memory.readers import belongs_to
from wakeful.decisions.memory.working_memory import (
    WorkEvidence,
    brief_key,
    derive,
    few,
    line_of,
    waiting_lines,
    work_summary,
)
from wakeful.decisions.policy.patterns import bare
from wakeful.decisions.policy.provenance import is_instruction
from wakeful.engine.plan_files import read_plan
from wakeful.engine.prepare.conversation import Conversation
from wakeful.engine.turn_work import TurnWork
from wakeful.engine.work_items import active_waits
from wakeful.settings.agent_homes import agent_home, home_of_store

_FILE_TOOLS = ("write_file", "edit_file", "read_file")
_VERIFIES = re.compile(r"\b(test|tests|pytest|check|lint|verify|mypy|ruff|tsc|build|doctor)\b")
MOST = 10


async def memory_facts(
    work: TurnWork, conversation: Conversation, facts: Sequence[Fact], entries: Sequence[StoredFact]
) -> list[AnyEvent]:
    """`facts` end the turn, its briefs among them; `entries` came before."""
    store, row, state = work.place.store, work.place.row, work.state
    told = [*(entry.fact for entry in entries), *facts]
    events = [fact.event for fact in told]
    held = await store.working_memory(row.agent_id)
    before = WorkingMemorySnapshot.model_validate(held.current) if held is not None else WorkingMemorySnapshot()
    focus = await store.current_work_item_id(row.agent_id)
    current = await store.work_item(focus) if focus is not None else None
    home = agent_home(home_of_store(store.location), row.agent_name)
    plan = await asyncio.to_thread(read_plan, home, focus) if focus is not None else None
    waits = await _waits(work, events)
    principal = belongs_to(conversation.messages[0])
    updates = [event for event in events if isinstance(event, WorkItemUpdated | WorkItemCreated)]
    turn = TurnMemoryDelta(
        turn_index=conversation.turn_index,
        messages=len(conversation.messages),
        current_work_item_id=focus,
        objective=line_of(current.objective, 500) if current is not None else "",
        active_work_changed=focus != before.current_work_item_id,
        plan_changed=any(each.plan_status is not None for each in updates),
        todo_list_changed=any(each.todo_list for each in updates),
        touched_files=few(_files(events), MOST),
        commands=few(_commands(events), MOST),
        verification=few(_verification(told), MOST),
        decisions=tuple(_decisions(work, told, entries, principal)),
        waiting_on=waiting_lines(waits),
        untrusted=state.thread.exposure.untrusted,
    )
    others = [item for item in (await store.open_work_items(row.agent_id))[::-1] if item.work_item_id != focus]
    forgotten = {change.entry for change in await store.memory_changes(row.agent_id)}
    evidence = WorkEvidence(current, plan.preview if plan is not None else "", others, waits, turn, forgotten)
    now = derive(before, evidence)
    turn = turn.model_copy(update={"pending_followups": now.pending_followups})
    recorded = MemoryTurnRecorded(
        turn=turn,
        working_memory=now,
        workspace_id=work.workspace_id,
        principal=principal,
    )
    builder = EpisodeBuilder.model_validate(held.active_episode) if held is not None and held.active_episode else None
    reason = boundary(
        builder,
        turn,
        completed=any(isinstance(event, WorkItemCompleted) for event in events),
        waits=bool(state.waits),
        rejoined=any(message.message_kind == "task_result" for message in conversation.messages),
    )
    if reason is None:
        return [recorded]
    ended = MemoryEpisodeFinalized(
        episode_id=builder.id if builder is not None else f"ep_{row.turn_id}",
        boundary_reason=reason,
        work_summary=work_summary(current) if current is not None else "",
    )
    return [recorded, ended]


async def _waits(work: TurnWork, events: Sequence[AnyEvent]) -> list[ActiveWait]:
    """Open waits; of those whose words derive from no instruction, the id in the place of the words."""
    store, agent_id = work.place.store, work.place.row.agent_id
    tainted = {row.wait_id for row in await store.open_waits(agent_id) if not is_instruction(row.derived_from or "")}
    if work.state.thread.exposure.untrusted:
        tainted |= {event.wait_id for event in events if isinstance(event, WaitCreated)}
    found = await active_waits(store, agent_id, events)
    return [each._replace(reason=each.wait_id) if each.wait_id in tainted else each for each in found]


def _started(events: Iterable[AnyEvent], *names: str) -> Iterable[dict[str, Any]]:
    return (
        event.safe_args or {} for event in events if isinstance(event, ToolStarted) and bare(event.tool_name) in names
    )


def _files(events: Sequence[AnyEvent]) -> list[str]:
    paths = [given.get("path") for given in _started(events, *_FILE_TOOLS)]
    return [line_of(path) for path in reversed(paths) if isinstance(path, str) and path]


def _commands(events: Sequence[AnyEvent]) -> list[str]:
    said = [given.get("cmd") for given in _started(events, "exec_command")]
    return [line_of(cmd) for cmd in reversed(said) if isinstance(cmd, str) and cmd]


def _verification(facts: Sequence[Fact]) -> list[str]:
    """Commands that check something, and how they ended."""
    asked: dict[str | None, str] = {}
    found: list[str] = []
    for fact in facts:
        event = fact.event
        if isinstance(event, ToolStarted) and bare(event.tool_name) == "exec_command":
            cmd = (event.safe_args or {}).get("cmd")
            if isinstance(cmd, str) and _VERIFIES.search(cmd):
                asked[fact.call_id] = line_of(cmd, 120)
        elif isinstance(event, ToolResult | ToolFailed) and fact.call_id in asked:
            status = event.details.get("exit_status") if isinstance(event, ToolResult) else None
            ended = "failed" if isinstance(event, ToolFailed) else f"exit status {status}"
            found.append(f"{asked[fact.call_id]}: {ended}")
    return found[::-1]


def _decisions(
    work: TurnWork, facts: Sequence[Fact], entries: Sequence[StoredFact], principal: str
) -> list[MemoryLine]:
    """What the turn told its people, and what people decided in it, the newest first."""
    final = work.state.answer.final_text
    lines: list[MemoryLine] = []
    texts = {
        entry.event_id: entry.fact.event.item.text
        for entry in entries
        if isinstance(entry.fact.event, AssistantRecorded)
    }
    has_brief = False
    for fact in facts:
        event = fact.event
        if isinstance(event, BriefCreated):
            has_brief = True
            text = event.text or texts.get(event.text_ref or "", final)
            if event.brief_kind == "failure":
                text = next((failure_text(each.event) for each in facts if isinstance(each.event, TurnFailed)), "")
            if text.strip():
                said = f"{event.brief_kind}: {line_of(text)}"
                lines.append(MemoryLine(text=said, source=brief_key(event.brief_id), principal=principal))
        elif isinstance(event, ActionResolved) and event.resolver != "runtime":
            said = f"{event.resolver} decided about {event.tool_name}: {event.decision}"
            lines.append(MemoryLine(text=said, principal=principal))
    ended = next((fact.event for fact in facts if isinstance(fact.event, Terminal)), None)
    if not has_brief and ended is not None and final.strip():
        lines.append(MemoryLine(text=f"result: {line_of(final)}", principal=principal))
    return lines[::-1]
