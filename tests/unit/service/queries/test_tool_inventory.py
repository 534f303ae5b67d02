"""The tools of a turn, on record and on request."""

import json
from typing import Any

import pytest
from pydantic import SecretStr

from kit.runs.asked_runs import World, agent, check_replay, say
from kit.runs.engine_runs import calls, facts_of, of_kind
from wakeful import Agent, Approval, run, tool
from wakeful.bootstrap.engines import new_engine
from wakeful.contracts.approvals import Always, Approve
from wakeful.contracts.errors import AgentMissing
from wakeful.contracts.events import ModelRequested, ToolCatalogResolved, ToolFailed
from wakeful.contracts.policies import GatePolicy, Rule, ToolPolicy
from wakeful.contracts.tool_catalog import OFFERED, ToolCatalog
from wakeful.contracts.tools import ToolDeclaration
from wakeful.ports import ModelRequest, Store
from wakeful.providers.scripted import ScriptedModel
from wakeful.service.queries.tool_inventory import ToolInventory, tool_inventory
from wakeful.store.memory import MemoryStore
from wakeful.tools.client import ClientTool
from wakeful.tools.source import Offer, ToolSource, WithheldTool

LIBRARY = ToolPolicy(context="library", classes=frozenset({"safe", "external_write"}))
POLICY = GatePolicy(
    tools=LIBRARY,
    rules=(
        Rule(match="burn", decision="deny", reason="nothing is burnt"),
        Rule(match="sell", decision="ask", reason="sales are seen"),
    ),
)


class Shelf(ToolSource):
    """A source that has one tool less than it should."""

    name = "shelf"

    def __init__(self, *tools: Any) -> None:
        self.tools = tools

    async def offer(self) -> Offer:
        return Offer(self.tools, (WithheldTool("shelf/broken", "its server is down"),))


def noted(name: str) -> Any:
    return tool(lambda: name, effect="irreversible", name=name, description=f"To {name}.")


def shop(*steps: Any, seen: list[ModelRequest] | None = None, source: ToolSource | None = None) -> Agent[None, str]:
    """An agent with one tool of every kind."""

    def reply(request: ModelRequest) -> Any:
        if seen is not None:
            seen.append(request)
        return [*steps, "done"][min(request.answered, len(steps))]

    tools = [noted("look"), noted("burn"), noted("sell"), source or Shelf()]
    return Agent("shop", ScriptedModel(reply), tools=tools, policy=POLICY)


async def on_record(store: Store, turn_id: str) -> list[ToolCatalog]:
    facts = await facts_of(store, turn_id)
    events = [entry.fact.event for entry in facts if isinstance(entry.fact.event, ToolCatalogResolved)]
    return [ToolCatalog.model_validate_json(await store.get_blob(event.catalog_ref.digest)) for event in events]


@pytest.mark.spec("STD-CAT-01")
async def test_a_turns_tools_are_published_once_and_the_inventory_gives_the_same_entries() -> None:
    store = MemoryStore()
    result = await run(shop(calls("look"), calls("look")), "go", store=store)
    row = await store.turn(result.turn_id)
    (recorded,) = await on_record(store, result.turn_id)
    told = await tool_inventory(new_engine(store), turn=row)
    assert told.catalog.entries == recorded.entries
    assert {entry.tool_name: entry.policy for entry in recorded.entries} == {
        "look": "allowed",
        "burn": "denied",
        "sell": "ask",
        "shelf/broken": "unavailable",
    }
    reasons = {entry.tool_name: entry.policy_reason for entry in recorded.entries}
    assert (reasons["burn"], reasons["shelf/broken"]) == ("nothing is burnt", "its server is down")


