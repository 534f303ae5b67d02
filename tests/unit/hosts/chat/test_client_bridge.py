"""A client's own tools in a chat: frames out, answers in, and nothing but an answer in time counts."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from kit.hosts.chat_server import EDITOR, Client, Server, place, played
from kit.runs.engine_runs import calls, of_kind
from wakeful import Agent
from wakeful.contracts.errors import InvalidValue, NotEntitled
from wakeful.contracts.events import RuntimeToolRequested, RuntimeToolResolved, ToolFailed, ToolResult
from wakeful.hosts.chat.client_manifest import TIMEOUT_SECONDS
from wakeful.service.commands import client_requests
from wakeful.service.commands.interruption import cancel_turn
from wakeful.store.sqlite import SqliteStore
from wakeful.views.chat_messages import ClientToolCall
from wakeful.views.cost import CostSummary
from wakeful.views.wire_messages import ToolCallUpdate, TurnTerminal

SCHEMA = {"type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x"]}
ADD = {"name": "ui_add_node", "description": "Adds a node.", "parameters": SCHEMA}
CONNECT = {"name": "ui_connect_nodes", "description": "Connects two.", "parameters": {}}
PASTE = {"name": "ui_paste", "description": "Pastes.", "parameters": {}}
ADDING = played(calls(("client/ui_add_node", {"x": 1})), "It is there.")


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteStore]:
    opened = await SqliteStore.open(place(tmp_path))
    yield opened
    await opened.close()


async def serving(store: SqliteStore, reply: Any = ADDING, **options: Any) -> Server:
    return await Server(store, Agent("helper", "scripted:demo", tools=[], **options), reply).with_registry()


async def asked(client: Client, thread: str = "t1") -> "asyncio.Task[Any]":
    """A turn in an editor that waits for its client."""
    turn = asyncio.create_task(client.say("Add it.", thread_id=thread, chat_context=EDITOR))
    called = asyncio.create_task(client.called.wait())
    await asyncio.wait({turn, called}, return_when=asyncio.FIRST_COMPLETED)
    assert client.frames, turn.result()
    return turn


@pytest.mark.spec("LOOP-BRIDGE-01")
async def test_each_entry_of_the_manifest_is_a_proxy_that_is_run_by_the_client(store: SqliteStore) -> None:
    steps = [calls(("client/ui_add_node", {"x": 1}), "client/ui_connect_nodes", "client/ui_paste"), "It is there."]
    server = await serving(store, played(*steps))
    client = Client(server, ADD, CONNECT, PASTE, run=lambda frame: {"ok": True, "result": {"did": frame.name}})
    done = await client.say("Add it.", chat_context=EDITOR)
    proxies = {declared.name: declared for declared in server.asked[0].tools if declared.name.startswith("client/")}
    assert set(proxies) == {"client/ui_add_node", "client/ui_connect_nodes", "client/ui_paste"}
    assert {declared.permission for declared in proxies.values()} == {"editor_mutate"}
    assert proxies["client/ui_add_node"].input_schema == SCHEMA
    assert done.output == "It is there."
    assert [frame.name for frame in client.frames] == ["ui_add_node", "ui_connect_nodes", "ui_paste"]
    assert [json.loads(event.item.text)["did"] for event in of_kind(done, ToolResult)] == [
        frame.name for frame in client.frames
    ]
    # Without a registry, or outside of an editor, there is none of it.
    server.registry = None
    for context in (EDITOR, {"kind": "thread"}):
        other = Client(server, ADD, run=lambda frame: {"ok": True})
        refused = await other.say("Add it.", thread_id="t2", chat_context=context)
        assert {event.tool_error.kind for event in of_kind(refused, ToolFailed)} == {"tool_not_found"}
        assert other.frames == []


@pytest.mark.spec("LOOP-BRIDGE-04")
async def test_a_call_goes_to_the_one_client_that_declared_the_tool_and_waits_for_its_result(
    store: SqliteStore,
) -> None:
    server = await serving(store)
    bystander = Client(server, ADD)
    client = Client(server, ADD)
    turn = await asked(client)
    (frame,) = client.frames
    assert TIMEOUT_SECONDS == 30
    assert 0 < frame.timeout_ms <= 30_000
    (row,) = await store.turns(open_only=True)
    (request,) = await client_requests.pending_requests(server.engine)
    assert frame == ClientToolCall(
        thread_id="t1",
        turn_id=row.turn_id,
        event_seq=row.last_seq - 1,
        request_id=request.request_id,
        tool_call_id=request.tool_call_id or "",
        name="ui_add_node",
        args={"x": 1},
        timeout_ms=frame.timeout_ms,
        parent_id=None,
        depth=0,
    )
    assert frame.model_dump(mode="json")["type"] == "client_tool_call"
    assert not turn.done(), "it waits"
    answer = {"type": "client_tool_result", "request_id": frame.request_id, "ok": True, "result": {"node": "n1"}}
    assert await client.bridge.take(answer)
    done = await turn
    assert [event.item.text for event in of_kind(done, ToolResult)] == ['{"node":"n1"}']
    assert bystander.frames == []
    ends = [one for one in client.sent if isinstance(one, ToolCallUpdate) and one.status == "end"]
    assert [(one.tool_call_id, one.is_error) for one in ends] == [(frame.tool_call_id, False)]
    # One that the client could not run is an error result, with the client's words.
    failing = Client(server, ADD, run=lambda frame: {"ok": False, "error": "there is no canvas"})
    told = await failing.say("Add it.", thread_id="t2", chat_context=EDITOR)
    (failed,) = of_kind(told, ToolFailed)
    assert "there is no canvas" in failed.message and told.output == "It is there."


async def test_a_call_of_a_child_says_whose_it_is(store: SqliteStore) -> None:
    def reply(request: Any) -> object:
        words = "".join(item.text for item in request.history if item.role == "user")
        child = "Add it for me" in words
        first = not any(item.role == "assistant" for item in request.history)
        if child:
            return calls(("client/ui_add_node", {"x": 1})) if first else "added"
        task = {"title": "Add", "instructions": "Add it for me"}
        return calls(("run_subtask", {**task, "tools": ["client/ui_add_node"]})) if first else "Done."

    server = await serving(store, reply, subtasks=True)
    client = Client(server, ADD, run=lambda frame: {"ok": True, "result": "n1"})
    done = await client.say("Add it.", chat_context=EDITOR)
    assert done.output == "Done."
    (frame,) = client.frames
    made = next(one.tool_call_id for one in client.sent if isinstance(one, ToolCallUpdate))
    assert (frame.parent_id, frame.depth) == (made, 1)


@pytest.mark.spec("LOOP-BRIDGE-05")
async def test_only_an_answer_of_the_client_that_was_asked_counts_and_only_once(store: SqliteStore) -> None:
    server = await serving(store)
    client, stranger = Client(server, ADD), Client(server, ADD)
    turn = await asked(client)
    answer = {"request_id": client.frames[0].request_id, "ok": True, "result": "mine"}
    assert not await stranger.bridge.take({**answer, "result": "forged"}), "another connection"
    assert not await client.bridge.take({**answer, "request_id": "runtime-tool-none"}), "a request nobody made"
    with pytest.raises(InvalidValue, match="invalid_client_tool_result: ok"):
        await client.bridge.take({"request_id": answer["request_id"]})
    assert not turn.done()
    assert await client.bridge.take(answer)
    assert not await client.bridge.take({**answer, "result": "second"}), "a second answer"
    done = await turn
    assert [event.item.text for event in of_kind(done, ToolResult)] == ['{"value":"mine"}']
    assert len(of_kind(done, RuntimeToolResolved)) == 1
    # Nobody answers in time: the call fails, the turn goes on, and a late answer changes nothing.
    silent = Client(server, ADD)
    waiting = await asked(silent, "t2")
    request_id = silent.frames[0].request_id
    await client_requests.end_unanswered(server.engine, request_id)
    late = await waiting
    (failed,) = of_kind(late, ToolFailed)
    assert (failed.tool_error.kind, failed.status, late.output) == ("client_timeout", "timed_out", "It is there.")
    assert not await silent.bridge.take({"request_id": request_id, "ok": True, "result": "late"})
    assert of_kind(late, ToolResult) == []
    # A client that goes away has not succeeded either: its request stays open until its time is over.
    leaving = Client(server, ADD)
    unfinished = await asked(leaving, "t3")
    leaving.bridge.close()
    resting = await unfinished
    assert (resting.status, of_kind(resting, ToolResult)) == ("runtime_tool_pending", [])


async def test_a_request_whose_time_is_over_ends_by_itself(store: SqliteStore) -> None:
    server = await serving(store)
    client = Client(server, ADD)
    client.bridge.timeout = 0.2
    done = await client.say("Add it.", chat_context=EDITOR)
    (failed,) = of_kind(done, ToolFailed)
    assert (failed.tool_error.kind, done.output) == ("client_timeout", "It is there.")
    assert client.frames[0].timeout_ms <= 200


@pytest.mark.parametrize("broken", [False, True])
async def test_a_client_that_is_gone_leaves_its_request_and_the_turn_rests(store: SqliteStore, broken: bool) -> None:
    server = await serving(store)
    client = Client(server, ADD)
    if broken:

        def gone(frame: ClientToolCall) -> None:
            raise ConnectionResetError("gone")

        client.bridge = type(client.bridge)(server.engine, gone, (ADD,))
        resting = await client.say("Add it.", chat_context=EDITOR)
    else:
        turn = await asked(client)
        client.bridge.close()
        resting = await turn
    assert resting.status == "runtime_tool_pending"
    (request,) = resting.runtime_tools
    assert [event.request_id for event in of_kind(resting, RuntimeToolRequested)] == [request.request_id]
    assert not [one for one in client.sent if isinstance(one, TurnTerminal)]


async def test_a_turn_that_is_cancelled_waits_for_its_client_no_longer(store: SqliteStore) -> None:
    server = await serving(store)
    client = Client(server, ADD)
    turn = await asked(client)
    (row,) = await store.turns(open_only=True)
    await cancel_turn(server.engine, row.turn_id)
    done = await turn
    assert done.status == "cancelled"
    assert not await client.bridge.take({"request_id": client.frames[0].request_id, "ok": True, "result": "late"})
    last = client.sent[-1]
    assert isinstance(last, TurnTerminal) and last.status == "cancelled"


async def test_a_client_that_comes_back_is_told_what_it_missed_and_asked_what_is_still_open(store: SqliteStore) -> None:
    server = await serving(store)
    client = Client(server, ADD)
    turn = await asked(client)
    client.bridge.close()
    resting = await turn
    last = max(one.event_seq or 0 for one in client.sent if not isinstance(one, CostSummary))
    back = Client(server, ADD, run=lambda frame: {"ok": True, "result": {"node": "n1"}})
    with pytest.raises(NotEntitled):
        await back.come_back(resting.turn_id, by="bob")
    done = await back.come_back(resting.turn_id, after_seq=last)
    assert (done.turn_id, done.output) == (resting.turn_id, "It is there.")
    assert [frame.request_id for frame in back.frames] == [client.frames[0].request_id], "the same request"
    assert back.types() == ["tool_call_update", "chunk", "cost_summary", "turn_terminal"]
    assert len(of_kind(done, ToolResult)) == 1
    # Whoever comes back to a turn that is over gets its end, and nothing runs.
    asked_before = len(server.asked)
    late = Client(server, ADD)
    again = await late.come_back(resting.turn_id, after_seq=last)
    assert again.output == "It is there."
    assert [one.type for one in late.sent] == ["tool_call_update", "chunk", "cost_summary", "turn_terminal"]
    assert (len(server.asked), late.frames) == (asked_before, [])
