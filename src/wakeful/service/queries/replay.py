"""A stored turn, decided again: the log is read, its configuration and blobs are fetched, no code of a tool is needed.

Tools stand in as their stored declarations: they can be let through or refused, and never be run.
"""

import json
from collections.abc import Sequence
from typing import Any, Literal

from wakeful.contracts.agents import TurnConfig
from wakeful.contracts.envelope import StoredFact, step_id
from wakeful.contracts.errors import TurnUnreadable
from wakeful.contracts.events import (
    AnyEvent,
    AssistantRecorded,
    EventExpired,
    HistoryImported,
    SubagentStarted,
    ThreadCheckpointed,
    TurnConfigChanged,
    TurnStarted,
    WorkflowNodeResolved,
)
from wakeful.contracts.events.gate import RunKind
from wakeful.contracts.events.tools import Opinion
from wakeful.contracts.tools import ToolDeclaration
from wakeful.contracts.values import Value
from wakeful.decisions.levels import Call, artifacts_of
from wakeful.decisions.replay.turn_replay import Divergence, Replay
from wakeful.decisions.state import TurnState, after, left_by
from wakeful.decisions.thread_pages import differences, restored, told_by
from wakeful.decisions.turn import RULES
from wakeful.engine.state_loader import Thread, ThreadFolder, beginning, hydrated, load_pages, told_after
from wakeful.engine.turn_facts import call_ids_of, note_limit
from wakeful.gate.large_content import arguments_of
from wakeful.gate.passage import Mediator
from wakeful.gate.turn_gate import GateParts
from wakeful.gate.turn_policy import TurnPolicy
from wakeful.ports import Store, TurnRow
from wakeful.tools.artifact_reader import with_reader
from wakeful.tools.results import READ_ARTIFACT
from wakeful.tools.tool import DeclaredTool


class ReplayReport(Value):
    """Every decision of a stored turn, made again from its log and compared with the recorded one."""

    turn_id: str
    agent: str
    agent_id: str
    state: str
    is_open: bool
    """The turn has not ended: so far, that is."""
    events: int
    """Events of the turn that were read."""
    checked: dict[str, int]
    """Decisions that came out the same, by the type of their event."""
    divergence: Divergence | None
    """The first decision that came out differently."""
    rules: int = 0
    """The number of the rules by which the turn was decided; 0: from before they were numbered."""
    rules_now: int = RULES
    """The number of those that it was held to."""
    outdated: Divergence | None = None
    """The first decision that came out differently, where rules of another number made it: nothing is wrong with it."""
    expired: int = 0
    """Events of the turn whose bodies retention has removed. Then nothing was decided again."""

    @property
    def identical(self) -> bool:
        """Every decision came out the same."""
        return self.divergence is None and self.outdated is None and not self.expired

    @property
    def decisions(self) -> int:
        """How many came out the same."""
        return sum(self.checked.values())

    def to_dict(self) -> dict[str, Any]:
        """As JSON data."""
        return {
            **self.model_dump(mode="json", exclude={"divergence", "outdated"}),
            "decisions": self.decisions,
            "identical": self.identical,
            "divergence": self.divergence._asdict() if self.divergence is not None else None,
            "outdated": self.outdated._asdict() if self.outdated is not None else None,
        }


