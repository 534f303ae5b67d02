"""What a round writes: the reply with the intents of its calls, and then their results with the next request."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from wakeful import Agent, RunContext, RunResult, cancel, run, stream, tool
from wakeful.contracts.envelope import Fact, StoredFact, published
from wakeful.contracts.events import ModelRequested, PermissionEvaluated, ToolFailed, ToolResult, ToolStarted
from wakeful.ports import Claim, Store
from wakeful.service.queries.replay import replay_turn
from wakeful.store.memory import MemoryStore
from wakeful.store.sqlite import SqliteStore
from wakeful.testing import scripted
from wakeful.testing.wrapped_store import WrappedStore


class Commits(WrappedStore):
    """Notes which kinds were written together."""

    def __init__(self, inner: Store | None = None) -> None:
        super().__init__(inner if inner is not None else MemoryStore())
        self.made: list[list[str]] = []

    async def append(
        self, claim: Claim, facts: Sequence[Fact], *, barrier: bool = False, rest: bool = False, last: bool = False
    ) -> list[StoredFact]:
        self.made.append([fact.event.kind for fact in facts])
        return await super().append(claim, facts, barrier=barrier, rest=rest, last=last)

    def of(self, kind: str) -> list[str]:
        """The first commit with this kind."""
        return next(kinds for kinds in self.made if kind in kinds)


REPLY = ["model.completed", "assistant.recorded"]
INTENT = ["permission.evaluated", "tool.started"]


def calls(*names: str) -> dict[str, Any]:
    return {"calls": [{"name": name, "arguments": {}} for name in names]}


async def made(*tools: Any, steps: list[Any], **options: Any) -> tuple[Commits, RunResult[Any]]:
    store = Commits()
    result = await run(Agent("any", scripted([*steps, "done"]), tools=list(tools), **options), "go", store=store)
    assert result.output == "done"
    return store, result


@tool(effect="pure")
async def quick() -> str:
    return "4200"


@tool(effect="pure")
async def slow() -> str:
    await asyncio.sleep(0.05)
    return "4200"


@tool(effect="keyed")
async def keyed() -> str:
    return "4200"


@tool(effect="irreversible")
async def irreversible() -> str:
    return "4200"


async def test_a_round_with_a_call_is_two_commits() -> None:
    store, _ = await made(quick, steps=[calls("quick"), calls("quick")])
    assert store.made[1:] == [
        [*REPLY, *INTENT],
        ["tool.result", "model.requested"],
        [*REPLY, *INTENT],
        ["tool.result", "model.requested"],
        [*REPLY, "turn.completed"],
    ]


async def test_the_outcome_names_the_verdict_on_its_call() -> None:
    _, result = await made(quick, slow, irreversible, steps=[calls("quick"), calls("slow"), calls("irreversible")])
    facts = list(result.facts())
    verdicts = [entry.event_id for entry in facts if isinstance(entry.fact.event, PermissionEvaluated)]
    outcomes = [published(entry, "rt") for entry in facts if isinstance(entry.fact.event, ToolResult)]
    assert [event.payload["permission_ref"] for event in outcomes] == verdicts


@pytest.mark.parametrize("effect", [quick, slow, keyed, irreversible], ids=["pure", "slow", "keyed", "irreversible"])
async def test_a_call_begins_after_its_intent_is_written(effect: Any) -> None:
    store, _ = await made(effect, steps=[calls(effect.name)])
    assert store.of("tool.started") == [*REPLY, *INTENT]


async def test_a_call_that_fails_names_its_verdict() -> None:
    @tool(effect="pure")
    async def broken() -> str:
        raise ValueError("no such order")

    _, result = await made(broken, steps=[calls("broken")])
    failure = next(entry for entry in result.facts() if isinstance(entry.fact.event, ToolFailed))
    assert published(failure, "rt").payload["permission_ref"].endswith(f":{failure.seq - 2}")


async def test_notes_of_a_call_stand_between_its_beginning_and_its_end() -> None:
    @tool(effect="pure")
    async def telling(ctx: RunContext[None]) -> str:
        ctx.progress("half", done=1, total=2)
        return "4200"

    store, result = await made(telling, steps=[calls("telling")])
    assert store.made[1:3] == [[*REPLY, *INTENT], ["tool.progress", "tool.result", "model.requested"]]
    ended = next(entry for entry in result.facts() if isinstance(entry.fact.event, ToolResult))
    assert published(ended, "rt").payload["permission_ref"].endswith(f":{ended.seq - 3}")


async def test_where_somebody_watches_nothing_of_a_call_is_seen_before_its_beginning() -> None:
    @tool(effect="pure")
    async def telling(ctx: RunContext[None]) -> str:
        ctx.progress("half", done=1, total=2)
        return "4200"

    agent = Agent("any", scripted([calls("telling"), "done"]), tools=[telling])
    async with stream(agent, "go", store=MemoryStore()) as events:
        kinds = [event.type async for event in events]
    assert kinds.index("tool_call") < kinds.index("mcp_progress") < kinds.index("tool_result")


async def test_a_cancel_from_inside_a_call_is_heard_before_the_next_request(tmp_path: Path) -> None:
    store = await SqliteStore.open(tmp_path / "runs.db")

    @tool(effect="pure")
    async def stops(ctx: RunContext[None]) -> str:
        await asyncio.shield(asyncio.ensure_future(cancel(store, ctx.turn_id)))
        return "4200"

    agent = Agent("any", scripted([calls("stops"), "never said"], leftover="ignore"), tools=[stops])
    result = await run(agent, "go", store=store)
    assert result.status == "cancelled"
    requests = [entry for entry in result.facts() if isinstance(entry.fact.event, ModelRequested)]
    assert len(requests) == 1
    (row,) = await store.turns()
    assert (await replay_turn(store, row)).identical
    await store.close()


async def test_a_caller_that_leaves_while_a_call_runs_leaves_its_reply_and_its_intent_behind() -> None:
    store, began = Commits(), asyncio.Event()

    @tool(effect="pure")
    async def hangs() -> str:
        began.set()
        task.cancel()
        await asyncio.sleep(60)
        return "never"

    agent = Agent("any", scripted([calls("hangs"), "done"], leftover="ignore"), tools=[hangs])
    task = asyncio.create_task(run(agent, "go", store=store, key="k"))
    await began.wait()
    with pytest.raises(asyncio.CancelledError):
        await task
    (row,) = await store.turns()
    events = [entry.fact.event for entry in await store.read(row.agent_id, turn_id=row.turn_id)]
    assert isinstance(events[-1], ToolStarted) and events[-1].dispatched
