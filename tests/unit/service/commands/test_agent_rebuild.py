"""An agent from what its turn wrote down."""

from pathlib import Path
from typing import Any

import pytest

from wakeful import Agent, Budget, ask_person, run, tool
from wakeful.bootstrap.engines import new_engine, resolve_model
from wakeful.contracts.approvals import Always
from wakeful.contracts.content import Text
from wakeful.contracts.controls import CompactionPolicy
from wakeful.contracts.conversation import UserItem
from wakeful.contracts.envelope import Fact
from wakeful.contracts.errors import AgentMissing
from wakeful.contracts.events import MessageAdmitted, SessionStarted
from wakeful.contracts.policies import GatePolicy, Rule, ToolPolicy
from wakeful.engine.agent_options import OPTIONS
from wakeful.service.commands.agent_rebuild import ToolsNotSupplied, code_needed, rebuilt_agent
from wakeful.service.commands.approvals import decide
from wakeful.store.memory import MemoryStore
from wakeful.store.sqlite import SqliteStore
from wakeful.testing import scripted


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
    again = await rebuilt_agent(new_engine(store), row, [look_up])
    written = again.to_dict()
    assert again.policy is not None, "what the turn was held to is said, whatever the default is today"
    assert {name: value for name, value in written.items() if name != "policy"} == agent.to_dict()
    other = await rebuilt_agent(new_engine(store), row, [look_up], "scripted:other")
    assert (other.model, other.fallbacks) == ("scripted:other", ())


async def test_the_folder_the_profile_and_what_needs_a_person_come_back_with_the_agent(tmp_path: Path) -> None:
    store = MemoryStore()
    agent = Agent(
        "coder",
        "scripted:demo",
        tools=[look_up, ask_person],
        workspace=tmp_path,
        profile="shell_first",
        hitl_tools=["wakeful/exec_command"],
        injected_tool_args={"reason": "Why."},
        policy=GatePolicy(tools=ToolPolicy(context="library"), rules=(Rule(match="x", decision="deny"),)),
    )
    await run(agent, "hello", store=store)
    (row,) = await store.turns()
    again = await rebuilt_agent(new_engine(store), row, [look_up])
    assert (again.workspace, again.profile) == (tmp_path, "shell_first")
    assert again.injected_tool_args == {"reason": "Why."}
    assert again.policy is not None
    assert again.policy.hitl_tools == ("wakeful/exec_command",)
    assert [rule.match for rule in again.policy.rules] == ["x"]
    assert await code_needed(store, row, resolve_model) == [], "the policy left all of them out"
    elsewhere = await rebuilt_agent(new_engine(store), row, [look_up], workspace=tmp_path.parent, profile="coding")
    assert (elsewhere.workspace, elsewhere.profile) == (tmp_path.parent, "coding")


async def test_the_controls_come_back_with_the_agent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also on a machine that has nothing but the store: what a turn was begun with is what it goes on with."""
    settings = tmp_path / "wakeful.toml"
    settings.write_text('[collections.handbook]\nfolder = "."\n')
    monkeypatch.setenv("WAKEFUL_CONFIG", str(settings))
    store = MemoryStore()
    given = Agent(
        "clerk",
        "scripted:demo",
        emit_mcp_progress=False,
        injected_tool_args={"reason": "Why."},
        planning_model="scripted:planner",
        planning_instructions="Plan.",
        budget_awareness="per-message",
        max_parallel_subagents=5,
        collections=["handbook"],
        compaction=CompactionPolicy(keep_user_turns=2),
        approval_expiry=60,
    )
    await run(given, "hello", store=store, model=scripted(["hello"], name="demo", context_window=4_000))
    (row,) = await store.turns()
    again = await rebuilt_agent(new_engine(store), row, [])
    apart = {"policy", "spend_windows"}
    assert {name: getattr(again, name) for name in OPTIONS if name not in apart} == {
        name: getattr(given, name) for name in OPTIONS if name not in apart
    }


async def test_built_in_tools_and_questions_need_no_code_and_the_rest_does(tmp_path: Path) -> None:
    store = MemoryStore()
    await run(Agent("coder", "scripted:demo", tools=[look_up, ask_person], workspace=tmp_path), "hello", store=store)
    (row,) = await store.turns()
    assert await code_needed(store, row, resolve_model) == ["shop/look_up"]
    again = await rebuilt_agent(new_engine(store), row, [look_up])
    assert [tool.name for tool in again.tools] == ["wakeful/ask_person", "shop/look_up"]


@pytest.mark.parametrize("agent", [Agent("a", "scripted:demo", output_type=int), Agent("b", scripted(["3"]))])
async def test_a_type_or_a_model_of_the_program_needs_the_whole_agent(agent: Agent[None, Any]) -> None:
    store = MemoryStore()
    await run(agent, "hello", store=store, budget=Budget(model_calls=1))
    (row,) = await store.turns()
    assert await code_needed(store, row, resolve_model) == ["AGENT"]


async def test_a_standing_answer_is_not_made_part_of_the_agent(tmp_path: Path) -> None:
    store = await SqliteStore.open(tmp_path / "runs.db")
    pay = tool(lambda: "paid", effect="keyed", name="pay", approval=True)
    script = tmp_path / "script.yaml"
    script.write_text("- calls: [{name: pay, arguments: {}}]\n- Done.\n")
    agent = Agent("clerk", f"scripted:{script}", tools=[pay])
    waits = await run(agent, "pay", store=store, key="k")
    await decide(new_engine(store), waits.approvals[0].id, Always("tool"))
    await run(agent, "pay", store=store, key="k")
    row = await store.turn(waits.turn_id)
    assert row is not None
    (rule,) = await store.rules("clerk")
    again = await rebuilt_agent(new_engine(store), row, [pay])
    assert again.policy is not None
    assert again.policy.rules == (), f"{rule.rule_id} can still be revoked"
    await store.close()


async def test_a_tool_without_code_is_named() -> None:
    store = MemoryStore()
    await run(Agent("clerk", "scripted:demo", tools=[look_up]), "hello", store=store)
    (row,) = await store.turns()
    with pytest.raises(ToolsNotSupplied, match="uses shop/look_up, and the code was not supplied") as missing:
        await rebuilt_agent(new_engine(store), row, [])
    assert (missing.value.names, missing.value.exit_code) == (("shop/look_up",), 3)


async def test_a_turn_that_never_began_has_no_configuration_but_may_be_given_one() -> None:
    store = MemoryStore()
    message = MessageAdmitted(message_id="msg_1", item=UserItem(parts=(Text("hello"),)), fingerprint="x")
    facts = [Fact(SessionStarted(agent_name="clerk"), 1), Fact(message, 1, "main", "turn_1")]
    await store.admit("clerk", facts)
    (row,) = await store.turns()
    with pytest.raises(AgentMissing, match="was admitted and never began"):
        await rebuilt_agent(new_engine(store), row, [])
    given = await rebuilt_agent(new_engine(store), row, [look_up], "scripted:demo")
    assert (given.name, given.model, given.tools) == ("clerk", "scripted:demo", (look_up,))