def _report(row: TurnRow, events: int, replay: Replay | None = None, expired: int = 0) -> ReplayReport:
    rules, differs = (replay.rules, replay.divergence) if replay is not None else (0, None)
    return ReplayReport(
        turn_id=row.turn_id,
        agent=row.agent_name,
        agent_id=row.agent_id,
        state=row.state,
        is_open=row.is_open,
        events=events,
        checked=replay.checked if replay is not None else {},
        divergence=differs if rules == RULES else None,
        rules=rules,
        outdated=differs if rules != RULES else None,
        expired=expired,
    )


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
        self, state: TurnState, call: Call, scheduling: Literal["parallel", "serial"], said: tuple[Opinion, ...]
    ) -> list[AnyEvent]:
        self._state, config = state, call.level.config
        if config is None:
            raise ValueError(f"turn {self._turn_id} has no configuration to let {call.call_id} through with")
        reads = call.part.name == READ_ARTIFACT and artifacts_of(call.level) and config.tool(READ_ARTIFACT) is None
        known = self._mediators.get(call.level.id) if not reads else None
        if known is None or known[0] is not config:
            config = with_reader(config) if reads else config
            tools = {tool.name: _OnlyDeclared(tool) for tool in config.tools}
            # The turn's own configuration judges, also for an agent that works in it with another one.
            policy = TurnPolicy(lambda: self._state, lambda: self._state.config or config, self._secret)
            runs_workflow = state.config is not None and state.config.workflow is not None
            kind: RunKind = "workflow" if runs_workflow else "agent"
            parts = GateParts(policy, run_kind=kind, secret=self._secret, turn_id=self._turn_id, now=lambda: 0.0)
            known = config, Mediator(config, tools, self._turn_id, parts)
            if not reads:
                self._mediators[call.level.id] = known
        arguments = call.part.arguments if call.part.arguments is not None else self.arguments.get(call.call_id)
        batch = step_id(self._turn_id, call.step, call.level.id)
        admission = known[1].admit(call, arguments, now=0.0, batch_id=batch, scheduling=scheduling, said=said)
        return admission.events


async def replay_turn(store: Store, row: TurnRow) -> ReplayReport:
    """Decide a stored turn again, from its first fact to its last."""
    recorded = await store.read(row.agent_id, after=row.window_from - 1, thread_id=row.thread_id)
    return await replay_facts(store, row, recorded)


async def replay_facts(store: Store, row: TurnRow, recorded: list[StoredFact]) -> ReplayReport:
    """The same for facts that are at hand; earlier turns of the thread are what the conversation rests on."""
    of_turn = [entry.fact.event for entry in recorded if entry.fact.turn_id == row.turn_id]
    if expired := sum(isinstance(event, EventExpired) for event in of_turn):
        return _report(row, len(of_turn), expired=expired)
    thread, ordered = await beginning(store, row, recorded)
    first = next((place for place, entry in enumerate(ordered) if entry.fact.turn_id == row.turn_id), None)
    if first is None:
        return _report(row, 0)
    own = [entry for entry in ordered[first:] if entry.fact.turn_id == row.turn_id]
    folding = ThreadFolder(store, row, thread)
    await folding.take(ordered[:first])
    gate = _StoredGate(row.turn_id, store.secret)
    replay = Replay(after(thread.so_far, folding.configs), gate)
    check = _PageCheck(store, thread, own)
    await check.look(after(thread.so_far, folding.configs), at_end=False)
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
        whole = StoredFact(entry.agent_id, entry.seq, await hydrated(store, fact))
        check.note(whole)
        replay.feed(whole)
    if replay.divergence is None:
        await check.look(replay.state, at_end=True)
        if check.named is not None:
            replay.same_page(check.named, check.differs)
    return _report(row, len(own), replay)


class _PageCheck:
    """Do the pages that a turn names hold what its thread's facts come to?"""

    def __init__(self, store: Store, thread: Thread, own: Sequence[StoredFact]) -> None:
        self._store = store
        self._call_ids = list(thread.call_ids.order)
        self._limits = list(thread.limits)
        self.named = next((entry for entry in own if isinstance(entry.fact.event, ThreadCheckpointed)), None)
        self.differs: list[str] = []

    def note(self, entry: StoredFact) -> None:
        if isinstance(entry.fact.event, AssistantRecorded | HistoryImported):
            self._call_ids += call_ids_of(entry.fact.event)
        note_limit(self._limits, entry)

    async def look(self, state: TurnState, *, at_end: bool) -> None:
        """Compare, where the pages were made at this moment: in older logs that is before the turn."""
        event = self.named.fact.event if self.named is not None else None
        if not isinstance(event, ThreadCheckpointed) or event.with_turn is not at_end:
            return
        try:
            pages = await load_pages(self._store, event.conversation_ref.digest)
        except TurnUnreadable as gone:
            self.differs = [gone.message]
            return
        stored, call_ids = restored([page for _, page in pages])
        self.differs = differences(stored, after(left_by(state), {}))
        if call_ids.order != list(dict.fromkeys(self._call_ids)):
            self.differs.append("call_ids")
        if at_end and told_by(pages[-1][1]) != told_after(state, self._limits):
            self.differs.append("config and limits")
