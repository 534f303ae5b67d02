"""`@tool(bind=...)`: a parameter that the run gives, and that no model sees."""

from typing import Any

import pytest

from wakeful import Agent, RunContext, run, tool
from wakeful.contracts.errors import InvalidConfig, InvalidValue
from wakeful.contracts.probes import Happened
from wakeful.testing import scripted
from wakeful.tools.schema import ArgumentsRefused

PLACE = {"customer": "context.customer_id"}


@tool(effect="pure", bind=PLACE)
def orders(customer: str, limit: int = 3) -> str:
    """Lists orders.

    Args:
        customer: Whose.
        limit: How many.
    """
    return f"{customer}: {limit}"


def test_the_model_is_not_shown_the_parameter_and_the_function_still_has_it() -> None:
    schema = orders.declaration.input_schema
    assert list(schema["properties"]) == ["limit"]
    assert "customer" not in str(schema)
    assert orders("c1", limit=2) == "c1: 2"


async def test_the_value_comes_from_the_runs_context_whatever_the_model_says() -> None:
    ctx = RunContext(None, context={"customer_id": "c7"})
    assert await orders.invoke(ctx, {"limit": 1}) == "c7: 1"
    assert await orders.invoke(ctx, {"customer": "c1"}) == "c7: 3"


@pytest.mark.parametrize("context", [{}, {"customer_id": None}, {"customer_id": ""}, {"customer": "c1"}])
async def test_a_run_that_lacks_the_value_is_refused_before_anything_runs(context: dict[str, Any]) -> None:
    model = scripted([{"text": "never asked"}])
    with pytest.raises(InvalidValue) as caught:
        await run(Agent("shop", model, tools=[orders]), "orders?", context=context)
    assert caught.value.path == "context.customer_id"
    assert "tool 'orders' of agent 'shop' takes 'customer'" in str(caught.value)
    with pytest.raises(ArgumentsRefused, match=r"customer: comes from context\.customer_id, which this run lacks"):
        orders.start(RunContext(None, context=context), {})


async def test_through_a_run_the_log_and_the_model_know_nothing_of_it() -> None:
    model = scripted([{"calls": [{"name": "orders", "arguments": {"limit": 1}}]}, {"text": "done"}])
    result = await run(Agent("shop", model, tools=[orders]), "orders?", context={"customer_id": "c7"})
    assert result.output == "done"
    (call,) = result.calls("orders")
    assert call.result == "c7: 1"
    assert call.arguments == {"limit": 1}


async def test_a_default_of_the_function_stands_in_and_paths_are_dotted() -> None:
    @tool(bind={"who": "context.user.name"})
    async def greet(who: str = "you") -> str:
        return f"hello {who}"

    assert greet.declaration.input_schema["properties"] == {}
    assert await greet.invoke(RunContext(None), {}) == "hello you"
    assert await greet.invoke(RunContext(None, context={"user": {"name": "Ann"}}), {}) == "hello Ann"


async def test_a_probe_gets_it_too() -> None:
    @tool(effect="probeable", bind=PLACE)
    def pay(customer: str, amount: int) -> str:
        return "paid"

    @pay.probe
    def paid(ctx: Any, customer: str, amount: int) -> Happened:
        return Happened(f"{customer} paid {amount}")

    answer = await pay.ask_probe(RunContext(None, context={"customer_id": "c7"}), {"amount": 2})
    assert answer == Happened("c7 paid 2")


@pytest.mark.parametrize(
    ("bind", "said"),
    [
        ({"nobody": "context.x"}, "has no parameter 'nobody' to bind"),
        ({"customer": "context."}, "cannot be taken from 'context.'"),
        ({"customer": "client_context.x"}, "cannot be taken from"),
        ({"customer": 3}, "cannot be taken from 3"),
        ("customer", "give a dict"),
    ],
)
def test_a_binding_that_cannot_be_kept_is_refused_when_the_tool_is_made(bind: Any, said: str) -> None:
    with pytest.raises(InvalidConfig, match=said):

        @tool(bind=bind)
        def look(customer: str) -> None: ...