@pytest.mark.spec("LOOP-BELT-05")
async def test_a_source_that_has_more_in_the_middle_of_a_turn_adds_nothing_to_it() -> None:
    source = Shelf()
    late = noted("late")

    @tool(effect="pure")
    def grow() -> str:
        source.tools = (late,)
        return "there is more"

    seen: list[ModelRequest] = []

    def reply(request: ModelRequest) -> Any:
        seen.append(request)
        return [calls("grow"), calls("late"), "done"][request.answered]

    store = MemoryStore()
    result = await run(Agent("shop", ScriptedModel(reply), tools=[grow, source]), "go", store=store)
    assert [[each.name for each in request.tools] for request in seen] == [["grow"]] * 3
    assert [failed.tool_error.kind for failed in of_kind(result, ToolFailed)] == ["tool_not_found"]
    assert len(await on_record(store, result.turn_id)) == 1, "it was fixed when the turn began"


@pytest.mark.spec("STD-CAT-11")
async def test_the_catalogue_comes_before_the_first_request_and_again_when_the_set_or_a_policy_changes() -> None:
    store, seen = MemoryStore(), list[ModelRequest]()
    support = shop(calls("sell"), calls("look"), seen=seen)
    first = await run(support, "go", store=store, key="k")
    facts = [entry.fact.event for entry in await facts_of(store, first.turn_id)]
    (place,) = [index for index, event in enumerate(facts) if isinstance(event, ToolCatalogResolved)]
    assert place < next(index for index, event in enumerate(facts) if isinstance(event, ModelRequested))
    (began,) = await on_record(store, first.turn_id)
    assert list(began.offered) == [each.name for each in seen[0].tools] == ["look", "sell"]

    # A standing answer changed the policy of one tool, and the code has another one now.
    await say(store, first.approvals[0], Always("tool"))
    more = support.changed(tools=[*support.tools, noted("new"), *support.given_sources])
    done = await run(more, "go", store=store, key="k")
    assert done.status == "completed"
    events = of_kind(done, ToolCatalogResolved)
    assert [(event.revision, event.reason) for event in events] == [(1, "turn_started"), (2, "turn_resumed")]
    before, after = await on_record(store, first.turn_id)
    assert policies(before) == {"look": "allowed", "burn": "denied", "sell": "ask", "shelf/broken": "unavailable"}
    assert policies(after) == {**policies(before), "sell": "allowed", "new": "allowed"}
    assert list(after.offered) == [each.name for each in seen[-1].tools]
    assert [name for name, policy in policies(after).items() if policy in OFFERED] == list(after.offered)
    await check_replay(store, done)


@pytest.mark.spec("STD-CAT-11")
async def test_a_standing_answer_given_while_the_turn_runs_is_a_revision_of_its_own() -> None:
    store, seen = MemoryStore(), list[ModelRequest]()

    async def always(approval: Approval) -> Always:
        return Always("tool")

    done = await run(shop(calls("sell"), calls("sell"), seen=seen), "go", store=store, approver=always)
    assert done.status == "completed"
    events = [entry.fact.event for entry in done.facts()]
    revised = [(event.revision, event.reason) for event in events if isinstance(event, ToolCatalogResolved)]
    assert revised == [(1, "turn_started"), (2, "standing_answer")]
    before, after = await on_record(store, done.turn_id)
    assert (policies(before)["sell"], policies(after)["sell"]) == ("ask", "allowed")
    assert before.offered == after.offered
    assert {tuple(each.name for each in request.tools) for request in seen} == {after.offered}
    await check_replay(store, done)


async def test_a_turn_that_is_taken_up_unchanged_publishes_nothing_anew() -> None:
    store = MemoryStore()
    support = shop(calls("sell"))
    first = await run(support, "go", store=store, key="k")
    await say(store, first.approvals[0], Approve())
    done = await run(support, "go", store=store, key="k")
    assert [event.revision for event in of_kind(done, ToolCatalogResolved)] == [1]


