"""The outcome of every way a run can end, and results that are read back."""

from typing import Any

import pytest

from kit.hosts.loop_host import CLIENTS, SEARCH, Host, calling, search
from wakeful.contracts.errors import InvalidValue
from wakeful.hosts import ConversationLoop, ConversationResult, OwnRequestStore, open_engine

DONE = {"content": "done"}
CLIENT = {
    "name": "client/confirm",
    "description": "Asks the person.",
    "parameters": {"type": "object", "properties": {}},
}


async def ended() -> dict[str, ConversationResult]:
    """A run for each way to end."""
    again = [calling(search("x")) for _ in range(4)]
    asks = {"ability/search": {**SEARCH, "action_policy": "preview"}}
    async with open_engine(Host().store) as engine:
        clients = Host(calling({"name": "client/confirm", "parameters": {}}), DONE)
        options = {
            "tool_declarations": {"client/confirm": CLIENT},
            "context": CLIENTS,
            "runtime_tool_request_store": OwnRequestStore(engine),
            "max_turns": 2,
        }
        waits = await ConversationLoop(store=engine.store).run(
            [{"role": "user", "content": "go"}], clients.turn_runner, options
        )
    return {
        "completed": await Host(DONE).mediated(),
        "failed": await Host(RuntimeError("no")).mediated(),
        "unfit": await Host({"failure": {"type": "refused", "message": "no", "retryable": False}}).mediated(),
        "budget_exceeded": await Host(*again).mediated(max_turns=2),
        "stalled": await Host(*again).mediated(spin_detector={"threshold": 2}),
        "interrupted": await Host(*again).mediated(
            interrupt_source=lambda *_: {"content": "stop", "metadata": {"action": "cancel"}}
        ),
        "approval_required": await Host(*again).mediated(tool_declarations=asks),
        "runtime_tool_pending": waits,
    }


@pytest.mark.spec("API-OUT-01", "API-OUT-02", "API-OUT-03", "API-OUT-04")
async def test_every_end_has_its_own_name_its_reason_and_whether_to_try_again() -> None:
    results = await ended()
    outcomes = {name: result.run_outcome for name, result in results.items()}
    assert {name: (each.status, each.stop_reason, each.retryable) for name, each in outcomes.items()} == {
        "completed": ("completed", "natural", False),
        "failed": ("failed", "provider_error", True),
        "unfit": ("failed", "provider_error", False),
        "budget_exceeded": ("budget_exceeded", "max_turns", True),
        "stalled": ("stalled", "stalled", outcomes["stalled"].retryable),
        "interrupted": ("interrupted", "interrupted", False),
        "approval_required": ("approval_required", "approval_required", False),
        "runtime_tool_pending": ("runtime_tool_pending", "runtime_tool_pending", False),
    }
    for name, result in results.items():
        wire = result.to_wire()["run_outcome"]
        assert (wire["schema"], wire["version"]) == ("wakeful.run-outcome", 1)
        assert wire["completed"] is (name == "completed") is result.completed
        assert ("failure" in wire) is (outcomes[name].status == "failed")


@pytest.mark.spec("API-OUT-05")
async def test_a_result_that_is_read_back_keeps_its_status_and_an_unknown_one_is_refused() -> None:
    for result in (await ended()).values():
        wire = result.to_wire()
        assert ConversationResult.normalise(wire).run_outcome == result.run_outcome
        assert wire["run_outcome"]["status"] != "running"
        for unknown in ("running", "suspended", "done"):
            changed: dict[str, Any] = {**wire, "run_outcome": {**wire["run_outcome"], "status": unknown}}
            with pytest.raises(InvalidValue, match="status"):
                ConversationResult.normalise(changed)
