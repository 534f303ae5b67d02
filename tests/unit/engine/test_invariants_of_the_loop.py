"""What holds on every path through the loop: one gate, one end, a person's word for children too, closed when in doubt.

Every table has its inversion beside it: the same path with the check taken out does what the check keeps from being.
"""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, get_args

import pytest
from pydantic import AfterValidator, ValidationError

from kit.gates.gate_paths import CHILDREN, LOOPS, PATHS, RISKY, SAFE, Way, boss, yes
from kit.gates.tool_starters import check_one_door
from kit.hosts.loop_host import SEARCH, Host, calling, search
from kit.runs.asked_runs import REFUND, World
from kit.runs.engine_runs import calls, check_ends, facts_of, of_kind
from kit.runs.level_scripts import LevelModel, subtask
from kit.runs.long_runs import PLAN
from wakeful import Agent, Budget, RunResult, hook, run, stream, tool
from wakeful.bootstrap.engines import new_engine
from wakeful.contracts.content import Image, Prompt, Text
from wakeful.contracts.errors import InvalidConfig, InvalidValue
from wakeful.contracts.events import PlanningCompleted, Terminal, ToolFailed
from wakeful.contracts.events.turns import StopCause, TurnStatus
from wakeful.contracts.policies import GatePolicy, Rule, ToolPolicy
from wakeful.contracts.tools import ToolDeclaration
from wakeful.decisions.policy.permissions import default_policy
from wakeful.hosts.chat.toolbelt import chat_context_of
from wakeful.hosts.chat.turns import run_chat_agent
from wakeful.ports import ModelRequest
from wakeful.providers.profiles import ModelProfile
from wakeful.service.commands.interruption import cancel_turn
from wakeful.service.queries.replay import replay_turn
from wakeful.service.queries.views import wire_messages
from wakeful.store.memory import MemoryStore
from wakeful.testing import scripted
from wakeful.tools.call_runner import CallHandle, begin
from wakeful.tools.tool import DeclaredTool
from wakeful.views.run_stream_events import ErrorEvent, StatusEvent
from wakeful.views.wire_messages import TurnTerminal, WireStop


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
NEVER_ENDS_A_TURN = {"iterations", "planner_error"}
"""Of a root the first is `max_steps`; a planner that fails leaves the run to go on without a plan."""


@tool(effect="pure")
async def hang() -> str:
    """Until it is told to stop."""
    await asyncio.Event().wait()
    return "never"


def _stopped(reason: str) -> Callable[[MemoryStore], Any]:
    async def play(store: MemoryStore) -> RunResult[Any]:
        begun = asyncio.Event()

        @tool(effect="pure")
        async def hangs() -> str:
            begun.set()
            await asyncio.Event().wait()
            return "never"

        agent = Agent("any", scripted([calls("hangs")]), tools=[hangs])
        running = asyncio.create_task(run(agent, "go", store=store))
        await begun.wait()
        assert await cancel_turn(new_engine(store), (await store.turns())[0].turn_id, reason=reason)  # type: ignore[arg-type]
        return await running

    return play


def _ended(*steps: Any, model: Any = None, prompt: Any = "go", **options: Any) -> Callable[[MemoryStore], Any]:
    async def play(store: MemoryStore) -> RunResult[Any]:
        asked = model or LevelModel({"go": list(steps), "dig": [calls("look"), "dug"], **BIG})
        agent = Agent("any", asked, tools=[World().reading(), hang], subtasks=True, **options)
        return await run(agent, prompt, store=store)

    return play


class Blind(LevelModel):
    """Takes no pictures."""

    profile = ModelProfile(tools=True)


BIG = {"big": [calls(("finish_subtask", {"result": {"text": "x" * 60_000}}))]}
LOST = {"fail": [{"kind": "invalid_response", "message": "no answer"}]}
TOKENS: dict[str, Any] = {"most": 20, "spends": 20}
AGAIN = {"go": [calls("look")]}
PICTURE: Prompt = [Text("What is this?"), Image(data=b"png")]
ENDS = [
    (_ended("done"), "completed", "natural"),
    (_ended(calls("look"), max_steps=1), "incomplete", "max_steps"),
    (_ended(calls("look"), budget=Budget(model_calls=1)), "incomplete", "llm_calls"),
    (_ended(calls("look", "look"), budget=Budget(tool_calls=1)), "incomplete", "tool_calls"),
    (_ended(calls(subtask("dig"), subtask("dig")), budget=Budget(subtasks=1)), "incomplete", "subtasks"),
    (_ended(calls("hang"), budget=Budget(seconds=0.05)), "incomplete", "wall_clock"),
    (_ended(model=LevelModel(AGAIN, **TOKENS), budget=Budget(output_tokens=30)), "incomplete", "tokens"),
    (_ended(calls(subtask("big", output_schema={"type": "object"}))), "incomplete", "bytes"),
    (_ended(model=LevelModel(AGAIN, priced=True, **TOKENS), budget=Budget(usd="30")), "incomplete", "cost"),
    (_ended(model=LevelModel(AGAIN, window=4_000), budget_awareness="limit:0"), "incomplete", "context_budget"),
    (_ended(calls("look"), budget=Budget(stall_repeats=2)), "incomplete", "stalled"),
    (_ended(LOST), "failed", "provider_error"),
    (_ended(model=Blind(AGAIN), prompt=PICTURE), "failed", "routing_not_possible"),
    (_stopped("user_interrupt"), "cancelled", "cancelled"),
    (_stopped("superseded"), "cancelled", "superseded"),
    (_stopped("runtime_shutdown"), "cancelled", "interrupted"),
]


