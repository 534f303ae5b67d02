"""One budget for a whole tree: held back before, settled after, refused before it is passed, and seen."""

import asyncio
import hashlib
import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from kit.runs.engine_runs import Died, Dying, calls, check_ends, facts_of, folded, of_kind
from kit.runs.level_scripts import SCHEMA, LevelModel, Shown, child_ends, children, ends, finish, subtask, told
from wakeful import Agent, Budget, RunContext, RunResult, resume, run, tool
from wakeful.contracts.budgets import BudgetLeft
from wakeful.contracts.events import (
    LimitChanged,
    ModelFailed,
    ModelRequested,
    ToolFailed,
    ToolResult,
    ToolStarted,
    TurnFailed,
)
from wakeful.providers.scripted import ScriptedModel
from wakeful.service.queries.replay import replay_turn
from wakeful.store.memory import Memory, MemoryStore
from wakeful.store.sqlite import SqliteStore


@tool(effect="pure")
def look() -> str:
    """Look."""
    return "seen"


AGAIN = calls("look")


async def played(model: LevelModel, budget: Budget | None = None, **options: Any) -> RunResult[str]:
    given = {name: options.pop(name) for name in ("max_steps", "planning_enabled") if name in options}
    agent = Agent("boss", model, tools=options.pop("tools", [look]), subtasks=True, **given)
    async with asyncio.timeout(60):
        return await run(agent, "go", budget=budget, **options)


def limit_of(result: RunResult[Any]) -> tuple[str, float, float]:
    (reached,) = of_kind(result, LimitChanged)
    return reached.limit_name, reached.limit, reached.observed


def asked(result: RunResult[Any]) -> int:
    return len(of_kind(result, ModelRequested))


def begun(result: RunResult[Any], name: str | None = None) -> int:
    return sum(event.dispatched and name in (None, event.tool_name) for event in of_kind(result, ToolStarted))


# --- numbers ---------------------------------------------------------------------------------------------------------


def wide(children_of_root: int, steps: list[Any]) -> dict[str, Any]:
    names = [f"c{number}" for number in range(children_of_root)]
    return {"go": [{**calls(*map(subtask, names)), "text": "I split it."}, "done"], **dict.fromkeys(names, steps)}


@pytest.mark.spec("LOOP-BUD-06", "LOOP-BUD-03")
async def test_a_tree_of_a_chat_makes_sixty_model_calls_and_each_level_twenty_rounds() -> None:
    budget = Budget(profile="interactive", final_answer_reserve=False)
    result = await played(LevelModel(wide(4, [AGAIN])), budget)
    assert asked(result) == result.model_calls == 60
    assert limit_of(result) == ("llm_calls", 60, 61)
    assert (result.status, result.stop_reason) == ("incomplete", "llm_calls")
    few = await played(LevelModel(wide(2, [AGAIN])), budget)
    assert (few.status, asked(few)) == ("completed", 2 + 2 * 20)
    assert [(end.error, end.steps) for end in child_ends(few)] == [("iteration_limit", 20)] * 2  # type: ignore[union-attr]


@pytest.mark.spec("LOOP-BUD-07", "LOOP-BUD-16")
async def test_it_makes_two_hundred_tool_calls_of_whatever_kind() -> None:
    several = calls(*["look"] * 12)
    model = LevelModel({"go": [calls(subtask("fit", output_schema=SCHEMA)), several], "fit": [calls(finish(n=1))]})
    result = await played(model, Budget(profile="interactive"))
    assert begun(result) == result.tool_calls == 200
    assert (begun(result, "run_subtask"), begun(result, "finish_subtask"), begun(result, "look")) == (1, 1, 198)
    assert limit_of(result) == ("tool_calls", 200, 201)
    lost = {"fail": [{"kind": "overloaded", "message": "busy", "retry_after": 0.0}]}
    model = LevelModel({"go": [{**AGAIN, **lost}, {"text": "done", **lost}]})
    assert (await played(model, Budget(model_calls=4))).model_calls == 4
    tight = await played(LevelModel({"go": [{**AGAIN, **lost}, {"text": "done", **lost}]}), Budget(model_calls=3))
    assert (tight.status, tight.stop_reason, tight.model_calls) == ("incomplete", "llm_calls", 3)
    fits = LevelModel({"go": [calls(subtask("fit", output_schema=SCHEMA)), "done"], "fit": [calls(finish(n="x"))]})
    corrected = await played(fits, Budget(model_calls=4, final_answer_reserve=False))
    assert corrected.stop_reason == "llm_calls", "corrections are counted like anything else"


