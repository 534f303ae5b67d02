"""The entrance of chat messages: whose thread it is, which tools there are, and what is sent."""

import asyncio
import inspect
from pathlib import Path
from typing import Any

import pytest

from wakeful import Agent, RunResult, tool
from wakeful.bootstrap.engines import new_engine
from wakeful.contracts.errors import InvalidConfig, InvalidRequest, InvalidValue, NotEntitled
from wakeful.contracts.events import MessageAdmitted, ModelRequested, TurnStarted
from wakeful.engine.state_loader import load_config
from wakeful.engine.workflow_parts import workflow_registry
from wakeful.hosts.chat import ToChat, route, run_chat_agent
from wakeful.service.queries.history import messages
from wakeful.service.queries.views import wire_messages
from wakeful.store.memory import MemoryStore
from wakeful.views.cost import CostSummary
from wakeful.views.wire_messages import Chunk, ToolCallUpdate, WireMessage

EDITOR = {"kind": "editor", "workflow_id": "wf_1"}


@tool(effect="pure", permission_class="safe")
def search(words: str) -> str:
    return f"found {words}"


class Chat:
    """A server with one agent, and a client that keeps what it is sent."""

    def __init__(self, folder: Path, script: str) -> None:
        self.store = MemoryStore()
        self.script = folder / "script.yaml"
        self.script.write_text(script)
        self.agent = Agent("helper", "scripted:demo", tools=[search])
        self.sent: list[WireMessage] = []

    async def say(self, content: str, **given: Any) -> RunResult[Any]:
        options: dict[str, Any] = {
            "thread_id": "t1",
            "user_id": "ann",
            "provider": "scripted",
            "model": str(self.script),
            "chat_context": None,
            "registry": None,
            "collections": [],
            "memory_enabled": False,
            "request_seq": 1,
            "send_message": self.sent.append,
            **given,
        }
        return await run_chat_agent(new_engine(self.store), self.agent, content=content, **options)


CALLS = "- calls: [{name: search, arguments: {words: cats}}]\n- There are cats.\n"


async def test_a_message_is_answered_and_what_happens_is_sent_as_it_happens(tmp_path: Path) -> None:
    chat = Chat(tmp_path, CALLS)
    done = await chat.say("Cats?")
    assert done.output == "There are cats."
    assert [one.type for one in chat.sent] == [
        *("tool_call_update", "tool_call_update"),
        *("chunk" for one in chat.sent if isinstance(one, Chunk)),
        *("cost_summary", "turn_terminal"),
    ]
    words = "".join(one.content for one in chat.sent if isinstance(one, Chunk))
    assert words == "There are cats."
    replayed = (await wire_messages(chat.store, done.turn_id)).messages
    stored = [one for one in chat.sent if not isinstance(one, Chunk | CostSummary)]
    assert stored == [one for one in replayed if not isinstance(one, Chunk | CostSummary)], "live and replayed agree"
    last = (await messages(chat.store, "t1", "helper", 100, None, keys=frozenset()))[-1]
    assert last.execution_tree == done.execution_tree


async def test_a_thread_remembers_what_was_said(tmp_path: Path) -> None:
    chat = Chat(tmp_path, "- Hello.\n")
    await chat.say("One")
    second = await chat.say("Two", request_seq=2)
    (asked,) = (one.fact.event for one in second.facts() if isinstance(one.fact.event, ModelRequested))
    assert asked.items == 3, "the first question, its answer, and this one"


@pytest.mark.spec("LOOP-RUN-05")
async def test_who_speaks_is_who_was_authenticated_and_a_thread_is_its_first_speakers(tmp_path: Path) -> None:
    chat = Chat(tmp_path, "- Hello.\n")
    done = await chat.say("mine")
    first = done.facts()[0].fact.event
    assert isinstance(first, MessageAdmitted)
    assert first.principal == "ann"
    # A user id inside the message says nothing.
    routed = route({"content": "hi", "user_id": "ann"})
    assert isinstance(routed, ToChat)
    assert routed.ignored == ("user_id",)
    assert "message" not in inspect.signature(run_chat_agent).parameters, "the message itself does not come this far"
    before = await chat.store.read("helper")
    with pytest.raises(NotEntitled, match="'t1' of agent 'helper' does not belong to 'bob'"):
        await chat.say("mine now", user_id="bob")
    assert await chat.store.read("helper") == before, "nothing was stored"
    assert (await chat.say("another", user_id="bob", thread_id="t2")).completed
    assert (await chat.say("still mine")).completed