COMES_TO_THE_SAME = ("bytes", "context_budget", "stalled")
"""Limits of which a turn cannot be given more."""


@pytest.mark.spec("CTL-INV-05")
@pytest.mark.parametrize(("play", "status", "reason"), ENDS, ids=[reason for _, _, reason in ENDS])
async def test_a_run_has_one_end_with_a_status_a_reason_and_whether_to_try_again(
    play: Any, status: str, reason: str
) -> None:
    store = MemoryStore()
    result = await play(store)
    (end,) = [e.fact.event for e in await facts_of(store, result.turn_id) if isinstance(e.fact.event, Terminal)]
    check_ends(await facts_of(store, result.turn_id), once=False)
    assert (end.status, end.stop_reason) == (status, reason) == (result.status, result.stop_reason)
    assert end.retryable is (status in ("incomplete", "failed") and reason not in COMES_TO_THE_SAME)
    assert result.retryable is end.retryable
    # The same words for every reader: the log's enum holds the rule's, and the wire says the same.
    assert {reason for _, _, reason in ENDS} == REASONS - NEVER_ENDS_A_TURN
    assert set(get_args(TurnStatus)) == STATUSES and set(get_args(StopCause)) >= REASONS
    assert all(Terminal.model_fields[name].is_required() for name in ("status", "stop_reason", "retryable"))
    last = (await wire_messages(store, result.turn_id)).messages[-1]
    assert isinstance(last, TurnTerminal) and set(get_args(WireStop)) >= REASONS
    word = "error" if status == "failed" else status
    assert (last.status, last.stop_reason, last.retryable) == (word, reason, end.retryable)


@pytest.mark.spec("LOOP-ERR-05")
@pytest.mark.parametrize("kind", ["contract_error", "invalid_response"])
@pytest.mark.parametrize("where", ["root", "child"])
async def test_a_provider_or_network_error_goes_up_and_the_client_is_sent_it(
    kind: str, where: str, tmp_path: Path
) -> None:
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
    # A client at the other end of a chat.
    sent, model = [], tmp_path / "script.yaml"
    first = [] if where == "root" else [calls(subtask("dig"))]
    model.write_text(json.dumps([*first, lost]))
    chat: dict[str, Any] = {"thread_id": "t", "user_id": "ann", "chat_context": None, "registry": None}
    said: dict[str, Any] = {"collections": [], "memory_enabled": False, "request_seq": 1, "content": "go"}
    await run_chat_agent(
        *(new_engine(MemoryStore()), agent),
        **{**chat, **said, "provider": "scripted", "model": str(model), "send_message": sent.append},
    )
    last = sent[-1]
    assert isinstance(last, TurnTerminal) and (last.status, last.stop_reason) == ("error", "provider_error")
    assert "no line" in (last.message or "")
    # The inversion: a provider that answers.
    assert (await run(Agent("boss", scripted(["fine"])), "go")).status == "completed"


# --- closed when in doubt --------------------------------------------------------------------------------------------


def raises(*_: Any) -> Any:
    raise RuntimeError("no database")


def nonsense(*_: Any) -> Any:
    return "perhaps"


def number(*_: Any) -> Any:
    return 3


async def raises_later(*_: Any) -> Any:
    raise RuntimeError("no database")


async def nonsense_later(*_: Any) -> Any:
    return "perhaps"


BROKEN = [
    *(("gate", each) for each in (raises, number)),
    ("policy of the call", raises),
    *(("validator", each) for each in (raises, nonsense)),
    *(("schema", each) for each in ("(", 7)),
    *(
        (part, each)
        for part in ("hook", "permission hook")
        for each in (raises, nonsense, number, raises_later, nonsense_later)
    ),
    *(("approver", each) for each in (raises, nonsense, number, raises_later, nonsense_later)),
]


class Declared(DeclaredTool):
    """A refund whose schema, and what it says about a call, come from outside."""

    def __init__(self, world: World, pattern: Any = ".*", directory: Any = None) -> None:
        schema = {"type": "object", "properties": {"order": {"type": "string", "pattern": pattern}}}
        self._declaration = ToolDeclaration(name="refund", input_schema=schema, effect="irreversible")
        self._world, self._directory = world, directory

    def working_directory(self, arguments: dict[str, Any]) -> str | None:
        return str(self._directory()) if self._directory is not None else None

    def start(self, ctx: Any, arguments: dict[str, Any]) -> CallHandle:
        return begin(lambda: self._world.done.append(("refund", arguments)), False, (), {})


