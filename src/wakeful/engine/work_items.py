"""The work items of a turn's agent: what calls read and change, and what goes on record beside their results.

A call reads the rows as they are and leaves its facts here; they are written in one commit with its result, or not at
all. Its id names the item that it creates: carried out again after a crash, it creates the same one.
"""

import asyncio
import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, NamedTuple, cast

from wakeful.contracts.authority import Authority
from wakeful.contracts.briefs import BriefVisibility
from wakeful.contracts.conversation import AssistantItem
from wakeful.contracts.errors import ToolReported
from wakeful.contracts.events import (
    AnyEvent,
    AssistantRecorded,
    BriefCreated,
    FilesTainted,
    ToolResult,
    WaitCreated,
    WorkItemCompleted,
    WorkItemCreated,
    WorkItemPicked,
    WorkItemReminded,
    WorkItemUpdated,
)
from wakeful.contracts.tools import ToolError
from wakeful.contracts.waking import WaitWake
from wakeful.contracts.work_items import (
    COMPLETE_WORK_ITEM,
    CREATE_WORK_ITEM,
    GET_WORK_ITEM,
    LIST_WORK_ITEMS,
    NOTIFY_OPERATOR,
    PICK_WORK_ITEM,
    RECHECK_MS,
    UPDATE_WORK_ITEM,
    ActiveWait,
    PlanStatus,
    TodoItem,
    WaitKind,
    WorkItem,
)
from wakeful.decisions.compaction import context_tokens
from wakeful.decisions.state import TurnState
from wakeful.decisions.work_items.advice import (
    ReminderTerms,
    completion_verdict,
    fits_prompt,
    is_reminder_due,
    reminder_text,
)
from wakeful.decisions.work_items.readiness import readiness, scheduling_state, work_views
from wakeful.engine.plan_files import PLAN_FILE, plan_folder, read_plan, write_plan
from wakeful.engine.turn_work import TurnPlace
from wakeful.gate.call_at_gate import CallAtGate
from wakeful.gate.large_content import resolve
from wakeful.gate.turn_gate import AfterCall
from wakeful.ports import Clock, Store
from wakeful.ports.waits import WaitRow
from wakeful.tools.context import RunContext
from wakeful.tools.tool import Tool
from wakeful.tools.turn_tool import Answer, TurnTool
from wakeful.tools.work_items import DECLARATIONS

NEEDS_INPUT: Final[PlanStatus] = "needs_input"
OBJECTIVE_CHARS = 500
"""Of an item's objective, where its people are told that it needs their input."""
SHOWN_ITEMS = 20
"""How many `list_work_items` shows where the call does not say."""

_KINDS: dict[WaitWake, WaitKind] = {
    "operator_input": "operator",
    "task_result": "task",
    "external": "external",
    "timer": "timer",
}


