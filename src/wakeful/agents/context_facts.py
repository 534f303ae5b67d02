"""What a turn's requests rest on, as a fact: written when the turn begins, and again when that changes.

Contents are named and measured, never copied. The conversation itself only grows; what changes the rest is a plan, or a
summary that takes the place of the conversation's beginning.
"""

import hashlib
import time

from wakeful.agents.work import TurnWork
from wakeful.contracts.agents import TurnConfig
from wakeful.contracts.envelope import event_id
from wakeful.contracts.events import CompactionCompleted, ContextItem, ContextOmission, ContextResolved, PlanArtifact
from wakeful.decisions.planning import plan_section
from wakeful.decisions.prompt_size import characters, tokens

TOOLS = "tools"
"""The name under which the tools' share of the prompt is listed; which they are says `tool.catalog.resolved`."""


def resolved(
    work: TurnWork,
    config_digest: str,
    reason: str = "",
    *,
    folded: CompactionCompleted | None = None,
    plan: PlanArtifact | None = None,
) -> ContextResolved:
    """The selection as it is from here on: `folded` and `plan` are what changes it now."""
    began = time.perf_counter()
    state, config = work.state, work.config
    plan = plan or state.plan
    instructions = _instructions(config, config_digest)
    if plan is not None:
        section = plan_section(plan)
        digest = "sha256:" + hashlib.sha256(section.encode()).hexdigest()
        ref = f"plan:{plan.run_id}"
        instructions.append(ContextItem(ref=ref, kind="plan", digest=digest, tokens=tokens(len(section))))
    items = state.items
    history: list[ContextItem] = []
    compaction_id = folded.compaction_id if folded is not None else state.compaction_id
    if folded is not None and folded.summary is not None:
        history.append(_summary(folded.compaction_id, tokens(characters([folded.summary]))))
        items = items[folded.cut :]
    elif compaction_id is not None and items:
        history.append(_summary(compaction_id, tokens(characters(items[:1]))))
        items = items[1:]
    said = tokens(characters(items))
    history.append(ContextItem(ref=event_id(work.row.agent_id, work.row.window_from), kind="history", tokens=said))
    return ContextResolved(
        context_id=f"ctx_{work.row.turn_id}",
        revision=state.context_revision + 1,
        instruction_refs=tuple(instructions),
        history_refs=tuple(history),
        omissions=(
            (ContextOmission(ref=compaction_id, reason="superseded_by_summary"),) if compaction_id is not None else ()
        ),
        token_limit=config.context_window,
        tokens_used=sum(item.tokens or 0 for item in (*instructions, *history)),
        tokens_are_estimate=True,
        compaction_id=compaction_id,
        reason=reason,
        context_build_ms=round((time.perf_counter() - began) * 1000, 3),
    )


def _instructions(config: TurnConfig, digest: str) -> list[ContextItem]:
    told = tokens(len(config.instructions))
    found = [ContextItem(ref=digest, kind="instruction", tokens=told)] if config.instructions else []
    if config.tools:
        found.append(ContextItem(ref=TOOLS, kind="custom", tokens=config.prompt_tokens - told))
    return found


def _summary(compaction_id: str, size: int) -> ContextItem:
    return ContextItem(ref=compaction_id, kind="history", tokens=size)
