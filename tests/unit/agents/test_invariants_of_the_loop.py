"""What holds on every path through the loop: one gate, one end, a person's word for children too, closed when in doubt.

Every table has its inversion beside it: the same path with the check taken out does what the check keeps from being.
"""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

import pytest

from asked_runs import REFUND, World
from engine_runs import calls, check_ends, facts_of, of_kind
from gate_paths import CHILDREN, LOOPS, PATHS, RISKY, SAFE, Way, boss, yes
from level_scripts import LevelModel, subtask
from long_runs import PLAN
from tool_starters import check_one_door
from wakeful import Agent, Budget, RunResult, cancel, hook, run, stream, tool
from wakeful.contracts.events import PlanningCompleted, Terminal, ToolFailed
from wakeful.contracts.events.turns import StopCause, TurnStatus
from wakeful.contracts.policies import GatePolicy, Rule, ToolPolicy
from wakeful.contracts.run_stream import ErrorEvent, StatusEvent
from wakeful.ports import ModelRequest
from wakeful.service.replay import replay_turn
from wakeful.store.memory import MemoryStore
from wakeful.testing import scripted


@pytest.fixture(scope="module")
def one_door(root: Path) -> Path:
    """Read once for all paths: nothing but mediation begins a tool."""
    check_one_door(root)
    return root


@pytest.mark.spec("CTL-INV-02")
@pytest.mark.parametrize("way", PATHS)
async def test_one_gate_judges_every_execution_and_its_deny_beats_every_later_word(
    way: str, tmp_path: Path, one_door: Path
) -> None:
    denied = await Way(way, tmp_path / "denied").go(denied=True, later=True)
    assert (denied.reached, denied.verdicts()) == (0, ["deny"])
    # The inversion: all the rest without the deny.
    without = await Way(way, tmp_path / "without").go(later=True)
    assert without.reached == 1 and without.verdicts()[-1] == "allow"


@pytest.mark.spec("CTL-HITL-07", "LOOP-INV-01")
@pytest.mark.parametrize("way", PATHS)
async def test_on_every_path_a_class_that_is_off_is_out_of_reach_and_a_person_is_asked(
    way: str, tmp_path: Path, one_door: Path
) -> None:
    shut = await Way(way, tmp_path / "shut").go(shut=True)
    assert shut.reached == 0
    asked = await Way(way, tmp_path / "asked").go(asks=True, asked=None)
    assert (asked.reached, asked.verdicts(), asked.waits) == (0, ["ask"], True)
    if way not in ("chat", *LOOPS):  # whose approvals are decided elsewhere
        approved = await Way(way, tmp_path / "approved").go(asks=True)
        assert (approved.reached, approved.verdicts()) == (1, ["ask", "allow"])
    # The inversion: the class is on, and nobody has to be asked.
    opened = await Way(way, tmp_path / "open").go()
    assert opened.reached == 1 and opened.verdicts()[-1] == "allow"
    if way in ("root", "run_subtask"):
        await check_order(way)


async def check_order(way: str) -> None:
    """Resolve, parse, validate, permission, budget, execute: each call breaks several, and is told the first."""
    world, order = World(), []

    def permission(call: Any) -> bool:
        order.append("permission")
        return False

    wrong = calls(
        "look",
        ("nowhere", "no json"),
        ("refund", "no json"),
        ("refund", {"order": "A17", "cents": "many"}),
        REFUND,
        "look",
    )
    below = way != "root"
    script = {"go": [calls(subtask("dig")), "done"] if below else [wrong], "dig": [wrong]}
    rules = (Rule(match="refund", arguments={"order": "A17"}, decision="deny", reason="no"),)
    agent = Agent(
        "boss",
        LevelModel(script),
        tools=[world.tool(approval=permission), world.reading()],
        subtasks=True,
        policy=GatePolicy(tools=ToolPolicy(context="library", classes=SAFE | RISKY), rules=rules),
    )
    store = MemoryStore()
    result = await run(agent, "go", store=store, budget=Budget(tool_calls=1 + below))
    told = [event.tool_error.kind for event in of_kind(result, ToolFailed) if event.tool_name != "run_subtask"]
    assert told == ["tool_not_found", "invalid_arguments", "invalid_parameters", "permission_denied", "budget_exceeded"]
    assert (world.names, order) == (["look"], ["permission"]), "judged once it could be made, and never run"
    assert (result.status, result.stop_reason) == ("incomplete", "tool_calls")
    row = await store.turn(result.turn_id)
    assert row is not None and (await replay_turn(store, row)).identical
    # The inversion: with nothing wrong and room for it, the same call goes all the way.
    fine = Agent("boss", scripted([calls("look", REFUND, "look"), "done"]), tools=agent.tools)
    assert (await run(fine, "go", budget=Budget(tool_calls=3))).status == "completed"
    assert world.names == ["look", "look", "refund", "look"]


