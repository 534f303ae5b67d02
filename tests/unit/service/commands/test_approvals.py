"""Approvals through real runs: asked before anything runs, decided once, run as they were approved, never otherwise."""

import asyncio
import threading
from collections.abc import Awaitable, Callable
from typing import Any, get_args

import pytest

from kit.runs.asked_runs import REFUND, World, again, agent, answers, asked, check_replay, say
from kit.runs.engine_runs import Died, Dying, calls, check_ends, facts_of, kinds, of_kind
from kit.runs.whole_views import run_stream
from wakeful import Agent, Always, Answer, Approval, Approve, Edit, Reject, RunContext, Tool, cancel, resume, run, tool
from wakeful.bootstrap.engines import new_engine
from wakeful.contracts.agents import TurnConfig
from wakeful.contracts.approvals import is_approver
from wakeful.contracts.conversation import CallPart
from wakeful.contracts.envelope import published
from wakeful.contracts.errors import (
    ApprovalNotFound,
    InvalidConfig,
    InvalidValue,
    NotEntitled,
    StoreDamaged,
    ToolAsks,
    ToolMissing,
)
from wakeful.contracts.events import (
    ActionRequired,
    ActionResolved,
    PermissionEvaluated,
    ToolArgs,
    ToolDispatched,
    ToolFailed,
    ToolResult,
    ToolStarted,
)
from wakeful.contracts.events.tools import ErrorCategory, Opinion
from wakeful.contracts.policies import GatePolicy, Rule
from wakeful.contracts.tools import Confinement, ToolDeclaration
from wakeful.contracts.verdicts import Verdict
from wakeful.decisions.levels import Call, Level
from wakeful.decisions.policy.permissions import default_policy
from wakeful.decisions.policy.verdict import CallUnderJudgement, compile_policy, judge
from wakeful.decisions.redaction import stable_hash
from wakeful.engine.run_request import RunRequest
from wakeful.gate.call_at_gate import CallAtGate, Consultation
from wakeful.gate.passage import Mediator
from wakeful.gate.turn_gate import GateParts
from wakeful.service.commands import approvals as service
from wakeful.service.commands.interruption import cancel_turn
from wakeful.service.commands.turn_claims import recall
from wakeful.service.commands.turns import run_turn
from wakeful.store.memory import Memory, MemoryStore
from wakeful.testing import FixedClock, scripted
from wakeful.tools.call_runner import CallHandle, begin

Decided = Approve | Reject | Edit | Answer | Always


def shop(world: World, *siblings: str, **options: Any) -> Any:
    """An agent that refunds with a person's consent, and looks around meanwhile."""
    return agent([world.tool(), world.reading()], (REFUND, *siblings), hitl_tools=["refund"], **options)


# --- asked ---------------------------------------------------------------------------------------------------------


@pytest.mark.spec("CTL-HITL-02", "CTL-HITL-08")
async def test_a_listed_tool_waits_for_a_person_and_its_siblings_do_not() -> None:
    world, store = World(), MemoryStore()
    support = agent(
        [world.tool(), world.reading("one"), world.reading("two")], ("one", REFUND, "two"), hitl_tools=["refund"]
    )
    result = await asked(support, store)
    assert world.names == ["one", "two"], "nothing of the listed tool ran"
    assert kinds(result.facts())[-1] == "turn.suspended"
    (approval,) = result.approvals
    assert (approval.tool, approval.arguments, approval.status) == ("refund", REFUND[1], "pending")
    await say(store, approval, Approve())
    done = await again(support, store)
    assert (done.output, world.names) == ("done", ["one", "two", "refund"])
    assert [item.name for item in answers(done)] == ["one", "refund", "two"], "one result a call, in model order"
    check_ends(done.facts())


async def test_without_the_list_the_same_call_runs_unasked() -> None:
    """The inversion: what makes it wait is the list, and nothing else."""
    world = World()
    result = await run(agent([world.tool()], (REFUND,)), "go")
    assert (result.status, world.names) == ("completed", ["refund"])


@pytest.mark.spec("CTL-APPR-03", "CTL-APPR-04", "CTL-APPR-10", "STD-GOV-03")
async def test_the_record_says_everything_and_each_of_its_two_events_names_it() -> None:
    world, store, clock = World(), MemoryStore(), FixedClock()
    support = shop(world, approval_expiry=60.0)
    around = new_engine(store, clock=clock)
    result = await run_turn(around, RunRequest(support, "go", key="k"))
    (record,) = await service.approvals(around)
    noon = clock.now() / 1_000_000
    assert record == Approval(
        approval_id=record.approval_id,
        kind="approval",
        turn_id=result.turn_id,
        run_kind="agent",
        agent_id=result.agent_id,
        agent="shop",
        thread="main",
        call_id="call_1_1",
        tool="refund",
        arguments=REFUND[1],
        arguments_sha256=record.arguments_sha256,
        prompt="Run refund(order='A17', cents=4200)?",
        reason="refund is listed in hitl_tools",
        decisions=("approve", "reject", "edit", "answer", "always"),
        requested_at=noon,
        expires_at=noon + 60,
    )
    clock.advance(5)
    decided = await service.decide(around, record.id, Reject("not today"), by="ada")
    assert decided.approval == record.model_copy(
        update={
            "status": "rejected",
            "decided_at": noon + 5,
            "decided_by": "ada",
            "note": "not today",
            "decision": "reject",
        }
    )
    assert world.done == [], "unresolved is not approved, and neither is rejected"
    events = [published(entry, store.runtime_id) for entry in await facts_of(store, result.turn_id)]
    required, resolved = (
        next(event for event in events if event.type == kind) for kind in ("action.required", "action.resolved")
    )
    for event, status in ((required, None), (resolved, "rejected")):
        assert (event.action_id, event.run_id, event.tool_call_id) == (record.id, result.turn_id, "call_1_1")
        assert (event.payload["action_id"], event.payload["tool_name"]) == (record.id, "refund")
        assert event.payload.get("status") == status
    assert "approval_requested" in ActionRequired.aliases and "approval_resolved" in ActionResolved.aliases
    payload = required.payload
    assert (payload["action_type"], payload["policy"]) == ("approval", "ask")
    assert payload["expires_at"] == int((noon + 60) * 1_000_000)
    assert payload["decisions"] == ["approve", "reject", "edit", "answer", "always"]
    assert payload["prompt"] == record.prompt
    await run_turn(around, RunRequest(support, "go", key="k"))
    kinds_now = kinds(await facts_of(store, result.turn_id))
    assert (kinds_now.count("action.required"), kinds_now.count("action.resolved")) == (1, 1)