@pytest.mark.spec("LOOP-BUD-05", "LOOP-BUD-17")
async def test_it_starts_thirty_two_subtasks_and_the_next_is_told_so_before_the_turn_ends() -> None:
    names = [f"c{number}" for number in range(33)]
    script = {"go": [calls(*map(subtask, names)), "never said"], **{name: ["fine"] for name in names}}
    result = await played(LevelModel(script), Budget(profile="interactive"))
    assert len(children(result)) == 32
    assert limit_of(result) == ("subtasks", 32, 33)
    assert (result.status, result.stop_reason) == ("incomplete", "subtasks")
    kinds = [entry.fact.event for entry in result.facts()]
    refused = [
        place
        for place, event in enumerate(kinds)
        if isinstance(event, ToolFailed) and "budget_exceeded" in event.item.text and "subtasks" in event.item.text
    ]
    assert refused and refused[0] < next(p for p, event in enumerate(kinds) if isinstance(event, LimitChanged))
    # Neither a depth nor a child's rounds end the turn; the root's own rounds do.
    deep = await played(LevelModel({"go": [calls(subtask("a")), "done"], "a": ["A"]}), Budget(depth=0))
    assert (deep.status, told(deep)[0]["error"]) == ("completed", "max_depth_reached")
    long = await played(LevelModel({"go": [calls(subtask("a")), "done"], "a": [AGAIN]}), max_steps=3)
    assert (long.status, told(long)[0]["error"]) == ("completed", "iteration_limit")
    root = await played(LevelModel({"go": [AGAIN]}), max_steps=3)
    assert (root.status, root.stop_reason) == ("incomplete", "max_steps")


VIOLATIONS: list[tuple[str, Budget, dict[str, Any], dict[str, Any]]] = [
    ("llm_calls", Budget(model_calls=4, final_answer_reserve=False), wide(3, [AGAIN]), {}),
    ("tool_calls", Budget(tool_calls=4), wide(3, [AGAIN]), {}),
    ("tool_calls", Budget(per_tool={"look": 2}), wide(3, [AGAIN]), {}),
    ("subtasks", Budget(subtasks=2), wide(3, [AGAIN]), {}),
    ("tokens", Budget(output_tokens=60), wide(3, [AGAIN]), {"most": 20, "spends": 20}),
    ("tokens", Budget(tokens=1_500), wide(3, [AGAIN]), {"most": 20, "spends": 20}),
    (
        "cost",
        Budget(usd="60", final_answer_reserve=False),
        wide(3, [AGAIN]),
        {"most": 20, "spends": 20, "priced": True},
    ),
    ("wall_clock", Budget(seconds=1.0), wide(3, [calls("sleep")]), {}),
    (
        "bytes",
        Budget(),
        {
            **wide(1, []),
            "go": [calls(subtask("big", output_schema={"type": "object"}))],
            "big": [calls(("finish_subtask", {"result": {"text": "x" * 60_000}}))],
        },
        {},
    ),
]


@pytest.mark.spec("LOOP-BUD-11", "LOOP-ACC-07", "LOOP-ERR-04", "LOOP-INV-03")
@pytest.mark.parametrize(("reason", "budget", "script", "model"), VIOLATIONS, ids=lambda each: str(each)[:20])
async def test_each_limit_of_a_tree_ends_it_at_once_and_says_so(
    reason: str, budget: Budget, script: dict[str, Any], model: dict[str, Any], tmp_path: Path
) -> None:
    @tool(effect="pure")
    async def sleep() -> str:
        await asyncio.sleep(600)
        return "never"

    store = tmp_path / "runs.db"
    result = await played(LevelModel(script, **model), budget, store=store, tools=[look, sleep])
    assert (result.status, result.stop_reason, result.retryable) == ("incomplete", reason, reason != "bytes")
    name, limit, observed = limit_of(result)
    assert name == reason and observed >= limit and f"{limit:g}" in result.message
    end = result.facts()[-1].fact.event
    assert isinstance(end, TurnFailed) and end.stop_reason == reason
    assert {end.error for end in child_ends(result)} <= {"budget_exceeded"}  # type: ignore[union-attr]
    check_ends(result.facts())
    if script["go"][0].get("text") and reason != "wall_clock":  # nobody knows how far a slow machine comes in a second
        assert result.final_content == "I split it.", "what was said before the end is there"
    assert len({child.level_id for child in children(result)}) == len(child_ends(result)), "the tree is stored"


