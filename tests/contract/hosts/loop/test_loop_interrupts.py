"""Interrupts between turns, cancels from outside, and which of several stops is reported."""

import asyncio
from typing import Any

import pytest

from kit.hosts.loop_host import CLIENTS, CLOCK, SEARCH, Host, calling, search
from wakeful.bootstrap.engines import new_engine
from wakeful.hosts import ConversationRequest, IterationBudget
from wakeful.service.commands.interruption import cancel_turn

PICK: dict[str, Any] = {
    "name": "client/pick",
    "description": "Let the person pick.",
    "parameters": {"type": "object", "properties": {}},
}
TOOLS = {"ability/search": SEARCH, "ability/clock": CLOCK, "client/pick": PICK}
CANCEL = {"role": "user", "content": "Stop.", "metadata": {"interrupt_action": "cancel", "source": "phone"}}


class Complete:
    """Always done."""

    def __init__(self) -> None:
        self.seen = 0

    def record_tool_result(self, *_: Any) -> dict[str, Any]:
        self.seen += 1
        return {"complete": True}


def saying(*answers: Any) -> Any:
    """An interrupt source that gives these answers, one a time, and then nothing."""
    left = list(answers)

    def source(request: ConversationRequest, context: dict[str, Any]) -> Any:
        answer = left.pop(0) if left else None
        if isinstance(answer, Exception):
            raise answer
        return answer

    return source


@pytest.mark.spec("API-INT-01")
async def test_the_source_is_asked_between_turns_with_the_transcript_as_it_is() -> None:
    host = Host(calling(search("a", api_key="sk-1")), calling(search("b")), {"content": "done"})
    polled: list[tuple[ConversationRequest, dict[str, Any]]] = []

    async def source(request: ConversationRequest, context: dict[str, Any]) -> None:
        polled.append((request, context))

    result = await host.mediated(interrupt_source=source, context={"mine": 1})
    assert result.completed
    assert [len(request.messages) for request, _ in polled] == [3, 5, 6]
    assert [context for _, context in polled] == [{"mine": 1, "turn": turn} for turn in (1, 2, 3)]
    assert polled[-1][0].messages == result.messages
    assert "sk-1" not in repr(polled)


@pytest.mark.spec("API-INT-02")
@pytest.mark.parametrize(
    ("metadata", "action"),
    [
        ({"interrupt_action": "cancel"}, "cancel"),
        ({"action": "cancel"}, "cancel"),
        ({"interrupt_action": "redirect"}, "redirect"),
        ({"action": "redirect"}, "redirect"),
        ({"interrupt_action": "message"}, "message"),
        ({"interrupt_action": "redirect", "action": "cancel"}, "redirect"),
        ({"action": "explode"}, "message"),
        ({}, "message"),
    ],
)
async def test_the_action_is_read_from_the_metadata(metadata: dict[str, Any], action: str) -> None:
    host = Host(calling(search()), {"content": "done"})
    source = saying({"role": "user", "content": "hey", "metadata": metadata})
    await host.mediated(interrupt_source=source)
    assert [payload["action"] for payload in host.payloads("interrupt_received")] == [action]


@pytest.mark.spec("API-INT-03", "API-INT-04", "API-RES-15")
async def test_an_interrupt_is_in_the_transcript_and_told_and_cancel_ends_the_run() -> None:
    host = Host(calling(search()), {"content": "never"})
    result = await host.mediated(interrupt_source=saying(CANCEL))
    last = result.messages[-1]
    assert (last.schema_id, last.type, last.role, last.content) == ("wakeful.message", "text", "user", "Stop.")
    expected = {
        "turn": 1,
        "action": "cancel",
        "message": "Stop.",
        "interrupt_action": "cancel",
        "source": "phone",
    }
    listed = [event.metadata for event in result.events if event.type == "interrupt_received"]
    assert host.payloads("interrupt_received") == listed == [expected]
    assert (result.status, result.completed, len(host.seen)) == ("interrupted", False, 1)
    assert result.interrupted == {"action": "cancel", "interrupt_action": "cancel", "source": "phone"}
    assert (result.run_outcome.status, result.run_outcome.retryable) == ("interrupted", False)
    for action in ("redirect", "message"):
        going = Host(calling(search()), {"content": "done"})
        note = {"content": "Rather this.", "metadata": {"action": action}}
        went = await going.mediated(interrupt_source=saying(note))
        assert (went.completed, went.interrupted, went.turn_count) == (True, None, 2)
        assert (going.wire[-1]["role"], going.wire[-1]["content"]) == ("user", "Rather this.")


