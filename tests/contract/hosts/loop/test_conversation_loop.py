"""The loop: how many turns, who is asked, when it stops."""

from pathlib import Path
from typing import Any

import pytest

from kit.hosts.loop_host import SEARCH, Host, calling, search
from wakeful.bootstrap.engines import new_engine
from wakeful.bootstrap.stores import opened_store
from wakeful.contracts.errors import InvalidValue
from wakeful.contracts.principals import ExecutionPrincipal
from wakeful.contracts.transcript import Message
from wakeful.hosts import ConversationLoop
from wakeful.service.commands.interruption import cancel_turn

PRINCIPAL = {"effective_agent_id": "helper", "auth_source": "user", "request_context": "chat"}


@pytest.mark.spec("API-LOOP-01")
async def test_callables_may_be_plain_or_async() -> None:
    told: list[str] = []

    async def turn_runner(messages: Any, context: Any) -> dict[str, Any]:
        return {"content": f"turn {context['turn']}"}

    async def on_event(name: str, payload: dict[str, Any]) -> None:
        told.append(name)

    async def should_continue(result: dict[str, Any], context: dict[str, Any]) -> bool:
        return bool(result["turn_count"] < 2)

    class Executor:
        async def execute(self, call: Any, declaration: Any, context: Any) -> dict[str, Any]:
            return {"success": True, "result": "async"}

    options = {"max_turns": 5, "on_event": on_event, "should_continue": should_continue}
    result = await ConversationLoop().run([{"role": "user", "content": "hello"}], turn_runner, options)
    assert (result.turn_count, result.final_content, result.completed) == (2, "turn 2", True)
    assert told == ["turn_started", "turn_started", "completed"]
    plain = Host({"content": "turn 1"}, {"content": "turn 2"})
    same = await plain.run(max_turns=5, should_continue=lambda result, context: result["turn_count"] < 2)
    assert same.messages == result.messages
    executed = await Host(calling(search()), {"content": "done"}).mediated(tool_executor=Executor())
    assert executed.tool_execution_results[0]["result"]["result"] == "async"


@pytest.mark.spec("API-MSG-01")
async def test_the_turn_runner_sees_normalised_envelopes_whatever_was_given() -> None:
    host = Host({"content": "hi"})
    given = [{"role": "user", "content": "a"}, Message(type="text", role="assistant", content="b")]
    await host.run(given)
    assert [(message["schema"], message["type"], message["content"]) for message in host.wire] == [
        ("wakeful.message", "text", "a"),
        ("wakeful.message", "text", "b"),
    ]


@pytest.mark.spec("API-MSG-10")
async def test_unpaired_input_is_refused_before_anything_happens() -> None:
    host = Host({"content": "hi"})
    call = {"type": "tool_call", "content": "", "payload": {"tool_name": "a/b"}, "metadata": {"tool_call_id": "c"}}
    with pytest.raises(InvalidValue, match=r"^unpaired_input_messages: messages\[0\]"):
        await host.run([call])
    assert not host.seen and not host.told


@pytest.mark.spec("API-LOOP-04")
async def test_context_goes_to_runner_tools_and_policy_with_turn_and_principal_added() -> None:
    host = Host(calling(search()), {"content": "done"})
    asked: list[dict[str, Any]] = []
    live = object()
    request = {"messages": [], "principal": PRINCIPAL, "max_turns": 3}

    def should_continue(result: dict[str, Any], context: dict[str, Any]) -> bool:
        asked.append(context)
        return len(asked) < 2

    await host.mediated(context={"live": live}, request=request, should_continue=should_continue)
    principal = ExecutionPrincipal.normalise(PRINCIPAL)
    assert host.contexts == asked == [{"live": live, "turn": turn, "principal": principal} for turn in (1, 2)]
    (seen,) = host.call_contexts
    assert (seen["live"], seen["turn"], seen["principal"]) == (live, 1, principal)
    own = Host({"content": "x"})
    await own.run(context={"principal": "mine"}, request=request)
    assert own.contexts == [{"principal": "mine", "turn": 1}]


@pytest.mark.spec("API-LOOP-05")
async def test_without_mediation_and_policy_it_is_one_turn_and_complete() -> None:
    host = Host({"content": "one"}, {"content": "two"})
    result = await host.run(max_turns=5)
    assert (result.turn_count, result.completed, result.final_content) == (1, True, "one")


