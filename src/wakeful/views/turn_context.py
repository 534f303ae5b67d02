"""What the model was shown in a turn, read off while the turn's facts are folded. Nothing is decided again.

`ContextReading` is told of each fact with the state before it: so it sees the conversation as each request did, and
what a summary is about to stand for.
"""

import json
from collections.abc import Sequence
from typing import Any, Literal, TypeAlias

from wakeful.contracts.agents import TurnConfig
from wakeful.contracts.conversation import AssistantItem, CallPart, ToolItem, UserItem
from wakeful.contracts.envelope import StoredFact, phase_of
from wakeful.contracts.events import (
    AssistantRecorded,
    CompactionCompleted,
    CompactionFailed,
    CompactionStarted,
    ContextItem,
    ContextResolved,
    ModelCompleted,
    ModelRequested,
    PlanningCompleted,
)
from wakeful.contracts.values import Value
from wakeful.decisions.compaction import context_tokens
from wakeful.decisions.evolve.models import LAST_CALL
from wakeful.decisions.prompt_size import characters, tokens
from wakeful.decisions.state import TurnState
from wakeful.decisions.summary import is_summary

SectionKind: TypeAlias = Literal["instructions", "skills", "plan", "tools", "summary", "history", "knowledge", "memory"]


class ContextSection(Value):
    """One part of what requests rest on, as it was written down."""

    kind: SectionKind
    ref: str
    tokens: int | None = None
    words: str = ""
    """What it is and why it is in."""


class ContextLeftOut(Value):
    """Something that is not shown to the model, and why."""

    ref: str
    reason: str
    words: str = ""


class SummaryView(Value):
    """A compaction: what its summary stands for, or why there is none."""

    compaction_id: str
    turn_id: str
    seq: int
    """Its number in the agent's log."""
    level: str | None = None
    trigger: str
    outcome: Literal["completed", "failed", "open"]
    stands_for: int = 0
    """Items."""
    turns: int = 0
    messages: int = 0
    tokens_before: int = 0
    tokens_after: int | None = None
    written_by: str | None = None
    preview: str = ""
    why_not: str = ""


class ShownItem(Value):
    """One message of a request."""

    place: int
    role: str
    origin: str = ""
    tokens: int
    preview: str
    is_summary: bool = False


class RequestView(Value):
    """One request to a model."""

    step: int
    attempt: int
    phase: Literal["planner", "compaction"] | None = None
    level: str | None = None
    model_ref: str
    items: int
    """Messages it showed."""
    tokens_estimated: int
    input_tokens: int | None = None
    """As the provider counted them, where it was answered."""
    rests_on: str | None = None
    """The summary at the beginning of its conversation."""
    shown: tuple[ShownItem, ...] = ()
    """Only where the request was asked for."""


class ReadAgain(Value):
    """A call that asked once more for what had been folded away."""

    call_id: str
    tool: str
    arguments: dict[str, Any] = {}
    step: int
    folded_by: str


class TurnContext(Value):
    """What a turn's model saw, request by request."""

    turn_id: str
    agent: str
    thread: str
    history_from: str
    """The first event its conversation rests on."""
    window: int | None = None
    """Tokens that the model can be shown."""
    sections: tuple[ContextSection, ...] = ()
    left_out: tuple[ContextLeftOut, ...] = ()
    tools: tuple[str, ...] = ()
    requests: tuple[RequestView, ...] = ()
    summaries: tuple[SummaryView, ...] = ()
    tokens_folded: int = 0
    """Before less after, over the turn's own compactions."""
    folded_calls: int = 0
    """Calls whose results are not shown word for word any more."""
    read_again: tuple[ReadAgain, ...] = ()


PREVIEW = 300


