"""The crash suite as its users meet it: an agent with tools of their own, killed everywhere."""

from functools import partial

import pytest

from crash.sweeps import assert_reached
from wakeful import Agent, RunContext, run, run_sync, tool
from wakeful.contracts.tools import Effect
from wakeful.ports import Store
from wakeful.testing import KillPoint, Ledger, kill_everywhere, scripted


def support(refund_is: Effect, *, honours_its_key: bool = True) -> Agent[Ledger, str]:
    @tool(effect="pure")
    def look_up(ctx: RunContext[Ledger], order: str) -> int:
        """Price of an order in cents."""
        return 4200

    @tool(effect=refund_is)
    def refund(ctx: RunContext[Ledger], order: str, cents: int) -> str:
        """Give the customer the money back."""
        if refund_is == "keyed" and honours_its_key:
            ctx.deps.once("refund", ctx.idempotency_key)
        else:
            ctx.deps.record("refund", ctx.idempotency_key)
        ctx.deps.here()
        return f"refunded {cents}"

    return Agent(
        name="support",
        model=scripted(
            [
                {"calls": [{"name": "look_up", "arguments": {"order": "A17"}}]},
                {"calls": [{"name": "refund", "arguments": {"order": "A17", "cents": 4200}}]},
                "Refunded.",
            ]
        ),
        tools=[look_up, refund],
        deps_type=Ledger,
    )


def a_refund(store: Store, ledger: Ledger, refund_is: Effect = "keyed", honours_its_key: bool = True) -> None:
    agent = support(refund_is, honours_its_key=honours_its_key)
    result = run_sync(agent, "Order A17 arrived broken.", deps=ledger, store=store, key="ticket-981")
    assert result.output == "Refunded."


async def an_irreversible_refund(store: Store, ledger: Ledger) -> None:
    result = await run(support("irreversible"), "Order A17 arrived broken.", deps=ledger, store=store, key="ticket-981")
    assert result.output == "Refunded."


def test_a_keyed_tool_happens_once_wherever_the_process_dies() -> None:
    report = kill_everywhere(a_refund)
    assert_reached(report)
    assert report.unknown == 0


def test_an_irreversible_tool_is_never_repeated_and_every_unknown_outcome_is_seen() -> None:
    report = kill_everywhere(an_irreversible_refund)
    assert_reached(report)
    assert report.unknown > 0


def test_a_tool_that_ignores_its_key_is_found_out() -> None:
    careless = partial(a_refund, honours_its_key=False)
    with pytest.raises(AssertionError, match=r"repeated: killed after ledger 1: refund .* \(keyed\) happened 2 times"):
        kill_everywhere(careless, points=[KillPoint("ledger", 1, "after")])
