"""Calls that a client runs, from the request to the result: asked with real parameters, answered once."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from kit.hosts.client_tools import PICK, SECRET, agent, pick_file, screen_size
from kit.runs.engine_runs import calls, facts_of, folded, kinds, of_kind
from wakeful import (
    Answer,
    Approve,
    Edit,
    HookVerdict,
    RunResult,
    cancel,
    cancel_request,
    pending_requests,
    resume,
    resume_all,
    run,
    submit_result,
    timeout_request,
    tool,
)
from wakeful.bootstrap.engines import new_engine
from wakeful.bootstrap.stores import opened_store
from wakeful.contracts.budgets import Limits
from wakeful.contracts.errors import InvalidValue, RequestNotFound
from wakeful.contracts.events import (
    KINDS_BY_NAME,
    PermissionEvaluated,
    RuntimeToolRequested,
    RuntimeToolResolved,
    ToolFailed,
    ToolResult,
    ToolStarted,
)
from wakeful.contracts.runtime_tools import request_id
from wakeful.decisions.step import HitLimit, TakeUp
from wakeful.decisions.turn import decide
from wakeful.engine.run_request import RunRequest
from wakeful.service.client_tools.lifecycle import RuntimeToolLifecycle
from wakeful.service.client_tools.store import OwnRequestStore
from wakeful.service.commands.approvals import decide as decide_approval
from wakeful.service.commands.client_requests import pending_requests as pending_of
from wakeful.service.commands.client_requests import submit_result as submit_to
from wakeful.service.commands.turns import resume_turn, run_turn
from wakeful.service.hooks import HookRegistry, hooks
from wakeful.service.queries.replay import replay_turn
from wakeful.testing import FixedClock

NAMES_OF_HOOKS = (
    "runtime_tool_request_created",
    "runtime_tool_result_submitted",
    "runtime_tool_request_timed_out",
    "runtime_tool_request_resumed",
)


@pytest.fixture
def place(tmp_path: Path) -> str:
    return str(tmp_path / "store.db")


async def identical(place: str, turn_id: str) -> bool:
    async with opened_store(place) as store:
        row = await store.turn(turn_id)
        assert row is not None
        return (await replay_turn(store, row)).identical


async def test_a_run_rests_on_what_a_client_has_to_run_and_shows_it_with_real_parameters(place: str) -> None:
    result = await run(agent(), "go", store=place)
    assert (result.status, result.stop_reason) == ("runtime_tool_pending", "runtime_tool_pending")
    (request,) = result.runtime_tools
    assert request.request_id == request_id(result.turn_id, "client/pick_file", "call_1_1")
    assert (request.tool_name, request.tool_call_id, request.run_id) == ("client/pick_file", "call_1_1", result.turn_id)
    assert request.parameters == {"folder": "/home", "password": SECRET}
    assert request.metadata["turn_count"] == 1 and request.timeout_at
    assert RunResult.from_dict(result.to_dict()).runtime_tools == result.runtime_tools
    (asked,) = of_kind(result, RuntimeToolRequested)
    assert asked.safe_args == {"folder": "/home", "password": "[redacted]"} and asked.arguments is None
    assert SECRET not in str([call.arguments for call in result.calls()])


async def test_the_answer_is_the_calls_result_and_the_same_turn_goes_on(place: str) -> None:
    waiting = await run(agent(), "go", store=place)
    (request,) = await pending_requests(place)
    assert request == waiting.runtime_tools[0]
    done = await submit_result(place, request.request_id, {"file": "a.txt"})
    assert (done.duplicate, done.turn_id, done.result.result) == (False, waiting.turn_id, {"file": "a.txt"})
    result = await resume(place, waiting.turn_id, [agent()])
    assert (result.output, result.runtime_tools, await pending_requests(place)) == ("done", (), [])
    (call,) = result.calls()
    assert (call.tool, call.status, call.result) == ("client/pick_file", "success", '{"file":"a.txt"}')
    assert result.tool_calls == 1
    assert kinds(await facts_of_turn(place, waiting.turn_id)).count("runtime_tool.requested") == 1
    assert await identical(place, waiting.turn_id)


async def facts_of_turn(place: str, turn_id: str) -> list[Any]:
    async with opened_store(place) as store:
        return await facts_of(store, turn_id)


async def test_an_approver_beside_the_run_is_not_waited_for_in_the_clients_place(place: str) -> None:
    async def approver(approval: Any) -> bool:
        raise AssertionError("nothing is to be approved")

    assert (await run(agent(), "go", store=place, approver=approver)).status == "runtime_tool_pending"


async def test_its_siblings_have_run_while_it_waits(place: str) -> None:
    @tool(effect="pure")
    def look() -> str:
        return "seen"

    support = agent(calls(PICK, "look", "client/screen_size"), "done", tools=[pick_file, screen_size, look])
    waiting = await run(support, "go", store=place)
    assert [event.tool_name for event in of_kind(waiting, ToolResult)] == ["look"]
    assert [request.tool_name for request in waiting.runtime_tools] == ["client/pick_file", "client/screen_size"]
    await submit_result(place, waiting.runtime_tools[1].request_id, {"width": 3})
    still = await resume(place, waiting.turn_id, [support])
    assert [request.tool_name for request in still.runtime_tools] == ["client/pick_file"]
    await submit_result(place, waiting.runtime_tools[0].request_id, "a.txt")
    result = await resume(place, waiting.turn_id, [support])
    assert [call.result for call in result.calls()] == ['{"value":"a.txt"}', "seen", '{"width":3}']
    assert await identical(place, waiting.turn_id)


@pytest.mark.parametrize("first", ["submit", "timeout", "cancel"])
async def test_a_second_answer_changes_nothing_and_is_told_what_the_first_was(place: str, first: str) -> None:
    waiting = await run(agent(), "go", store=place)
    name = waiting.runtime_tools[0].request_id
    ends = {"submit": submit_result, "timeout": timeout_request, "cancel": cancel_request}
    won = await ends[first](place, name)
    for late in (submit_result(place, name, {"late": 1}), timeout_request(place, name), cancel_request(place, name)):
        told = await late
        assert (told.duplicate, told.request, told.result) == (True, won.request, won.result)
    facts = await facts_of_turn(place, waiting.turn_id)
    assert kinds(facts).count("runtime_tool.resolved") == 1


async def test_of_many_answers_at_once_one_wins(place: str) -> None:
    waiting = await run(agent(), "go", store=place)
    name = waiting.runtime_tools[0].request_id
    ended = await asyncio.gather(*(submit_result(place, name, {"n": n}) for n in range(8)))
    (winner,) = [each for each in ended if not each.duplicate]
    assert {each.result.result["n"] for each in ended if each.result.result} == {(winner.result.result or {})["n"]}


async def test_an_answer_that_does_not_fit_or_names_nothing_is_refused_and_nothing_is_written(place: str) -> None:
    waiting = await run(agent(), "go", store=place)
    with pytest.raises(RequestNotFound, match="there is no request 'runtime-tool-nope'"):
        await submit_result(place, "runtime-tool-nope", 1)
    with pytest.raises(InvalidValue, match="invalid_runtime_tool_result"):
        await submit_result(place, waiting.runtime_tools[0].request_id, {"not": object()})
    assert len(await pending_requests(place)) == 1


async def test_arguments_that_do_not_fit_are_never_sent(place: str) -> None:
    result = await run(agent(calls(("client/pick_file", {"folder": 5})), "done"), "go", store=place)
    assert (result.output, result.calls()[0].status, await pending_requests(place)) == ("done", "error", [])
    assert not of_kind(result, RuntimeToolRequested)


async def test_what_the_client_says_went_wrong_is_what_the_model_reads(place: str) -> None:
    waiting = await run(agent(), "go", store=place)
    await submit_result(place, waiting.runtime_tools[0].request_id, error="the person closed the window")
    result = await resume(place, waiting.turn_id, [agent()])
    (call,) = result.calls()
    assert (call.status, call.error, call.effects) == ("error", "the person closed the window", "possible")


async def test_a_large_answer_is_kept_whole_and_cut_for_the_model(place: str) -> None:
    """It takes the way of every tool's result: the whole is an artifact, the model is shown what fits."""
    large = {"text": "0123456789" * 20_000}
    waiting = await run(agent(), "go", store=place)
    await submit_result(place, waiting.runtime_tools[0].request_id, large)
    result = await resume(place, waiting.turn_id, [agent()])
    (resolved,) = of_kind(result, RuntimeToolResolved)
    assert resolved.result is None and resolved.result_ref is not None
    (ended,) = of_kind(result, ToolResult)
    assert ended.truncated and ended.size_bytes > 200_000
    assert {"output.spilled", "output.truncated"} <= set(kinds(result.facts()))
    async with opened_store(place) as store:
        assert (await store.get_blob(ended.result_ref.digest)).decode() == f'{{"text":"{large["text"]}"}}'
    assert len(result.history()[2].text.encode()) < 50_000
    assert (await submit_result(place, waiting.runtime_tools[0].request_id, 1)).result.result == large
    assert await identical(place, waiting.turn_id)