def shop(world: World, part: str, broken: Any) -> Agent[Any, str]:
    """An agent of which one part is broken; nothing of it is when `broken` is None."""
    asks = part in ("permission hook", "approver")
    call, given = REFUND, world.tool(approval=broken if part == "gate" and broken else asks)
    if part == "schema":
        call, given = ("refund", {"order": "A17"}), Declared(world, broken or ".*")
    elif part == "policy of the call":
        call, given = ("refund", {"order": "A17"}), Declared(world, directory=broken)
    elif part == "validator":

        def checks(value: str) -> Any:
            return value if broken is None else broken(value)

        @tool(effect="irreversible", name="refund")
        def checked(order: Annotated[str, AfterValidator(checks), AfterValidator(_is_a17)]) -> str:
            world.done.append(("refund", {"order": order}))
            return "done"

        call, given = ("refund", {"order": "A17"}), checked
    point: Any = {"hook": "pre_tool_use", "permission hook": "permission_request"}.get(part)
    hooks = [hook(point)(broken)] if point and broken else []
    return Agent("shop", scripted([calls(call), "done"]), tools=[given], hooks=hooks)


def _is_a17(value: Any) -> str:
    assert value == "A17"
    return "A17"


@pytest.mark.spec("CTL-INV-06")
@pytest.mark.parametrize(("part", "broken"), BROKEN)
async def test_a_gate_hook_validator_or_approver_that_raises_or_answers_nonsense_denies(part: str, broken: Any) -> None:
    world = World()
    person = broken if part == "approver" else yes
    result = await run(shop(world, part, broken), "go", store=MemoryStore(), approver=person)
    (failed,) = of_kind(result, ToolFailed)
    assert (result.status, failed.effects, world.done) == ("completed", "none", [])
    # The inversion: the same call when nothing is broken.
    fine = World()
    assert (await run(shop(fine, part, None), "go", approver=yes)).status == "completed" and fine.names == ["refund"]


@pytest.mark.spec("LOOP-INV-04")
async def test_an_unknown_tool_class_price_capability_answer_or_context_kind_denies() -> None:
    # A tool that nobody declared.
    unknown = Agent("a", scripted([calls("refunds"), "done"]), tools=[World().tool()])
    (failed,) = of_kind(await run(unknown, "go"), ToolFailed)
    assert (failed.tool_error.kind, failed.effects) == ("tool_not_found", "none")
    # A class: of a tool, of what a session has on.
    with pytest.raises(InvalidConfig, match="permission_class"):
        World().tool(permission_class="root")
    with pytest.raises(ValidationError):
        ToolPolicy(classes=frozenset({"root"}))  # type: ignore[arg-type]
    # A price: with money limited, a model that costs nobody knows what is not asked.
    for priced, asked in ((False, 0), (True, 1)):
        model = LevelModel({"go": ["done"]}, priced=priced, most=5)
        dear = await run(Agent("a", model), "go", budget=Budget(usd="10"))
        assert (dear.stop_reason, len(model.seen)) == ("natural" if asked else "routing_not_possible", asked)
    # A capability that the caller's ceiling does not name, and one that nobody has ever heard of.
    speaker = {"effective_agent_id": "helper", "auth_source": "user", "request_context": "chat"}
    for needed, kind in (("read", None), ("write", "capability_denied"), ("teleport", "capability_denied")):
        host = Host(calling(search("a")), {"content": "done"})
        request = {"messages": [], "principal": {**speaker, "capability_ceiling": {"allowed": ["read"]}}}
        declared = {"ability/search": {**SEARCH, "required_capability": needed}}
        ran = await host.run(tool_executor=host, tool_declarations=declared, request=request, max_turns=2)
        assert [entry["result"]["metadata"].get("error_type") for entry in ran.tool_execution_results] == [kind]
        assert len(host.calls) == (kind is None)
    # An answer that is none of those a person may give.
    for answer, done in (("sure", []), (1, []), ({"approve": True}, []), (True, ["refund"])):
        world = World()

        async def says(_: Any, answer: Any = answer) -> Any:
            return answer

        asks = Agent("a", scripted([calls(REFUND), "done"]), tools=[world.tool(approval=True)])
        assert (await run(asks, "go", approver=says)).status == "completed" and world.names == done
    # A context: of a session, of a chat message.
    with pytest.raises(InvalidConfig):
        default_policy("somewhere")  # type: ignore[arg-type]
    assert default_policy("thread").context == "thread"
    with pytest.raises(InvalidValue):
        chat_context_of({"kind": "somewhere"})
    assert chat_context_of({"kind": "thread"}).kind == "thread"