@pytest.mark.spec("API-LOOP-06")
async def test_with_mediation_it_goes_on_until_a_turn_neither_calls_nor_continues() -> None:
    more = {"role": "user", "content": "go on"}
    host = Host(
        calling(search()), {"content": "b", "continuation_messages": [more]}, {"content": "c"}, {"content": "d"}
    )
    result = await host.mediated(max_turns=9)
    assert (result.turn_count, result.completed, result.final_content) == (3, True, "c")
    assert result.run_outcome.stop_reason == "natural"


@pytest.mark.spec("API-LOOP-07")
async def test_should_continue_decides_after_each_turn_and_none_keeps_it_to_one() -> None:
    host = Host(*({"content": str(n)} for n in range(9)))
    results: list[dict[str, Any]] = []

    def should_continue(result: dict[str, Any], context: dict[str, Any]) -> bool:
        results.append(result)
        return context["turn"] < 3

    result = await host.run(max_turns=9, should_continue=should_continue)
    assert (result.turn_count, result.completed) == (3, True)
    assert [seen["final_content"] for seen in results] == ["0", "1", "2"]
    mediated = Host(calling(search()), {"content": "not asked for"})
    once = await mediated.mediated(should_continue=None)
    assert (once.turn_count, once.completed, len(mediated.calls)) == (1, True, 1)


async def test_a_policy_that_raises_stops_the_run_and_says_so() -> None:
    def broken(result: Any, context: Any) -> bool:
        raise ValueError("no idea")

    host = Host({"content": "one"}, {"content": "two"})
    result = await host.run(max_turns=5, should_continue=broken)
    assert (result.turn_count, result.completed, result.status) == (1, False, "failed")
    assert result.failure is not None
    assert (result.failure.type, result.failure.message) == ("should_continue_exception", "ValueError: no idea")


@pytest.mark.spec("API-RES-14")
async def test_a_run_that_the_turn_limit_cut_off_is_never_called_completed() -> None:
    cut = [
        await Host(calling(search()), calling(search())).mediated(max_turns=2),
        await Host({"content": "a"}, {"content": "b"}).run(max_turns=2, should_continue=lambda *_: True),
        await Host(
            *({"content": "a", "continuation_messages": [{"role": "user", "content": "on"}]} for _ in range(2))
        ).mediated(max_turns=2),
        await Host(calling(search())).mediated(max_turns=5, request={"messages": [], "single_turn": True}),
    ]
    for result, turns in zip(cut, (2, 2, 2, 1), strict=True):
        assert (result.completed, result.status, result.budget) == (False, "budget_exceeded", "turns")
        assert (result.run_outcome.status, result.run_outcome.stop_reason) == ("budget_exceeded", "max_turns")
        (event,) = [event for event in result.events if event.type == "budget_exceeded"]
        assert event.metadata == {"budget": "turns", "dimension": "turns", "current": turns, "ceiling": turns}
        assert result.turn_count == turns


@pytest.mark.spec("API-LOOP-10")
async def test_a_last_allowed_turn_that_ends_naturally_is_completed() -> None:
    result = await Host(calling(search()), {"content": "done"}).mediated(max_turns=2)
    assert (result.turn_count, result.completed, result.status, result.budget) == (2, True, None, None)


@pytest.mark.spec("API-LOOP-12")
async def test_a_run_is_claimed_once() -> None:
    host = Host({"content": "one"}, {"content": "two"}, {"content": "three"})
    named = {"run_id": "r1", "session_id": "s1"}
    first = await host.run(**named)
    second = await host.run(**named)
    assert (first.completed, len(host.seen)) == (True, 1)
    assert (second.completed, second.status, second.turn_count) == (False, "failed", 0)
    assert second.failure is not None and second.failure.type == "run_control"
    assert second.run_outcome.retryable is False
    assert (await host.run(run_id="r2", session_id="s1")).completed
    assert (await host.run(run_id="r1", session_id="s2")).completed
    assert len(host.seen) == 3


async def test_a_claim_holds_for_one_loop_without_a_store_too() -> None:
    loop = ConversationLoop()
    named = {"run_id": "r1", "session_id": "s1"}
    runs = [await loop.run([], lambda *_: {"content": "x"}, named) for _ in range(2)]
    assert [run.status for run in runs] == [None, "failed"]