async def test_large_arguments_reach_the_client_whole(place: str) -> None:
    folder = "x" * 100_000
    waiting = await run(agent(calls(("client/pick_file", {"folder": folder})), "done"), "go", store=place)
    assert waiting.runtime_tools[0].parameters == {"folder": folder}
    assert (await pending_requests(place))[0].parameters == {"folder": folder}


async def test_large_arguments_can_be_asked_about_too(place: str) -> None:
    """The event shows a preview and a digest; what is approved and sent is whole."""
    folder = "x" * 100_000
    support = agent(calls(("client/pick_file", {"folder": folder})), "done", hitl_tools=["pick_file"])
    waiting = await run(support, "go", store=place)
    (approval,) = waiting.approvals
    assert (approval.arguments["truncated"], approval.arguments["size_chars"]) == (True, 100_013)
    async with opened_store(place) as store:
        await decide_approval(new_engine(store), approval.id, Approve())
    asked = await resume(place, waiting.turn_id, [support])
    assert asked.runtime_tools[0].parameters == {"folder": folder}
    assert await identical(place, waiting.turn_id)


async def test_fields_that_are_not_the_tools_do_not_reach_the_client(place: str) -> None:
    support = agent(
        calls(("client/pick_file", {"folder": "/", "why": "because"})), "done", injected_tool_args={"why": "Why?"}
    )
    waiting = await run(support, "go", store=place)
    assert waiting.runtime_tools[0].parameters == (await pending_requests(place))[0].parameters == {"folder": "/"}