async def test_what_is_said_at_the_natural_end_is_answered() -> None:
    host = Host({"content": "done"}, {"content": "this too"})
    result = await host.mediated(interrupt_source=saying({"content": "And that?"}))
    assert (result.completed, result.turn_count, result.final_content) == (True, 2, "this too")
    assert [message.content for message in result.messages] == ["hello", "done", "And that?", "this too"]


@pytest.mark.spec("API-INT-05")
async def test_what_is_no_message_is_ignored_and_a_source_that_raises_interrupts() -> None:
    """The second half is as decided: a source that fails can stop nothing any more, so the run stops."""
    for nonsense in ("stop", 7, ["stop"], {"content": None}, {"role": "user", "content": "x", "version": 9}):
        host = Host(calling(search()), {"content": "done"})
        result = await host.mediated(interrupt_source=saying(nonsense))
        assert result.completed
        assert host.payloads("interrupt_ignored") == [{"reason": "invalid_message", "turn": 1}]
        assert "interrupt_received" not in host.names
    broken = Host(calling(search()), {"content": "never"})
    stopped = await broken.mediated(interrupt_source=saying(OSError("gone")))
    assert (stopped.status, stopped.completed, len(broken.seen)) == ("interrupted", False, 1)
    assert stopped.interrupted == {"action": "cancel", "reason": "source_error", "error": "OSError: gone"}


# --- a cancel that somebody outside stored --------------------------------------------------------------------------


class Cancelled(Host):
    """Somebody cancels it at a point of its run."""

    point = ""

    async def cancel(self, point: str) -> None:
        if point == self.point:
            (turn,) = await self.store.turns(open_only=True)
            await cancel_turn(new_engine(self.store), turn.turn_id, requested_by="operator")

    async def runner(self, messages: Any, context: dict[str, Any]) -> dict[str, Any]:
        await self.cancel(f"model turn {context['turn']}")
        return calling(search("a"), search("b"), search("c")) if context["turn"] < 3 else {"content": "done"}

    async def mediate(self, context: dict[str, Any]) -> dict[str, Any]:
        if context["parameters"]["q"] == "b":
            await self.cancel("mediation")
        return {"action": "proceed"}

    async def execute(self, call: Any, declaration: Any, context: dict[str, Any]) -> Any:
        self.calls.append(call)
        self.call_contexts.append(context)
        if call.parameters["q"] == "a":
            await self.cancel("call")
            if self.point == "call":
                await asyncio.Event().wait()
        return {"success": True, "result": 1}


@pytest.mark.spec("API-INT-06", "API-INT-07")
@pytest.mark.parametrize(
    ("point", "turns", "ran", "skipped"),
    [
        ("model turn 1", 1, "", ""),  # what the turn would have said is not waited for
        ("mediation", 1, "a", "bc"),
        ("call", 1, "a", "bc"),
        ("between turns", 1, "abc", ""),
        ("model turn 2", 2, "abc", ""),
        ("", 3, "abcabc", ""),
    ],
)
async def test_a_stored_cancel_is_seen_around_turns_and_mediation_and_between_calls(
    point: str, turns: int, ran: str, skipped: str
) -> None:
    host = Cancelled()
    host.point = point

    async def source(request: Any, context: dict[str, Any]) -> None:
        if context["turn"] == 1:
            await host.cancel("between turns")

    host.turns = [host.runner] * 3
    result = await host.mediated(interrupt_source=source, pre_tool_mediator=host.mediate)
    assert (len(host.seen), "".join(call.parameters["q"] for call in host.calls)) == (turns, ran)
    passed_over = [
        (entry["parameters"]["q"], entry["result"]["metadata"]["reason"])
        for entry in result.tool_execution_results
        if entry["result"]["metadata"].get("error_type") == "sibling_skipped"
    ]
    assert passed_over == [(name, "interrupt") for name in skipped]
    if not point:
        assert result.completed, "nobody cancelled it"
        return
    assert (result.status, result.run_outcome.status, result.interrupted) == (
        "interrupted",
        "cancelled",
        {"action": "cancel"},
    )
    if point == "call":
        assert host.call_contexts[0]["cancelled"].is_set(), "the call that ran was told by its token"


