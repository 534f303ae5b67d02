"""Folding the beginning of a conversation that has grown too long: its intent, and its end."""

from wakeful.agents.context_facts import resolved_again
from wakeful.agents.work import TurnWork
from wakeful.contracts.envelope import Fact, before
from wakeful.contracts.events import CompactionCompleted, CompactionStarted
from wakeful.decisions.folding import settled_fold, turns_before
from wakeful.decisions.levels import Level
from wakeful.decisions.turn import EndLevel, Fold


class Folding:
    """Has summaries written, and puts them in the place of what they stand for."""

    def __init__(self, work: TurnWork) -> None:
        self._work = work

    def begin(self, step: Fold) -> list[Fact]:
        work = self._work
        level = work.state.level(step.level)
        number = level.compactions + 1
        event = CompactionStarted(
            compaction_id=f"cmp_{work.row.turn_id}_{level.step + 1}_{step.level or 'root'}",
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
            facts += resolved_again(work, "compaction", folded=event)
        return facts