# --- time ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "effects"), [("client/pick_file", "unknown"), ("client/screen_size", "none")])
async def test_a_request_past_its_time_has_failed_when_the_turn_is_taken_up(
    place: str, name: str, effects: str
) -> None:
    """Nobody ran meanwhile. What a client was asked for and is not pure may have happened: somebody has to find out."""
    support = agent(calls((name, {"folder": "/"} if "pick" in name else {})), "done")
    async with opened_store(place) as store:
        clock = FixedClock(1_700_000_000)
        waiting = await run_turn(new_engine(store, clock=clock), RunRequest(support, "go"))
        clock.advance(61)
        result = await resume_turn(new_engine(store, clock=clock), waiting.turn_id, [support])
        late = await submit_to(new_engine(store, clock=clock), waiting.runtime_tools[0].request_id, {"late": 1})
    (failed,) = of_kind(result, ToolFailed)
    assert (result.output, failed.status, failed.tool_error.kind) == ("done", "timed_out", "client_timeout")
    assert failed.effects == effects and bool(result.unknown) == (effects == "unknown")
    assert late.duplicate and late.request.status == "runtime_tool_timeout"
    assert await identical(place, waiting.turn_id)


async def test_a_late_answer_is_late_also_when_nobody_noticed_the_time(place: str) -> None:
    async with opened_store(place) as store:
        clock = FixedClock(1_700_000_000)
        waiting = await run_turn(new_engine(store, clock=clock), RunRequest(agent(), "go"))
        clock.advance(61)
        late = await submit_to(new_engine(store, clock=clock), waiting.runtime_tools[0].request_id, {"late": 1})
        assert (late.duplicate, late.request.status) == (True, "runtime_tool_timeout")
        assert await pending_of(new_engine(store, clock=clock)) == []


