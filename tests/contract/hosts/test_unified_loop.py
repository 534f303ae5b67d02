"""One loop at every depth, under its own name: what it takes, what it gives, and what its levels share."""

import asyncio
import inspect
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from kit.runs.engine_runs import calls
from kit.runs.level_scripts import LevelModel, Shown, note, subtask
from wakeful import Budget, tool
from wakeful.bootstrap.engines import new_engine
from wakeful.contracts.budgets import MAX_DEPTH
from wakeful.contracts.envelope import Fact, StoredFact
from wakeful.contracts.errors import InvalidConfig, StoreFull
from wakeful.contracts.events import ToolStarted
from wakeful.hosts import LoopContext, run_unified_agent_loop
from wakeful.ports import Claim, Store, TurnRow
from wakeful.service.queries.replay import replay_turn
from wakeful.store.memory import MemoryStore
from wakeful.testing.wrapped_store import WrappedStore
from wakeful.tools.runtime_tools import runtime_tools
from wakeful.views.wire_messages import BudgetExceeded, Chunk, ToolCallUpdate, TurnTerminal, WireMessage


@tool(effect="pure")
def look(what: str = "here") -> str:
    """Look."""
    return f"saw {what}"


OWN = {each.name: each for each in runtime_tools(subtasks=True, parallel=None, work_items=False)}
BELT = [look, *OWN.values()]


def context(model: LevelModel, store: Store | None = None, **budget: Any) -> LoopContext:
    around = replace(new_engine(store or MemoryStore()), resolve_model=lambda choice: model)
    return LoopContext(around, Budget(profile="interactive", **budget))


async def played(ctx: LoopContext, task: str, **given: Any) -> list[WireMessage]:
    options = {"system_prompt": "Serve.", "tools": BELT, "history": [{"role": "user", "content": task}], **given}
    async with asyncio.timeout(60):
        return [each async for each in run_unified_agent_loop(provider="scripted", model="m", ctx=ctx, **options)]


def told(messages: Sequence[WireMessage], parent: str) -> list[tuple[Any, ...]]:
    """What was said and called below a call, and where. Calls are named in the order in which they start."""
    names = {parent: "its parent"}
    calls_told: list[tuple[Any, ...]] = []
    words: dict[tuple[str, int], str] = {}
    for each in messages:
        if isinstance(each, Chunk):
            place = names[str(each.parent_id)], each.depth
            words[place] = words.get(place, "") + each.content
        elif isinstance(each, ToolCallUpdate):
            call = names.setdefault(each.tool_call_id, f"call {len(names)}")
            calls_told.append(
                (names[str(each.parent_id)], each.depth, call, each.name, str(each.status), str(each.result))
            )
    # A call and the child beside it end in either order.
    return [*sorted(calls_told), *sorted((*place, text) for place, text in words.items())]


TREE = {
    "go": [calls(("look", {"what": "go"}), subtask("1")), "go is done"],
    **{
        str(depth): [calls(("look", {"what": str(depth)}), subtask(str(depth + 1))), f"{depth} is done"]
        for depth in range(1, MAX_DEPTH + 1)
    },
}


@pytest.mark.spec("LOOP-STEP-01")
async def test_the_same_loop_runs_a_level_of_a_tree_and_that_level_alone() -> None:
    assert list(inspect.signature(run_unified_agent_loop).parameters) == [
        *("provider", "model", "system_prompt", "history", "tools", "ctx", "depth", "max_iterations"),
        *("parent_subtask_id", "cancel"),
    ]
    tree = LevelModel(TREE)
    sent = await played(context(tree), "go")
    assert [type(each) for each in sent[-1:]] == [TurnTerminal]
    first = tree.of("go")[0]
    assert (first.instructions, first.tools, first.texts) == ("Serve.", [each.name for each in BELT], ["go"])
    assert {each.depth for each in sent if isinstance(each, Chunk)} == set(range(MAX_DEPTH + 1))
    (refused,) = (
        each for each in sent if isinstance(each, ToolCallUpdate) and each.depth == MAX_DEPTH and each.is_error
    )
    assert "max_depth_reached" in str(refused.result), "at every depth the same bound holds"

    # Each level of that tree once more, entered by itself with what it was given there.
    parents = {each.depth: each.tool_call_id for each in sent if _begins_child(each)}
    for depth in range(1, MAX_DEPTH + 1):
        alone = LevelModel(TREE)
        shown = tree.of(str(depth))[0]
        belt = [look, *(OWN[name] for name in shown.tools if name in OWN)]
        parent = parents[depth - 1]
        again = await played(
            context(alone),
            str(depth),
            system_prompt=shown.instructions,
            tools=belt,
            depth=depth,
            parent_subtask_id=parent,
        )
        here = [each for each in sent if getattr(each, "depth", -1) >= depth]
        assert told(again, parent) == told(here, parent) != []
        assert requests(alone, depth) == requests(tree, depth), "its model is shown the same"


def _begins_child(message: WireMessage) -> bool:
    return isinstance(message, ToolCallUpdate) and message.name == "run_subtask" and message.status == "start"


def requests(model: LevelModel, depth: int) -> list[tuple[Any, ...]]:
    def of(shown: Shown) -> tuple[Any, ...]:
        return shown.task, shown.instructions, sorted(shown.tools), shown.texts

    return [of(shown) for shown in model.seen if shown.task in {str(each) for each in range(depth, MAX_DEPTH + 2)}]