# --- decided -------------------------------------------------------------------------------------------------------

DECISIONS: list[tuple[Decided, str, str, dict[str, Any] | None]] = [
    (Approve("fine"), "approved", "success", REFUND[1]),
    (Edit({"order": "B2", "cents": 1}), "approved", "success", {"order": "B2", "cents": 1}),
    (Always("tool"), "approved", "success", REFUND[1]),
    (Answer("it was refunded by hand"), "approved", "success", None),
    (Reject("too much"), "rejected", "rejected", None),
]


@pytest.mark.spec("CTL-META-06")
@pytest.mark.parametrize(("decided", "state", "status", "ran_with"), DECISIONS, ids=lambda each: type(each).__name__)
async def test_what_was_decided_is_what_happens_and_what_is_told(
    decided: Decided, state: str, status: str, ran_with: dict[str, Any] | None
) -> None:
    world, store = World(), MemoryStore()
    support = shop(world, "look")
    (approval,) = (await asked(support, store)).approvals
    outcome = await say(store, approval, decided)
    assert (outcome.approval.status, outcome.duplicate) == (state, False)
    result = await again(support, store)
    assert result.output == "done"
    ran = [arguments for name, arguments in world.done if name == "refund"]
    assert ran == ([ran_with] if ran_with is not None else [])
    ends = [e for e in (*of_kind(result, ToolResult), *of_kind(result, ToolFailed)) if e.tool_name == "refund"]
    (end,) = ends
    assert end.metadata.status == status
    assert (end.metadata.approval_status, end.metadata.approval_id) == (state, approval.id)
    assert end.approval_ref == approval.id, "in the streamed event, too"
    look = next(each for each in of_kind(result, ToolResult) if each.tool_name == "look")
    assert (look.metadata.approval_status, look.metadata.approval_id) == ("not_required", None)
    (told,) = [item for item in answers(result) if item.name == "refund"]
    assert told.is_error == (state == "rejected")
    if isinstance(decided, Reject):
        assert "rejected" in told.parts[0].text and "too much" in told.parts[0].text
    elif isinstance(decided, Answer):
        assert told.parts[0].text == "it was refunded by hand"


async def test_nobody_having_decided_is_a_decision_and_the_tool_is_not_run() -> None:
    world, store, clock = World(), MemoryStore(), FixedClock()
    support, around = shop(world, approval_expiry=60.0), new_engine(store, clock=clock)
    first = await run_turn(around, RunRequest(support, "go", key="k"))
    clock.advance(60)
    result = await run_turn(around, RunRequest(support, "go", key="k"))
    assert (result.status, world.done) == ("completed", [])
    (end,) = of_kind(result, ToolFailed)
    assert (end.status, end.metadata.status, end.abort_reason) == ("timed_out", "timed_out", "approval_expired")
    assert (end.metadata.approval_status, end.metadata.approval_id) == ("timed_out", first.approvals[0].id)
    (told,) = answers(result)
    assert told.is_error and "nobody decided" in told.parts[0].text
    await check_replay(store, result)


@pytest.mark.spec("CTL-HITL-03", "CTL-HITL-04", "CTL-HITL-05")
async def test_a_call_that_was_asked_about_ends_in_one_of_three_states_and_only_approved_runs() -> None:
    for state, decided in (("approved", Approve()), ("rejected", Reject("no")), ("timed_out", None)):
        world, store, clock = World(), MemoryStore(), FixedClock()
        request, around = RunRequest(shop(world, approval_expiry=60.0), "go", key="k"), new_engine(store, clock=clock)
        first = await run_turn(around, request)
        if decided is None:
            clock.advance(60)
        else:
            await service.decide(around, first.approvals[0].id, decided)
        result = await run_turn(around, request)
        assert world.names == (["refund"] if state == "approved" else [])
        (end,) = (*of_kind(result, ToolResult), *of_kind(result, ToolFailed))
        assert end.metadata.approval_status == state
        assert end.metadata.status == ("success" if state == "approved" else state)
        (told,) = answers(result)
        assert told.is_error == (state != "approved")
        (streamed,) = [event for event in run_stream(result.turn_id, result.facts()) if event.type == "tool_result"]
        assert streamed.model_dump()["metadata"]["approval_status"] == state


async def test_both_the_models_arguments_and_the_edited_ones_are_kept() -> None:
    world, store = World(), MemoryStore()
    support = shop(world)
    (approval,) = (await asked(support, store)).approvals
    await say(store, approval, Edit({"order": "B2", "cents": 1}, "the other one"))
    result = await again(support, store)
    (args,) = of_kind(result, ToolArgs)
    assert (args.safe_args, args.changed_by) == ({"order": "B2", "cents": 1}, "approver")
    (started,) = of_kind(result, ToolStarted)
    assert started.safe_args == REFUND[1]
    assert world.done == [("refund", {"order": "B2", "cents": 1})]


@pytest.mark.spec("CTL-APPR-05")
async def test_a_second_decision_changes_nothing_and_gets_the_first_one() -> None:
    world, memory = World(), Memory()
    store, other = MemoryStore(memory), MemoryStore(memory)
    support = shop(world)
    (approval,) = (await asked(support, store)).approvals
    assert approval.status == "pending"
    first = await say(other, approval, Reject("no"), by="ada")
    second = await say(store, approval, Approve("yes"), by="bob")
    third = await say(store, approval, Edit({"order": "B2"}), by="bob")
    assert (first.duplicate, second.duplicate, third.duplicate) == (False, True, True)
    assert first.approval == second.approval == third.approval
    assert (first.approval.status, first.approval.decided_by) == ("rejected", "ada")
    result = await again(support, store)
    assert (result.status, world.done) == ("completed", [])
    late = await say(store, approval, Approve(), by="eve")
    assert (late.duplicate, late.approval.decided_by) == (True, "ada")
    assert kinds(await facts_of(store, result.turn_id)).count("action.resolved") == 1


