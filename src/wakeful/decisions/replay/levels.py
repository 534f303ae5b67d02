"""Levels below the root, decided again: how children begin and end, plans, summaries of a conversation."""

from wakeful.contracts.envelope import Fact
from wakeful.contracts.events import (
    CompactionCompleted,
    CompactionFailed,
    PlanningCompleted,
    PlanningFailed,
    SubagentCompleted,
    SubagentFailed,
    SubagentStarted,
)
from wakeful.contracts.workflows import EDITOR_TOOLS
from wakeful.decisions.compaction_outcome import settled_fold
from wakeful.decisions.delegation import Refusal, child_of, jobs_of
from wakeful.decisions.differences import Difference, compared, words
from wakeful.decisions.evolve.conversations import writer_of
from wakeful.decisions.levels import Level, as_child
from wakeful.decisions.replay.redecision import Redecision
from wakeful.decisions.runtime_answers import DELEGATING, SPAWN_PARALLEL
from wakeful.decisions.step import AskModel, EndLevel, Step
from wakeful.decisions.turn import decide, stopped_level


def check_child_start(now: Redecision, fact: Fact, event: SubagentStarted) -> Difference | None:
    """A child follows from its call: from who made it, and from the arguments where they stand in the log."""
    call = now.state.tree.calls.get(fact.call_id or "")
    said = Difference(f"start {event.level_id}", "")
    if call is None or not call.running:
        return said._replace(recomputed="no call to start it")
    level, arguments = call.level, call.replaced or call.part.arguments
    if event.depth != level.depth + 1:
        return said._replace(recomputed=f"depth {level.depth + 1}")
    if arguments is not None and level.config is not None and call.part.name in DELEGATING:
        jobs = jobs_of(call.part.name, arguments, level.config)
        if isinstance(jobs, Refusal):
            return said._replace(recomputed=f"no child: {jobs.message}")
        if event.index >= len(jobs):
            return said._replace(recomputed=f"only {len(jobs)} jobs")
        alone = call.part.name != SPAWN_PARALLEL
        expected = child_of(call.part.name, call, level, jobs[event.index], event.index, alone)
        return compared(event, expected) or now.same(fact)
    return now.same(fact)


def check_child_end(now: Redecision, fact: Fact, event: SubagentCompleted | SubagentFailed) -> Difference | None:
    error = event.error if isinstance(event, SubagentFailed) else ""
    level = now.level(event.level_id)

    def is_it(step: Step) -> bool:
        return isinstance(step, EndLevel) and (step.level, step.error) == (event.level_id, error)

    now.hold(is_it)
    if not any(map(is_it, now.decided)) and isinstance(event, SubagentFailed) and _gave_way(now, level, event):
        now.decided.append(EndLevel(event.level_id, error))
    step = now.find(is_it)
    if step is None and _is_dropped_draft(now, level, error):
        step = now.find(lambda each: isinstance(each, EndLevel) and each.level == event.level_id)
    if step is None:
        return Difference(words(EndLevel(event.level_id, error)), now.would())
    if event.steps != level.step:
        return Difference(f"{event.steps} rounds", f"{level.step} rounds")
    return now.same(fact)


def _gave_way(now: Redecision, level: Level, event: SubagentFailed) -> bool:
    """In older logs a child also ended when others were about to make the last requests, made or not."""
    limits = now.state.limits
    if level.phase not in ("ready", "lost") or event.details.get("reason") != "llm_calls":
        return False
    if limits.model_calls is None or not limits.final_answer_reserve:
        return False
    others = sum(isinstance(each, AskModel) and each.level != level.id for each in decide(now.state))
    return limits.model_calls - now.state.ledger.model_calls - others - now.unmade <= 1


def _is_dropped_draft(now: Redecision, level: Level, error: str) -> bool:
    """What a child drew is judged by code. A turn that is ended at rest, without any, drops it."""
    stop, child = now.state.stop, as_child(level)
    draws = child is not None and child.started.tool in EDITOR_TOOLS
    return draws and stop is not None and error == stopped_level(level, stop).error


def check_plan(now: Redecision, fact: Fact, event: PlanningCompleted | PlanningFailed) -> Difference | None:
    step = now.find(lambda each: isinstance(each, EndLevel) and each.level == event.level_id)
    if not isinstance(step, EndLevel):
        return Difference(words(EndLevel(event.level_id)), now.would())
    if isinstance(event, PlanningCompleted) and step.error:
        return Difference(event.kind, words(step))
    return now.same(fact)


def check_fold(now: Redecision, fact: Fact, event: CompactionCompleted | CompactionFailed) -> Difference | None:
    """Who wrote the summary is outside the log; that nothing was lost that had to be kept is held to it."""
    level = now.level(fact.level)
    writer = writer_of(now.state, event.compaction_id)
    if writer is None:
        return Difference(f"fold {event.compaction_id}", "nothing is being folded here")
    step = now.find(lambda each: isinstance(each, EndLevel) and each.level == writer.id)
    if not isinstance(step, EndLevel):
        return Difference(words(EndLevel(writer.id or "")), now.would())
    while (difference := _same_fold(now, level, writer, step, event)) is not None and now.unseen:
        now.see_next()  # something that was open may have been settled meanwhile
    return difference or now.same(fact)


def _same_fold(
    now: Redecision, level: Level, writer: Level, step: EndLevel, event: CompactionCompleted | CompactionFailed
) -> Difference | None:
    if any(getattr(part, "ref", None) is not None for part in writer.conversation.items[-1].parts):
        return None  # what it wrote is too long for the log, and is not read here
    expected = settled_fold(now.state, level, writer, step)
    if isinstance(expected, CompactionCompleted) and isinstance(event, CompactionCompleted):
        if event.summary_form != expected.summary_form:
            return None if event.cut == expected.cut else Difference("a summary", "another cut")
        held = ("cut", "pinned", "summary", "preserved_artifact_refs", "window")
        same = all(getattr(expected, name) == getattr(event, name) for name in held)
        return None if same else Difference("a summary", "another summary")
    return None if expected.kind == event.kind else Difference(event.kind, expected.kind)