@pytest.mark.spec("CTL-HITL-11")
@pytest.mark.parametrize("way", CHILDREN)
@pytest.mark.parametrize("listed", ["refund", "ref*"])
async def test_what_needs_a_person_needs_one_in_a_child(way: str, listed: str) -> None:
    world, store = World(), MemoryStore()
    agent = boss(way, world, hitl_tools=[listed])
    waiting = await run(agent, "go", store=store, key="k")
    assert (waiting.status, world.done) == ("approval_required", [])
    assert [(each.tool, each.arguments) for each in waiting.approvals] == [REFUND]
    done = await run(agent, "go", store=store, key="k", approver=yes)
    assert (done.status, world.names) == ("completed", ["refund"])
    # The inversion: nothing is listed, nobody is asked.
    free = World()
    assert (await run(boss(way, free), "go")).status == "completed" and free.names == ["refund"]


@pytest.mark.spec("CTL-HITL-11")
async def test_every_tool_that_a_grandchild_holds_is_asked_about_like_its_ancestors() -> None:
    world, store = World(), MemoryStore()
    both = calls(REFUND, ("ship", {"order": "B"}), "look")
    script = {"go": [calls(subtask("1")), "done"], "1": [calls(subtask("2")), "one"], "2": [both, "two"]}
    tools = [world.tool(), world.tool("ship"), world.reading()]
    agent = Agent("boss", LevelModel(script), tools=tools, subtasks=True, hitl_tools=["refund", "ship"])
    asked: list[str] = []

    async def approver(approval: Any) -> bool:
        asked.append(approval.tool)
        return False

    result = await run(agent, "go", store=store, approver=approver)
    assert (result.status, sorted(asked), world.names) == ("completed", ["refund", "ship"], ["look"])


MARKS = ("thinking aloud", "an argument of it", "a result of it")


@pytest.mark.spec("CTL-REJ-01")
@pytest.mark.parametrize("thread", [None, "t"])
async def test_nothing_the_planner_said_called_or_saw_is_in_the_executors_messages_or_in_the_plan(
    thread: str | None,
) -> None:
    sent: dict[str | None, list[str]] = {PLAN: [], None: []}

    @tool(effect="pure")
    def look(what: str) -> str:
        """Look."""
        return MARKS[2] if what == MARKS[1] else "plain"

    def answer(request: ModelRequest) -> Any:
        sent[request.level].append("".join(item.model_dump_json() for item in request.history))
        if request.level == PLAN:
            return "1. look" if request.answered else {"text": MARKS[0], **calls(("look", {"what": MARKS[1]}))}
        return "done" if request.answered else calls(("look", {"what": "executor"}))

    store = MemoryStore()
    agent = Agent("clerk", scripted(answer), tools=[look], planning_enabled=True)
    for prompt in ("one", "two") if thread else ("one",):
        result = await run(agent, prompt, store=store, thread=thread)
        (completed,) = of_kind(result, PlanningCompleted)
        history = "".join(item.model_dump_json() for item in result.history())
        plan_calls = {
            str(entry.fact.call_id) for entry in result.facts() if entry.fact.level == PLAN and entry.fact.call_id
        }
        assert plan_calls
        # Names of calls are unique in a turn alone: in a later one an old call of the executor may bear the same.
        for mark in (*MARKS, *(plan_calls if prompt == "one" else ())):
            quoted = f'"{mark}"'
            assert quoted not in completed.plan.model_dump_json(), "the plan people are shown"
            assert quoted not in history and all(quoted not in text for text in sent[None])
        for mark in MARKS:
            assert mark not in completed.plan.model_dump_json() + history + "".join(sent[None])
    # The inversion: the same search finds them where they belong.
    assert all(any(mark in text for text in sent[PLAN]) for mark in MARKS)


# --- one end ---------------------------------------------------------------------------------------------------------

STATUSES = {"completed", "incomplete", "failed", "cancelled"}
REASONS = {
    *("natural", "max_steps", "iterations", "subtasks", "llm_calls", "tool_calls", "wall_clock", "tokens", "bytes"),
    *("cost", "context_budget", "stalled", "provider_error", "planner_error", "routing_not_possible", "cancelled"),
    *("superseded", "interrupted"),
}


async def _cancelled(store: MemoryStore) -> RunResult[Any]:
    begun = asyncio.Event()

    @tool(effect="pure")
    async def hang() -> str:
        begun.set()
        await asyncio.Event().wait()
        return "never"

    agent = Agent("any", scripted([calls("hang")]), tools=[hang])
    running = asyncio.create_task(run(agent, "go", store=store))
    await begun.wait()
    await cancel(store, (await store.turns())[0].turn_id)
    return await running