async def test_a_request_times_out_while_a_sibling_still_runs(place: str) -> None:
    gone = asyncio.Event()

    @tool(external=True, effect="pure", timeout=0.01)
    def quick() -> str: ...

    @tool(effect="pure")
    async def wait() -> str:
        await gone.wait()
        return "waited"

    support = agent(calls("client/quick", "wait"), "done", tools=[quick, wait])
    task = asyncio.create_task(run(support, "go", store=place))
    async with opened_store(place) as store:
        watch = store.watch("support")
        while not any(row.status == "timed_out" for row in await store.actions()):
            await watch.wait(timeout=0.05)
        watch.close()
        gone.set()
        result = await task
    assert [call.status for call in result.calls()] == ["timed_out", "success"]


# --- cancel ----------------------------------------------------------------------------------------------------------


async def test_cancelling_the_turn_ends_the_request_and_says_that_it_may_have_happened(place: str) -> None:
    waiting = await run(agent(), "go", store=place)
    await cancel(place, waiting.turn_id)
    result = await resume(place, waiting.turn_id, [agent()])
    assert (result.status, [call.status for call in result.calls()]) == ("cancelled", ["cancelled"])
    assert [unknown.tool for unknown in result.unknown] == ["client/pick_file"]
    late = await submit_result(place, waiting.runtime_tools[0].request_id, {"file": "a"})
    assert late.duplicate and late.result.error == "run_cancelled"
    assert await identical(place, waiting.turn_id)


async def test_an_answer_that_came_before_the_cancel_is_not_called_unknown(place: str) -> None:
    waiting = await run(agent(), "go", store=place)
    await submit_result(place, waiting.runtime_tools[0].request_id, {"file": "a"})
    await cancel(place, waiting.turn_id)
    result = await resume(place, waiting.turn_id, [agent()])
    (call,) = result.calls()
    assert (result.status, call.status, call.effects, result.unknown) == ("cancelled", "cancelled", "possible", ())
    assert "the client ran client/pick_file" in (call.error or "")


async def test_a_cancelled_request_lets_the_turn_go_on(place: str) -> None:
    waiting = await run(agent(), "go", store=place)
    ended = await cancel_request(place, waiting.runtime_tools[0].request_id)
    assert ended.envelope is not None and ended.envelope["cancelled"] is True
    result = await resume(place, waiting.turn_id, [agent()])
    assert (result.output, result.calls()[0].status) == ("done", "cancelled")


# --- the gate --------------------------------------------------------------------------------------------------------


async def test_a_call_that_needs_a_person_is_sent_to_the_client_once_it_is_approved(place: str) -> None:
    support = agent(hitl_tools=["pick_file"])
    waiting = await run(support, "go", store=place)
    assert (waiting.status, waiting.runtime_tools) == ("approval_required", ())
    async with opened_store(place) as store:
        await decide_approval(new_engine(store), waiting.approvals[0].id, Approve())
    asked = await resume(place, waiting.turn_id, [support])
    assert (asked.status, asked.runtime_tools[0].parameters) == ("runtime_tool_pending", PICK[1])
    await submit_result(place, asked.runtime_tools[0].request_id, {"file": "a"})
    result = await resume(place, waiting.turn_id, [support])
    assert result.output == "done" and len(of_kind(result, ToolStarted)) == 1
    assert await identical(place, waiting.turn_id)