# --- several stops at once ------------------------------------------------------------------------------------------

TWICE = {"threshold": 2}


@pytest.mark.spec("API-LOOP-08")
async def test_after_a_turn_the_stops_are_looked_at_in_their_order() -> None:
    both = Host(calling(search(), search(), search()))
    await both.mediated(budgets=[IterationBudget("tool_calls", 2)], spin_detector=TWICE)
    assert [name for name in both.names if name in ("budget_exceeded", "loop_stalled")] == [
        "budget_exceeded",
        "loop_stalled",
    ]
    # stalled before what is pending: it is told although the run rests; pending before completion
    resting = Host(calling(search(), search(), {"name": "client/pick", "parameters": {}}))
    policy = Complete()
    rests = await resting.mediated(
        tool_declarations=TOOLS, context=CLIENTS, spin_detector=TWICE, completion_policy=policy
    )
    told = [name for name in resting.names if name in ("loop_stalled", "runtime_tool_pending")]
    assert told == ["loop_stalled", "runtime_tool_pending"]
    assert (rests.completed, policy.seen, "completion_policy_stop" in resting.names) == (False, 2, False)
    # stalled before completion
    stalled = await Host(calling(search(), search())).mediated(spin_detector=TWICE, completion_policy=Complete())
    assert (stalled.status, stalled.completed) == ("stalled", False)
    # completion before the interrupt: the source is not asked
    polled: list[Any] = []
    done = await Host(calling(search())).mediated(
        completion_policy=Complete(), interrupt_source=lambda *given: polled.append(given)
    )
    assert (done.completed, polled) == (True, [])
    # the interrupt before the turn limit
    last = Host(calling(search()))
    cut = await last.mediated(max_turns=1, interrupt_source=saying(CANCEL))
    assert (cut.status, "budget_exceeded" in last.names) == ("interrupted", False)
    # the turn limit before `should_continue`
    asked: list[Any] = []
    limited = await Host(calling(search())).mediated(max_turns=1, should_continue=lambda *given: asked.append(given))
    assert (limited.budget, asked) == ("turns", [])
    free = await Host(calling(search())).mediated(max_turns=2, should_continue=lambda *given: asked.append(given))
    assert (free.completed, len(asked)) == (True, 1)


@pytest.mark.spec("API-RES-17")
async def test_of_several_stops_the_first_in_rank_is_reported() -> None:
    def turn(*calls: Any) -> Host:
        return Host(calling(*calls))

    pick = {"name": "client/pick", "parameters": {}}
    ask = search("ask")

    async def reported(host: Host, **more: Any) -> str | None:
        """Of a run that a budget and the spin detector stop, and whatever else is in `more`."""
        counter = IterationBudget("pages", 1, current=1)
        options = {"budgets": [counter], "spin_detector": TWICE, "tool_declarations": TOOLS, "context": CLIENTS}
        given = host.turns.pop(0)
        host.turns = [lambda *_: (counter.increment(), given)[1]]
        host.answers["ask"] = {
            "success": False,
            "status": "approval_required",
            "approval_required": {"type": "approval_required", "content": "may I?", "payload": {"action_id": "a"}},
        }
        status = (await host.mediated(**options, **more)).status
        assert {"budget_exceeded", "loop_stalled"} <= set(host.names), "both hold"
        return status

    assert await reported(turn(search(), search())) == "stalled"
    assert await reported(turn(search(), search(), ask)) == "approval_required"
    assert await reported(turn(search(), search(), pick)) == "runtime_tool_pending"
    both = turn(search(), search(), ask, pick)
    assert await reported(both) == "runtime_tool_pending"

    # Somebody outside cancels while the others hold.
    host = turn(search(), search())

    class Cancels:
        async def record_tool_result(self, *_: Any) -> dict[str, Any]:
            (row,) = await host.store.turns(open_only=True)
            await cancel_turn(new_engine(host.store), row.turn_id, requested_by="operator")
            return {"complete": False}

    assert await reported(host, completion_policy=Cancels()) == "interrupted"
