"""What cannot be written: the action it would have recorded does not happen, and that it was not written is told."""

from collections.abc import Sequence
from typing import Any

import pytest

from kit.hosts.client_tools import PICK, pick_file
from kit.runs.asked_runs import REFUND, World
from kit.runs.engine_runs import calls, check_ends, facts_of, kinds
from kit.runs.level_scripts import LevelModel, subtask
from wakeful import Agent, Approve, run, tool
from wakeful.bootstrap.engines import new_engine
from wakeful.contracts.content import BlobRef
from wakeful.contracts.envelope import Fact, StoredFact
from wakeful.contracts.errors import RestRefused, StoreFull
from wakeful.contracts.events import ToolFailed, ToolResult, WarningIssued
from wakeful.engine.run_request import RunRequest
from wakeful.engine.runner import NOT_PERSISTED, WATCHER_DROPPED
from wakeful.ports import AdmissionAnswer, Claim, Store
from wakeful.service.commands.turns import run_turn
from wakeful.service.queries.replay import replay_turn
from wakeful.store.memory import MemoryStore
from wakeful.testing import scripted
from wakeful.testing.wrapped_store import WrappedStore


class Refusing(WrappedStore):
    """Has no room for facts of one kind, so many times; nor, if so, for anything after that."""

    def __init__(self, inner: Store, kind: str, times: int = 1, *, for_good: bool = False) -> None:
        super().__init__(inner)
        self.kind, self.times, self.for_good = kind, times, for_good
        self.refused: list[list[str]] = []

    def _check(self, facts: Sequence[Fact]) -> None:
        has_it = any(fact.event.kind == self.kind for fact in facts)
        if (has_it and len(self.refused) < self.times) or (self.refused and self.for_good):
            self.refused.append([fact.event.kind for fact in facts])
            raise StoreFull("there is no room left")

    async def append(self, claim: Claim, facts: Sequence[Fact], **options: Any) -> list[StoredFact]:
        self._check(facts)
        return await super().append(claim, facts, **options)

    async def admit(
        self, agent_id: str, facts: Sequence[Fact], *, reserve: bool = False, claim: bool = False
    ) -> AdmissionAnswer | None:
        self._check(facts)
        return await super().admit(agent_id, facts, reserve=reserve, claim=claim)

    async def put_blob(self, data: bytes, media_type: str) -> BlobRef:
        if self.kind == "blob" and len(data) > 50_000 and len(self.refused) < self.times:
            self.refused.append(["blob"])
            raise StoreFull("there is no room left")
        return await super().put_blob(data, media_type)


class Acts:
    """An agent that does each thing once, and what of it has happened."""

    def __init__(self) -> None:
        self.world = World()
        self.model = LevelModel(
            {
                "go": [calls(REFUND), calls("ship"), calls(subtask("dig")), calls(PICK), "done"],
                "dig": ["dug"],
            }
        )
        self.asked: list[str] = []

    def agent(self) -> Agent[Any, str]:
        tools = [self.world.tool(), self.world.tool("ship", approval=True), pick_file]
        return Agent("any", self.model, tools=tools, subtasks=True)

    async def approve(self, approval: Any) -> Approve:
        self.asked.append(approval.tool)
        return Approve()

    async def go(self, store: Store) -> Any:
        return await run(self.agent(), "go", store=store, key="k", approver=self.approve)

    async def happened(self, store: Store) -> list[str]:
        requests = [row for row in await store.actions() if row.tool_name == PICK[0]]
        levels = [f"asked {shown.task}" for shown in self.model.seen[:1] + self.model.of("dig")[:1]]
        return [*levels, *self.world.names, *("client asked" for _ in requests)]


ALL = ["asked go", "asked dig", "refund", "ship", "client asked"]
WRITE_AHEAD = [
    ("message.admitted", []),
    ("turn.started", []),
    ("model.requested", []),
    ("tool.started", ["asked go"]),
    ("action.required", ["asked go", "refund"]),
    ("action.resolved", ["asked go", "refund"]),
    ("tool.dispatched", ["asked go", "refund"]),
    ("subagent.started", ["asked go", "refund", "ship"]),
    ("runtime_tool.requested", ["asked go", "asked dig", "refund", "ship"]),
]


class Watching:
    """Whoever watches; `broken` says at what it raises."""

    def __init__(self, broken: str = "") -> None:
        self.broken, self.seen = broken, 0

    def facts(self, recorded: Sequence[StoredFact]) -> None:
        if self.broken == "facts":
            raise RuntimeError("no screen")

    def glimpse(self, seen: Any) -> None:
        self.seen += 1
        if self.broken == "glimpse":
            raise RuntimeError("no screen")