@dataclass(slots=True)
class WorkDesk:
    """What the calls of one turn work with."""

    place: TurnPlace
    clock: Clock
    state: Callable[[], TurnState]
    hide: Callable[[str], str]
    """Takes the runtime's own keys out of a text."""
    workspace_id: str
    agent_home: Path
    """Where plans are."""
    terms: ReminderTerms
    principal: str = ""
    """Whose the turn's items and briefs are; blank: the agent's."""
    facts: dict[str, list[AnyEvent]] = field(default_factory=dict)
    """What calls that are under way will put on record, by the call."""
    reminded_in: int = 0
    """The round whose reminder may be on its way to disk."""

    # --- calls ----------------------------------------------------------------------------------------------------

    def tools(self) -> dict[str, Tool[Any]]:
        """The tools with their code, by name."""
        answers: Mapping[str, Answer] = {
            CREATE_WORK_ITEM: self._create,
            PICK_WORK_ITEM: self._pick,
            UPDATE_WORK_ITEM: self._update,
            COMPLETE_WORK_ITEM: self._complete,
            GET_WORK_ITEM: self._get,
            LIST_WORK_ITEMS: self._list,
            NOTIFY_OPERATOR: self._notify,
        }
        return {name: TurnTool(DECLARATIONS[name], answer) for name, answer in answers.items()}

    async def _create(self, ctx: RunContext[Any], given: dict[str, Any]) -> dict[str, Any]:
        work_item_id = item_id(ctx.turn_id, ctx.call_id)
        created = WorkItemCreated(
            work_item_id=work_item_id,
            objective=self.hide(given["objective"]),
            plan_status=given.get("plan_status", "draft"),
            todo_list=self._todos(given.get("todo_list", ())),
            workspace_id=self.workspace_id,
            derived_from=self._derived_from(),
            principal=self.principal,
        )
        facts: list[AnyEvent] = [created]
        if created.plan_status == NEEDS_INPUT:
            facts.append(self._asks(ctx, work_item_id, created.objective))
        told: dict[str, Any] = {"work_item_id": work_item_id, "state": "open"}
        if given.get("plan"):
            digest = await asyncio.to_thread(write_plan, self.agent_home, work_item_id, self.hide(given["plan"]))
            if cause := self.state().thread.exposure.untrusted:
                folder = str(plan_folder(self.agent_home, work_item_id).resolve())
                facts.append(FilesTainted(workspace=folder, cause=cause[:300], files={PLAN_FILE: digest}))
            told["plan_artifact"] = await self._plan(work_item_id)
        self.facts[ctx.call_id] = facts
        return told

    async def _pick(self, ctx: RunContext[Any], given: dict[str, Any]) -> dict[str, Any]:
        item = await self._open_item(given["work_item_id"])
        previous = await self.place.store.current_work_item_id(item.agent_id)
        self.facts[ctx.call_id] = [WorkItemPicked(work_item_id=item.work_item_id, previous=previous)]
        return {"current_work_item_id": item.work_item_id, "previous": previous}

    async def _update(self, ctx: RunContext[Any], given: dict[str, Any]) -> dict[str, Any]:
        item = await self._open_item(given["work_item_id"])
        changes = {name: given[name] for name in ("objective", "plan_status") if given.get(name) is not None}
        if "objective" in changes:
            changes["objective"] = self.hide(changes["objective"])
        if given.get("todo_list") is not None:
            changes["todo_list"] = self._todos(given["todo_list"])
        blocked_by = given.get("blocked_by")
        if "recheck_after" in given and not (blocked_by or "").strip():
            raise _refused(
                "invalid_input",
                "recheck_after says when to look at a blocker again, so it needs blocked_by",
                "give blocked_by with it, or leave it out",
                field="recheck_after",
            )
        if "blocked_by" in given:
            changes["blocked_by"] = self.hide((blocked_by or "").strip())
            if changes["blocked_by"]:
                wait = given.get("recheck_after", RECHECK_MS)
                changes["recheck_at"] = self.clock.now() + wait * 1_000
        if not changes:
            raise _refused(
                "invalid_input",
                f"this changes nothing in work item {item.work_item_id}",
                "give objective, plan_status, todo_list or blocked_by",
            )
        event = WorkItemUpdated(work_item_id=item.work_item_id, derived_from=self._derived_from(), **changes)
        self.facts[ctx.call_id] = [event]
        if event.plan_status == NEEDS_INPUT and item.plan_status != NEEDS_INPUT:
            self.facts[ctx.call_id].append(self._asks(ctx, item.work_item_id, event.objective or item.objective))
        told = {"work_item_id": item.work_item_id, "updated": [name for name in given if name != "work_item_id"]}
        return {**told, "recheck_at": _time(event.recheck_at)} if event.recheck_at is not None else told

    async def _complete(self, ctx: RunContext[Any], given: dict[str, Any]) -> dict[str, Any]:
        item = await self._open_item(given["work_item_id"])
        state = self.state()
        step = state.tree.calls[ctx.call_id].step
        reply = await self._reply(step)
        verdict = completion_verdict(
            item.work_item_id,
            text=reply.said.item.text,
            completions=await self._completions(reply.said, step),
            focus=state.work_items.focus_at(step),
        )
        report = reply.event_id if verdict.is_reported else None
        self.facts[ctx.call_id] = [WorkItemCompleted(work_item_id=item.work_item_id, text_ref=report)]
        return {"work_item_id": item.work_item_id, "state": "completed", **verdict.told()}

    async def _get(self, ctx: RunContext[Any], given: dict[str, Any]) -> dict[str, Any]:
        item = await self._item(given["work_item_id"])
        focus = await self.place.store.current_work_item_id(item.agent_id)
        shown = shown_item(item, focus, await active_waits(self.place.store, item.agent_id))
        plan = await self._plan(item.work_item_id)
        if plan is not None:
            shown["plan_artifact"] = plan
        if not item.is_open:
            shown["completion_report"] = await report_of(self.place.store, item)
        return shown

    async def _list(self, ctx: RunContext[Any], given: dict[str, Any]) -> dict[str, Any]:
        store, agent_id = self.place.store, self.place.row.agent_id
        limit = given.get("limit", SHOWN_ITEMS)
        focus = await store.current_work_item_id(agent_id)
        view = given.get("view", "open")
        if view == "completed":
            items = await store.completed_work_items(agent_id, limit=limit + 1)
        else:
            items = (await store.open_work_items(agent_id))[::-1]
            if view != "open":
                views = work_views(items, focus)
                items = [*(views.queued if view == "queued" else views.blocked)]
        waits = await active_waits(store, agent_id)
        shown = [shown_item(item, focus, waits) for item in items[:limit]]
        return {"current_work_item_id": focus, "items": shown, "has_more": len(items) > limit}

    async def _notify(self, ctx: RunContext[Any], given: dict[str, Any]) -> dict[str, Any]:
        brief = self._brief(ctx, self.hide(given["text"]), self.state().work_items.focus)
        self.facts[ctx.call_id] = [brief]
        return {"brief_id": brief.brief_id, "told": True}

    def _asks(self, ctx: RunContext[Any], work_item_id: str, objective: str) -> BriefCreated:
        """An item that begins to wait for somebody's word tells them: no time would end that, and nobody looks."""
        words = f"Work item {work_item_id} needs your input: {objective[:OBJECTIVE_CHARS]}"
        return self._brief(ctx, words, work_item_id, visibility="action_required")

    def _brief(
        self, ctx: RunContext[Any], words: str, work_item_id: str | None, *, visibility: BriefVisibility | None = None
    ) -> BriefCreated:
        said: dict[str, Any] = {} if visibility is None else {"visibility": visibility}
        return BriefCreated(
            brief_id="brief_" + hashlib.sha256(f"{ctx.turn_id}/{ctx.call_id}".encode()).hexdigest()[:16],
            brief_kind="progress",
            text=words,
            work_item_id=work_item_id,
            workspace_id=self.workspace_id,
            principal=self.principal,
            derived_from=self._derived_from(),
            **said,
        )

    # --- what they rest on ------------------------------------------------------------------------------------------

    async def _item(self, work_item_id: str) -> WorkItem:
        """An item of this agent. Others are told to be none."""
        item = await self.place.store.work_item(work_item_id)
        if item is None or item.agent_id != self.place.row.agent_id:
            raise _refused(
                "work_item_not_found",
                f"you have no work item {work_item_id!r}",
                "list_work_items shows those that you have",
                field="work_item_id",
            )
        return item

    async def _open_item(self, work_item_id: str) -> WorkItem:
        item = await self._item(work_item_id)
        if not item.is_open:
            raise _refused(
                "work_item_completed",
                f"work item {work_item_id} is completed and cannot be changed",
                "create another one for what is left to do",
                field="work_item_id",
            )
        return item

    async def _reply(self, step: int) -> "_Reply":
        """The reply of a round of the root: it stands in the log before its calls begin."""
        for entry in reversed(await self.place.known.all()):
            event = entry.fact.event
            if isinstance(event, AssistantRecorded) and entry.fact.step == step and entry.fact.level is None:
                return _Reply(entry.event_id, event)
        raise AssertionError(f"round {step} has a call and no reply")

    async def _completions(self, reply: AssistantRecorded, step: int) -> int:
        """How many items a round completes: those that it has completed, and those that its other calls will."""
        events = (entry.fact for entry in await self.place.known.all() if entry.fact.step == step)
        done = {fact.event.work_item_id for fact in events if isinstance(fact.event, WorkItemCompleted)}
        calls = (part.arguments or {} for part in reply.item.calls if part.name == COMPLETE_WORK_ITEM)
        named = {name for given in calls if isinstance(name := given.get("work_item_id"), str)}
        rows = [await self.place.store.work_item(name) for name in sorted(named - done)]
        own = self.place.row.agent_id
        return len(done) + sum(row is not None and row.agent_id == own and row.is_open for row in rows)

    def _todos(self, given: Sequence[dict[str, Any]]) -> tuple[TodoItem, ...]:
        return tuple(TodoItem(text=self.hide(each["text"]), state=each.get("state", "pending")) for each in given)

    def _derived_from(self) -> Authority:
        return written_from(self.state())

    async def _plan(self, work_item_id: str) -> dict[str, Any] | None:
        plan = await asyncio.to_thread(read_plan, self.agent_home, work_item_id)
        return plan.as_dict() if plan is not None else None

    # --- beside the results -----------------------------------------------------------------------------------------

    def heard(self, after: AfterCall | None) -> AfterCall:
        """Whoever is heard after a call, with what it did to work items told beside its result, and a reminder where
        one is due."""

        async def told(at: CallAtGate, events: list[AnyEvent]) -> list[AnyEvent]:
            facts = self.facts.pop(at.call_id, [])
            if isinstance(events[-1], ToolResult):
                reminder = await self._reminder() if not facts and at.call.level.id is None else []
                events = [*facts, *reminder, *events]
            return events if after is None else await after(at, events)

        return told

    async def _reminder(self) -> list[AnyEvent]:
        state = self.state()
        items, step = state.work_items, state.step
        due = is_reminder_due(self.terms, step=step, changed_in=items.changed_in, reminded_in=items.reminded_in)
        if not due or items.focus is None or self.reminded_in == step:
            return []
        item = await self.place.store.work_item(items.focus)
        if item is None or not item.is_open:
            return []
        plan = await asyncio.to_thread(read_plan, self.agent_home, item.work_item_id)
        text = reminder_text(item, plan.preview if plan is not None else "", self.terms)
        window = state.config.context_window if state.config is not None else None
        if not fits_prompt(text, baseline_tokens=context_tokens(state), prompt_budget=window):
            return []
        self.reminded_in = step
        return [WorkItemReminded(work_item_id=item.work_item_id, text=text, rounds=step - items.changed_in)]


