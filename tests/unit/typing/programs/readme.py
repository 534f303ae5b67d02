"""The whole program of the README, approval and money included: its types hold before its last parts are built."""

# ruff: noqa: T201

import os
import signal
from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel

from wakeful import Agent, Budget, RunContext, run_sync, tool
from wakeful.testing import scripted


@dataclass
class Shop:  # what your tools need: a pool, a client, a clock
    prices: dict[str, int]
    bank: Path  # stands for a payment API that honours keys


class Answer(BaseModel):
    order: str
    refunded_cents: int


@tool(effect="pure")
def look_up(ctx: RunContext[Shop], order: str) -> int:
    """Price of an order in cents."""
    return ctx.deps.prices[order]


@tool(effect="keyed", approval=lambda call: call.arguments["cents"] > 1_000, timeout=30)
def refund(ctx: RunContext[Shop], order: str, cents: int) -> str:
    """Give the customer the money back."""
    paid = ctx.deps.bank.read_text().splitlines() if ctx.deps.bank.exists() else []
    if not any(line.startswith(ctx.idempotency_key) for line in paid):
        with ctx.deps.bank.open("a") as f:
            f.write(f"{ctx.idempotency_key} {order} {cents}\n")
    if os.environ.pop("CRASH", ""):
        os.kill(os.getpid(), signal.SIGKILL)  # the worst moment: paid, not yet recorded
    return f"refunded {cents}"


support = Agent(
    name="support",
    model=scripted(
        [  # or "anthropic:...", "openai:...", "ollama:..."
            {"calls": [{"name": "look_up", "arguments": {"order": "A17"}}]},
            {"calls": [{"name": "refund", "arguments": {"order": "A17", "cents": 4200}}]},
            '{"order": "A17", "refunded_cents": 4200}',
        ]
    ),
    instructions="Refund broken orders, never more than was paid.",
    tools=[look_up, refund],
    deps_type=Shop,
    output_type=Answer,
)

result = run_sync(
    support,
    "Order A17 arrived broken.",
    deps=Shop({"A17": 4200}, Path("bank.txt")),
    store="runs.db",
    key="ticket-981",  # same key, same run: this line also resumes it
    budget=Budget(usd=0.25, model_calls=8, seconds=60),
)

if result.status == "approval_required":
    for a in result.approvals:
        print(f"wakeful approvals approve {a.id} --store runs.db    # {a.tool} {a.arguments}")
else:
    print(result.output)