class ContextReading:
    """Takes the facts of a thread in order, and keeps what one of its turns showed its models."""

    def __init__(self, turn_id: str, step: int | None = None) -> None:
        self._turn_id = turn_id
        self._step = step
        self._folded: dict[tuple[str, str], str] = {}
        """Calls that were folded away, by tool and arguments, and the compaction that did."""
        self.resolved: ContextResolved | None = None
        self.plan = ""
        self.requests: list[RequestView] = []
        self.summaries: dict[str, SummaryView] = {}
        self.read_again: list[ReadAgain] = []
        self.folded_calls = 0

    def before(self, entry: StoredFact, state: TurnState) -> None:
        """A fact that is about to be taken in."""
        fact, event = entry.fact, entry.fact.event
        mine = fact.turn_id == self._turn_id
        if isinstance(event, CompactionCompleted) and fact.level is None:
            replies = [item for item in state.conversation.items[: event.cut] if isinstance(item, AssistantItem)]
            calls = [part for reply in replies for part in reply.calls]
            self._folded.update((_asked_for(part), event.compaction_id) for part in calls)
            self.folded_calls += len(calls) if mine else 0
        if not mine:
            if isinstance(event, CompactionCompleted) and fact.level is None:
                self._summary(entry, event)
            return
        match event:
            case CompactionStarted() | CompactionCompleted() | CompactionFailed():
                self._summary(entry, event)
            case ContextResolved():
                self.resolved = event
            case PlanningCompleted():
                self.plan = event.plan.text
            case ModelRequested():
                self._request(entry, event, state)
            case ModelCompleted() if self.requests and event.token_usage is not None:
                self._answered(entry, event.token_usage.input_tokens)
            case AssistantRecorded() if fact.level is None:
                self._again(entry, event)

    def _summary(self, entry: StoredFact, event: CompactionStarted | CompactionCompleted | CompactionFailed) -> None:
        known = self.summaries.get(event.compaction_id)
        view = known or SummaryView(
            compaction_id=event.compaction_id,
            turn_id=entry.fact.turn_id or "",
            seq=entry.seq,
            level=entry.fact.level,
            trigger=event.trigger,
            outcome="open",
            turns=len(event.affected_turn_ids),
            tokens_before=event.tokens_before,
        )
        if isinstance(event, CompactionCompleted):
            view = view.model_copy(
                update={
                    "outcome": "completed",
                    "seq": entry.seq,
                    "stands_for": event.cut - (event.pinned is not None),
                    "messages": event.folded_messages,
                    "tokens_after": event.tokens_after,
                    "written_by": event.model_ref,
                    "preview": event.summary_preview[:PREVIEW],
                }
            )
        elif isinstance(event, CompactionFailed):
            why = f"{event.error_category}: {event.message}"
            view = view.model_copy(update={"outcome": "failed", "seq": entry.seq, "why_not": why[:PREVIEW]})
        self.summaries[event.compaction_id] = view

    def _request(self, entry: StoredFact, event: ModelRequested, state: TurnState) -> None:
        fact = entry.fact
        level = state if fact.level is None else state.tree.levels.get(fact.level)
        if level is None:
            return
        items: list[UserItem | AssistantItem | ToolItem] = [*level.conversation.items, *level.next_request.notes]
        if event.final and not level.next_request.told_last:
            items.append(LAST_CALL)
        items = items[: event.items]
        wanted = self._step is not None and fact.level is None and fact.step == self._step
        self.requests.append(
            RequestView(
                step=fact.step or 0,
                attempt=event.attempt,
                phase=phase_of(fact.level),
                level=fact.level,
                model_ref=event.model_ref,
                items=event.items,
                tokens_estimated=context_tokens(level),
                rests_on=state.thread.compaction_id if fact.level is None else None,
                shown=_shown(items) if wanted else (),
            )
        )

    def _answered(self, entry: StoredFact, input_tokens: int | None) -> None:
        for place in reversed(range(len(self.requests))):
            request = self.requests[place]
            if (request.level, request.step) == (entry.fact.level, entry.fact.step):
                self.requests[place] = request.model_copy(update={"input_tokens": input_tokens})
                return

    def _again(self, entry: StoredFact, event: AssistantRecorded) -> None:
        for part in event.item.calls:
            folded_by = self._folded.get(_asked_for(part))
            if folded_by is not None:
                self.read_again.append(
                    ReadAgain(
                        call_id=part.call_id,
                        tool=part.name,
                        arguments=part.arguments or {},
                        step=entry.fact.step or 0,
                        folded_by=folded_by,
                    )
                )


def sections_of(resolved: ContextResolved | None, config: TurnConfig | None) -> tuple[ContextSection, ...]:
    """What requests rested on at the turn's end, part by part, in the order they are sent."""
    if resolved is None:
        return ()
    found = [_section(item, _OF_INSTRUCTIONS.get(item.kind, "instructions")) for item in resolved.instruction_refs]
    if config is not None and config.tools:
        size = config.prompt_tokens - tokens(len(config.instructions))
        words = (
            f"{len(config.tools)} tool{'' if len(config.tools) == 1 else 's'}, always the same and in the same order"
        )
        found.insert(0, ContextSection(kind="tools", ref="tools", tokens=max(0, size), words=words))
    found.extend(
        _section(item, "summary" if item.ref == resolved.compaction_id else "history") for item in resolved.history_refs
    )
    found.extend(_section(item, "knowledge") for item in resolved.knowledge_refs)
    found.extend(_section(item, "memory") for item in resolved.memory_refs)
    return tuple(found)


_OF_INSTRUCTIONS: dict[str, SectionKind] = {"plan": "plan", "skill": "skills"}
_WORDS: dict[SectionKind, str] = {
    "instructions": "part of the system prompt",
    "skills": "the skills there are, by name",
    "plan": "made beforehand, for this run alone",
    "summary": "stands in the place of the conversation's beginning",
    "history": "the conversation, word for word",
    "knowledge": "looked up for the message, and behind it",
    "memory": "recalled for the message, for this turn alone",
}


def _section(item: ContextItem, kind: SectionKind) -> ContextSection:
    return ContextSection(kind=kind, ref=item.ref, tokens=item.tokens, words=_WORDS[kind])


def left_out_of(resolved: ContextResolved | None, summaries: dict[str, SummaryView]) -> tuple[ContextLeftOut, ...]:
    """What could have been shown and was not."""
    found = []
    for omission in resolved.omissions if resolved is not None else ():
        summary = summaries.get(omission.ref)
        words = (
            f"{summary.stands_for} messages; the summary stands for them" if summary is not None else omission.detail
        )
        found.append(ContextLeftOut(ref=omission.ref, reason=omission.reason, words=words))
    return tuple(found)


def _shown(items: Sequence[UserItem | AssistantItem | ToolItem]) -> tuple[ShownItem, ...]:
    return tuple(
        ShownItem(
            place=place,
            role=item.role,
            origin=item.origin if isinstance(item, UserItem) else "",
            tokens=tokens(characters([item])),
            preview=_words(item)[:PREVIEW],
            is_summary=isinstance(item, UserItem) and is_summary(item),
        )
        for place, item in enumerate(items, 1)
    )


def _words(item: UserItem | AssistantItem | ToolItem) -> str:
    calls = [f"{part.name}(...)" for part in item.calls] if isinstance(item, AssistantItem) else []
    name = f"{item.name}: " if isinstance(item, ToolItem) else ""
    return name + " ".join([item.text, *calls]).strip()


def _asked_for(part: CallPart) -> tuple[str, str]:
    if part.arguments_ref is not None:
        return part.name, part.arguments_ref.digest
    if part.arguments is None:
        return part.name, part.raw_arguments or ""
    return part.name, json.dumps(part.arguments, sort_keys=True, default=str)