async def test_a_large_answer_of_a_person_takes_the_same_way(place: str) -> None:
    """In the tool's place: cut for the model, kept whole, and it names the verdict that let it stand."""
    support = agent(hitl_tools=["pick_file"])
    waiting = await run(support, "go", store=place)
    async with opened_store(place) as store:
        await decide_approval(new_engine(store), waiting.approvals[0].id, Answer({"text": "x" * 55_000}))
    result = await resume(place, waiting.turn_id, [support])
    (ended,) = of_kind(result, ToolResult)
    assert ended.truncated and result.output == "done" and not of_kind(result, RuntimeToolRequested)
    facts = list(result.facts())
    (at,) = [entry.seq for entry in facts if isinstance(entry.fact.event, ToolResult)]
    verdict = next(entry for entry in facts if entry.seq == at + int(ended.permission_ref.removeprefix("@")))
    assert isinstance(verdict.fact.event, PermissionEvaluated) and verdict.fact.event.layer == "approval"
    assert await identical(place, waiting.turn_id)


async def test_what_a_person_edited_is_what_the_client_gets(place: str) -> None:
    support = agent(hitl_tools=["pick_file"])
    waiting = await run(support, "go", store=place)
    async with opened_store(place) as store:
        await decide_approval(
            new_engine(store), waiting.approvals[0].id, Edit({"folder": "/safe", "password": "other"})
        )
    asked = await resume(place, waiting.turn_id, [support])
    assert asked.runtime_tools[0].parameters == {"folder": "/safe", "password": "other"}
    assert (await pending_requests(place))[0].parameters == {"folder": "/safe", "password": "other"}
    assert await identical(place, waiting.turn_id)


async def test_what_a_hook_rewrote_is_what_the_client_gets_also_when_a_person_was_asked_in_between(place: str) -> None:
    safe = {"folder": "/safe", "password": ""}
    support = agent(hitl_tools=["pick_file"], hooks=[lambda call: HookVerdict.rewrite(safe)])
    waiting = await run(support, "go", store=place)
    async with opened_store(place) as store:
        await decide_approval(new_engine(store), waiting.approvals[0].id, Approve())
    asked = await resume(place, waiting.turn_id, [support])
    assert asked.runtime_tools[0].parameters == safe
    assert await identical(place, waiting.turn_id)


async def test_a_request_counts_as_a_tool_call_once(place: str) -> None:
    """With room for one call its answer is taken in, and the next call is refused."""
    waiting = await run(agent(), "go", store=place)
    async with opened_store(place) as store:
        row = await store.turn(waiting.turn_id)
        assert row is not None
        await submit_result(place, waiting.runtime_tools[0].request_id, {"file": "a"})
        state = await folded(store, row)
    assert state.ledger.tool_calls == 1
    state.phase, state.limits = "acting", Limits(tool_calls=1)
    state.tree.able[None] = state  # taken up again
    assert decide(state) == [TakeUp("call_1_1", "serial")]
    assert state.round.batch[0].pending is not None
    state.round.batch[0].pending = None  # had it not been asked for, it would be one too many
    assert decide(state) == [TakeUp("call_1_1", "serial", beyond=HitLimit("tool_calls", 1, 2))]


# --- hooks and scans -------------------------------------------------------------------------------------------------


async def test_the_hooks_of_the_process_hear_of_a_turns_requests(place: str) -> None:
    heard: list[tuple[str, Any]] = []
    names = ("runtime_tool_request_created", "runtime_tool_result_submitted")
    removals = [hooks.register(name, lambda request, *_, name=name: heard.append((name, request))) for name in names]
    try:
        waiting = await run(agent(), "go", store=place)
        await submit_result(place, waiting.runtime_tools[0].request_id, {"file": "a"})
        await submit_result(place, waiting.runtime_tools[0].request_id, {"file": "b"})
        await resume(place, waiting.turn_id, [agent()])
    finally:
        for remove in removals:
            remove()
    assert [name for name, _ in heard] == list(names)
    assert heard[0][1]["parameters"] == PICK[1] and heard[0][1]["status"] == "runtime_tool_pending"


