"""What a run may use, limit by limit: a caller's budget, the constants of the loop, and windows of spending."""

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from kit.bites import Bites
from kit.runs.engine_runs import calls, of_kind
from kit.runs.level_scripts import SCHEMA, LevelModel, children, ends, finish, subtask, told
from kit.runs.long_runs import Asked, look, looking
from wakeful import Agent, Budget, RunResult, SpendWindow, tool
from wakeful.bootstrap.engines import new_engine
from wakeful.contracts.events import CompactionCompleted, LimitChanged, ToolFailed, ToolResult, ToolStarted, TurnStarted
from wakeful.engine.run_request import RunRequest
from wakeful.service.commands.turns import run_turn
from wakeful.settings.limit_overrides import limit_overrides
from wakeful.store.memory import Memory, MemoryStore
from wakeful.testing import FixedClock

BUDGET = Bites()
CONSTANTS = Bites()
WINDOWS = Bites()
LOOK = calls(("look", {"x": "a"}))
WRONG = calls(("look", {"y": "a"}))
DONE = ("completed", "natural")


def stopped(reason: str) -> tuple[str, str]:
    return "incomplete", reason


async def under(
    budget: Budget, *steps: Any, tools: Any = (look,), environ: dict[str, str] | None = None, **options: Any
) -> RunResult[Any]:
    """A run of a model that takes these steps and then says `done`, at 20 tokens a reply; `environ` is the owner's."""
    children_of = options.pop("children", {})
    model = LevelModel({"go": [*steps, "done"], **children_of}, most=20, spends=20, **options.pop("model", {}))
    clock = options.pop("clock", None)
    system = replace(new_engine(MemoryStore(), clock=clock), limit_overrides=limit_overrides(environ or {}))
    desk = Agent("desk", model, tools=list(tools), subtasks=True, **options)
    return await run_turn(system, RunRequest(desk, "go", budget=budget))


def end(result: RunResult[Any]) -> tuple[str, str | None]:
    return result.status, result.stop_reason


# --- what a caller says ----------------------------------------------------------------------------------------------


@BUDGET.of("budget.usd", ("39", stopped("cost")), ("99", DONE))
async def _money(value: str, folder: Path) -> Any:
    return end(await under(Budget(usd=value, final_answer_reserve=False), LOOK, model={"priced": True}))


@BUDGET.of("budget.tokens", (300, stopped("tokens")), (90_000, DONE))
async def _tokens(value: int, folder: Path) -> Any:
    return end(await under(Budget(tokens=value), LOOK))


@BUDGET.of("budget.input_tokens", (300, stopped("tokens")), (90_000, DONE))
async def _input_tokens(value: int, folder: Path) -> Any:
    return end(await under(Budget(input_tokens=value), LOOK))


@BUDGET.of("budget.output_tokens", (39, stopped("tokens")), (40, DONE))
async def _output_tokens(value: int, folder: Path) -> Any:
    return end(await under(Budget(output_tokens=value), LOOK))


@BUDGET.of("budget.model_calls", (1, stopped("llm_calls")), (2, DONE))
async def _model_calls(value: int, folder: Path) -> Any:
    return end(await under(Budget(model_calls=value, final_answer_reserve=False), LOOK))


@BUDGET.of("budget.tool_calls", (1, stopped("tool_calls")), (2, DONE))
async def _tool_calls(value: int, folder: Path) -> Any:
    return end(await under(Budget(tool_calls=value), LOOK, LOOK))


@BUDGET.of("budget.seconds", (50, stopped("wall_clock")), (500, DONE))
async def _seconds(value: float, folder: Path) -> Any:
    return await _after_a_hundred_seconds(Budget(seconds=value))


@BUDGET.of("budget.minutes", (1, stopped("wall_clock")), (10, DONE))
async def _minutes(value: float, folder: Path) -> Any:
    return await _after_a_hundred_seconds(Budget(minutes=value))


async def _after_a_hundred_seconds(budget: Budget, environ: dict[str, str] | None = None) -> Any:
    clock = FixedClock()

    @tool(effect="pure")
    def dawdle() -> str:
        clock.advance(100)
        return "late"

    return end(await under(budget, calls("dawdle"), tools=[dawdle], clock=clock, environ=environ))


@BUDGET.of("budget.depth", (0, 0), (1, 1), (2, 2))
async def _depth(value: int, folder: Path) -> Any:
    return await _generations(Budget(depth=value))


