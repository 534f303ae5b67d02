"""What a turn may call is worked out when it is taken up, and written down for the turn, not for a call of it."""

from pathlib import Path
from typing import Any

import pytest

from kit.runs.engine_runs import calls
from wakeful import Agent, run, tool
from wakeful.contracts.envelope import published
from wakeful.contracts.errors import UnknownTool
from wakeful.contracts.events import ToolCatalogResolved
from wakeful.contracts.policies import GatePolicy, ProvenancePolicy, Rule, ToolPolicy
from wakeful.contracts.schema import event_schema, validate_event
from wakeful.providers.scripted import ScriptedModel
from wakeful.store.memory import MemoryStore
from wakeful.testing import scripted
from wakeful.tools.source import Offer, ToolSource
from wakeful.tools.tool import Tool


@tool(effect="pure")
def look() -> str:
    """Look."""
    return "seen"


@tool
def refund() -> str:
    """Refund."""
    return "refunded"


class Server(ToolSource):
    """A source whose tools come and go."""

    def __init__(self, *tools: Tool[Any]) -> None:
        self.tools: list[Tool[Any]] = list(tools)

    @property
    def name(self) -> str:
        return "server"

    async def offer(self) -> Offer:
        return Offer(tuple(self.tools))


def clerk(*tools: Any, **options: Any) -> tuple[Agent[Any, str], list[int]]:
    """An agent, and how often its model was asked."""
    asked: list[int] = []

    def answer(request: Any) -> Any:
        asked.append(request.step)
        return "done" if request.answered else calls("look")

    return Agent("clerk", ScriptedModel(answer), tools=list(tools), **options), asked


@pytest.mark.spec("STD-ENV-04")
async def test_a_catalogue_belongs_to_its_turn_and_names_no_step_and_no_call() -> None:
    store = MemoryStore()
    who, _ = clerk(look)
    result = await run(who, "go", store=store)
    (fact,) = [entry for entry in result.facts() if isinstance(entry.fact.event, ToolCatalogResolved)]
    event = published(fact, store.runtime_id).model_dump(mode="json")
    assert event["turn_id"] == result.turn_id
    assert (event.get("step_id"), event.get("tool_call_id")) == (None, None)
    assert validate_event(event) == [], "and it is whole without them"
    branch = event_schema()["$defs"]["tool.catalog.resolved"]
    assert not {"step_id", "tool_call_id"} & {*branch["required"], *branch["properties"]}
    others = [published(entry, store.runtime_id).model_dump(mode="json") for entry in result.facts()]
    (started,) = [each for each in others if each["type"] == "tool.started"]
    assert started["step_id"] and started["tool_call_id"], "what belongs to a call does name it"
    assert validate_event({**started, "tool_call_id": None}) != []


@pytest.mark.spec("CTL-CFG-24")
async def test_a_listed_tool_that_is_gone_stops_the_next_run_and_cannot_be_taken_away_while_it_is_listed() -> None:
    server = Server(look)
    who, asked = clerk(server, hitl_tools=["refund"])
    with pytest.raises(UnknownTool, match="hitl_tools names 'refund'"):
        await run(who, "go", store=MemoryStore())
    assert asked == [], "not connected yet: no model was asked"
    server.tools.append(refund)
    assert (await run(who, "go", store=MemoryStore())).output == "done"
    before = len(asked)
    server.tools.remove(refund)
    with pytest.raises(UnknownTool, match="hitl_tools names 'refund'"):
        await run(who, "go", store=MemoryStore())
    assert len(asked) == before, "gone again: no model was asked"
    # An agent's own tools are taken away by nobody: it does not change, and one without the listed tool is not made.
    own, _ = clerk(look, refund, hitl_tools=["refund"])
    with pytest.raises(AttributeError, match="is immutable"):
        own.tools = (look,)  # type: ignore[misc]
    with pytest.raises(UnknownTool, match="hitl_tools names 'refund'"):
        clerk(look, hitl_tools=["refund"])
    # The inversion: with the list empty, the same removal is nobody's concern.
    free, asked = clerk(Server(look))
    assert (await run(free, "go")).output == "done"
    assert len(asked) == 2


async def test_a_rule_adds_to_the_default_policy_and_replaces_nothing() -> None:
    ran: list[str] = []

    @tool
    def pay(order: str) -> str:
        """Pays."""
        ran.append(order)
        return "paid"

    @tool(effect="pure")
    def look() -> str:
        """Looks."""
        ran.append("look")
        return "seen"

    async def came_to(policy: GatePolicy) -> tuple[str, list[str]]:
        ran.clear()
        steps = [calls(("pay", {"order": "A17"}), "look"), "done"]
        model = scripted(steps, leftover="ignore")
        return (await run(Agent("clerk", model, tools=[pay, look], policy=policy), "go")).status, [*ran]

    denied = Rule(match="pay", decision="deny")
    both = ("completed", ["A17", "look"])
    assert await came_to(GatePolicy(rules=(denied,))) == ("completed", ["look"])
    assert await came_to(GatePolicy(rules=(denied.model_copy(update={"match": "other"}),))) == both
    assert await came_to(GatePolicy(hitl_tools=("pay",))) == ("approval_required", ["look"])
    assert await came_to(GatePolicy(provenance=ProvenancePolicy(all_three="deny"))) == both
    assert await came_to(GatePolicy(tools=ToolPolicy())) == ("completed", []), "tools= replaces the default"


async def test_what_policy_leaves_out_is_said_once(caplog: pytest.LogCaptureFixture) -> None:
    @tool
    def pay(order: str) -> str:
        """Pays."""
        return "paid"

    agent = Agent(
        "clerk", scripted(["done"], leftover="ignore"), tools=[pay], policy=ToolPolicy(classes=frozenset({"safe"}))
    )
    first = await run(agent, "go")
    second = await run(agent, "go")
    (told,) = [record.getMessage() for record in caplog.records]
    assert first.warnings == second.warnings == (told,), "each run says it, the log of the process once"
    assert "leaves out 1 of its tools: pay (pay is of class external_write, which is off" in told
    assert "GatePolicy(rules=...) without tools=" in told


@pytest.mark.parametrize(
    "policy", [GatePolicy(rules=(Rule(match="x", decision="deny"),)), GatePolicy(tools=ToolPolicy())]
)
def test_an_agents_file_says_whether_the_default_is_replaced(policy: GatePolicy, tmp_path: Path) -> None:
    agent = Agent("clerk", "scripted:x", policy=policy)
    agent.to_file(tmp_path / "clerk.yaml")
    again = Agent.from_file(tmp_path / "clerk.yaml")
    assert again.policy == policy
    assert again.policy.model_fields_set == policy.model_fields_set
