"""What `wakeful status` says of messages that queue behind a turn that waits for somebody."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from wakeful import Agent, Runtime, open_store, tool
from wakeful.surfaces.cli.status import command
from wakeful.testing import scripted


async def test_what_queues_behind_a_turn_that_waits_for_a_decision_is_listed_by_thread(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    @tool(effect="irreversible")
    def ship(order: str) -> str:
        """Send it."""
        return order

    def reply(request: Any) -> Any:
        return {"calls": [{"name": "ship", "arguments": {"order": "7"}}]}

    async with Runtime(tmp_path, agents=[Agent("ops", scripted(reply), tools=[ship], hitl_tools=["ship"])]) as rt:
        asked = await rt.answer(await rt.send("ops", "Ship it."))
        assert asked.status == "approval_required"
        behind = [await rt.send("ops", f"And number {number}.") for number in range(7)]
    async with open_store(tmp_path / "wakeful.db") as store:
        (status,) = await store.status("ops")
        (thread,) = status.waiting_threads
        assert (thread.thread, thread.turn_id, thread.queued) == ("main", asked.turn_id, 7)
        assert [each.message_id for each in thread.messages] == [each.message_id for each in behind[:5]]
        (listed,) = await store.status()
        assert (listed.queued_messages, listed.waiting_threads) == (7, ())
    await asyncio.to_thread(command, "ops", store=tmp_path / "wakeful.db")
    told = capsys.readouterr().out
    assert f"behind     {asked.turn_id}, thread main: 7 messages\n             operator_prompt msg_" in told
    assert "             and 2 more" in told