@pytest.mark.spec("STD-INV-05")
async def test_a_fact_that_could_not_be_written_stops_its_action_and_lost_telemetry_is_a_warning() -> None:
    for kind, before in WRITE_AHEAD:
        acts, inner = Acts(), MemoryStore()
        store = Refusing(inner, kind)
        with pytest.raises(StoreFull):
            await acts.go(store)
        assert store.refused and await acts.happened(inner) == before, kind
        # The inversion: once it can be written, it happens, and what had happened does not happen again.
        await acts.go(inner)
        assert await acts.happened(inner) == ALL, kind
    for broken in ("glimpse", "facts", ""):
        store, watcher = MemoryStore(), Watching(broken)
        request = RunRequest(Agent("any", scripted(["some words"])), "go", stream=True, watcher=watcher)
        result = await run_turn(new_engine(store), request)
        told = [event for event in await warnings(store) if event.code == WATCHER_DROPPED]
        assert (result.output, len(told)) == ("some words", 1 if broken else 0)
        assert all("no screen" in event.message for event in told)


async def warnings(store: Store) -> list[WarningIssued]:
    (row,) = await store.turns()
    facts = [entry.fact.event for entry in await facts_of(store, row.turn_id)]
    return [event for event in facts if isinstance(event, WarningIssued)]


@pytest.mark.spec("CTL-INV-09")
@pytest.mark.parametrize("kind", ["tool.result", "tool.failed", "assistant.recorded", "turn.completed", "blob"])
@pytest.mark.parametrize("for_good", [False, True])
async def test_that_an_event_or_a_result_was_not_written_is_a_fact_and_never_swallowed(
    kind: str, for_good: bool
) -> None:
    ran: list[str] = []

    @tool(effect="irreversible")
    async def act() -> str:
        ran.append("act")
        if kind == "tool.failed":
            raise RuntimeError("no luck")
        return "x" * 200_000 if kind == "blob" else "fine"

    inner = MemoryStore()
    store = Refusing(inner, kind, for_good=for_good)
    agent = Agent("any", scripted([calls("act"), "done"], leftover="ignore"), tools=[act])
    with pytest.raises(StoreFull, match="no room left") as raised:
        await run(agent, "go", store=store, key="k")
    notes = getattr(raised.value, "__notes__", [])
    (row,) = await inner.turns()
    assert row.is_open and bool(notes) is for_good
    if for_good:
        assert "could not be written down either" in notes[0], "whoever waits is told what the log cannot hold"
    else:
        (told,) = await warnings(inner)
        assert told.code == NOT_PERSISTED and "no room left" in told.message
        if kind in ("tool.result", "tool.failed", "assistant.recorded"):
            assert kind in told.message and kind in kinds(await facts_of(inner, row.turn_id))
    # Taken up again, nothing runs twice, and what was lost for good is an unknown outcome and no success.
    result = await run(agent, "go", store=inner, key="k")
    facts = await facts_of(inner, row.turn_id)
    check_ends(facts)
    (end,) = [entry.fact.event for entry in facts if isinstance(entry.fact.event, ToolResult | ToolFailed)]
    lost = kind == "blob" or (for_good and kind in ("tool.result", "tool.failed"))
    assert (result.status, ran) == ("completed", ["act"])
    assert (isinstance(end, ToolFailed) and end.effects == "unknown") is lost
    assert (await replay_turn(inner, row)).identical
    # The inversion: a store with room for everything has nothing to say.
    whole = MemoryStore()
    await run(agent, "go", store=whole)
    assert await warnings(whole) == []


class FailsBetween(WrappedStore):
    """Has the turn look again before it takes a tool's result, and then cannot be read."""

    stage = 0

    async def append(self, claim: Claim, facts: Sequence[Fact], **options: Any) -> list[StoredFact]:
        if not self.stage and any(isinstance(fact.event, ToolResult) for fact in facts):
            self.stage = 1
            raise RestRefused("something arrived")
        return await super().append(claim, facts, **options)

    async def read(self, agent_id: str, **options: Any) -> list[StoredFact]:
        if self.stage == 1:
            self.stage = 2
            raise StoreFull("there is no room left")
        return await super().read(agent_id, **options)


async def test_a_result_in_hand_is_kept_when_the_store_fails_before_it_is_asked_to_write_it() -> None:
    world, inner = World(), MemoryStore()
    agent = Agent("any", scripted([calls(REFUND), "done"], leftover="ignore"), tools=[world.tool()])
    with pytest.raises(StoreFull):
        await run(agent, "go", store=FailsBetween(inner), key="k")
    (row,) = await inner.turns()
    (told,) = await warnings(inner)
    assert "tool.result" in told.message and "tool.result" in kinds(await facts_of(inner, row.turn_id))
    assert (await run(agent, "go", store=inner, key="k")).completed
    assert (world.names, await inner.unknown()) == (["refund"], [])