@pytest.mark.parametrize(("reason", "budget", "script", "model"), VIOLATIONS[:-2], ids=lambda each: str(each)[:20])
async def test_with_room_the_same_tree_is_not_stopped(
    reason: str, budget: Budget, script: dict[str, Any], model: dict[str, Any]
) -> None:
    """The inversion: the same models, which come to an end, under a budget that has room for them."""
    ending = {name: [AGAIN, "fine"] if name != "go" else steps for name, steps in script.items()}
    result = await played(LevelModel(ending, **model))
    assert (result.status, of_kind(result, LimitChanged)) == ("completed", [])


@pytest.mark.spec("LOOP-BUD-14")
@pytest.mark.parametrize("most", [1, 2, 5])
async def test_n_allows_n_and_the_next_is_refused_before_it_happens(most: int) -> None:
    never = LevelModel({"go": [AGAIN]})
    models = await played(never, Budget(model_calls=most, final_answer_reserve=False))
    assert (asked(models), limit_of(models)) == (most, ("llm_calls", most, most + 1))
    tools = await played(LevelModel({"go": [calls(*["look"] * 7)]}), Budget(tool_calls=most))
    assert (begun(tools), limit_of(tools)) == (most, ("tool_calls", most, most + 1))
    below = await played(LevelModel(wide(7, ["fine"])), Budget(subtasks=most))
    assert (len(children(below)), limit_of(below)) == (most, ("subtasks", most, most + 1))
    one = await played(LevelModel({"go": [calls(*["look"] * 7)]}), Budget(per_tool={"look": most}))
    assert (begun(one), limit_of(one)) == (most, ("tool_calls", most, most + 1))
    assert one.message == f"the limit tool_calls={most} was reached (look)"


async def test_the_last_model_call_is_kept_for_the_answer() -> None:
    model = LevelModel({**wide(3, [AGAIN]), "go": [calls(*map(subtask, ("c0", "c1", "c2"))), "what I have"]})
    result = await played(model, Budget(model_calls=6))
    assert (result.status, result.output, result.model_calls) == ("completed", "what I have", 6)
    assert {end.error for end in child_ends(result)} == {"budget_exceeded"}  # type: ignore[union-attr]
    last = model.of("go")[-1]
    assert last.tool_choice == "none" and "last reply" in last.texts[-1]
    assert all(said["reason"] == "llm_calls" for said in told(result))


@pytest.mark.parametrize("kind", ["server_error", "rate_limited"])
async def test_the_last_round_is_the_last_also_when_its_first_attempt_is_lost(kind: str) -> None:
    """Asked again with its tools, the model would use them and the run would end without an answer."""
    lost: dict[str, Any] = {"fail": [{"kind": kind, "message": "gone", "status": 500, "retry_after": 0.0}]}

    def steady(shown: Shown) -> Any:
        if len(model.of("go")) == 2:
            return lost
        return "what I have" if shown.tool_choice == "none" else calls("look")

    model = LevelModel({"go": [steady]})
    agent = Agent("boss", model, tools=[look], max_steps=2)
    async with asyncio.timeout(60):
        result = await run(agent, "go")
    assert (result.status, result.output) == ("completed", "what I have")
    assert [shown.tool_choice for shown in model.of("go")] == ["auto", "none", "none"]
    assert sum("last reply" in text for text in model.of("go")[-1].texts) == 1


# --- held back, settled ----------------------------------------------------------------------------------------------