async def _generations(budget: Budget, environ: dict[str, str] | None = None) -> int:
    below = {"a": [calls(subtask("b")), "A"], "b": ["B"]}
    return len(children(await under(budget, calls(subtask("a")), children=below, environ=environ)))


@BUDGET.of("budget.subtasks", (1, (stopped("subtasks"), 1)), (2, (DONE, 2)))
async def _subtasks(value: int, folder: Path) -> Any:
    return await _siblings(Budget(subtasks=value))


async def _siblings(budget: Budget, environ: dict[str, str] | None = None) -> Any:
    split = calls(subtask("a"), subtask("b"))
    result = await under(budget, split, children={"a": ["A"], "b": ["B"]}, environ=environ)
    return end(result), len(children(result))


@BUDGET.of("budget.per_tool", ({"look": 1}, stopped("tool_calls")), ({"other": 1}, DONE))
async def _per_tool(value: dict[str, int], folder: Path) -> Any:
    return end(await under(Budget(per_tool=value), LOOK, LOOK))


@BUDGET.of("budget.profile", ("interactive", 60), ("autonomous", 200), ("unlimited", None))
async def _profile(value: Any, folder: Path) -> Any:
    (started,) = of_kind(await under(Budget(profile=value)), TurnStarted)
    return started.limits.model_calls


@BUDGET.of("budget.unpriced_token_ceiling", (None, ("failed", "routing_not_possible")), (90_000, DONE))
async def _unpriced(value: int | None, folder: Path) -> Any:
    return end(await under(Budget(usd="9", unpriced_token_ceiling=value), LOOK))


@BUDGET.of("budget.final_answer_reserve", (True, ["auto", "none"]), (False, ["auto", "auto"]))
async def _reserve(value: bool, folder: Path) -> Any:
    model = LevelModel({"go": [LOOK, "done"]})
    desk = Agent("desk", model, tools=[look], budget=Budget(model_calls=2, final_answer_reserve=value))
    await run_turn(new_engine(MemoryStore()), RunRequest(desk, "go"))
    return [shown.tool_choice for shown in model.seen]


@BUDGET.of("budget.stall_repeats", (2, stopped("stalled")), (3, DONE))
async def _stall(value: int, folder: Path) -> Any:
    return end(await under(Budget(stall_repeats=value), LOOK, LOOK))


@BUDGET.of("budget.failure_repeats", (2, True), (3, False))
async def _failing(value: int, folder: Path) -> Any:
    model = LevelModel({"go": [WRONG, WRONG, "done"]})
    desk = Agent("desk", model, tools=[look], budget=Budget(failure_repeats=value))
    result = await run_turn(new_engine(MemoryStore()), RunRequest(desk, "go"))
    assert len(of_kind(result, ToolFailed)) == 2
    plain = 1 + 2 * 2  # the prompt, and a reply and a result for each round
    return len(model.seen[-1].texts) > plain


# --- the constants, as an owner sets them otherwise ------------------------------------------------------------------

CHAT = Budget(profile="interactive", final_answer_reserve=False)


@CONSTANTS.of("MAX_DEPTH", ("0", 0), ("1", 1), ("2", 2))
async def _max_depth(value: str, folder: Path) -> Any:
    return await _generations(CHAT, {"WAKEFUL_MAX_DEPTH": value})


@CONSTANTS.of("MAX_ITERATIONS_PER_LEVEL", ("1", stopped("max_steps")), ("2", DONE))
async def _max_iterations(value: str, folder: Path) -> Any:
    return end(await under(CHAT, LOOK, environ={"WAKEFUL_MAX_ITERATIONS_PER_LEVEL": value}))


@CONSTANTS.of("MAX_PARALLEL_PER_TURN", ("1", False), ("2", True))
async def _width(value: str, folder: Path) -> Any:
    @tool(effect="pure")
    async def peek() -> str:
        return "seen"

    environ = {"WAKEFUL_MAX_PARALLEL_PER_TURN": value}
    result = await under(CHAT, calls("peek", "peek"), tools=[peek], environ=environ)
    order = [type(entry.fact.event) for entry in result.facts()]
    began = [place for place, kind in enumerate(order) if kind is ToolStarted]
    return began[1] < order.index(ToolResult)