@pytest.mark.parametrize(
    "wrong",
    [
        Edit({"order": 5}),
        Edit({"order": "A", "surprise": 1}),
        Edit({"order": {1, 2}}),  # type: ignore[dict-item]
        Edit("order"),  # type: ignore[arg-type]
        Answer(object()),
        Answer(float("nan")),
        Approve(5),  # type: ignore[arg-type]
        Always("pattern", match="  "),
        Always("pattern", match="refund", arguments={"order": 5}),  # type: ignore[dict-item]
        Always("tool", for_seconds=-1),
        Always("tool", for_seconds="soon"),  # type: ignore[arg-type]
    ],
    ids=lambda wrong: type(wrong).__name__,
)
async def test_a_decision_that_makes_no_sense_is_refused_and_decides_nothing(wrong: Decided) -> None:
    world, store = World(), MemoryStore()
    support = shop(world)
    (approval,) = (await asked(support, store)).approvals
    with pytest.raises(InvalidValue):
        await say(store, approval, wrong)
    assert [row.status for row in await store.actions()] == ["pending"]
    assert await store.rules() == []
    await say(store, approval, Reject())
    assert (await again(support, store)).status == "completed"
    assert world.done == []


@pytest.mark.parametrize("size", [100, 60_000, 200_000])
async def test_an_answer_of_any_size_stands_in_the_tools_place(size: int) -> None:
    """Whatever is too large for its event is kept beside it, and the model is shown as much as of any result."""
    world, store = World(), MemoryStore()
    support = shop(world)
    (approval,) = (await asked(support, store)).approvals
    words = "refunded by hand. " + "x" * size
    await say(store, approval, Answer(words))
    result = await again(support, store)
    assert (result.status, world.done) == ("completed", [])
    (resolved,) = of_kind(result, ActionResolved)
    assert (resolved.answer == words) is (resolved.answer_ref is None) is (size == 100)
    (ended,) = of_kind(result, ToolResult)
    if ended.result_ref is not None:
        assert await store.get_blob(ended.result_ref.digest) == words.encode()
    assert (ended.result_ref is None) is (size == 100)
    assert ended.preview == words[:500]


async def test_a_name_nobody_knows_is_told_what_is_near() -> None:
    store = MemoryStore()
    (approval,) = (await asked(shop(World()), store)).approvals
    with pytest.raises(ApprovalNotFound, match=r"Did you mean"):
        await say(store, approval.id[:-1] + "x", Approve())
    assert (await say(store, approval.id[:20], Reject())).approval.id == approval.id


# --- who may -------------------------------------------------------------------------------------------------------


def owners(*approvers: str, **more: Any) -> GatePolicy:
    rule = Rule(match="refund", decision="ask", approvers=approvers, reason="it is money", id="money", **more)
    return GatePolicy(tools=default_policy("library"), rules=(rule,))


async def test_only_who_is_entitled_may_decide() -> None:
    world, store = World(), MemoryStore()
    support = agent([world.tool()], (REFUND,), policy=owners("ada", "bob"))
    (approval,) = (await asked(support, store)).approvals
    assert approval.approvers == ("ada", "bob")
    for who in ("eve", "operator", "approver", "runtime", ""):
        for decided in (Approve(), Reject(), Edit(REFUND[1]), Answer("x"), Always("tool")):
            with pytest.raises(NotEntitled, match=r"it is for ada, bob"):
                await say(store, approval, decided, by=who)
    assert [row.status for row in await store.actions()] == ["pending"]
    assert await store.rules() == [] and world.done == []
    await say(store, approval, Approve(), by="bob")
    assert (await again(support, store)).status == "completed"
    assert world.names == ["refund"]


async def test_operator_among_the_approvers_is_every_caller_that_no_model_drives() -> None:
    world, store = World(), MemoryStore()
    support = agent([world.tool()], (REFUND,), policy=owners("operator", "channel:phone:ann"))
    (approval,) = (await asked(support, store)).approvals
    for who in ("mcp:editor", "agent:ops", "channel:phone:eve", ""):
        with pytest.raises(NotEntitled):
            await say(store, approval, Approve(), by=who)
    for who in ("local:1000", "token:phone", "console:desk", "app:ann", "program", "channel:phone:ann"):
        assert is_approver(who, approval.approvers), who
    await say(store, approval, Approve(), by="local:1000")
    assert (await again(support, store)).status == "completed"


async def test_without_named_approvers_anybody_may() -> None:
    """The inversion: it is the rule's list that keeps others out."""
    world, store = World(), MemoryStore()
    support = agent([world.tool()], (REFUND,), policy=owners())
    (approval,) = (await asked(support, store)).approvals
    await say(store, approval, Approve(), by="eve")
    await again(support, store)
    assert world.names == ["refund"]


async def test_a_programs_own_approver_is_no_substitute_for_who_is_entitled() -> None:
    world, store = World(), MemoryStore()
    support = agent([world.tool()], (REFUND,), policy=owners("ada"))

    async def yes(approval: Approval) -> bool:
        return True

    result = await run(support, "go", store=store, key="k", approver=yes)
    assert (result.status, world.done) == ("approval_required", [])
    assert [row.status for row in await store.actions()] == ["pending"]


# --- a program's own approver --------------------------------------------------------------------------------------


@pytest.mark.parametrize("said", [True, Approve(), Always("call")], ids=str)
async def test_an_approver_that_says_yes_lets_it_run_in_one_go(said: Any) -> None:
    world, store = World(), MemoryStore()
    seen: list[Approval] = []

    async def approver(approval: Approval) -> Any:
        seen.append(approval)
        assert world.names == ["look"] or not world.names
        return said

    result = await run(shop(world, "look"), "go", store=store, approver=approver)
    assert (result.output, sorted(world.names)) == ("done", ["look", "refund"])
    assert [(each.tool, each.arguments, each.status) for each in seen] == [("refund", REFUND[1], "pending")]
    await check_replay(store, result)