async def test_the_loops_of_a_turn_share_one_memory_and_one_budget() -> None:
    model = LevelModel(
        {
            "write": [calls(note("colour", "red")), calls(subtask("dig")), "written"],
            "dig": ["gold"],
            "read": [calls(("scratch_read", {"key": "colour"})), lambda shown: f"it is {shown.texts[-1]}"],
            "again": ["never said"],
        }
    )
    ctx = context(model, model_calls=6, subtasks=1, final_answer_reserve=False)
    await played(ctx, "write")
    assert ctx.memory["colour"] == "red" and "gold" in ctx.memory.values(), "results of subtasks are there, too"
    assert (ctx.left.model_calls, ctx.left.subtasks, ctx.left.tool_calls) == (2, 0, 198)
    words = [each.content for each in await played(ctx, "read") if isinstance(each, Chunk)]
    assert "red" in "".join(words) and ctx.left.model_calls == 0
    stopped = await played(ctx, "again")
    (over,) = (each for each in stopped if isinstance(each, BudgetExceeded))
    assert over.reason == "llm_calls" and ctx.result is not None and ctx.result.stop_reason == "llm_calls"
    assert not model.of("again"), "what earlier loops used is gone"
    for row in await ctx.engine.store.turns():
        assert (await replay_turn(ctx.engine.store, row)).identical


@pytest.mark.parametrize("place", [{}, {"depth": 2, "parent_subtask_id": "call_9"}])
async def test_iterations_and_the_cancel_signal_stop_it_at_any_depth(place: dict[str, Any]) -> None:
    ctx = context(LevelModel({"go": [calls("look")]}))
    await played(ctx, "go", max_iterations=2, **place)
    assert ctx.result is not None and (ctx.result.stop_reason, ctx.result.turn_count) == ("max_steps", 2)

    cancel = asyncio.Event()

    @tool(effect="pure")
    async def wait() -> str:
        """Wait."""
        cancel.set()
        await asyncio.sleep(60)
        return "never"

    ctx = context(LevelModel({"go": [calls(subtask("in")), "x"], "in": [calls("wait")]}))
    sent = await played(ctx, "go", tools=[wait, *OWN.values()], cancel=cancel, **place)
    assert ctx.result is not None and ctx.result.status == "cancelled"
    stopped = [each for each in sent if isinstance(each, ToolCallUpdate) and each.status == "end"]
    assert [(each.name, each.outcome) for each in stopped] == [("wait", "cancelled"), ("run_subtask", "cancelled")]
    assert isinstance(sent[-1], TurnTerminal) == (not place), "only a root sends the end of the turn"


async def test_whoever_stops_reading_has_it_stopped_and_the_context_is_free_again() -> None:
    begun = asyncio.Event()

    @tool(effect="pure")
    async def wait() -> str:
        """Wait."""
        begun.set()
        await asyncio.sleep(60)
        return "never"

    ctx = context(LevelModel({"go": [calls("wait"), "done"], "next": ["hello"]}))
    said = [{"role": "user", "content": "go"}]
    loop = run_unified_agent_loop(provider="scripted", model="m", system_prompt="", history=said, tools=[wait], ctx=ctx)
    assert isinstance(await anext(loop), ToolCallUpdate)
    await begun.wait()
    with pytest.raises(InvalidConfig, match="a loop of this context is running"):
        await played(ctx, "next")
    await loop.aclose()
    assert ctx.result is not None and ctx.result.status == "cancelled"
    await played(ctx, "next")
    assert ctx.result.output == "hello"


class Full(WrappedStore):
    """Has no room for the first call; and, if so, tells of no turn from then on."""

    def __init__(self, *, silent: bool) -> None:
        super().__init__(MemoryStore())
        self.silent, self.is_full = silent, False

    async def append(self, claim: Claim, facts: Sequence[Fact], **options: Any) -> list[StoredFact]:
        if any(isinstance(fact.event, ToolStarted) for fact in facts):
            self.is_full = True
            raise StoreFull("there is no room left")
        return await super().append(claim, facts, **options)

    async def turn(self, turn_id: str) -> TurnRow | None:
        if self.silent and self.is_full:
            raise StoreFull("there is no room left")
        return await super().turn(turn_id)


@pytest.mark.parametrize("silent", [False, True])
async def test_a_loop_that_breaks_off_tells_its_reader_and_has_used_what_it_used(silent: bool) -> None:
    ctx = context(LevelModel({"go": [calls("look"), "done"]}), Full(silent=silent), model_calls=6)
    with pytest.raises(StoreFull):
        await played(ctx, "go")
    assert silent or ctx.left.model_calls == 5


@pytest.mark.parametrize(
    "given",
    [
        {"depth": MAX_DEPTH + 1, "parent_subtask_id": "c"},
        {"depth": -1, "parent_subtask_id": "c"},
        {"depth": 1},
        {"parent_subtask_id": "c"},
        {"history": []},
        {"history": [{"role": "assistant", "content": "hi"}]},
    ],
)
async def test_what_is_no_place_in_a_tree_is_refused_before_anything_runs(given: dict[str, Any]) -> None:
    model = LevelModel({"go": ["never"]})
    ctx = context(model)
    with pytest.raises(InvalidConfig):
        await played(ctx, "go", **given)
    assert (model.seen, await ctx.engine.store.turns()) == ([], [])