@CONSTANTS.of("MAX_TOTAL_SUBTASKS", ("1", (stopped("subtasks"), 1)), ("2", (DONE, 2)))
async def _max_subtasks(value: str, folder: Path) -> Any:
    return await _siblings(CHAT, {"WAKEFUL_MAX_TOTAL_SUBTASKS": value})


@CONSTANTS.of("MAX_TOTAL_LLM_CALLS", ("1", stopped("llm_calls")), ("2", DONE))
async def _max_llm_calls(value: str, folder: Path) -> Any:
    return end(await under(CHAT, LOOK, environ={"WAKEFUL_MAX_TOTAL_LLM_CALLS": value}))


@CONSTANTS.of("MAX_TOTAL_TOOL_CALLS", ("1", stopped("tool_calls")), ("2", DONE))
async def _max_tool_calls(value: str, folder: Path) -> Any:
    return end(await under(CHAT, LOOK, LOOK, environ={"WAKEFUL_MAX_TOTAL_TOOL_CALLS": value}))


@CONSTANTS.of("MAX_WALL_CLOCK_MS", ("50000", stopped("wall_clock")), ("500000", DONE))
async def _max_wall_clock(value: str, folder: Path) -> Any:
    return await _after_a_hundred_seconds(CHAT, {"WAKEFUL_MAX_WALL_CLOCK_MS": value})


@CONSTANTS.of("MAX_TOOL_RESULT_BYTES", ("200", True), ("5000", False))
async def _result_is_cut(value: str, folder: Path) -> Any:
    result = await under(CHAT, LOOK, environ={"WAKEFUL_MAX_TOOL_RESULT_BYTES": value})
    return "[cut here: 200 of" in ends(result, "look")[0].item.text


@CONSTANTS.of("MAX_HISTORY_TOKENS", ("2000", True), ("90000", False))
async def _history_is_pruned(value: str, folder: Path) -> Any:
    desk = Agent("desk", Asked().model(looking(9), window=None), tools=[look])
    owner = limit_overrides({"WAKEFUL_MAX_HISTORY_TOKENS": value})
    system = replace(new_engine(MemoryStore()), limit_overrides=owner)
    result = await run_turn(system, RunRequest(desk, "go", budget=CHAT))
    return bool(of_kind(result, CompactionCompleted))


@CONSTANTS.of("MAX_SCHEMA_RETRIES", ("0", 1), ("2", 3))
async def _corrections(value: str, folder: Path) -> Any:
    wrong = {"fit": [calls(finish(n="x"))]}
    task = calls(subtask("fit", output_schema=SCHEMA))
    result = await under(CHAT, task, children=wrong, environ={"WAKEFUL_MAX_SCHEMA_RETRIES": value})
    return told(result)[0]["attempts"]


# --- windows ---------------------------------------------------------------------------------------------------------


async def spending(*windows: SpendWindow, later: float = 0.0) -> list[str | None]:
    """How two runs end that cost 20 dollars each; time passes between them."""
    clock = FixedClock(datetime(2027, 1, 15, 22, 30, tzinfo=UTC))
    memory = Memory()
    found: list[str | None] = []
    for wait in (0.0, later):
        clock.advance(wait)
        model = LevelModel({"go": ["done"]}, priced=True, most=20, spends=20)
        system = new_engine(MemoryStore(memory), clock=clock)
        result = await run_turn(system, RunRequest(Agent("desk", model, spend_windows=windows), "go"))
        assert len(of_kind(result, LimitChanged)) == (result.stop_reason == "cost")
        found.append(result.stop_reason)
    return found


@WINDOWS.of("spend_windows.usd", ("30", ["natural", "cost"]), ("40", ["natural", "natural"]))
async def _window(value: str, folder: Path) -> Any:
    return await spending(SpendWindow("day", value))


@WINDOWS.of(
    "spend_windows.period",
    ("hour", [["natural", "natural"], ["natural", "natural"], ["natural", "natural"]]),
    ("day", [["natural", "cost"], ["natural", "natural"], ["natural", "natural"]]),
    ("month", [["natural", "cost"], ["natural", "cost"], ["natural", "natural"]]),
)
async def _period(value: Any, folder: Path) -> Any:
    hour, day, month = 3_600.0, 86_400.0, 40 * 86_400.0
    return [await spending(SpendWindow(value, "30"), later=wait) for wait in (hour, day, month)]