def written_from(state: TurnState) -> Authority:
    """The lowest word behind what a turn writes: what it has read that anybody may have written counts, too."""
    return "external_evidence" if state.thread.exposure.untrusted else cast(Authority, state.terms.derived_from)


class _Reply(NamedTuple):
    event_id: str
    said: AssistantRecorded


def item_id(turn_id: str, call_id: str) -> str:
    """The id of the item that a call creates: the same for the same call."""
    return "wi_" + hashlib.sha256(f"{turn_id}/{call_id}".encode()).hexdigest()[:16]


def shown_item(item: WorkItem, focus: str | None, waits: Sequence[ActiveWait]) -> dict[str, Any]:
    """An item as it is read: its record, and what follows from it."""
    return {
        "id": item.work_item_id,
        "agent_id": item.agent_id,
        "workspace_id": item.workspace_id,
        "objective": item.objective,
        "state": item.state,
        "is_current": item.is_open and item.work_item_id == focus,
        "scheduling_state": scheduling_state(item, waits),
        "readiness": readiness(item, waits),
        "plan_status": item.plan_status,
        "todo_list": list(item.todo_list),
        "blocked_by": item.blocked_by,
        "recheck_at": _time(item.recheck_at),
        "recheck_consumed_at": _time(item.recheck_consumed_at),
        "created_by": item.created_by,
        "created_at": _time(item.created_at),
        "updated_at": _time(item.updated_at),
    }


