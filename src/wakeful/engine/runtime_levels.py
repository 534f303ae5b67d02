"""Levels that the runtime begins by itself: the planner, and the writer of a summary."""

from wakeful.contracts.content import Text
from wakeful.contracts.conversation import UserItem
from wakeful.contracts.envelope import Fact, before
from wakeful.contracts.events import (
    CompactionCompleted,
    CompactionStarted,
    PlanningCompleted,
    PlanningFailed,
    PlanningStarted,
)
from wakeful.contracts.tools import PREVIEW_CHARS
from wakeful.decisions.compaction_outcome import settled_fold, turns_before
from wakeful.decisions.levels import Level
from wakeful.decisions.planner import PLANNER, read_plan
from wakeful.decisions.step import EndLevel, Fold
from wakeful.engine.context_facts import resolved_again
from wakeful.engine.turn_work import TurnWork


class PlanWriter:
    """Has a plan written before the turn begins its work."""

    def __init__(self, work: TurnWork) -> None:
        self._work = work

    def begin(self) -> list[Fact]:
        """A planner begins."""
        work = self._work
        model = work.code.planner[0] if work.code.planner else work.code.models[0]
        asked = (
            item
            for item in reversed(work.state.conversation.items)
            if isinstance(item, UserItem) and item.origin == "person"
        )
        task = next(asked, None)  # and not what was looked up for it
        words = task.text[:PREVIEW_CHARS] if task is not None else ""
        started = PlanningStarted(level_id=PLANNER, model_ref=model.ref, task=UserItem(parts=(Text(words),)))
        return [work.fact(started)]

    def end(self, level: Level, step: EndLevel) -> list[Fact]:
        """The plan that came of it, or that none did."""
        work = self._work
        assert level.id is not None and level.config is not None
        models = work.code.models_of(level)  # none, where a turn is ended at rest without any of its code
        model_ref = models[0].ref if models else level.config.model_ref
        plan = None
        if not step.error:
            calls = sum(
                len(item.calls)
                for item in level.conversation.items[len(work.state.conversation.items) :]
                if item.role == "assistant"
            )
            plan = read_plan(
                work.texts.of(level),
                run_id=work.place.row.turn_id,
                model_ref=model_ref,
                at=work.now(),
                tool_calls=calls,
            )
        if plan is not None:
            completed = work.fact(PlanningCompleted(level_id=level.id, plan=plan))
            return [completed, *map(work.fact, resolved_again(work.state, "plan", plan=plan))]
        error, message = step.error or "no_plan", step.message or "the planner's answer holds no plan"
        failed = PlanningFailed(
            level_id=level.id,
            error=error,
            message=message[:2000],
            text_preview=level.answer.final_text[:PREVIEW_CHARS],
        )
        return [work.fact(failed)]


class HistoryCompactor:
    """Has summaries written, and puts them in the place of what they stand for."""

    def __init__(self, work: TurnWork) -> None:
        self._work = work

    def begin(self, step: Fold) -> list[Fact]:
        work = self._work
        level = work.state.level(step.level)
        number = level.conversation.compactions + 1
        event = CompactionStarted(
            compaction_id=f"cmp_{work.place.row.turn_id}_{level.step + 1}_{step.level or 'root'}",
            trigger=step.trigger,
            affected_turn_ids=turns_before(level, step.cut),
            tokens_before=step.tokens_before,
            cut=step.cut,
            level_id=f"{step.level or ''}~compaction:{number}.{level.step + 1}",
        )
        return [work.fact(event, None, None, level)]

    def end(self, writer: Level, step: EndLevel) -> list[Fact]:
        work, level = self._work, writer.parent
        assert level is not None
        event = settled_fold(
            work.state, level, writer, step, work.clock.now(), before(0), None if step.error else work.texts.of(writer)
        )
        facts = [work.fact(event, None, None, level)]
        if level.id is None and isinstance(event, CompactionCompleted):
            facts += map(work.fact, resolved_again(work.state, "compaction", folded=event))
        return facts