def _ended(*steps: Any, **options: Any) -> Callable[[MemoryStore], Any]:
    async def play(store: MemoryStore) -> RunResult[Any]:
        return await run(Agent("any", scripted(list(steps)), tools=[World().reading()], **options), "go", store=store)

    return play


LOST = {"fail": [{"kind": "auth_error", "message": "no key", "status": 401}]}
ENDS = [
    (_ended("done"), "completed", "natural"),
    (_ended(calls("look"), max_steps=1), "incomplete", "max_steps"),
    (_ended(calls("look"), budget=Budget(model_calls=1)), "incomplete", "llm_calls"),
    (_ended(calls("look", "look"), budget=Budget(tool_calls=1)), "incomplete", "tool_calls"),
    (_ended(LOST), "failed", "provider_error"),
    (_cancelled, "cancelled", "cancelled"),
]


@pytest.mark.parametrize(("play", "status", "reason"), ENDS)
async def test_a_run_has_one_end_with_a_status_a_reason_and_whether_to_try_again(
    play: Any, status: str, reason: str
) -> None:
    store = MemoryStore()
    result = await play(store)
    (end,) = [e.fact.event for e in await facts_of(store, result.turn_id) if isinstance(e.fact.event, Terminal)]
    check_ends(await facts_of(store, result.turn_id), once=False)
    assert (end.status, end.stop_reason) == (status, reason) == (result.status, result.stop_reason)
    assert end.retryable is (status in ("incomplete", "failed"))


def test_the_statuses_and_reasons_of_an_end_are_one_enum() -> None:
    assert set(get_args(TurnStatus)) == STATUSES and set(get_args(StopCause)) >= REASONS
    assert set(Terminal.model_fields) >= {"status", "stop_reason", "retryable"}
    assert all(Terminal.model_fields[name].is_required() for name in ("status", "stop_reason", "retryable"))


@pytest.mark.parametrize("kind", ["auth_error", "connection"])
@pytest.mark.parametrize("where", ["root", "child"])
async def test_a_provider_or_network_error_goes_up_and_the_client_is_sent_it(kind: str, where: str) -> None:
    lost = {"fail": [{"kind": kind, "message": "no line"}] * 9}
    script = {"go": [lost]} if where == "root" else {"go": [calls(subtask("dig")), lost], "dig": [lost]}
    agent = Agent("boss", LevelModel(script), subtasks=True)
    async with stream(agent, "go", store=MemoryStore()) as events:
        seen = [event async for event in events]
        result = await events.result()
    assert (result.status, result.stop_reason) == ("failed", "provider_error")
    if where == "root":
        errors = [event for event in seen if isinstance(event, ErrorEvent)]
        assert errors and "no line" in errors[-1].message and not errors[-1].retryable
    assert isinstance(seen[-1], StatusEvent) and seen[-1].status == "failed" and "no line" in seen[-1].message


# --- closed when in doubt --------------------------------------------------------------------------------------------


def raises(*_: Any) -> Any:
    raise RuntimeError("no database")


def nonsense(*_: Any) -> Any:
    return "perhaps"


async def raises_later(*_: Any) -> Any:
    raise RuntimeError("no database")


async def nonsense_later(*_: Any) -> Any:
    return "perhaps"


BROKEN = [
    ("gate", raises),
    *(
        (part, each)
        for part in ("hook", "permission hook")
        for each in (raises, nonsense, raises_later, nonsense_later)
    ),
    *(("approver", each) for each in (raises, nonsense, raises_later, nonsense_later)),
]


@pytest.mark.parametrize(("part", "broken"), BROKEN)
async def test_a_gate_hook_or_approver_that_raises_or_answers_nonsense_denies(part: str, broken: Any) -> None:
    world = World()
    asks = part in ("permission hook", "approver")
    point: Any = {"hook": "pre_tool_use", "permission hook": "permission_request"}.get(part)
    agent = Agent(
        "shop",
        scripted([calls(REFUND), "done"]),
        tools=[world.tool(approval=broken if part == "gate" else asks)],
        hooks=[hook(point)(broken)] if point else [],
    )
    result = await run(agent, "go", store=MemoryStore(), approver=broken if part == "approver" else yes)
    (failed,) = of_kind(result, ToolFailed)
    assert (result.status, failed.effects, world.done) == ("completed", "none", [])
    # The inversion: the same call when nothing is broken.
    fine = World()
    whole = Agent("shop", scripted([calls(REFUND), "done"]), tools=[fine.tool(approval=asks)])
    assert (await run(whole, "go", approver=yes)).status == "completed" and fine.names == ["refund"]