def raising(error: BaseException) -> Callable[[Approval], Awaitable[Any]]:
    async def approver(approval: Approval) -> Any:
        raise error

    return approver


def saying(value: Any) -> Callable[[Approval], Awaitable[Any]]:
    async def approver(approval: Approval) -> Any:
        return value

    return approver


def plainly(value: Any) -> Callable[[Approval], Any]:
    """An approver that is no async function."""

    def approver(approval: Approval) -> Any:
        if isinstance(value, Exception):
            raise value
        return value

    return approver


NOT_A_YES = [
    *(raising(error) for error in (ValueError("no"), EOFError(), ConnectionResetError(), KeyError("x"), TypeError())),
    *(raising(error) for error in (asyncio.CancelledError(), TimeoutError(), StopAsyncIteration())),
    *(saying(value) for value in ("", "yes", "approved", "y", 1, 0, [], {}, [True], object(), b"yes", Approve)),
    *(saying(value) for value in (False, Reject("no"), Edit({"order": 5}), Edit({"cents": {1}}), Approve(5))),
    *(plainly(value) for value in ("yes", 1, False, Reject("no"), ValueError("no"))),
]


@pytest.mark.parametrize("approver", NOT_A_YES)
async def test_whatever_is_not_a_clear_yes_is_a_no(approver: Any) -> None:
    world, store = World(), MemoryStore()
    result = await asyncio.wait_for(run(shop(world, "look"), "go", store=store, approver=approver), 60)
    assert (result.status, world.names) == ("completed", ["look"])
    (row,) = await store.actions()
    assert (row.status, row.decided_by) == ("rejected", "approver")
    (end,) = of_kind(result, ToolFailed)
    assert (end.metadata.approval_status, end.effects) == ("rejected", "none")
    await check_replay(store, result)


@pytest.mark.spec("CTL-HITL-09")
async def test_only_an_explicit_yes_executes() -> None:
    world = World()
    for approver in (*NOT_A_YES, saying(None)):
        await asyncio.wait_for(run(shop(world), "go", store=MemoryStore(), approver=approver), 60)
    assert world.done == [], "an answer nobody knows, an empty one, an end of file, a lost connection, an error"
    memory = Memory()
    first = await asked(shop(world), MemoryStore(memory))
    await say(MemoryStore(memory), first.approvals[0], Approve())
    agent = memory.agents[first.agent_id]
    log = agent.log
    place = next(n for n in range(len(log)) if any(first.approvals[0].id.encode() in e.payload for e in agent.row(n)))
    intact = log[place]
    log[place] = (intact[0], intact[1][:-2], intact[2])
    with pytest.raises(StoreDamaged):
        await run(shop(world), "go", store=MemoryStore(memory), key="k")
    assert world.done == [], "a record that cannot be read"
    log[place] = intact
    await run(shop(world), "go", store=MemoryStore(memory), key="k")
    assert world.names == ["refund"], "and that was the only yes"


@pytest.mark.spec("CTL-APPR-06")
async def test_a_tool_says_how_long_an_approval_of_its_calls_waits() -> None:
    world, store, clock = World(), MemoryStore(), FixedClock()
    tools = [world.tool("refund", approval=True, approval_expires=30), world.tool("send", approval=True)]
    model = scripted([calls("refund", "send"), "done"], leftover="ignore")
    agent = Agent("shop", model, tools=tools, approval_expiry=60.0)
    around = new_engine(store, clock=clock)
    result = await run_turn(around, RunRequest(agent, "go", key="k"))
    noon = clock.now() / 1_000_000
    assert {each.tool: each.expires_at - noon for each in result.approvals} == {"refund": 30, "send": 60}
    clock.advance(31)
    assert {each.tool: each.status for each in await service.approvals(around, pending_only=False)} == {
        "refund": "timed_out",
        "send": "pending",
    }
    with pytest.raises(InvalidConfig, match="approval_expires=0"):
        tool(approval_expires=0)


async def test_an_approver_may_be_a_plain_function_and_may_block() -> None:
    """It runs off the loop: a person at a terminal does not hold up what runs beside the question."""
    world, looked = World(), threading.Event()

    @tool(effect="pure")
    async def look() -> str:
        looked.set()
        return "seen"

    def approver(approval: Approval) -> Any:
        assert looked.wait(60)
        return approval.tool == "refund"

    agent = Agent(
        "shop", scripted([calls("refund", "look"), "done"]), tools=[world.tool("refund", approval=True), look]
    )
    result = await run(agent, "go", approver=approver)
    assert (result.status, world.names) == ("completed", ["refund"])

    async def later(approval: Approval) -> bool:
        return True

    other = await run(shop(World()), "go", approver=lambda approval: later(approval))
    assert other.status == "completed", "a plain function that gives an awaitable is awaited"


async def test_an_approver_that_has_no_word_leaves_the_turn_resting_on_the_record() -> None:
    world, store = World(), MemoryStore()
    result = await run(shop(world), "go", store=store, key="k", approver=saying(None))
    assert (result.status, world.done) == ("approval_required", [])
    assert [row.status for row in await store.actions()] == ["pending"]
    await say(store, result.approvals[0], Approve())
    assert (await again(shop(world), store, approver=saying(None))).status == "completed"
    assert world.names == ["refund"]


async def test_an_approver_that_hangs_is_overtaken_by_the_end_of_the_approval() -> None:
    world, store, clock = World(), MemoryStore(), FixedClock()
    hangs, let_go, late = asyncio.Event(), asyncio.Event(), list[str]()

    async def approver(approval: Approval) -> Any:
        hangs.set()
        try:
            await let_go.wait()
        finally:
            late.append(approval.id)
        return True

    around = new_engine(store, clock=clock)
    request = RunRequest(shop(world, approval_expiry=60.0), "go", key="k", approver=approver)
    running = asyncio.ensure_future(run_turn(around, request))
    await hangs.wait()
    await clock.somebody_sleeps()
    clock.advance(61)
    result = await asyncio.wait_for(running, 60)
    assert (result.status, world.done) == ("completed", [])
    assert [(row.status, row.decided_by) for row in await store.actions()] == [("timed_out", "runtime")]
    let_go.set()
    await asyncio.sleep(0)
    assert world.done == [] and len(late) == 1
    await check_replay(store, result)


