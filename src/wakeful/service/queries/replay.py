"""A stored turn, decided again: the log is read, its configuration and blobs are fetched, no code of a tool is needed.

Tools stand in as their stored declarations: they can be let through or refused, and never be run.
"""

import hashlib
import json
from typing import Any, Literal, NamedTuple

from wakeful.contracts.agents import TurnConfig
from wakeful.contracts.envelope import Recorded, step_id
from wakeful.contracts.events import (
    AnyEvent,
    AssistantRecorded,
    SubagentStarted,
    ThreadCheckpointed,
    TurnConfigChanged,
    TurnStarted,
    WorkflowNodeResolved,
)
from wakeful.contracts.events.gate import RunKind
from wakeful.contracts.events.tools import Said
from wakeful.contracts.tools import ToolDeclaration
from wakeful.decisions.levels import Call
from wakeful.decisions.replay import Divergence, Replay
from wakeful.decisions.state import TurnState, after
from wakeful.engine.state_loader import ThreadFolder, begun_thread, hydrated, page_bytes, turn_after_turn
from wakeful.gate.large_content import arguments_of
from wakeful.gate.passage import Mediator
from wakeful.gate.turn_gate import GateParts
from wakeful.gate.turn_policy import TurnPolicy
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
    ordered = turn_after_turn(recorded)
    first = next((place for place, entry in enumerate(ordered) if entry.fact.turn_id == row.turn_id), None)
    if first is None:
        return ReplayReport(row, 0, {}, None)
    own = [entry for entry in ordered[first:] if entry.fact.turn_id == row.turn_id]
    folding = ThreadFolder(store, row, await begun_thread(store, ordered))
    await folding.take(ordered[:first])
    page = None
    if any(isinstance(entry.fact.event, ThreadCheckpointed) for entry in own):
        page = "sha256:" + hashlib.sha256(page_bytes(folding.thread)).hexdigest()
    gate = _StoredGate(row.turn_id, store.secret)
    replay = Replay(after(folding.thread.state, folding.configs), gate)
    for entry in own:
        fact, event = entry.fact, entry.fact.event
        if isinstance(event, TurnStarted | TurnConfigChanged):
            await folding.learn(event.config_ref.digest)
        elif isinstance(event, SubagentStarted):
            if event.config_ref is not None:
                await folding.learn(event.config_ref.digest)
        elif isinstance(event, AssistantRecorded):
            for part in event.item.calls:
                if part.arguments_ref is not None:
                    gate.arguments[part.call_id] = await arguments_of(part, store.get_blob)
        elif isinstance(event, WorkflowNodeResolved) and event.arguments_ref is not None:
            loaded = json.loads(await store.get_blob(event.arguments_ref.digest))
            gate.arguments[fact.call_id or ""] = loaded
        elif isinstance(event, ThreadCheckpointed) and page is not None:
            replay.same_page(entry, event.conversation_ref.digest, page)
        replay.feed(Recorded(entry.agent_id, entry.seq, await hydrated(store, fact)))
    return ReplayReport(row, len(own), replay.checked, replay.divergence)