@pytest.mark.spec("LOOP-BUD-15", "CTL-INV-03", "LOOP-INV-02", "LOOP-OUT-02")
async def test_eight_children_at_the_limit_do_not_overspend_together() -> None:
    """Each answer may take 20 of 110 tokens and takes 10: while five are under way, the others wait."""
    under_way = most_under_way = 0

    async def slow(shown: Shown) -> Any:
        nonlocal under_way, most_under_way
        under_way += 1
        most_under_way = max(most_under_way, under_way)
        for _ in range(50):
            await asyncio.sleep(0)
        under_way -= 1
        return "fine"

    model = LevelModel(wide(8, [slow]), most=20, spends=10)
    result = await played(model, Budget(output_tokens=110))
    assert most_under_way == 5, "the root has taken ten"
    assert (result.status, result.usage.output_tokens) == ("completed", 100)
    short = await played(LevelModel(wide(8, [slow]), most=20, spends=10), Budget(output_tokens=109))
    assert limit_of(short) == ("tokens", 109, 90 + 20) and len(child_ends(short)) == 8
    free = LevelModel(wide(8, [slow]), most=20, spends=10)
    most_under_way = 0
    assert (await played(free)).status == "completed" and most_under_way == 8
    script = {"go": ["done"], "~plan": ["1. Go."]}
    planned = await played(LevelModel(script, most=20, spends=10), Budget(output_tokens=29), planning_enabled=True)
    assert limit_of(planned) == ("tokens", 29, 10 + 20), "the planner took ten"
    states: list[BudgetLeft] = []

    @tool(effect="pure")
    def left(ctx: RunContext[None]) -> str:
        states.append(ctx.budget)
        return "seen"

    nested = {"go": [calls(subtask("a")), calls("left"), "done"], "a": [calls("left"), "A"]}
    await played(LevelModel(nested, most=20, spends=10), Budget(output_tokens=100, model_calls=9), tools=[left])
    assert [(each.output_tokens, each.model_calls) for each in states] == [(80, 7), (60, 5)], "one budget, all the way"


@pytest.mark.spec("LOOP-BUD-21")
async def test_money_is_held_at_the_worst_case_and_settled_at_what_it_cost() -> None:
    """A dollar a token: an answer may cost 20 and costs 5."""
    left: list[str | None] = []

    @tool(effect="pure")
    def count(ctx: RunContext[None]) -> str:
        left.append(ctx.budget.usd)
        return "counted"

    script = {"go": [calls("count"), calls("count"), "done"]}
    fits = await played(LevelModel(script, priced=True, most=20, spends=5), Budget(usd="30"), tools=[count])
    assert (fits.status, fits.cost_usd) == ("completed", 15.0)
    assert list(map(Decimal, map(str, left))) == [25, 20]
    tight = await played(LevelModel(script, priced=True, most=20, spends=5), Budget(usd="29"), tools=[count])
    assert (tight.status, tight.stop_reason, limit_of(tight)) == ("incomplete", "cost", ("cost", 29, 30))
    assert tight.cost_usd == 10.0
    silent = await played(LevelModel(script, priced=True, most=20), Budget(usd="59"), tools=[count])
    assert limit_of(silent) == ("cost", 59, 60), "what nobody says is taken to have cost what was held"
    unknown = await played(LevelModel(script, most=20, spends=5), Budget(usd="1000"), tools=[count])
    assert (unknown.status, asked(unknown)) == ("failed", 0) and "its price is not known" in unknown.message
    ceiling = Budget(usd="1000", unpriced_token_ceiling=2_000)
    allowed = await played(LevelModel(script, most=20, spends=5), ceiling, tools=[count])
    assert allowed.status == "completed"
    spent = await played(LevelModel({"go": [calls("count")]}, most=900, spends=800), ceiling, tools=[count])
    assert spent.stop_reason == "cost" and limit_of(spent)[1] == 2_000
    assert (await played(LevelModel(script, most=20, spends=5), tools=[count])).status == "completed"


@pytest.mark.parametrize(("ceiling", "at_once"), [(5_000, {2, 3, 4}), (99_000, {8})])
async def test_requests_without_a_price_are_held_to_their_ceiling_side_by_side(ceiling: int, at_once: set[int]) -> None:
    """Each may take 900 tokens and its prompt, and takes five."""
    under_way = most_under_way = 0

    async def slow(shown: Shown) -> Any:
        nonlocal under_way, most_under_way
        under_way += 1
        most_under_way = max(most_under_way, under_way)
        for _ in range(50):
            await asyncio.sleep(0)
        under_way -= 1
        return "fine"

    model = LevelModel(wide(8, [slow]), most=900, spends=5)
    result = await played(model, Budget(usd="1", unpriced_token_ceiling=ceiling))
    assert result.status == "completed" and most_under_way in at_once


