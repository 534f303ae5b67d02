"""`agents/chat`: a handler of the host's, or an agent of this runtime."""

from typing import Any

import pytest

from kit.hosts.task_host import OTHER, TaskHost
from kit.runs.engine_runs import calls
from wakeful import Agent, tool
from wakeful.contracts.errors import InvalidValue
from wakeful.hosts import RunRefused
from wakeful.providers.scripted import ScriptedModel
from wakeful.store.memory import MemoryStore


@tool(effect="pure")
def look() -> str:
    return "seen"


def talker(*steps: Any, **more: Any) -> Agent[None, str]:
    return Agent("talker", ScriptedModel(list(steps)), tools=[look], **more)


@pytest.mark.spec("API-TDS-17")
async def test_chat_has_its_handler_from_a_hook_or_runs_an_agent_for_twelve_turns() -> None:
    endless = [calls(("look", {})) for _ in range(30)]
    host = TaskHost(MemoryStore(), agents=[talker(*endless)])
    answer = await host.call("chat", {"agent": "talker", "message": "hello"})
    assert (answer["completed"], answer["turn_count"]) == (False, 12)
    more = await host.call("chat", {"agent": "talker", "message": "hello", "max_turns": 3})
    assert more["turn_count"] == 3
    with pytest.raises(RunRefused) as missing:
        await host.call("chat", {"agent": "nobody", "message": "hello"})
    assert missing.value.code == "chat_no_handler"

    host.hooks.register("chat_handler", lambda found, given: _echo if given.agent == "nobody" else None)
    host.hooks.register("chat_handler", lambda found, given: found and (lambda _: {"reply": "second"}), priority=20)
    heard = await host.call("chat", {"agent": "nobody", "message": "hello", "session_id": "s1"})
    assert heard == {"reply": "you said hello", "session_id": "s1", "agent": "nobody"}


async def _echo(given: Any) -> dict[str, Any]:
    return {"reply": f"you said {given.message}"}


async def test_a_session_goes_on_and_is_its_owners() -> None:
    host = TaskHost(MemoryStore(), agents=[talker("one", "two")])
    first = await host.call("chat", {"agent": "talker", "message": "hello"})
    assert first["reply"] == "one" and first["session_id"].startswith("chat_session_")
    again = {"agent": "talker", "message": "more", "session_id": first["session_id"]}
    with pytest.raises(RunRefused, match="does not belong"):
        await host.call("chat", again, OTHER)
    await host.call("chat", again)
    assert len(await host.store.turns_of_thread("talker", first["session_id"])) == 2


async def test_an_agents_own_limit_goes_before_the_default() -> None:
    host = TaskHost(MemoryStore(), agents=[talker(*[calls("look")] * 9, max_steps=2)])
    assert (await host.call("chat", {"agent": "talker", "message": "go"}))["turn_count"] == 2


@pytest.mark.parametrize("given", ["hello", {"agent": "talker"}, {"message": "hello"}, {"agent": "a", "message": ""}])
async def test_what_is_no_message_is_refused(given: Any) -> None:
    with pytest.raises(InvalidValue, match="chat_invalid_input"):
        await TaskHost(MemoryStore(), agents=[talker("x")]).call("chat", given)


async def test_a_handler_that_fails_or_answers_nonsense_is_told() -> None:
    host = TaskHost(MemoryStore())
    host.hooks.register(
        "chat_handler", lambda found, given: lambda _: "hello" if given.message == "x" else ValueError("no")
    )
    with pytest.raises(RunRefused, match="chat_invalid_result"):
        await host.call("chat", {"agent": "a", "message": "x"})
    with pytest.raises(RunRefused, match="chat_handler_failed: no"):
        await host.call("chat", {"agent": "a", "message": "y"})