async def offered(chat: Chat, **given: Any) -> set[str]:
    """What the model is shown when somebody says something."""
    done = await chat.say("hi", **given)
    (started,) = (one.fact.event for one in done.facts() if isinstance(one.fact.event, TurnStarted))
    return {tool.name for tool in (await load_config(chat.store, started.config_ref.digest)).tools}


@pytest.mark.spec("LOOP-RUN-03")
async def test_the_context_and_the_registry_are_not_guessed_from_each_other(tmp_path: Path) -> None:
    chat = Chat(tmp_path, "- Hello.\n")
    registry = await workflow_registry(new_engine(chat.store), chat.agent)
    assert await offered(chat) == {"search"}
    assert await offered(chat, registry=registry) == {"search"}, "a server that could is not a user who wants to"
    assert await offered(chat, chat_context=EDITOR) == {"search"}, "and the other way round"
    assert await offered(chat, chat_context=EDITOR, registry=registry) == {"search", "build_workflow"}


@pytest.mark.parametrize("context", [{"kind": "sidebar"}, {"kind": "editor"}])
async def test_a_context_that_cannot_be_read_stores_nothing(tmp_path: Path, context: dict[str, Any]) -> None:
    chat = Chat(tmp_path, "- Hello.\n")
    with pytest.raises(InvalidValue, match="invalid_chat_context"):
        await chat.say("hi", chat_context=context)
    assert await chat.store.turns() == []
    assert chat.sent == []


async def test_what_is_not_there_yet_is_refused_and_not_ignored(tmp_path: Path) -> None:
    chat = Chat(tmp_path, "- Hello.\n")
    with pytest.raises(InvalidRequest, match="keeps no memory"):
        await chat.say("hi", memory_enabled=True)
    with pytest.raises(InvalidConfig, match="docs"):
        await chat.say("hi", collections=["docs"])
    assert await chat.store.turns() == []


async def test_turns_of_a_thread_run_one_after_the_other(tmp_path: Path) -> None:
    chat = Chat(tmp_path, CALLS)
    await asyncio.gather(*(chat.say(f"message {number}", request_seq=number) for number in range(4)))
    order = [one.fact.turn_id for one in await chat.store.read("helper") if one.fact.event.kind != "message.admitted"]
    turns = list(dict.fromkeys(turn for turn in order if turn is not None))
    assert len(turns) == 4
    assert [turn for turn in order if turn is not None] == sorted(filter(None, order), key=turns.index)


async def test_a_message_that_supersedes_has_the_turn_before_it_stopped(tmp_path: Path) -> None:
    chat = Chat(tmp_path, "- calls: [{name: wait, arguments: {}}]\n- Done.\n")
    begun = asyncio.Event()

    @tool(effect="pure", permission_class="safe")
    async def wait() -> str:
        if not begun.is_set():
            begun.set()
            await asyncio.Event().wait()
        return "there"

    chat.agent = Agent("helper", "scripted:demo", tools=[wait])
    first = asyncio.create_task(chat.say("slow"))
    await begun.wait()
    second = await chat.say("never mind", request_seq=2, supersede=True)
    stopped = await first
    assert (stopped.status, stopped.stop_reason, second.status) == ("cancelled", "superseded", "completed")
    ended, started = stopped.facts()[-1].seq, second.facts()[1].seq
    assert ended < started, "it ended before the newer one began"


async def test_a_client_that_is_gone_is_not_tried_again_and_the_turn_goes_on(tmp_path: Path) -> None:
    chat = Chat(tmp_path, CALLS)
    tried: list[WireMessage] = []
    last: list[int | None] = []

    async def send(message: WireMessage) -> None:
        tried.append(message)
        if isinstance(message, ToolCallUpdate) and message.status == "end":
            last.append(message.event_seq)
            raise ConnectionResetError("gone")

    done = await chat.say("Cats?", send_message=send)
    assert done.completed
    assert [one.type for one in tried] == ["tool_call_update", "tool_call_update"]
    missed = await wire_messages(chat.store, done.turn_id, last[0] or 0)
    assert [one.type for one in missed.messages] == ["chunk", "cost_summary", "turn_terminal"]