async def test_what_was_spent_and_held_is_the_same_after_a_kill() -> None:
    """The request that the kill cut off may have cost all that was held for it: unknown is never free."""
    script = {"go": [calls(subtask("a"), subtask("b")), "done"], "a": [AGAIN, AGAIN, "A"], "b": [AGAIN, "B"]}

    def model() -> LevelModel:
        return LevelModel(script, priced=True, most=20, spends=5)

    budget = Budget(usd="1000")
    whole = await played(model(), budget)
    died = 0
    for number in range(2, 24):
        memory = Memory()
        try:
            await played(model(), budget, store=Dying(memory, after=number))
        except Died:
            died += 1
        store = MemoryStore(memory)
        (row,) = await store.turns()
        if row.is_open:
            cut = await facts_of(store, row.turn_id)
            resumed = await resume(store, row.turn_id, [Agent("boss", model(), tools=[look], subtasks=True)])
            assert resumed.output == whole.output
            state = await folded(store, row)
            lost = len(of_kind(resumed, ModelFailed))
            assert state.ledger.usd == Decimal(str(whole.cost_usd)) + 20 * lost
            assert state.ledger.held_usd == 0 and len(cut) < len(resumed.facts())
            assert (await replay_turn(store, row)).identical
    assert died > 5


# --- results that are too long ---------------------------------------------------------------------------------------


@pytest.mark.spec("LOOP-BUD-09", "LOOP-BUD-20")
@pytest.mark.parametrize("text", ["x" * 9_000, "ü" * 9_000, "x" * 900], ids=["ascii", "two bytes", "short"])
async def test_an_installation_says_how_much_of_a_result_a_model_is_shown(
    text: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    @tool(effect="pure")
    def read() -> str:
        """Read it all."""
        return text

    script = {"go": [calls("read", subtask("tell")), "done"], "tell": [text]}
    whole = await played(LevelModel(script), tools=[read])
    assert [end.item.text for name in ("read", "run_subtask") for end in ends(whole, name)] == [text, text]
    monkeypatch.setenv("WAKEFUL_MAX_TOOL_RESULT_BYTES", "500")
    store = tmp_path / "runs.db"
    result = await played(LevelModel(script), tools=[read], store=store)
    for name in ("read", "run_subtask"):
        (end,) = ends(result, name)
        size = len(text.encode())
        digest = hashlib.sha256(text.encode()).hexdigest()[:12]
        assert len(end.item.text.encode()) <= 500 and end.item.text.endswith(
            f'[cut here: 500 of {size:,} bytes are shown; read_artifact(artifact="{digest}") reads the rest]'
        )
        assert set(end.item.text.partition("\n")[0]) == {text[0]}, "cut between characters"
        assert isinstance(end, ToolResult) and end.result_ref is not None
        opened = await SqliteStore.open(store)
        assert await opened.get_blob(end.result_ref.digest) == text.encode()
        await opened.close()
    assert of_kind(result, LimitChanged) == []


@pytest.mark.spec("LOOP-BUD-19")
async def test_cutting_a_result_is_no_stop_and_a_payload_is_never_cut() -> None:
    @tool(effect="pure")
    def read() -> str:
        return "x" * 90_000

    fine = await played(LevelModel({"go": [calls("read"), "done"]}), tools=[read])
    assert (fine.status, of_kind(fine, LimitChanged)) == ("completed", [])
    schema = {"type": "object"}
    big = {
        "go": [calls(subtask("big", output_schema=schema)), "done"],
        "big": [calls(finish(result={"text": "x" * 60_000}))],
    }
    result = await played(LevelModel(big))
    assert result.stop_reason == "bytes" and limit_of(result)[:2] == ("bytes", 50_000)
    assert json.loads(ends(result, "finish_subtask")[0].item.text)["reason"] == "bytes"
    small = {**big, "big": [calls(finish(result={"text": "x" * 40_000}))]}
    assert (await played(LevelModel(small))).status == "completed"


async def test_a_plan_is_paid_for_with_every_request_that_shows_it() -> None:
    """Not counted beforehand, the request after the plan would take more than there is."""

    def answer(request: Any) -> Any:
        said = "1. " + "do it " * 3_000 if request.level == "~plan" else "done"
        prompt = len(request.instructions) + sum(len(item.text) for item in request.history)
        return {"text": said, "usage": {"input_tokens": prompt // 3, "output_tokens": 10}}

    model = ScriptedModel(answer)
    agent = Agent("boss", model, planning_enabled=True)
    result = await run(agent, "go", budget=Budget(input_tokens=5_000))
    (limit,) = of_kind(result, LimitChanged)
    assert (result.status, limit.limit_name, limit.what) == ("incomplete", "tokens", "input_tokens")
    assert (result.usage.input_tokens or 0) <= 5_000
    enough = await run(agent, "go", budget=Budget(input_tokens=20_000))
    assert enough.output == "done"