async def test_the_inventory_of_an_agent_is_its_latest_catalogue_or_one_made_for_the_question() -> None:
    store = MemoryStore()
    system = new_engine(store)
    queried = await tool_inventory(system, agent_id="shop", agent=shop())
    assert (queried.turn_id, queried.catalog.resolved_for) == (None, "query")
    assert await store.turns() == [], "a question leaves nothing behind"

    one = await run(shop(), "go", store=store, thread="one")
    more = Agent("shop", "scripted:demo", tools=[noted("look"), noted("new")])
    two = await run(more, "go", store=store, thread="two")
    newest = await tool_inventory(system, agent_id="shop", agent=shop())
    assert (newest.turn_id, newest.catalog.resolved_for) == (two.turn_id, "turn")
    assert names(newest) == ["look", "new"]
    of_thread = await tool_inventory(system, agent_id="shop", thread_id="one")
    assert (of_thread.turn_id, names(of_thread)) == (one.turn_id, names(queried))
    other = await tool_inventory(system, agent_id="shop", thread_id="none", agent=more)
    assert (other.turn_id, other.catalog.resolved_for) == (None, "query")
    with pytest.raises(AgentMissing, match="nothing is on record about the tools of 'nobody'"):
        await tool_inventory(system, agent_id="nobody")


async def test_a_turn_without_tools_has_an_empty_inventory() -> None:
    store = MemoryStore()
    result = await run(Agent("bare", "scripted:demo"), "go", store=store)
    told = await tool_inventory(new_engine(store), turn=await store.turn(result.turn_id))
    assert told == ToolInventory(agent="bare", turn_id=result.turn_id, catalog=ToolCatalog(entries=()))


async def test_a_tool_that_asks_before_every_call_is_listed_so_and_one_with_a_predicate_says_it_may() -> None:
    world = World()
    always, sometimes = world.tool("pay", approval=True), world.tool("tip", approval=lambda call: False)
    told = await tool_inventory(new_engine(MemoryStore()), agent=agent([always, sometimes, world.tool("note")]))
    assert [(entry.tool_name, entry.policy) for entry in told.catalog.entries] == [
        ("pay", "ask"),
        ("tip", "allowed"),
        ("note", "allowed"),
    ]
    pay, tip, note = told.catalog.entries
    assert pay.policy_reason == "pay asks before every call"
    assert tip.policy_reason.endswith("; it asks before some calls, by their arguments")
    assert "asks" not in note.policy_reason


def policies(catalog: ToolCatalog) -> dict[str, str]:
    return {entry.tool_name: entry.policy for entry in catalog.entries}


def names(inventory: ToolInventory) -> list[str]:
    return [entry.tool_name for entry in inventory.catalog.entries]


@pytest.mark.spec("STD-CAT-08")
async def test_what_is_large_or_private_of_a_tool_is_referred_to_and_not_inline() -> None:
    def pay(order: str, password: SecretStr) -> str:
        return order

    many = {"type": "object", "properties": {f"field_{n}": {"type": "string"} for n in range(500)}}
    words = "Short.\n\n" + "A long story. " * 100
    wide = ClientTool(ToolDeclaration(name="client/wide", description=words, input_schema=many, effect="pure"))
    store = MemoryStore()
    tools = [tool(pay, description="Pays."), wide, noted("look")]
    result = await run(Agent("shop", ScriptedModel(["done"]), tools=tools), "go", store=store)
    (catalog,) = await on_record(store, result.turn_id)
    paying, long, plain = catalog.entries
    # Nothing large or private: all of it is inline.
    assert (plain.metadata_ref, plain.input_schema_ref) == (None, None) and plain.input_schema is not None
    # Which parameters are sensitive is private; the rest of a long description is large; so is such a schema.
    assert paying.metadata_ref is not None and paying.input_schema_ref is None
    private = json.loads(await store.get_blob(paying.metadata_ref))
    assert private["sensitive_parameters"] == ["password"]
    assert long.metadata_ref is not None and long.input_schema_ref is not None and long.input_schema is None
    assert json.loads(await store.get_blob(long.metadata_ref))["description"] == words
    assert json.loads(await store.get_blob(long.input_schema_ref)) == many
    inline = catalog.model_dump_json()
    assert "sensitive_parameters" not in inline and "A long story" not in inline and "field_1" not in inline
    # The same answer on request, and nothing about the turn itself is changed by it.
    row = await store.turn(result.turn_id)
    asked = await tool_inventory(new_engine(store), turn=row)
    assert asked.catalog.entries == catalog.entries
    await check_replay(store, result)
