"""Which gate a call goes through: that of its level's configuration and tools."""

from wakeful.decisions.levels import Call, Level, artifacts_of, payload_schema
from wakeful.decisions.runtime_answers import FINISH
from wakeful.engine.turn_work import TurnWork
from wakeful.gate.passage import Mediator
from wakeful.tools.artifact_reader import artifact_reader, with_reader
from wakeful.tools.results import READ_ARTIFACT
from wakeful.tools.runtime_tools import AnsweredHere


class LevelGates:
    """The gate of each level, made when it is first needed."""

    def __init__(self, work: TurnWork) -> None:
        self._work = work
        self._mediators: dict[str | None, Mediator] = {}
        self._artifact_gates: dict[str | None, Mediator] = {}

    def of(self, call: Call) -> Mediator:
        """The gate as the configuration of the call's level makes it: a child has fewer tools than its parent."""
        level = call.level
        if call.part.name == READ_ARTIFACT and (reads := self._artifact_gate(level)) is not None:
            return reads
        found = self._mediators.get(level.id)
        if found is None:
            work = self._work
            config = work.config if level.id is None else level.config
            assert config is not None
            tools = work.code.tools_of(level)
            if payload_schema(level) is not None and (finish := config.tool(FINISH)) is not None:
                tools = {**tools, FINISH: AnsweredHere(finish)}
            found = self._mediators[level.id] = Mediator(config, tools, work.place.row.turn_id, work.gate)
        return found

    def _artifact_gate(self, level: Level) -> Mediator | None:
        """The gate for `read_artifact`, which no configuration names; None where nothing was spilled."""
        work = self._work
        config = work.config if level.id is None else level.config
        assert config is not None
        if not artifacts_of(level) or config.tool(READ_ARTIFACT) is not None:
            return None
        found = self._artifact_gates.get(level.id)
        if found is None:
            reader = artifact_reader(lambda: artifacts_of(level), work.place.store.get_blob)
            tools = {READ_ARTIFACT: reader}
            turn_id = work.place.row.turn_id
            found = self._artifact_gates[level.id] = Mediator(with_reader(config), tools, turn_id, work.gate)
        return found

    def forget(self, level_id: str) -> None:
        """The level is over."""
        self._mediators.pop(level_id, None)

    def let_go(self, spared: set[str]) -> None:
        """No lock stays behind but those of calls that are spared."""
        for mediator in self._mediators.values():
            for call_id in mediator.locks.claimants - spared:
                mediator.locks.let_go(call_id)
