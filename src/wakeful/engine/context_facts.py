"""What a turn's requests rest on, written down again when it changes within the turn.

The conversation itself only grows; what changes the rest is a plan, or a summary that takes the place of the
conversation's beginning. Contents are named and measured, never copied.
"""

import hashlib
import time
from collections.abc import Sequence

from wakeful.contracts.conversation import AssistantItem, ToolItem, UserItem
from wakeful.contracts.events import CompactionCompleted, ContextItem, ContextOmission, ContextResolved, PlanArtifact
from wakeful.decisions.planning import plan_section
from wakeful.decisions.prompt_size import Measure, characters, tokens
from wakeful.decisions.state import TurnState


def resolved_again(
    state: TurnState, reason: str, *, folded: CompactionCompleted | None = None, plan: PlanArtifact | None = None
) -> list[ContextResolved]:
    """The selection as it is from here on: `folded` and `plan` are what changes it."""
    began = time.perf_counter()
    before = state.context
    if before is None:
        return []
    instructions = list(before.instruction_refs)
    if plan is not None:
        instructions.append(plan_ref(plan))
    history, omissions = before.history_refs, before.omissions
    compaction_id = before.compaction_id
    if folded is not None and folded.summary is not None:
        compaction_id = folded.compaction_id
        pinned = () if folded.pinned is None else (state.conversation.items[folded.pinned],)
        shown = [folded.summary, *pinned, *state.conversation.items[folded.cut :]]
        history = history_refs(shown, Measure(), compaction_id, before.history_refs[-1].ref)
        omissions = (*(each for each in omissions if each.ref != before.compaction_id), superseded(compaction_id))
    event = before.model_copy(
        update={
            "revision": before.revision + 1,
            "instruction_refs": tuple(instructions),
            "history_refs": history,
            "omissions": omissions,
            "tokens_used": sum(item.tokens or 0 for item in (*instructions, *history, *before.knowledge_refs)),
            "compaction_id": compaction_id,
            "reason": reason,
            "context_build_ms": round((time.perf_counter() - began) * 1000, 3),
        }
    )
    return [event]


def history_refs(
    items: Sequence[UserItem | AssistantItem | ToolItem], measure: Measure, compaction_id: str | None, ref: str
) -> tuple[ContextItem, ...]:
    """The conversation as parts of a request: the summary it begins with, if it does, and what is word for word."""
    summary = characters(items[:1]) if compaction_id is not None else 0
    whole = ContextItem(ref=ref, kind="history", tokens=tokens(measure.of(items).characters - summary))
    if compaction_id is None or not items:
        return (whole,)
    return ContextItem(ref=compaction_id, kind="history", tokens=tokens(summary)), whole


def plan_ref(plan: PlanArtifact) -> ContextItem:
    """The plan as a part of the executor's requests."""
    section = plan_section(plan)
    digest = "sha256:" + hashlib.sha256(section.encode()).hexdigest()
    return ContextItem(ref=f"plan:{plan.run_id}", kind="plan", digest=digest, tokens=tokens(len(section)))


def superseded(compaction_id: str) -> ContextOmission:
    """What a summary stands for is not shown."""
    return ContextOmission(ref=compaction_id, reason="superseded_by_summary")
