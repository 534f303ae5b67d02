"""A stored turn, decided again: the log is read, its configuration and blobs are fetched, no code of a tool is needed.

Tools stand in as their stored declarations: they can be let through or refused, and never be run.
"""

import json
from typing import Any, Literal, NamedTuple

from wakeful.agents.folding import begun_unread, hydrated, load_config, turn_after_turn
from wakeful.contracts.agents import TurnConfig
from wakeful.contracts.envelope import Recorded, step_id
from wakeful.contracts.events import (
    AnyEvent,
    AssistantRecorded,
    SubagentStarted,
    TurnConfigChanged,
    TurnStarted,
    WorkflowNodeResolved,
)
from wakeful.contracts.events.gate import RunKind
from wakeful.contracts.events.tools import Said
from wakeful.contracts.tools import ToolDeclaration
from wakeful.decisions.evolving.one_fact import evolve
from wakeful.decisions.levels import Call
from wakeful.decisions.replay import Divergence, Replay
from wakeful.decisions.state import TurnState, after
from wakeful.mediation.gate import GateParts
from wakeful.mediation.mediator import Mediator
from wakeful.mediation.offloading import arguments_of
from wakeful.mediation.policing import TurnPolicy
from wakeful.ports import Store, TurnRow
from wakeful.tools.function import DeclaredTool


class ReplayReport(NamedTuple):
    """What became of the proof."""

    turn: TurnRow
    events: int
    """Facts of the turn that were folded."""
    checked: dict[str, int]
    """Decisions that came out the same, by the kind of their event."""
    divergence: Divergence | None

    @property
    def identical(self) -> bool:
        return self.divergence is None

    def to_dict(self) -> dict[str, Any]:
        return {
            "turn_id": self.turn.turn_id,
            "agent_id": self.turn.agent_id,
            "state": self.turn.state,
            "events": self.events,
            "checked": self.checked,
            "decisions": sum(self.checked.values()),
            "identical": self.identical,
            "divergence": self.divergence._asdict() if self.divergence is not None else None,
        }


class _OnlyDeclared(DeclaredTool):
    """A tool of which nothing but its declaration is there."""

    def __init__(self, declaration: ToolDeclaration) -> None:
        self._declaration = declaration


class _StoredGate:
    """The gate of the turn as its stored configuration makes it."""

    def __init__(self, turn_id: str, secret: bytes) -> None:
        self._turn_id = turn_id
        self._secret = secret
        self._state = TurnState()
        self._mediators: dict[str | None, tuple[TurnConfig, Mediator]] = {}
        """Of each level, and the configuration it was made of."""
        self.arguments: dict[str, dict[str, Any] | None] = {}
        """Of the calls whose arguments stand behind references."""

    def __call__(
        self, state: TurnState, call: Call, scheduling: Literal["parallel", "serial"], said: tuple[Said, ...]
    ) -> list[AnyEvent]:
        self._state, config = state, call.level.config
        if config is None:
            raise ValueError(f"turn {self._turn_id} has no configuration to let {call.call_id} through with")
        known = self._mediators.get(call.level.id)
        if known is None or known[0] is not config:
            tools = {tool.name: _OnlyDeclared(tool) for tool in config.tools}
            # The turn's own configuration judges, also for an agent that works in it with another one.
            policy = TurnPolicy(lambda: self._state, lambda: self._state.config or config, self._secret)
            runs_workflow = state.config is not None and state.config.workflow is not None
            kind: RunKind = "workflow" if runs_workflow else "agent"
            parts = GateParts(policy, run_kind=kind, secret=self._secret, turn_id=self._turn_id, now=lambda: 0.0)
            known = self._mediators[call.level.id] = config, Mediator(config, tools, self._turn_id, parts)
        arguments = call.part.arguments if call.part.arguments is not None else self.arguments.get(call.call_id)
        batch = step_id(self._turn_id, call.step, call.level.id)
        admission = known[1].admit(call, arguments, now=0.0, batch_id=batch, scheduling=scheduling, said=said)
        return admission.events


async def replay_turn(store: Store, row: TurnRow) -> ReplayReport:
    """Decide a stored turn again, from its first fact to its last."""
    recorded = await store.read(row.agent_id, after=row.window_from - 1, thread_id=row.thread_id)
    return await replay_facts(store, row, recorded)


async def replay_facts(store: Store, row: TurnRow, recorded: list[Recorded]) -> ReplayReport:
    """The same for facts that are at hand; earlier turns of the thread are what the conversation rests on."""
    configs: dict[str, TurnConfig] = {}
    earlier: dict[str, TurnState] = {}
    ordered = turn_after_turn(recorded)
    newest = begun_unread(ordered, configs)
    replay: Replay | None = None
    gate = _StoredGate(row.turn_id, store.secret)
    count = 0
    for entry in ordered:
        fact = entry.fact
        assert fact.turn_id is not None
        event = fact.event
        if isinstance(event, TurnStarted | TurnConfigChanged) and event.config_ref.digest not in configs:
            configs[event.config_ref.digest] = await load_config(store, event.config_ref.digest)
        elif isinstance(event, SubagentStarted) and (own := event.config_ref) is not None and own.digest not in configs:
            configs[own.digest] = await load_config(store, own.digest)
        if fact.turn_id != row.turn_id:
            state = earlier.get(fact.turn_id)
            if state is None and replay is None:
                state = earlier[fact.turn_id] = newest = after(newest, configs)
            if state is not None:
                evolve(state, await hydrated(store, fact))
            continue
        if replay is None:
            replay = Replay(after(newest, configs), gate)
        count += 1
        if isinstance(event, AssistantRecorded):
            for part in event.item.calls:
                if part.arguments_ref is not None:
                    gate.arguments[part.call_id] = await arguments_of(part, store.get_blob)
        elif isinstance(event, WorkflowNodeResolved) and event.arguments_ref is not None:
            loaded = json.loads(await store.get_blob(event.arguments_ref.digest))
            gate.arguments[fact.call_id or ""] = loaded
        replay.feed(Recorded(entry.agent_id, entry.seq, await hydrated(store, fact)))
    if replay is None:
        return ReplayReport(row, 0, {}, None)
    return ReplayReport(row, count, replay.checked, replay.divergence)
