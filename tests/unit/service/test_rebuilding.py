"""An agent from what its turn wrote down."""

import pytest

from wakeful import Agent, run, tool
from wakeful.bootstrap import runtime
from wakeful.contracts.content import Text
from wakeful.contracts.conversation import UserItem
from wakeful.contracts.envelope import Fact
from wakeful.contracts.errors import AgentMissing
from wakeful.contracts.events import MessageAdmitted, SessionStarted
from wakeful.service.rebuilding import ToolsNotSupplied, rebuilt_agent
from wakeful.store.memory import MemoryStore


@tool(effect="pure", name="shop/look_up")
def look_up(order: str) -> int:
    return 4200


async def test_model_instructions_settings_and_tools_are_those_of_the_turn() -> None:
    store = MemoryStore()
    agent = Agent(
        "clerk",
        "scripted:demo",
        "Be brief.",
        [look_up],
        settings={"temperature": 0.5},
        fallbacks=["scripted:demo"],
    )
    await run(agent, "hello", store=store)
    (row,) = await store.turns()
    again = await rebuilt_agent(runtime(store), row, [look_up])
    written = again.to_dict()
    assert again.policy is not None, "what the turn was held to is said, whatever the default is today"
    assert {name: value for name, value in written.items() if name != "policy"} == agent.to_dict()
    other = await rebuilt_agent(runtime(store), row, [look_up], "scripted:other")
    assert (other.model, other.fallbacks) == ("scripted:other", ())


async def test_a_tool_without_code_is_named() -> None:
    store = MemoryStore()
    await run(Agent("clerk", "scripted:demo", tools=[look_up]), "hello", store=store)
    (row,) = await store.turns()
    with pytest.raises(ToolsNotSupplied, match="uses shop/look_up, and the code was not supplied") as missing:
        await rebuilt_agent(runtime(store), row, [])
    assert (missing.value.names, missing.value.exit_code) == (("shop/look_up",), 3)


async def test_a_turn_that_never_began_has_no_configuration_but_may_be_given_one() -> None:
    store = MemoryStore()
    message = MessageAdmitted(message_id="msg_1", item=UserItem(parts=(Text("hello"),)), fingerprint="x")
    facts = [Fact(SessionStarted(agent_name="clerk"), 1), Fact(message, 1, "main", "turn_1")]
    await store.admit("clerk", facts)
    (row,) = await store.turns()
    with pytest.raises(AgentMissing, match="was admitted and never began"):
        await rebuilt_agent(runtime(store), row, [])
    given = await rebuilt_agent(runtime(store), row, [look_up], "scripted:demo")
    assert (given.name, given.model, given.tools) == ("clerk", "scripted:demo", (look_up,))
