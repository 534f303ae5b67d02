"""An agent is checked when it is made, and never changes."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import pytest
from pydantic import BaseModel

from wakeful.contracts.budgets import Budget
from wakeful.contracts.errors import InvalidConfig, NotBuiltYet
from wakeful.contracts.model_settings import ModelSettings
from wakeful.contracts.models import ModelGlimpse, Reply
from wakeful.contracts.probes import StillUnknown
from wakeful.engine.agent import Agent
from wakeful.ports import ModelRequest
from wakeful.tools.context import RunContext
from wakeful.tools.decorator import tool


@dataclass
class Shop:
    prices: dict[str, int]


class Answer(BaseModel):
    order: str
    refunded_cents: int


@tool(effect="pure")
def look_up(ctx: RunContext[Shop], order: str) -> int:
    return ctx.deps.prices[order]


@tool(effect="pure")
def add(a: int, b: int) -> int:
    return a + b


class LiveModel:
    ref = "live:one"

    def respond(self, request: ModelRequest) -> AsyncIterator[ModelGlimpse | Reply]:
        raise NotImplementedError


def make(**fields: Any) -> Agent[Any, Any]:
    return Agent(**{"name": "support", "model": "openai:gpt-5.5", **fields})


def test_an_agent_keeps_what_it_was_given() -> None:
    model = LiveModel()
    agent = make(model=model, tools=[look_up, add], settings={"temperature": 0.2}, max_steps=3, fallbacks=["a:b"])
    assert (agent.name, agent.model, agent.max_steps, agent.fallbacks) == ("support", model, 3, ("a:b",))
    assert [told.name for told in agent.declarations] == ["look_up", "add"]
    assert agent.tool("add") is add
    assert agent.tool("nothing") is None
    assert agent.settings == ModelSettings(temperature=0.2)


def test_an_agent_does_not_change() -> None:
    agent = make()
    for name in ("name", "tools", "anything"):
        with pytest.raises(AttributeError, match="is immutable"):
            setattr(agent, name, "other")
    with pytest.raises(AttributeError, match="is immutable"):
        del agent.name


def test_a_tool_is_found_by_the_last_part_of_its_name_where_only_one_has_it() -> None:
    def search() -> None: ...

    mine, theirs = tool(search, name="client/search"), tool(search, name="mcp.docs/search")
    assert make(tools=[mine]).tool("search") is mine
    assert make(tools=[mine, theirs]).tool("search") is None
    assert make(tools=[mine, theirs]).tool("mcp.docs/search") is theirs


def test_an_agent_that_plans_is_no_tool_and_says_who_may_plan() -> None:
    with pytest.raises(NotBuiltYet, match="give planning_enabled to the agent that calls this one"):
        make(planning_enabled=True).as_tool()


@pytest.mark.parametrize("error", [InvalidConfig, TypeError])
def test_an_unknown_keyword_is_named_with_near_ones(error: type[Exception]) -> None:
    with pytest.raises(error, match=r"no field 'instruction'\ndid you mean instructions "):
        make(instruction="x")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"name": "two words"}, "'two words' cannot be an agent's name"),
        ({"name": "9lives"}, "'9lives'"),
        ({"name": ""}, "''"),
        ({"name": None}, "None"),
        ({"model": "gpt-5.5"}, "model='gpt-5.5' does not name a provider"),
        ({"model": 7}, "model=7 is not a model"),
        ({"fallbacks": "a:b"}, "fallbacks='a:b'"),
        ({"fallbacks": ["b"]}, "fallbacks='b' does not name a provider"),
        ({"instructions": 5}, "instructions are a string or a function, not 5"),
        ({"tools": add}, "tools="),
        ({"tools": [add, add]}, "two tools are called 'add'"),
        ({"tools": [len]}, "len in tools= is not a tool"),
        ({"tools": ["add"]}, "'add' in tools= is not a tool"),
        ({"max_steps": 0}, "max_steps=0"),
        ({"max_steps": True}, "max_steps=True"),
        ({"budget": 5}, "budget=5 is not a Budget"),
        ({"deps": Shop({})}, "deps= takes a function"),
        ({"settings": {"temperature": "hot"}}, "temperature='hot'"),
        ({"settings": {"max_tokens": 0}}, "max_tokens=0"),
        ({"settings": {"openai": {"x": object()}}}, r"settings\.openai\.x: a object is not JSON"),
        ({"output_type": type("Plain", (), {})}, "output_type=.*Plain.* cannot be described"),
    ],
)
def test_what_does_not_hold_together_is_refused_with_its_value(given: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidConfig, match=said):
        make(**given)


def test_a_probeable_tool_needs_its_probe() -> None:
    @tool(effect="probeable")
    def refund(order: str) -> str:
        return order

    with pytest.raises(InvalidConfig, match='refund says effect="probeable" and has no probe'):
        make(tools=[refund])
    refund.probe(lambda ctx: StillUnknown())
    assert make(tools=[refund]).tool("refund") is refund


def test_a_tool_that_cannot_be_described_is_refused_with_the_agent() -> None:
    @tool
    def use(x: "Nowhere") -> None: ...  # type: ignore[name-defined]  # noqa: F821

    with pytest.raises(InvalidConfig, match="Nowhere"):
        make(tools=[use])


def test_an_agent_knows_whether_it_needs_deps() -> None:
    def static(ctx: RunContext[None]) -> str:
        return ""

    async def dynamic(ctx: RunContext[Shop]) -> str:
        return ""

    assert not make(tools=[add]).needs_deps
    assert not make(instructions=static).needs_deps
    assert make(deps_type=Shop).needs_deps
    assert (make(tools=[add, look_up]).needs_deps, make(tools=[look_up]).needs_deps_for) == (True, "look_up")
    assert (make(instructions=dynamic).needs_deps, make(instructions=dynamic).needs_deps_for) == (True, "instructions")


def test_plain_text_passes_through() -> None:
    assert make().output_schema is None
    assert make().parse_output("anything {") == "anything {"


def test_an_answer_is_parsed_into_its_type() -> None:
    agent = make(output_type=Answer)
    schema = agent.output_schema
    assert schema is not None and schema["required"] == ["order", "refunded_cents"]
    wanted = Answer(order="A17", refunded_cents=4200)
    text = '{"order": "A17", "refunded_cents": 4200}'
    assert agent.parse_output(text) == wanted
    assert agent.parse_output(f"```json\n{text}\n```") == wanted
    assert make(output_type=list[int]).parse_output("[1, 2]") == [1, 2]
    assert make(output_type=Shop).parse_output('{"prices": {"a": 1}}') == Shop({"a": 1})


def test_an_answer_that_does_not_fit_is_an_error_a_model_can_act_on() -> None:
    agent = make(output_type=Answer)
    with pytest.raises(ValueError, match="must be JSON and nothing else"):
        agent.parse_output("I refunded it.")
    with pytest.raises(ValueError, match=r"- order: Field required\n- refunded_cents: Input should be a valid integer"):
        agent.parse_output('{"refunded_cents": "much"}')
    with pytest.raises(ValueError, match="and 40 more"):
        make(output_type=list[int]).parse_output(str(["x"] * 50).replace("'", '"'))


def test_a_budget_is_kept() -> None:
    budget = Budget(model_calls=3)
    assert make(budget=budget).budget is budget