@pytest.mark.spec("API-RTL-19")
async def test_after_a_restart_whoever_takes_turns_up_times_out_what_is_late(place: str) -> None:
    """The process that asked is gone; the next one looks."""

    @tool(external=True, effect="pure", timeout=60)
    def quick() -> str: ...

    support = agent(calls("client/quick"), "done", tools=[quick])
    async with opened_store(place) as store:
        long_ago = new_engine(store, clock=FixedClock(1_000_000))
        waiting = await run_turn(long_ago, RunRequest(support, "go"))
    assert waiting.status == "runtime_tool_pending"
    (result,) = await resume_all(place, [support])
    assert (result.output, result.calls()[0].status) == ("done", "timed_out")
    (row,) = await _rows(place)
    assert (row.status, row.decided_by) == ("timed_out", "timeout_scan")


async def _rows(place: str) -> list[Any]:
    async with opened_store(place) as store:
        return await store.actions()


@pytest.mark.spec("API-RTL-16")
async def test_every_step_is_told_to_the_hooks_with_its_envelopes_and_is_an_entry_of_the_log(place: str) -> None:
    own_hooks, heard = HookRegistry(find=list), []
    for name in NAMES_OF_HOOKS:
        own_hooks.register(name, lambda *given, name=name: heard.append((name, given)))
    async with opened_store(place) as store:
        own = OwnRequestStore(new_engine(store))
        lifecycle = RuntimeToolLifecycle(own_hooks, record=own.record)
        asked = {"tool_name": "client/pick", "run_id": "r1", "parameters": {"n": 1}}
        first = await lifecycle.create_pending_request(own, {**asked, "tool_call_id": "c1"}, {"who": "me"})
        second = await lifecycle.create_pending_request(own, {**asked, "tool_call_id": "c2"}, {"who": "me"})
        await lifecycle.submit_result(own, {"request_id": first.request_id, "result": 1}, lambda *_: {}, {"who": "me"})
        await lifecycle.timeout_request(own, second.request_id, None, {"who": "me"})
        created, submitted, timed, resumed = NAMES_OF_HOOKS
        assert [name for name, _ in heard] == [created, created, submitted, resumed, timed]
        assert [given[0]["request_id"] for _, given in heard] == [
            *(first.request_id, second.request_id),
            *(first.request_id, first.request_id),
            second.request_id,
        ]
        assert all(given[-1] == {"who": "me"} for _, given in heard)  # the caller's context goes along
        assert heard[2][1][1]["result"] == {"value": 1} and heard[4][1][1]["success"] is False
        entries = await store.read("hosted-actions")
        assert [(entry.fact.event.kind, entry.fact.action_id) for entry in entries[1:]] == [
            ("action.staged", first.request_id),
            ("action.staged", second.request_id),
            ("action.settled", first.request_id),
            ("runtime_tool.continued", first.request_id),
            ("action.settled", second.request_id),
        ]
    # Of a turn's own request the entries are the turn's.
    waiting = await run(agent(), "go", store=place)
    async with opened_store(place) as store:
        await submit_to(
            new_engine(store), waiting.runtime_tools[0].request_id, 1, continuation=lambda *_: {}, hooks=own_hooks
        )
        kinds_now = kinds(await store.read(waiting.agent_id))
    assert kinds_now[-4:] == [
        "runtime_tool.requested",
        "turn.suspended",
        "runtime_tool.resolved",
        "runtime_tool.continued",
    ]
    assert [KINDS_BY_NAME[name][0] for name in NAMES_OF_HOOKS] == [
        *("runtime_tool.requested", "runtime_tool.resolved", "runtime_tool.resolved", "runtime_tool.continued")
    ]
