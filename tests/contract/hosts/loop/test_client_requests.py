"""Requests to clients through the loop: their ids, their answers, and answers to something else."""

import hashlib
from typing import Any

import pytest

from kit.hosts.loop_host import CLIENTS, Host, calling
from wakeful.contracts.errors import InvalidValue
from wakeful.hosts import ConversationLoop, OwnRequestStore, RuntimeToolLifecycle, open_engine

PICK: dict[str, Any] = {
    "name": "client/pick",
    "description": "Let the person pick.",
    "parameters": {"type": "object", "properties": {"folder": {"type": "string"}}},
}
ASKED = {"name": "client/pick", "id": "c1", "parameters": {"folder": "/home"}}


@pytest.mark.spec("API-RTL-05", "API-RTL-06")
async def test_a_request_takes_an_answer_to_itself_alone_and_fills_it_in() -> None:
    host, lifecycle = Host(calling(ASKED), {"content": "done"}), RuntimeToolLifecycle(Host().hooks)
    async with open_engine(host.store) as engine:
        requests = OwnRequestStore(engine)
        options = {
            "tool_declarations": {"client/pick": PICK},
            "context": CLIENTS,
            "runtime_tool_request_store": requests,
            "run_id": "r1",
            "max_turns": 3,
        }
        loop = ConversationLoop(store=host.store, hooks=host.hooks)
        paused = await loop.run([{"role": "user", "content": "go"}], host.turn_runner, options)
        pending = paused.runtime_tool_pending
        assert pending is not None
        with pytest.raises(InvalidValue, match=r"^invalid_runtime_tool_result: tool_name: 'other' is not"):
            answer = {"request_id": pending["request_id"], "tool_name": "other", "result": 1}
            await lifecycle.submit_result(requests, answer)
        (still,) = await lifecycle.recent_pending_requests(requests)
        assert still.request_id == pending["request_id"], "the wrong answer ended nothing"
        ended = await lifecycle.submit_result(requests, {"request_id": pending["request_id"], "result": "a.txt"})
        told = ended["tool_result_message"]
        done = await loop.run([*paused.messages, told], host.turn_runner, {"max_turns": 2})
        assert done.completed
        (result,) = [message for message in done.messages if message.type == "tool_result"]
        assert (result.payload["tool_name"], result.payload["success"]) == ("client/pick", True)
        assert result.payload["result"] == {"value": "a.txt"}


@pytest.mark.spec("API-RTL-03")
async def test_the_id_of_a_request_follows_from_run_tool_and_call() -> None:
    host = Host()
    async with open_engine(host.store) as engine:
        requests, lifecycle = OwnRequestStore(engine), RuntimeToolLifecycle(host.hooks)
        asked = {"tool_name": "client/pick", "tool_call_id": "c1", "run_id": "r1"}
        made = await lifecycle.create_pending_request(requests, asked, {})
        assert made.request_id == "runtime-tool-" + hashlib.sha256(b"2:r1\x0011:client/pick\x002:c1").hexdigest()
        for missing in ("tool_name", "tool_call_id"):
            with pytest.raises(InvalidValue, match=rf"^invalid_runtime_tool_request: {missing}"):
                await lifecycle.create_pending_request(requests, {**asked, missing: ""}, {})