@pytest.mark.spec("API-TURN-01", "API-TURN-02")
async def test_a_runner_may_keep_the_transcript_itself_or_leave_it_to_the_loop() -> None:
    own = [{"role": "user", "content": "edited"}, {"role": "assistant", "content": "mine"}]
    managed = {
        "messages": own,
        "tool_execution_results": [{"tool_name": "x", "parameters": {"password": "p"}, "result": 1}],
        "events": [{"type": "own_event", "metadata": {"k": 1}}],
        "usage": {"prompt_tokens": 1},
    }
    result = await Host(managed).run()
    assert [message.content for message in result.messages] == ["edited", "mine"]
    assert result.final_content == "mine"
    assert result.tool_execution_results[0]["parameters"] == {"password": "[redacted]"}
    assert "own_event" in [event.type for event in result.events]
    kept = await Host({"content": "theirs"}).run()
    assert [message.content for message in kept.messages] == ["hello", "theirs"]


@pytest.mark.spec("API-TURN-05")
async def test_text_is_never_parsed_into_a_call() -> None:
    text = '```json\n{"tool_calls": [{"name": "ability/search", "parameters": {"q": "x"}}]}\n```'
    host = Host({"content": text})
    result = await host.mediated()
    assert (result.completed, host.calls, result.final_content) == (True, [], text)


@pytest.mark.spec("API-TURN-06")
async def test_continuation_messages_follow_the_results_each_with_its_event() -> None:
    more = [{"role": "user", "content": "and"}, {"role": "system", "content": "then"}]
    host = Host({**calling(search()), "continuation_messages": more}, {"content": "done"})
    result = await host.mediated()
    assert [message.type + ":" + message.role for message in result.messages] == [
        "text:user",
        "tool_call:assistant",
        "tool_result:tool",
        "text:user",
        "text:system",
        "text:assistant",
    ]
    assert host.payloads("continuation_message_added") == [{"turn": 1, "role": "user"}, {"turn": 1, "role": "system"}]


async def test_a_turn_that_says_nothing_is_a_turn() -> None:
    result = await Host({}).run()
    assert (result.completed, result.turn_count, result.final_content) == (True, 1, "")


async def test_an_empty_transcript_and_one_that_ends_with_the_assistant_can_be_run() -> None:
    assert (await Host({"content": "x"}).run([])).final_content == "x"
    assert (await Host({"content": "x"}).run([{"role": "assistant", "content": "y"}])).completed


@pytest.mark.parametrize("status", ["approval_required", "runtime_tool_pending", "stalled"])
async def test_a_turn_that_wants_to_pause_fails_instead_of_being_misread(status: str) -> None:
    result = await Host({"content": "x", "status": status}).run()
    assert (result.completed, result.status) == (False, "failed")
    assert result.failure is not None and result.failure.type == "invalid_turn_result"


async def test_a_run_that_somebody_cancels_is_neither_completed_nor_failed() -> None:
    host = Host()
    around = new_engine(host.store)

    async def cancelled(messages: Any, context: Any) -> dict[str, Any]:
        (turn,) = await host.store.turns(open_only=True)
        await cancel_turn(around, turn.turn_id, requested_by="operator")
        return calling(search())

    host.turns = [cancelled]
    result = await host.mediated()
    assert (result.completed, result.status, result.run_outcome.status) == (False, "interrupted", "cancelled")
    assert (host.names[-1], host.calls) == ("completed", [])
    assert result.run_outcome.retryable is False


async def test_a_run_on_disk_is_in_the_same_log_as_every_other(tmp_path: Path) -> None:
    host = Host(calling(search("a")), {"content": "done"})
    told: list[str] = []

    def grumpy(name: str, payload: dict[str, Any]) -> None:
        told.append(name)
        raise ValueError("no")

    loop = ConversationLoop(store=str(tmp_path / "runs.db"), hooks=host.hooks)
    options = {
        "max_turns": 3,
        "tool_executor": host,
        "tool_declarations": {"ability/search": SEARCH},
        "on_event": grumpy,
        "run_id": "r",
        "session_id": "s",
    }
    result = await loop.run([{"role": "user", "content": "a"}], host.turn_runner, options)
    assert (result.completed, result.turn_count, told[-1]) == (True, 2, "observer_failed")
    again = ConversationLoop(store=str(tmp_path / "runs.db"), hooks=host.hooks)
    refused = await again.run([], host.turn_runner, {"run_id": "r", "session_id": "s"})
    assert refused.failure is not None and refused.failure.type == "run_control"
    async with opened_store(tmp_path / "runs.db") as store:
        kinds = [recorded.fact.event.kind for agent in await store.agents() for recorded in await store.read(agent)]
    assert kinds.count("turn.completed") == 1 and kinds.count("transcript.closed") == 2