async def test_a_yes_that_comes_too_late_is_no_yes() -> None:
    """The approver answers after somebody else rejected: the first word holds."""
    world, store = World(), MemoryStore()

    async def approver(approval: Approval) -> Any:
        await say(store, approval, Reject("I was faster"), by="ada")
        return True

    result = await run(shop(world), "go", store=store, approver=approver)
    assert (result.status, world.done) == ("completed", [])
    assert [(row.status, row.decided_by) for row in await store.actions()] == [("rejected", "ada")]


async def test_two_calls_are_asked_about_together_and_each_gets_its_own_answer() -> None:
    world, store = World(), MemoryStore()
    both = asyncio.Barrier(2)

    async def approver(approval: Approval) -> Any:
        await both.wait()  # neither is asked after the other
        return approval.arguments["order"] == "B"

    support = agent([world.tool()], (("refund", {"order": "A"}), ("refund", {"order": "B"})), hitl_tools=["refund"])
    result = await asyncio.wait_for(run(support, "go", store=store, approver=approver), 60)
    assert [arguments["order"] for _, arguments in world.done] == ["B"]
    assert [item.is_error for item in answers(result)] == [True, False]
    await check_replay(store, result)


# --- nobody runs it ------------------------------------------------------------------------------------------------


async def test_what_expired_while_nobody_ran_it_is_timed_out_for_whoever_looks_first() -> None:
    world, memory, clock = World(), Memory(), FixedClock()
    store, other = MemoryStore(memory), MemoryStore(memory)
    support = shop(world, approval_expiry=60.0)
    result = await run_turn(new_engine(store, clock=clock), RunRequest(support, "go", key="k"))
    (approval,) = result.approvals
    clock.advance(59)
    assert [each.status for each in await service.approvals(new_engine(other, clock=clock))] == ["pending"]
    clock.advance(1)
    assert await service.approvals(new_engine(other, clock=clock)) == [], (
        "nothing pends that nobody may decide any more"
    )
    (listed,) = await service.approvals(new_engine(other, clock=clock), pending_only=False)
    assert (listed.status, listed.decided_by) == ("timed_out", "runtime")
    late = await say(other, approval, Approve(), clock=clock)
    assert (late.duplicate, late.approval.status) == (True, "timed_out")
    done = await run_turn(new_engine(store, clock=clock), RunRequest(support, "go", key="k"))
    assert (done.status, world.done) == ("completed", [])
    await check_replay(store, done)


async def test_a_decision_after_its_time_is_none_even_when_nobody_had_looked() -> None:
    world, store, clock = World(), MemoryStore(), FixedClock()
    result = await run_turn(
        new_engine(store, clock=clock), RunRequest(shop(world, approval_expiry=60.0), "go", key="k")
    )
    clock.advance(61)
    late = await say(store, result.approvals[0], Approve(), clock=clock)
    assert (late.duplicate, late.approval.status) == (True, "timed_out")


async def test_taking_it_up_while_it_still_waits_changes_nothing() -> None:
    world, store = World(), MemoryStore()
    support = shop(world)
    first = await asked(support, store)
    before = kinds(await facts_of(store, first.turn_id))
    second = await asked(support, store)
    assert second.approvals == first.approvals
    assert kinds(await facts_of(store, first.turn_id)) == before and world.done == []


@pytest.mark.spec("CTL-APPR-08")
async def test_rejecting_works_when_the_tool_is_gone() -> None:
    world, store = World(), MemoryStore()
    first = await asked(agent([world.tool(approval=True), world.reading()], (REFUND,)), store)
    await say(store, first.approvals[0], Reject("it is gone anyway"))
    result = await again(agent([world.reading()], (REFUND,)), store)
    assert result.status == "completed"
    (end,) = of_kind(result, ToolFailed)
    assert (end.status, end.metadata.approval_status) == ("rejected", "rejected")
    assert "it is gone anyway" in answers(result)[0].parts[0].text


async def test_what_was_approved_and_is_gone_is_an_error_of_that_call() -> None:
    world, store = World(), MemoryStore()
    first = await asked(agent([world.tool(approval=True), world.reading()], (REFUND, "look")), store)
    await say(store, first.approvals[0], Approve())
    result = await again(agent([world.reading()], (REFUND, "look")), store)
    assert (result.status, world.names) == ("completed", ["look"])
    (end,) = of_kind(result, ToolFailed)
    assert end.tool_error.kind == "tool_not_found"


# --- cancelled -----------------------------------------------------------------------------------------------------


@pytest.mark.spec("CTL-APPR-09")
async def test_cancelling_a_run_that_nobody_runs_ends_it_and_withdraws_what_it_asked() -> None:
    world, memory = World(), Memory()
    store, other = MemoryStore(memory), MemoryStore(memory)
    support = agent(
        [world.tool(), world.reading()], (REFUND, "look", ("refund", {"order": "B"})), hitl_tools=["refund"]
    )
    first = await asked(support, store)
    assert len(first.approvals) == 2
    assert await cancel(other, first.turn_id)
    assert [(row.status, row.decided_by) for row in await store.actions()] == [("rejected", "runtime")] * 2
    records = await service.approvals(new_engine(store), pending_only=False)
    assert [record.note for record in records] == ["run_cancelled"] * 2
    row = await store.turn(first.turn_id)
    assert row is not None and (row.state, row.waiting_for) == ("cancelled", ())
    result = await recall(new_engine(store), row, None)
    assert (result.status, world.names) == ("cancelled", ["look"])
    ends = of_kind(result, ToolFailed)
    assert [(end.status, end.metadata.approval_id) for end in ends] == [
        ("skipped", approval.id) for approval in first.approvals
    ]
    check_ends(result.facts())
    await check_replay(store, result)
    late = await say(store, first.approvals[0], Approve())
    assert (late.duplicate, late.approval.status, late.approval.decided_by) == (True, "rejected", "runtime")
    assert not await cancel(store, first.turn_id), "it is over"
    assert (await again(support, store)).status == "cancelled" and world.names == ["look"]


