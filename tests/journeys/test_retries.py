"""A failed turn is tried again: by a program, by the command line, in a runtime and over HTTP.

The model breaks until it is mended; the ledger of the tool is a file.
"""

from pathlib import Path
from typing import Any

import pytest

from wakeful import Agent, Budget, RunContext, Runtime, open_store, retry, run, tool
from wakeful.errors import ModelFailure, NotCompleted, RetryRefused
from wakeful.testing import scripted


class Clerk:
    """An agent that pays once, and a model that breaks after the payment until it is mended."""

    def __init__(self, bank: Path) -> None:
        self.bank = bank
        self.broken = True

        @tool(effect="keyed")
        def refund(ctx: RunContext, order: str) -> str:
            """Give the money back."""
            with bank.open("a") as ledger:
                ledger.write(f"{ctx.idempotency_key} {order}\n")
            return f"refunded {order}"

        self.agent = Agent("clerk", scripted(self._reply), tools=[refund])

    def _reply(self, request: Any) -> Any:
        if not any(item.role == "tool" for item in request.history):
            return {"calls": [{"name": "refund", "arguments": {"order": "A17"}}]}
        if self.broken:
            raise ModelFailure("half an answer", kind="invalid_response", stage="body", retryable=False)
        return "Order A17 is refunded."

    @property
    def paid(self) -> int:
        return len(self.bank.read_text().splitlines())


@pytest.fixture
def clerk(tmp_path: Path) -> Clerk:
    return Clerk(tmp_path / "bank.txt")


async def test_a_failed_run_is_tried_again_and_what_was_paid_is_not_paid_again(clerk: Clerk, tmp_path: Path) -> None:
    store = tmp_path / "runs.db"
    first = await run(clerk.agent, "Refund A17.", store=store, key="ticket-981")
    assert (first.status, first.retryable, clerk.paid) == ("failed", True, 1)
    with pytest.raises(NotCompleted, match=r"did not complete: failed \(provider_error\)") as told:
        _ = first.output
    assert "wakeful.retry(store" in told.value.hint
    same = await run(clerk.agent, "Refund A17.", store=store, key="ticket-981")
    assert (same.turn_id, same.status) == (first.turn_id, "failed"), "the key alone asks nothing again"
    still = await retry(store, "ticket-981", [clerk.agent])
    assert still.status == "failed", "what is still broken fails again, and can be tried once more"
    clerk.broken = False
    done = await retry(store, "ticket-981", [clerk.agent])
    assert (done.status, done.output, done.turn_id) == ("completed", "Order A17 is refunded.", first.turn_id)
    assert clerk.paid == 1
    async with open_store(store) as opened:
        kinds = [event.type async for event in opened.events(done.turn_id)]
        assert kinds.count("turn.failed") == 2 and kinds.count("turn.retried") == 2 and kinds[-1] == "turn.completed"
        assert kinds.count("tool.result") == 1
        assert (await opened.replay(done.turn_id)).identical
        said = [(each.role, each.status) for each in await opened.messages("main", agent="clerk")]
        assert [role for role, _ in said] == ["user", "assistant"], "one answer a turn: the failure gave way to it"
    again = await run(clerk.agent, "Refund A17.", store=store, key="ticket-981")
    assert again.output == done.output and clerk.paid == 1


async def test_a_turn_that_reached_a_limit_goes_on_with_more_and_not_without(tmp_path: Path) -> None:
    store, steps = tmp_path / "runs.db", [{"calls": [{"name": "note", "arguments": {"n": n}}]} for n in range(3)]

    @tool(effect="irreversible")
    def note(n: int) -> str:
        """Write it down."""
        return f"noted {n}"

    agent = Agent("scribe", scripted([*steps, "All noted."]), tools=[note])
    first = await run(agent, "Note three things.", store=store, key="notes", budget=Budget(tool_calls=1))
    assert (first.status, first.stop_reason) == ("incomplete", "tool_calls")
    with pytest.raises(RetryRefused, match="would end at once as before") as refusal:
        await retry(store, "notes", [agent])
    assert "--budget-tool-calls" in refusal.value.hint
    with pytest.raises(RetryRefused):
        await retry(store, "notes", [agent], budget=Budget(tool_calls=1))
    with pytest.raises(RetryRefused):
        await retry(store, "notes", [agent], budget=Budget(model_calls=100))
    done = await retry(store, "notes", [agent], budget=Budget(tool_calls=9))
    assert (done.status, done.output) == ("completed", "All noted.")
    async with open_store(store) as opened:
        assert (await opened.replay(done.turn_id)).identical


async def test_an_answer_that_did_not_fit_is_corrected_when_it_is_tried_again(tmp_path: Path) -> None:
    told: list[str] = []

    def reply(request: Any) -> str:
        told.append(request.history[-1].text)
        return "41" if len(told) > 4 else "no number"

    agent = Agent("counter", scripted(reply), output_type=int)
    first = await run(agent, "How many?", store=tmp_path / "runs.db", key="count")
    assert (first.status, first.stop_reason) == ("failed", "invalid_output")
    asked = len(told)
    while len(told) <= 4:
        done = await retry(tmp_path / "runs.db", "count", [agent])
    assert (done.status, done.output) == ("completed", 41)
    assert "How many?" not in told[asked], "it is told what was wrong, not asked from the beginning"


async def test_what_cannot_be_tried_again_says_so_with_what_to_send_in_its_place(clerk: Clerk, tmp_path: Path) -> None:
    store = tmp_path / "runs.db"
    first = await run(clerk.agent, "Refund A17.", store=store, thread="orders")
    clerk.broken = False
    later = await run(clerk.agent, "And now?", store=store, thread="orders")
    assert later.completed
    with pytest.raises(RetryRefused, match="has gone on since") as refusal:
        await retry(store, first.turn_id, [clerk.agent])
    sent = refusal.value.in_its_place
    assert sent.startswith("Refund A17.") and "refund(order='A17') -> refunded A17" in sent
    with pytest.raises(RetryRefused, match="was completed"):
        await retry(store, later.turn_id, [clerk.agent])


async def test_a_runtime_without_the_code_of_a_turn_leaves_it_as_it_was(clerk: Clerk, tmp_path: Path) -> None:
    async with Runtime(tmp_path / "home", agents=[clerk.agent]) as rt:
        failed = await rt.answer(await rt.send("clerk", "Refund A17."))
        assert failed.status == "failed"
    async with Runtime(tmp_path / "home") as rt:
        with pytest.raises(RetryRefused, match="the code of agent clerk is not here"):
            await rt.retry(failed.turn_id)
        turn = await rt._here.engine.store.turn(failed.turn_id)
        assert turn is not None and turn.state == "failed"


async def test_a_runtime_goes_on_with_a_failed_turn_and_its_message_is_answered(clerk: Clerk, tmp_path: Path) -> None:
    async with Runtime(tmp_path / "home", agents=[clerk.agent]) as rt:
        sent = await rt.send("clerk", "Refund A17.", key="ticket-981")
        first = await rt.answer(sent)
        assert (first.status, clerk.paid) == ("failed", 1)
        second = await rt.send("clerk", "Refund A18.", thread="other")
        failed = await rt.answer(second)
        assert failed.status == "failed"
        clerk.broken = False
        await rt.retry(failed.turn_id)
        done = await rt.answer(second)
        assert (done.status, done.turn_id) == ("completed", failed.turn_id)
        briefs = [brief for brief in await rt.briefs("clerk") if brief.turn_id == done.turn_id]
        assert [brief.kind for brief in briefs] == ["result"], "the brief of the failure gave way to the result"
