"""What the client of a chat is sent: calls and words with their place in the tree, limits, the cost and one end."""

from typing import Any

import pytest

from kit.hosts.chat_server import Client, Server, played
from kit.runs.engine_runs import calls
from kit.runs.level_scripts import LevelModel, subtask
from wakeful import Agent, Budget, tool
from wakeful.store.memory import MemoryStore
from wakeful.views.wire_messages import WIRE_MESSAGE, BudgetExceeded, Chunk, ToolCallUpdate, TurnTerminal


@tool(effect="pure", permission_class="safe")
def look(what: str = "") -> str:
    """Looks."""
    if what == "nothing":
        raise ValueError("there is nothing")
    return f"saw {what}"


async def chatted(*said: Any, levels: dict[str, Any] | None = None, **options: Any) -> Client:
    agent = Agent("desk", "scripted:played", tools=[look], **options)
    server = Server(MemoryStore(), agent, played(*said))
    if levels is not None:
        server.model = LevelModel(levels)
    client = Client(server)
    await client.say("go")
    return client


def updates(client: Client) -> list[ToolCallUpdate]:
    return [each for each in client.sent if isinstance(each, ToolCallUpdate)]


@pytest.mark.spec("LOOP-WIRE-01", "LOOP-WIRE-02")
async def test_a_call_is_sent_when_its_arguments_are_known_and_again_with_its_result() -> None:
    client = await chatted(calls(("look", {"what": "gold"})), calls(("look", {"what": "nothing"})), "done")
    start, end, began, failed = updates(client)
    assert (start.status, start.name, start.args, start.parent_id, start.depth) == (
        *("start", "look", {"what": "gold"}),
        *(None, 0),
    )
    assert (end.status, end.tool_call_id, end.result, end.is_error) == ("end", start.tool_call_id, "saw gold", False)
    assert (began.status, failed.status, failed.is_error) == ("start", "end", True)
    fields = {"type", "tool_call_id", "name", "args", "result", "is_error", "parent_id", "depth", "status"}
    assert fields <= set(start.model_dump(mode="json"))


@pytest.mark.spec("LOOP-WIRE-03", "LOOP-WIRE-04", "LOOP-WIRE-05")
async def test_what_happens_in_a_child_says_where_and_can_be_shown_flat() -> None:
    levels = {
        "go": [{**calls(subtask("dig")), "text": "Splitting it."}, "All done."],
        "dig": [{**calls(("look", {"what": "gold"})), "text": "I dig."}, "Gold."],
    }
    client = await chatted(levels=levels, subtasks=True)
    (parent,) = {each.tool_call_id for each in updates(client) if each.depth == 0}
    assert {(each.name, each.parent_id, each.depth) for each in updates(client)} == {
        ("run_subtask", None, 0),
        ("look", parent, 1),
    }
    words: dict[tuple[str | None, int | None], str] = {}
    for each in client.sent:
        if isinstance(each, Chunk):
            words[each.parent_id, each.depth] = words.get((each.parent_id, each.depth), "") + each.content
    assert words == {(None, 0): "Splitting it.All done.", (parent, 1): "I dig.Gold."}
    for message in client.sent:
        data = message.model_dump(mode="json")
        flat = {name: value for name, value in data.items() if name not in ("parent_id", "depth")}
        read = WIRE_MESSAGE.validate_python(flat)
        assert read.type == message.type
        if isinstance(read, Chunk | ToolCallUpdate):
            assert (read.parent_id, read.depth) == (None, 0)
            assert "depth" in data


@pytest.mark.spec("LOOP-WIRE-06", "LOOP-WIRE-08")
async def test_a_limit_that_was_reached_is_sent_and_the_cost_and_one_end_come_last() -> None:
    client = await chatted(
        calls(("look", {}), ("look", {"what": "2"})), "never", budget=Budget(tool_calls=1, profile="interactive")
    )
    (reached,) = [each for each in client.sent if isinstance(each, BudgetExceeded)]
    assert (reached.reason, reached.limit, reached.observed) == ("tool_calls", 1, 2)
    *_, cost, end = client.sent
    assert (cost.type, [each.type for each in client.sent].count("turn_terminal")) == ("cost_summary", 1)
    assert isinstance(end, TurnTerminal)
    assert (end.status, end.stop_reason) == ("incomplete", "tool_calls")


@pytest.mark.spec("LOOP-WIRE-07")
async def test_a_direct_answer_is_one_text_and_nothing_nested() -> None:
    client = await chatted("42.")
    assert client.types() == ["chunk", "cost_summary", "turn_terminal"]
    assert "".join(each.content for each in client.sent if isinstance(each, Chunk)) == "42."