@pytest.mark.spec("CTL-APPR-09")
async def test_cancelling_a_run_that_somebody_runs_withdraws_what_it_asked() -> None:
    world, store = World(), MemoryStore()
    busy = asyncio.Event()

    async def approver(approval: Approval) -> Any:
        busy.set()
        await asyncio.Event().wait()

    running = asyncio.ensure_future(run(shop(world), "go", store=store, key="k", approver=approver))
    await busy.wait()
    (row,) = await store.turns()
    assert await cancel(store, row.turn_id)
    result = await asyncio.wait_for(running, 60)
    assert (result.status, world.done) == ("cancelled", [])
    (record,) = await service.approvals(new_engine(store), pending_only=False)
    assert (record.status, record.decided_by, record.note) == ("rejected", "runtime", "run_cancelled")
    await check_replay(store, result)


async def test_a_decision_that_was_there_before_the_cancel_stands_and_nothing_runs() -> None:
    world, store = World(), MemoryStore()
    first = await asked(shop(world), store)
    await say(store, first.approvals[0], Approve(), by="ada")
    assert await cancel(store, first.turn_id)
    row = await store.turn(first.turn_id)
    assert row is not None and (row.state, world.done) == ("cancelled", [])
    assert [(each.status, each.decided_by) for each in await store.actions()] == [("approved", "ada")]
    await check_replay(store, await recall(new_engine(store), row, None))


async def test_cancelling_a_turn_that_waits_for_its_code_leaves_what_was_cut_off_to_whoever_has_it() -> None:
    world, memory = World(), Memory()
    keyed = agent([world.tool(effect="keyed")], (REFUND,))
    with pytest.raises(Died):  # the intent is on disk, the outcome is not
        await run(keyed, "go", store=Dying(memory, before=3), key="k")
    store = MemoryStore(memory)
    (row,) = await store.turns()
    with pytest.raises(ToolMissing):
        await resume(store, row.turn_id, [agent([], (REFUND,))])
    assert await cancel_turn(new_engine(store), row.turn_id)
    (row,) = await store.turns()
    assert row.state == "suspended"
    result = await resume(store, row.turn_id, [keyed])
    assert result.status == "cancelled"
    await check_replay(store, result)


# --- always --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("always", "again_asked"),
    [
        (Always("call"), ["B"]),
        (Always("tool"), []),
        (Always("pattern", arguments={"order": "A*"}), ["B"]),
        (Always("pattern", match="re*"), []),
    ],
    ids=str,
)
async def test_an_always_answers_for_calls_like_it_until_it_is_revoked(always: Always, again_asked: list[str]) -> None:
    world, store = World(), MemoryStore()
    rounds = ((("refund", {"order": "A"}),), (("refund", {"order": "A"}),), (("refund", {"order": "B"}),))
    support = agent([world.tool()], *rounds, hitl_tools=["refund"])
    first = await asked(support, store)
    outcome = await say(store, first.approvals[0], always)
    result = await run(support, "go", store=store, key="k")
    assert [approval.arguments["order"] for approval in result.approvals] == again_asked
    await check_replay(store, result)
    later = await run(support, "go", store=store, key="another")
    assert [approval.arguments["order"] for approval in later.approvals] == again_asked
    assert outcome.rule_id is not None
    await service.revoke_rule(new_engine(store), outcome.rule_id)
    fresh = await run(support, "go", store=store, key="a third")
    assert [approval.arguments["order"] for approval in fresh.approvals] == ["A"]


@pytest.mark.parametrize("given_in", ["this turn", "an earlier turn"])
async def test_a_rule_that_is_revoked_lets_nothing_through_in_a_turn_that_is_open(given_in: str) -> None:
    """Also while the turn runs: what it was taken up with, and what it was told since, are taken back alike."""
    world, store = World(), MemoryStore()
    found = await asked(agent([world.tool()], (REFUND,), hitl_tools=["refund"]), store)
    outcome = await say(store, found.approvals[0], Always("tool"))
    assert outcome.rule_id is not None

    async def revoke() -> str:
        await service.revoke_rule(new_engine(store), str(outcome.rule_id))
        return "revoked"

    tools = [world.tool(), tool(revoke, effect="keyed")]
    support = agent(tools, (REFUND,), ("revoke",), (REFUND,), hitl_tools=["refund"])
    result = await run(support, "go", store=store, key="k" if given_in == "this turn" else "another")
    assert (result.status, world.names) == ("approval_required", ["refund"])
    await check_replay(store, result)


async def test_an_always_is_for_the_agent_it_was_said_about() -> None:
    world, store = World(), MemoryStore()
    first = await asked(shop(world), store)
    await say(store, first.approvals[0], Always("tool"))
    other = Agent("other", shop(world).model, tools=[world.tool()], hitl_tools=["refund"])
    assert (await run(other, "go", store=store)).status == "approval_required"


# --- the order of a call's facts -----------------------------------------------------------------------------------


def about(facts: Any, call_id: str) -> list[Any]:
    return [entry.fact.event for entry in facts if entry.fact.call_id == call_id]


@pytest.mark.spec("STD-GOV-02")
@pytest.mark.parametrize("how", ["approve", "reject", "expire", "cancel"])
async def test_a_persons_decision_is_bracketed_by_what_was_asked_and_what_came_of_it(how: str) -> None:
    world, store, clock = World(), MemoryStore(), FixedClock()
    around = new_engine(store, clock=clock)
    request = RunRequest(shop(world, approval_expiry=60.0), "go", key="k")
    first = await run_turn(around, request)
    if how == "expire":
        clock.advance(60)
    elif how == "cancel":
        await cancel_turn(around, first.turn_id)
    else:
        await say(store, first.approvals[0], Approve("ok") if how == "approve" else Reject("no"), clock=clock)
    await run_turn(around, request)
    facts = await facts_of(store, first.turn_id)
    order = [type(event) for event in about(facts, "call_1_1")]
    expected: list[type] = [PermissionEvaluated, ToolStarted, ActionRequired, ActionResolved]
    assert order[:4] == expected
    assert order[-1] is (ToolResult if how == "approve" else ToolFailed)
    resolved = next(event for event in about(facts, "call_1_1") if isinstance(event, ActionResolved))
    assert (resolved.status, resolved.decision, resolved.resolver, resolved.reason) == {
        "approve": ("approved", "approve", "ada", "ok"),
        "reject": ("rejected", "reject", "ada", "no"),
        "expire": ("timed_out", "expire", "runtime", "nobody decided in time"),
        "cancel": ("rejected", "cancel", "runtime", "run_cancelled"),
    }[how]
    assert "permission.requested" in ActionRequired.aliases and "permission.resolved" in ActionResolved.aliases


