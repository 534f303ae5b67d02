"""The agent whose logs are kept: what it was when they were written is what it must be when they are read again."""

import os
import signal
from pathlib import Path
from typing import Any

from wakeful import Agent, RunContext, tool
from wakeful.testing import scripted


@tool(effect="pure")
async def look_up(order: str) -> int:
    """Price of an order in cents."""
    return {"A17": 4200, "B2": 999}[order]


@tool(effect="keyed")
async def refund(ctx: RunContext[Path], order: str, cents: int) -> str:
    """Give the money back."""
    _pay(ctx, order, cents)
    return f"refunded {cents}"


@tool(effect="irreversible")
async def write_letter(ctx: RunContext[Path], order: str) -> str:
    """Send a letter."""
    _pay(ctx, order, 0)
    return "sent"


def _pay(ctx: RunContext[Path], order: str, cents: int) -> None:
    book = ctx.deps
    if ctx.idempotency_key not in (book.read_text() if book.exists() else ""):
        with book.open("a") as file:
            file.write(f"{ctx.idempotency_key} {order} {cents}\n")
    if os.environ.get("CRASH") == order:
        os.kill(os.getpid(), signal.SIGKILL)


def agent(name: str) -> Agent[Path, str]:
    """`shop` refunds two orders, `letters` writes one letter."""
    return Agent(
        name, scripted(SCRIPTS[name], leftover="ignore"), tools=[look_up, refund, write_letter], deps_type=Path
    )


SCRIPTS: dict[str, list[Any]] = {
    "shop": [
        {
            "text": "I look both up.",
            "calls": [
                {"name": "look_up", "arguments": {"order": "A17"}},
                {"name": "look_up", "arguments": {"order": "nowhere"}},
            ],
            "usage": {"input_tokens": 12, "output_tokens": 7, "total_tokens": 19},
        },
        {"calls": [{"name": "refund", "arguments": {"order": "A17", "cents": 4200}}]},
        "Order A17 is refunded.",
    ],
    "letters": [
        {"calls": [{"name": "write_letter", "arguments": {"order": "B2"}}, {"name": "look_up", "arguments": "{"}]},
        "The letter is on its way.",
    ],
}
