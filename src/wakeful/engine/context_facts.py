"""What a turn's requests rest on, as a fact: when the turn begins, and again when it changes within the turn.

The conversation itself only grows; what changes the rest is a plan, or a summary that takes the place of the
conversation's beginning. Contents are named and measured, never copied.
"""

import hashlib
import json
import time
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import TypeVar

from wakeful.contracts.agents import TurnConfig
from wakeful.contracts.content import BlobRef
from wakeful.contracts.conversation import AssistantItem, ToolItem, UserItem
from wakeful.contracts.events import (
    CompactionCompleted,
    ContextItem,
    ContextOmission,
    ContextResolved,
    MissingFact,
    PlanArtifact,
)
from wakeful.contracts.skills import SkillEntry
from wakeful.contracts.values import unchecked
from wakeful.decisions.planner import plan_section
from wakeful.decisions.prompt import changes, cut
from wakeful.decisions.prompt_size import Measure, characters, tokens
from wakeful.decisions.state import TurnState
from wakeful.engine.prepare.prompt import TurnMaterial
from wakeful.ports import TurnRow

T = TypeVar("T")
MAX_LISTED = 15_000
"""Bytes of skills, of untrusted files and of omissions: an event has room for these and what is beside them."""
AROUND_A_REF = 100
_item, _context_resolved = unchecked(ContextItem), unchecked(ContextResolved)


def resolved(
    row: TurnRow,
    state: TurnState,
    config: TurnConfig,
    found: TurnMaterial,
    *,
    config_ref: BlobRef,
    policy_digest: str,
    knowledge: Sequence[ContextItem] = (),
    knowledge_tokens: int = 0,
    memory: Sequence[ContextItem] = (),
    omitted: Sequence[ContextOmission] = (),
    missing: Sequence[MissingFact] = (),
    revision: int = 1,
    before: TurnConfig | None = None,
    took_ms: float = 0.0,
) -> ContextResolved:
    """What the turn rests on. `before` is what it rested on until now; None: it begins, and follows the turn before."""
    instructions = _instructions_of(config, config_ref)
    if state.planning.plan is not None:  # it goes on after a crash, with the plan it has
        instructions = (*instructions, plan_ref(state.planning.plan))
    history = history_refs(
        state.conversation.items, state.conversation.measure, found.compaction_id, f"{row.agent_id}:{row.window_from}"
    )
    folded = (superseded(found.compaction_id),) if found.compaction_id is not None else ()
    compared = before if before is not None else found.previous
    said = changes(compared.prompt_blocks, config.prompt_blocks) if compared is not None else []
    if compared is not None and not said and compared.instructions != config.instructions:
        said = ["agent instructions changed"]
    return _context_resolved(
        context_id=f"ctx_{row.turn_id}",
        revision=revision,
        memory_refs=tuple(memory),
        knowledge_refs=tuple(knowledge),
        workspace_refs=_workspace(config, found),
        browser_refs=(_item(ref=row.thread_id, kind="session"),),
        policy_facts=_policy(config.profile, policy_digest, state.terms.derived_from),
        instruction_refs=instructions,
        history_refs=history,
        omissions=(*_fitting_omissions((*found.omissions, *omitted)), *folded),
        missing=tuple(missing),
        token_limit=config.context_window,
        tokens_used=sum(item.tokens or 0 for item in (*instructions, *history)) + knowledge_tokens,
        tokens_are_estimate=True,
        compaction_id=found.compaction_id,
        untrusted_refs=tuple(_fitting(found.untrusted, str))
        or (state.terms.context.untrusted_refs if state.terms.context is not None else ()),
        reason="; ".join(said),
        context_build_ms=round(found.took_ms + took_ms, 3),
    )


def _instructions_of(config: TurnConfig, config_ref: BlobRef) -> tuple[ContextItem, ...]:
    """The blocks of the prompt. The reference is to the configuration itself."""
    known: tuple[ContextItem, ...] | None = config.kept.get("instruction_refs")
    if known is None:
        known = config.kept["instruction_refs"] = tuple(_instruction(block, config_ref) for block in _blocks(config))
    return known


def _blocks(config: TurnConfig) -> list[tuple[str, str | None, str, int]]:
    """Of each block of the prompt: its kind, its file, its digest, its length."""
    if config.prompt_blocks:
        return [(block.kind, block.source, block.digest, block.length) for block in config.prompt_blocks]
    return [(block.kind, None, "", len(block.text)) for block in cut(config)]


def _instruction(block: tuple[str, str | None, str, int], config_ref: BlobRef) -> ContextItem:
    kind, source, digest, length = block
    return _item(
        ref=source if source is not None else f"{config_ref.digest}#{kind}",
        kind="skill" if kind in ("skills", "active_skills") else "instruction",
        digest=digest or None,
        tokens=tokens(length),
        trust="workspace" if kind == "workspace_guidance" else None,
    )


def _workspace(config: TurnConfig, found: TurnMaterial) -> tuple[ContextItem, ...]:
    if config.workspace is None:
        return ()
    items = [_item(ref=config.workspace, kind="workspace")]
    items += [_item(ref=skill.entrypoint_path, kind="skill") for skill in _fitting(found.skills, _path_of)]
    return tuple(items)


def _path_of(skill: SkillEntry) -> str:
    return skill.entrypoint_path


def _fitting_omissions(omissions: Sequence[ContextOmission]) -> list[ContextOmission]:
    kept = _fitting(omissions, lambda each: each.ref + each.detail)
    if left := len(omissions) - len(kept):
        kept.append(ContextOmission(ref=f"{left:,} more", reason="budget_limit"))
    return kept


def _fitting(found: Sequence[T], words: Callable[[T], str]) -> list[T]:
    """As many of them, from the first on, as an event has room for beside the others."""
    room, kept = MAX_LISTED, list[T]()
    for each in found:
        room -= len(json.dumps(words(each))) + AROUND_A_REF
        if room < 0:
            break
        kept.append(each)
    return kept


@lru_cache(maxsize=64)
def _policy(profile: str, digest: str, derived_from: str) -> tuple[ContextItem, ...]:
    """What holds for the turn's calls, by name and by digest."""
    return (
        _item(ref=f"profile:{profile}", kind="policy"),
        _item(ref="policy:gate", kind="policy", digest=digest),
        _item(ref=f"derived_from:{derived_from}", kind="policy", trust=derived_from),
    )


def resolved_again(
    state: TurnState, reason: str, *, folded: CompactionCompleted | None = None, plan: PlanArtifact | None = None
) -> list[ContextResolved]:
    """The selection as it is from here on: `folded` and `plan` are what changes it."""
    began = time.perf_counter()
    before = state.terms.context
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
    whole = _item(ref=ref, kind="history", tokens=tokens(measure.of(items).characters - summary))
    if compaction_id is None or not items:
        return (whole,)
    return _item(ref=compaction_id, kind="history", tokens=tokens(summary)), whole


def plan_ref(plan: PlanArtifact) -> ContextItem:
    """The plan as a part of the executor's requests."""
    section = plan_section(plan)
    digest = "sha256:" + hashlib.sha256(section.encode()).hexdigest()
    return _item(ref=f"plan:{plan.run_id}", kind="plan", digest=digest, tokens=tokens(len(section)))


def superseded(compaction_id: str) -> ContextOmission:
    """What a summary stands for is not shown."""
    return ContextOmission(ref=compaction_id, reason="superseded_by_summary")