@pytest.mark.spec("STD-GOV-06")
@pytest.mark.parametrize("how", ["approve", "reject", "expire", "cancel", "answer"])
async def test_every_reference_in_an_event_of_a_call_leads_to_what_it_names(how: str) -> None:
    world, store, clock = World(), MemoryStore(), FixedClock()
    around = new_engine(store, clock=clock)

    def breaks(call: Any) -> bool:
        raise ValueError(call)

    tools = [world.tool(), world.tool("denied", approval=breaks), world.reading("free")]
    support = agent(tools, (REFUND, "denied", "free"), hitl_tools=["refund"], approval_expiry=60.0)
    request = RunRequest(support, "go", key="k")
    first = await run_turn(around, request)
    said: dict[str, Decided] = {"approve": Approve(), "reject": Reject(), "answer": Answer("x")}
    if how == "expire":
        clock.advance(60)
    elif how == "cancel":
        await cancel_turn(around, first.turn_id)
    elif how in said:
        await say(store, first.approvals[0], said[how], clock=clock)
    result = await run_turn(around, request)
    events = {event.event_id: event for event in (published(each, store.runtime_id) for each in result.facts())}
    seen = 0
    for event in events.values():
        reference = event.payload.get("permission_ref")
        if reference is not None:
            seen += 1
            verdict = events[reference]
            assert (verdict.type, verdict.tool_call_id) == ("permission.evaluated", event.tool_call_id)
            assert verdict.sequence < event.sequence
        approval = event.payload.get("approval_ref")
        if approval is not None:
            seen += 1
            row = await store.action(approval)
            assert row is not None and row.call_id == event.tool_call_id
        assert event.payload.get("sandbox_ref") is None
    ends = [event for event in events.values() if event.type in ("tool.result", "tool.failed")]
    assert len(ends) == 3 and all(end.payload.get("permission_ref") for end in ends)
    last = {end.tool_call_id: events[end.payload["permission_ref"]].sequence for end in ends}
    final = {event.tool_call_id: event.sequence for event in events.values() if event.type == "permission.evaluated"}
    assert last == final, "the end of a call repeats its final verdict"
    assert seen >= 6


async def test_a_call_that_was_never_asked_about_is_dispatched_by_its_beginning() -> None:
    world, store = World(), MemoryStore()
    result = await asked(shop(world, "look"), store)
    started = {event.tool_name: event for event in of_kind(result, ToolStarted)}
    assert (started["refund"].dispatched, started["refund"].policy) == (False, "ask")
    assert (started["look"].dispatched, started["look"].policy) == (True, "allowed")
    await say(store, result.approvals[0], Approve())
    (dispatched,) = of_kind(await again(shop(world, "look"), store), ToolDispatched)
    assert (dispatched.attempt, dispatched.cause) == (1, "approval")


class Held(Tool[Any]):
    """A tool that runs foreign code, held to something."""

    def __init__(self, effects: list[list[str]], store: MemoryStore) -> None:
        self._effects, self._store = effects, store

    @property
    def declaration(self) -> ToolDeclaration:
        return ToolDeclaration(name="command", input_schema={"type": "object"}, permission_class="execute")

    @property
    def name(self) -> str:
        return "command"

    @property
    def needs_deps(self) -> bool:
        return False

    def confinement(self, arguments: dict[str, Any]) -> Confinement:
        return Confinement(mode="landlock", cwd="/srv/shop", write_roots=("/srv/shop",))

    def start(self, ctx: RunContext[Any], arguments: dict[str, Any]) -> CallHandle:
        async def work() -> str:
            self._effects.append(kinds(await facts_of(self._store, ctx.turn_id)))
            ctx.progress("half of it")
            return "ran"

        return begin(work, True, (), {})


@pytest.mark.spec("STD-CALL-14")
@pytest.mark.parametrize("is_asked", [False, True])
async def test_the_facts_of_a_call_come_in_their_order_and_before_its_effect(is_asked: bool) -> None:
    effects: list[list[str]] = []
    store = MemoryStore()
    support = agent([Held(effects, store)], ("command",), hitl_tools=["command"] if is_asked else [])
    result = await run(support, "go", store=store, key="k")
    if is_asked:
        await say(store, result.approvals[0], Approve())
        result = await run(support, "go", store=store, key="k")
    facts = [entry for entry in result.facts() if entry.fact.call_id == "call_1_1"]
    order = [kind for kind in kinds(facts) if kind != "tool.dispatched"]
    begun = ["permission.evaluated", "tool.started"]
    waited = ["action.required", "action.resolved", "permission.evaluated"] if is_asked else []
    assert order == [*begun, *waited, "sandbox.applied", "tool.progress", "tool.result"]
    (seen,) = effects
    assert seen.count("permission.evaluated") == order.count("permission.evaluated")
    assert "sandbox.applied" in seen, "both on disk before the effect"
    events = {event.type: event for event in (published(entry, store.runtime_id) for entry in facts)}
    end = events["tool.result"].payload
    assert end["permission_ref"] == events["permission.evaluated"].event_id, "the final one"
    assert end["sandbox_ref"] == events["sandbox.applied"].event_id
    assert end.get("approval_ref") == (events["action.required"].action_id if is_asked else None)
    await check_replay(store, result)