async def report_of(store: Store, item: WorkItem) -> str | None:
    """The completion report of an item, from the reply that is it; None where there is none."""
    if not item.report_event_id:
        return None
    agent_id, _, seq = item.report_event_id.rpartition(":")
    found = await store.read(agent_id, after=int(seq) - 1, limit=1)
    event = found[0].fact.event if found else None
    if not isinstance(event, AssistantRecorded):
        return None
    whole = await resolve(event.item, store.get_blob)
    assert isinstance(whole, AssistantItem)
    return whole.text


def active_wait(row: WaitRow) -> ActiveWait:
    """A wait as work items see it."""
    return ActiveWait(row.wait_id, row.work_item_id or "", _KINDS[row.wake], row.reason)


async def active_waits(store: Store, agent_id: str, events: Sequence[AnyEvent] = ()) -> list[ActiveWait]:
    """The agent's open waits, with those that these facts of a turn begin."""
    found = {row.wait_id: active_wait(row) for row in await store.open_waits(agent_id)}
    for event in events:
        if isinstance(event, WaitCreated):
            found[event.wait_id] = ActiveWait(event.wait_id, event.work_item_id or "", _KINDS[event.wake], event.reason)
    return [*found.values()]


def _time(at: int | None) -> str | None:
    return datetime.fromtimestamp(at / 1_000_000, UTC).isoformat() if at is not None else None


def _refused(kind: str, message: str, hint: str, *, field: str | None = None) -> ToolReported:
    details = {"field": field} if field is not None else None
    return ToolReported(ToolError(kind=kind, message=message, recovery_hint=hint, details=details))
