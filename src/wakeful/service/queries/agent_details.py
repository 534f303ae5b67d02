"""One agent of a runtime with everything that rows say of it: its state, its model, where it stands, its children."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from wakeful.contracts.envelope import MAIN_THREAD
from wakeful.contracts.errors import ForTheCaller
from wakeful.contracts.waking import ContinuationResolution
from wakeful.engine.run_request import Engine
from wakeful.ports.agent_board import AgentAnswer
from wakeful.ports.runtime_agents import RuntimeAgentRow
from wakeful.runtime.child_agents import active_children, children_and_words
from wakeful.service.agent_models import ancestry
from wakeful.service.commands.agents import agent_named, closure_of_agent
from wakeful.service.queries.agent_records import record_of, running_threads
from wakeful.views.agent_state import (
    AgentExecutionProfile,
    AgentModelState,
    AgentState,
    LifeStatus,
    PendingHint,
    model_state,
    tool_latencies,
)
from wakeful.views.runtime_records import AgentDetails, AgentGetResult, AgentIdentity, ChildRecord


async def agent_details(engine: Engine, name: str) -> AgentDetails:
    """One agent, a private one as well. Raises AgentNotFound."""
    row = await agent_named(engine.store, name)
    lineage = await ancestry(engine.store, name)
    record, definition = await record_of(engine, row), await definition_of(engine, _defined(lineage))
    figures = await engine.store.figures_of(name)
    newest = await engine.store.agent_revisions(name, limit=1)
    children = [each for each in await engine.store.children_of(name) if each.archived_at is None]
    return AgentDetails(
        **dict(record),
        state=await agent_state(engine, row, record.status, definition),
        model=model_of(lineage, definition),
        closure=await closure_of_agent(engine, name),
        turns_since_revision=figures.turns - newest[0].turns_before if newest else 0,
        children=tuple([await _child(engine, child) for child in children]),
        active_children=tuple(await active_children(engine, name)),
    )


async def definition_of(engine: Engine, row: RuntimeAgentRow) -> Mapping[str, Any]:
    """The definition in force as data; of one that holds code, what can be said of it. Empty: nothing is known."""
    if not row.revision:
        return {}
    try:
        found: Mapping[str, Any] = json.loads(await engine.store.get_blob(row.revision))
    except ForTheCaller:  # of an agent that a version before this one made known
        return {}
    return found


def _defined(lineage: Sequence[RuntimeAgentRow]) -> RuntimeAgentRow:
    """The one whose definition an agent has: its own, or that of whoever made it."""
    return next((row for row in lineage if row.revision), lineage[0])


def model_of(lineage: Sequence[RuntimeAgentRow], definition: Mapping[str, Any]) -> AgentModelState:
    """The model of the first of them. What its maker is run with is its default."""
    default, fallbacks = str(definition.get("model", "")), [str(each) for each in definition.get("fallbacks") or ()]
    for row in lineage[:0:-1]:
        above = model_state(default, fallbacks, row.model_override)
        default, fallbacks = above.effective_model, list(above.effective_fallback_models)
    return model_state(default, fallbacks, lineage[0].model_override)


async def agent_state(
    engine: Engine, row: RuntimeAgentRow, status: LifeStatus, definition: Mapping[str, Any]
) -> AgentState:
    """The state of an agent, from its rows."""
    store, name = engine.store, row.agent_id
    busy, waits = await store.busy_threads(name), await store.open_waits(name)
    figures, used = await store.figures_of(name), await store.usage(name)
    briefs, hint = await store.briefs(name, limit=1), await store.pending_hint(name, MAIN_THREAD)
    last = await store.last_continuation(name)
    return AgentState(
        id=name,
        status=status,
        sleeping_until=min((wait.due_at for wait in waits), default=0) / 1e6 or None,
        current_run_id=await _running_turn(engine, name),
        pending=sum(thread.queued for thread in busy),
        active_task_ids=tuple(task.task_id for task in await store.tasks_of(name) if not task.is_over),
        last_wake_reason=last.message_kind if last is not None else None,
        last_brief_at=briefs[0].created_at / 1e6 if briefs else None,
        compacted_message_count=figures.compacted_messages,
        total_message_count=figures.messages,
        total_input_tokens=used.total.input_tokens,
        total_output_tokens=used.total.output_tokens,
        total_model_rounds=used.total_model_rounds,
        tool_latency=tool_latencies(figures.tools),
        execution_profile=_profile(engine, definition),
        model_override=row.model_override,
        pending_wake_hint=None if hint is None else _hint(hint.hints, hint.first_at, hint.last_at),
        current_work_item_id=await store.current_work_item_id(name),
        last_continuation=None if last is None else ContinuationResolution.model_validate(last.resolution),
    )


def _hint(hints: int, first_at: int, last_at: int) -> PendingHint:
    return PendingHint(hints=hints, first_at=first_at / 1e6, last_at=last_at / 1e6)


def _profile(engine: Engine, definition: Mapping[str, Any]) -> AgentExecutionProfile:
    has_files = definition.get("workspace") is not None
    profile = definition.get("profile") or ("coding" if has_files else "chat" if definition else None)
    runs = has_files and profile != "chat"
    return AgentExecutionProfile(
        profile=profile,
        backend="sandboxed" if runs else "host_local",
        process_execution_exposed=runs,
        allow_background_tasks=runs and engine.surroundings.tasks is not None,
    )


async def _running_turn(engine: Engine, name: str) -> str | None:
    for thread in await running_threads(engine, await engine.store.busy_threads(name)):
        for turn in await engine.store.turns_of_thread(name, thread.thread_id, open_only=True):
            if turn.state != "suspended":
                return turn.turn_id
    return None


async def _child(engine: Engine, row: RuntimeAgentRow) -> ChildRecord:
    state = await agent_state(engine, row, (await record_of(engine, row)).status, {})
    return ChildRecord(
        identity=identity_of(row),
        status=state.status,
        current_run_id=state.current_run_id,
        pending=state.pending,
        current_work_item_id=state.current_work_item_id,
        turns=(await engine.store.figures_of(row.agent_id)).turns,
        total_model_rounds=state.total_model_rounds,
        last_brief_at=state.last_brief_at,
    )


def identity_of(row: RuntimeAgentRow) -> AgentIdentity:
    return AgentIdentity(
        agent_id=row.agent_id,
        kind=row.kind,
        visibility=row.visibility,
        ownership=row.ownership,
        profile_preset=row.profile_preset,
        lineage_parent_agent_id=row.parent,
    )


class RuntimeAgentBoard:
    """The board at which models look at agents: an agent is shown itself and those that it made, and no other.

    For the turns of one runtime. `engine` is set when there is one: an engine knows its board.
    """

    engine: Engine

    async def get(self, turn_id: str, agent_id: str | None) -> AgentAnswer | None:
        store = self.engine.store
        turn = await store.turn(turn_id)
        row = None if turn is None else await store.runtime_agent(agent_id or turn.agent_id)
        if turn is None or row is None or turn.agent_id not in (row.agent_id, row.parent):
            return None
        found, children = (
            await agent_details(self.engine, row.agent_id),
            await children_and_words(self.engine, row.agent_id),
        )
        shown = AgentGetResult(
            identity=identity_of(row),
            agent_home=found.agent_home,
            state=found.state,
            model=found.model,
            closure=found.closure,
            children=found.children,
            active_children=tuple(child for child, _ in children),
        )
        untrusted = next((words.untrusted for _, words in children if words.untrusted), "")
        return AgentAnswer(shown.model_dump(mode="json", exclude_none=True), untrusted)