@pytest.mark.spec("STD-GOV-01")
@pytest.mark.parametrize("against", ["ask", "deny", "nothing"])
async def test_a_verdict_says_why_and_a_hooks_allow_beats_nothing(against: str) -> None:
    world = World()
    refund = world.tool()
    stricter = Rule(match="refund", decision="deny", reason="no money today", id="money")
    policy = GatePolicy(
        tools=default_policy("library"),
        rules=(stricter,) if against == "deny" else (),
        hitl_tools=("refund",) if against == "ask" else (),
    )
    compiled = compile_policy(policy, [refund.declaration])

    def judged(at: CallAtGate, said: tuple[Verdict, ...]) -> Verdict:
        return judge(CallUnderJudgement(name="refund", arguments=at.arguments, now=0.0, hooks=said), compiled)

    async def allows(at: CallAtGate) -> Consultation:
        return Consultation((Opinion(by="hook", decision="allow", reason="I say so"),))

    config = TurnConfig(agent_name="shop", model_ref="a:b", instructions="", tools=(refund.declaration,))
    gate = Mediator(config, {"refund": refund}, "turn_1", GateParts(judged, consult=(allows,)))
    part = CallPart(call_id="c", name="refund", arguments=REFUND[1])
    admission = gate.admit(Call(part, 1, 0, Level()), part.arguments, now=0.0, batch_id="b", scheduling="serial")
    if admission.later is not None:  # what the policy denies is brought before nobody else
        admission = (await admission.later())()
    verdict = next(event for event in admission.events if isinstance(event, PermissionEvaluated))
    assert verdict.decision == {"ask": "ask", "deny": "deny", "nothing": "allow"}[against]
    assert (admission.dispatch is not None) == (against == "nothing")
    assert (verdict.destructive, verdict.scope) == (True, "call") and verdict.decision_reason
    if against == "ask":
        assert verdict.approval_action_id and verdict.expires_at
        assert (verdict.decision_source, verdict.rule_refs) == ("rule", ("hitl_tools:refund",))
    elif against == "deny":
        assert (verdict.decision_source, verdict.rule_refs) == ("rule", ("money",))
        assert "no money today" in verdict.decision_reason
    fields = PermissionEvaluated.model_fields
    assert set(get_args(fields["decision"].annotation)) == {"allow", "ask", "deny", "sandbox", "unavailable"}
    sources = {"rule", "mode", "hook", "host_policy", "human", "sandbox"}
    assert set(get_args(fields["decision_source"].annotation)) == sources
    assert {"updated_input_ref", "approval_action_id", "expires_at"} <= fields.keys()


@pytest.mark.spec("STD-CALL-13")
def test_a_failure_has_one_of_the_published_categories() -> None:
    published_ones = """unknown_tool invalid_arguments schema_validation_failed schema_not_loaded permission_denied
        approval_rejected policy_blocked hook_blocked capability_gap setup_required credential_missing sandbox_violation
        timeout rate_limited dependency_unavailable execution_failed partial_failure result_too_large result_redacted
        sibling_canceled canceled"""
    assert set(get_args(ErrorCategory)) == set(published_ones.split())
    assert ToolFailed.model_fields["error_category"].annotation == ErrorCategory


async def test_what_is_secret_is_in_no_record_and_is_run_all_the_same() -> None:
    ran: list[str] = []

    @tool(effect="irreversible", approval=True)
    async def log_in(user: str, password: str) -> str:
        ran.append(password)
        return "in"

    store = MemoryStore()
    support = agent([log_in], (("log_in", {"user": "ada", "password": "hunter2-and-more"}),))
    first = await asked(support, store)
    (approval,) = first.approvals
    assert "hunter2" not in approval.model_dump_json() and approval.arguments["user"] == "ada"
    assert approval.arguments_sha256 == stable_hash(approval.arguments)
    await say(store, approval, Approve())
    result = await again(support, store)
    assert ran == ["hunter2-and-more"]
    (started,) = of_kind(result, ToolStarted)
    assert "hunter2" not in started.model_dump_json() and started.args_sha256 == approval.arguments_sha256


async def test_what_a_person_edited_stays_edited_when_they_are_asked_once_more() -> None:
    """The tool has a question of its own about what was edited: the next yes is about that, and that runs."""
    done: list[int] = []
    store = MemoryStore()

    async def refund(ctx: RunContext[None], cents: int) -> str:
        if ctx.approval is None or "sure" not in ctx.approval.prompt:
            raise ToolAsks("Are you sure?")
        done.append(cents)
        return "done"

    support = agent([tool(refund, effect="irreversible", approval=True)], (("refund", {"cents": 500}),))
    first = await asked(support, store)
    await say(store, first.approvals[0], Edit({"cents": 7}))
    second = await again(support, store)
    assert [(each.prompt, each.arguments) for each in second.approvals] == [("Are you sure?", {"cents": 7})]
    await say(store, second.approvals[0], Approve())
    result = await again(support, store)
    assert (result.output, done) == ("done", [7])


COMMAND = ("command", {"cmd": "make"})


class Unheld(Held):
    """The same command on a machine where nothing can hold it, which only the arguments tell."""

    def confinement(self, arguments: dict[str, Any]) -> Confinement:
        if not arguments:
            raise ValueError("no command")
        return Confinement(mode="not_enforced", cwd="/srv/shop", reason="no landlock here")


@pytest.mark.parametrize("unconfined", ["deny", "allow"])
async def test_a_yes_does_not_take_a_command_to_where_nothing_holds_it(unconfined: Any) -> None:
    """Asked where it would have been held, taken up where it would not: forbidden, or asked about once more."""
    effects: list[list[str]] = []
    store = MemoryStore()
    policy = GatePolicy(tools=default_policy("library").model_copy(update={"unconfined": unconfined}))
    held = agent([Held(effects, store)], (COMMAND,), hitl_tools=["command"], policy=policy)
    await say(store, (await asked(held, store)).approvals[0], Approve())
    unheld = agent([Unheld(effects, store)], (COMMAND,), hitl_tools=["command"], policy=policy)
    result = await again(unheld, store)
    assert effects == []
    if unconfined == "deny":
        refused = [(failed.status, "unconfined" in failed.item.text) for failed in of_kind(result, ToolFailed)]
        assert (result.output, refused) == ("done", [("denied", True)])
        return
    (record,) = result.approvals
    assert record.confinement is not None and record.confinement.startswith("not_enforced"), "the person is told"
    await say(store, record, Approve())
    assert ((await again(unheld, store)).output, len(effects)) == ("done", 1)
