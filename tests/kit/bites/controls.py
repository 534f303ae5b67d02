"""What an agent is made with, argument by argument: the nine controls, and all that has no settings of its own."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from kit.bites import Bites
from kit.mcp_peers.asking import HERE, Odd
from kit.runs.asked_runs import REFUND, World, agent
from kit.runs.engine_runs import calls, of_kind
from kit.runs.level_scripts import LevelModel, children, job, parallel
from kit.runs.long_runs import PLAN, Asked, look, looking
from wakeful import Agent, CompactionPolicy, HookVerdict, Retry, RunContext, RunResult, Runtime, TextFiles, run, tool
from wakeful.contracts.errors import DepsMissing
from wakeful.contracts.events import ModelRequested, ToolProgress
from wakeful.providers.profiles import ModelProfile
from wakeful.providers.scripted import ScriptedModel
from wakeful.store.memory import MemoryStore
from wakeful.testing import FixedClock, ProviderServer, scripted

CONTROLS = Bites()
"""Every argument of `Agent(...)` that is not a value with settings of its own."""
COMPACTION = Bites()
SETTINGS = Bites()


async def played(script: dict[str, Any] | None = None, **options: Any) -> tuple[RunResult[Any], LevelModel]:
    """A run of levels by their tasks; without a script, one that says `done`. The planner plans one step."""
    model = LevelModel({"go": ["done"], PLAN: ["1. look"], **(script or {})})
    given: dict[str, Any] = {"name": "desk", "model": model, **options}
    return await run(Agent(**given), "go", store=MemoryStore()), model


async def refunded(**options: Any) -> tuple[RunResult[Any], list[str]]:
    """A run that calls the refund tool, and what was really run."""
    world = World()
    return await run(agent([world.tool()], (REFUND,), **options), "go", store=MemoryStore()), world.names


def plan_file(folder: Path, words: str) -> str:
    (folder / "other.yaml").write_text(f"- '{words}'\n")
    return f"scripted:{folder / 'other.yaml'}"


@CONTROLS.of("retry.patience", (0, "failed"), (60, "completed"))
async def _patience(value: float, folder: Path) -> Any:
    with ProviderServer(["done"]) as server:
        server.weather.next("503", "503", "503")
        return (await run(Agent("desk", server.model("openai:gpt-5.5"), retry=Retry(patience=value)), "go")).status


# --- the nine --------------------------------------------------------------------------------------------------------


@CONTROLS.of("planning_enabled", (False, [None]), (True, [PLAN, None]))
async def _levels_asked(value: bool, folder: Path) -> Any:
    _, model = await played(planning_enabled=value)
    return [shown.level for shown in model.seen]


@CONTROLS.of("planning_model", (False, "own"), (True, "another"))
async def _who_plans(named: bool, folder: Path) -> Any:
    ref = plan_file(folder, "1. sail") if named else None
    result, _ = await played(planning_enabled=True, planning_model=ref)
    planned = (entry.fact.event for entry in result.facts() if entry.fact.level == PLAN)
    asked = [event.model_ref for event in planned if isinstance(event, ModelRequested)]
    return {ref: "another", "scripted:inline": "own"}[asked[0]]


@CONTROLS.of("planning_instructions", ("", False), ("Plan like a sailor.", True))
async def _planner_is_told(value: str, folder: Path) -> Any:
    _, model = await played(planning_enabled=True, planning_instructions=value)
    return next(shown.instructions == "Plan like a sailor." for shown in model.seen if shown.level == PLAN)


@CONTROLS.of(
    "budget_awareness",
    (None, ("completed", False)),
    ("per-message", ("completed", True)),
    ("limit:0", ("incomplete", False)),
)
async def _advised_or_stopped(value: str | None, folder: Path) -> Any:
    asked = Asked()
    desk = Agent("desk", asked.model(looking(2)), tools=[look], budget_awareness=value)
    result = await run(desk, "go", store=MemoryStore())
    return result.status, any("[context: " in seen.text for seen in asked)


@CONTROLS.of("hitl_tools", ([], ("completed", ["refund"])), (["refund"], ("approval_required", [])))
async def _person_is_asked(value: list[str], folder: Path) -> Any:
    result, done = await refunded(hitl_tools=value)
    return result.status, done


@CONTROLS.of("emit_mcp_progress", (True, True), (False, False))
async def _progress_is_told(value: bool, folder: Path) -> Any:
    odd = Odd(folder, "odd_progress", reads_private=False)
    model = scripted([calls("mcp.odd/reads"), "done"])
    try:
        result = await run(Agent("desk", model, tools=[odd.source], emit_mcp_progress=value), "go")
    finally:
        await odd.source.close()
    assert result.completed, result.status
    assert odd.methods().count("tools/call") == 1
    return bool(of_kind(result, ToolProgress))


@CONTROLS.of("mcp", ([], False), (["odd"], True))
async def _tools_of_a_named_server(value: list[str], folder: Path) -> Any:
    server = {"command": sys.executable, "args": ["-I", "-S", str(HERE / "odd_server.py"), "well"]}
    (folder / "mcp.json").write_text(json.dumps({"mcpServers": {"odd": server}}))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("WAKEFUL_HOME", str(folder))
        _, model = await played(mcp=value)
    return any(name.startswith("mcp.odd/") for name in model.seen[0].tools)


@CONTROLS.of("injected_tool_args", ({}, []), ({"why": "Why you call it."}, ["why"]))
async def _fields_shown(value: dict[str, str], folder: Path) -> Any:
    _, model = await played(tools=[World().reading()], injected_tool_args=value)
    return list(model.schemas["look"].get("properties", {}))


@CONTROLS.of("allow_parallel_subagents", (False, False), (True, True))
async def _parallel_is_offered(value: bool, folder: Path) -> Any:
    _, model = await played(allow_parallel_subagents=value)
    return "spawn_parallel" in model.seen[0].tools


@CONTROLS.of("max_parallel_subagents", (1, 0), (2, 2))
async def _children_of_a_call(value: int, folder: Path) -> Any:
    script = {"go": [calls(parallel(job("a"), job("b"))), "done"], "a": ["x"], "b": ["y"]}
    result, _ = await played(script, allow_parallel_subagents=True, max_parallel_subagents=value)
    return len(children(result))


# --- what every agent has --------------------------------------------------------------------------------------------


@CONTROLS.of("work_items", (False, 0), (True, 7))
async def _tools_for_work_items(value: bool, folder: Path) -> Any:
    model = LevelModel({"go": ["done"]})
    await run(Agent("desk", model, work_items=value), "go", store=MemoryStore(), thread="main")
    return len(model.seen[0].tools)


@CONTROLS.of("memory", (False, 0), (True, 2))
async def _tools_for_memory(value: bool, folder: Path) -> Any:
    model = LevelModel({"go": ["done"]})
    await run(Agent("desk", model, memory=value), "go", store=MemoryStore(), thread="main")
    return len(model.seen[0].tools)


@CONTROLS.of("spawn", (False, False), (True, True))
async def _children_may_be_made(value: bool, folder: Path) -> Any:
    model = LevelModel({"go": ["done"]})
    async with Runtime(store=MemoryStore(), agents=[Agent("desk", model, spawn=value)]) as rt:
        await rt.answer(await rt.send("desk", "go"))
    return "spawn_agent" in model.seen[0].tools


@CONTROLS.of("name", ("desk", ["desk"]), ("shop", ["shop"]))
async def _whose_log(value: str, folder: Path) -> Any:
    store = MemoryStore()
    await run(Agent(value, scripted(["done"])), "go", store=store)
    return [row.agent_name for row in await store.turns()]


@CONTROLS.of("model", ("one", "one"), ("two", "two"))
async def _who_answers(value: str, folder: Path) -> Any:
    return (await run(Agent("desk", scripted([value])), "go")).output


@CONTROLS.of("instructions", ("", ""), ("Be brief.", "Be brief."))
async def _told(value: str, folder: Path) -> Any:
    _, model = await played(instructions=value)
    return model.seen[0].instructions


@CONTROLS.of("tools", ((), []), ((look,), ["look"]))
async def _shown(value: Any, folder: Path) -> Any:
    _, model = await played(tools=value)
    return model.seen[0].tools


@CONTROLS.of("deps_type", (None, "done"), (int, DepsMissing))
async def _needs_deps(value: Any, folder: Path) -> Any:
    try:
        return (await run(Agent("desk", scripted(["done"]), deps_type=value), "go")).output
    except DepsMissing:
        return DepsMissing


@CONTROLS.of("deps", (lambda context: 1, "1"), (lambda context: 2, "2"))
async def _deps_given(value: Any, folder: Path) -> Any:
    @tool(effect="pure")
    def what(ctx: RunContext[int]) -> str:
        return str(ctx.deps)

    result = await run(Agent("desk", scripted([calls("what"), "done"]), tools=[what], deps=value), "go")
    return result.calls("what")[0].result


@CONTROLS.of("output_type", (str, "[1]"), (list[int], [1]))
async def _answer(value: Any, folder: Path) -> Any:
    return (await run(Agent("desk", scripted(["[1]"]), output_type=value), "go")).output


@CONTROLS.of("fallbacks", (False, "failed"), (True, "from another"))
async def _who_steps_in(has_one: bool, folder: Path) -> Any:
    lost = scripted([{"fail": [{"kind": "connection", "message": "no line"}] * 9}])
    other = (plan_file(folder, "from another"),) if has_one else ()
    result = await run(Agent("desk", lost, fallbacks=other), "go")
    return result.output if result.completed else result.status


@CONTROLS.of("hooks", (False, ["refund"]), (True, []))
async def _what_a_hook_leaves(denies: bool, folder: Path) -> Any:
    return (await refunded(hooks=[lambda call: HookVerdict.deny("no")] if denies else []))[1]


@CONTROLS.of("skills", (False, False), (True, True))
async def _skill_is_known(has_one: bool, folder: Path) -> Any:
    place = folder / "skills" / "knots"
    place.mkdir(parents=True)
    (place / "SKILL.md").write_text("---\nname: knots\ndescription: How to tie a bowline.\n---\nTie it.\n")
    _, model = await played(skills=[place.parent] if has_one else ())
    return "bowline" in model.seen[0].instructions


@CONTROLS.of("profile", ("chat", False), ("coding", True))
async def _has_file_tools(value: Any, folder: Path) -> Any:
    _, model = await played(workspace=folder, profile=value)
    return any(name.endswith("edit_file") for name in model.seen[0].tools)


@CONTROLS.of("workspace", ("a", "in a"), ("b", "in b"))
async def _reads_from(value: str, folder: Path) -> Any:
    for name in "ab":
        (folder / name).mkdir()
        (folder / name / "note").write_text(f"in {name}")
    model = scripted([calls(("wakeful/read_file", {"path": "note"})), "done"])
    result = await run(Agent("desk", model, workspace=folder / value), "go")
    return next(f"in {name}" for name in "ab" if f"in {name}" in str(result.history()))


@CONTROLS.of("approval_expiry", (60.0, False), (3_600.0, True))
async def _time_to_decide(value: float, folder: Path) -> Any:
    result, _ = await refunded(hitl_tools=["refund"], approval_expiry=value)
    return result.approvals[0].expires_at - result.approvals[0].requested_at > 1_800


@CONTROLS.of("max_steps", (1, ("incomplete", "max_steps")), (2, ("completed", "natural")))
async def _rounds(value: int, folder: Path) -> Any:
    result, _ = await refunded(max_steps=value)
    return result.status, result.stop_reason


@CONTROLS.of("subtasks", (False, False), (True, True))
async def _may_split(value: bool, folder: Path) -> Any:
    _, model = await played(subtasks=value)
    return "run_subtask" in model.seen[0].tools


@CONTROLS.of("wake", (False, 0), (True, 1))
async def _times(has_one: bool, folder: Path) -> Any:
    clock = FixedClock()
    entries = [{"cron": "0 7 * * *", "say": "Check the backups."}] if has_one else []
    model = scripted(["done"], leftover="ignore")
    async with Runtime(folder / "home", agents=[Agent("desk", model, wake=entries)], clock=clock) as rt:
        clock.advance(8 * 3600)
        await rt.settled()
        return sum([timer.fired for timer in await rt.timers()])


@CONTROLS.of("notify", (False, "not_sent"), (True, "delivered"))
async def _notified(has_one: bool, folder: Path) -> Any:
    lost = scripted([{"fail": [{"kind": "contract_error", "message": "no"}]}])
    target = {"to": [sys.executable, "-c", "import sys; sys.stdin.read()"]} if has_one else None
    async with Runtime(folder / "home", agents=[Agent("desk", lost, notify=target)], clock=FixedClock()) as rt:
        await rt.answer(await rt.send("desk", "go"))
        await rt.settled()
        return (await rt.notices())[0].state


@CONTROLS.of("collections", (False, False), (True, True))
async def _passages(has_one: bool, folder: Path) -> Any:
    (folder / "book").mkdir()
    (folder / "book" / "a.md").write_text("To go is to leave: the bowline holds.\n")
    asked = Asked()
    given = [TextFiles("handbook", folder / "book")] if has_one else []
    await run(Agent("desk", asked.model(lambda request: "done"), collections=given), "go", store=MemoryStore())
    return "bowline" in asked[0].text


# --- values it takes ----------------------------------------------------------------------------------------


async def folded(rounds: int, prompts: int = 1, **policy: Any) -> Asked:
    """A conversation that grows, under this policy."""
    asked, store = Asked(), MemoryStore()
    for place in range(prompts):
        desk = Agent("desk", asked.model(looking(rounds)), tools=[look], compaction=CompactionPolicy(**policy))
        assert (await run(desk, f"prompt {place}", store=store, thread="t")).completed
    return asked


@COMPACTION.of("compaction.enabled", (True, True), (False, False))
async def _is_folded(value: bool, folder: Path) -> Any:
    return bool((await folded(9, enabled=value)).summaries)


@COMPACTION.of("compaction.threshold", (0.3, True), (1.0, False))
async def _is_folded_early(value: float, folder: Path) -> Any:
    return bool((await folded(5, threshold=value)).summaries)


@COMPACTION.of("compaction.keep_user_turns", (1, (False, True)), (2, (True, True)))
async def _what_stays(value: int, folder: Path) -> Any:
    asked = await folded(1, prompts=8, keep_user_turns=value, threshold=0.5)
    after = asked[asked.index(asked.summaries[0]) + 1]
    said = [item.text for item in after.items if item.role == "user" and item.text.startswith("prompt")]
    newest = int(said[-1].split()[1])
    return f"prompt {newest - 1}" in said, f"prompt {newest}" in said


@COMPACTION.of("compaction.model", (False, True), (True, False))
async def _asked_for_the_summary(another: bool, folder: Path) -> Any:
    return bool((await folded(9, model=plan_file(folder, "told by another") if another else None)).summaries)


async def routed(**settings: Any) -> str | None:
    return (await run(Agent("desk", blind(), settings=settings), "go")).stop_reason


def blind() -> Any:
    """A model of which it is known that it sees nothing."""
    model: Any = ScriptedModel(["done"])
    model.profile = ModelProfile(tools=True)
    return model


@SETTINGS.of("settings.require", ([], "natural"), (["vision"], "routing_not_possible"))
async def _required(value: list[str], folder: Path) -> Any:
    return await routed(require=value)


@SETTINGS.of("settings.accept_gap", ([], "routing_not_possible"), (["vision"], "natural"))
async def _accepted(value: list[str], folder: Path) -> Any:
    return await routed(require=["vision"], accept_gap=value)
