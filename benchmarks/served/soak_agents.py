"""Agents of the soak: each message says which tools are called, and each effect is a line of a file outside."""

import os
import time
from pathlib import Path

from wakeful import Agent, RunContext, tool
from wakeful.testing.effect_ledger import Ledger

LEDGER = Ledger(Path(os.environ["SOAK_LEDGER"]))
SETTINGS = {"first_byte_timeout": 3}
PAUSE = 0.05
"""Seconds before an effect and after it, so that kills find calls under way."""


@tool(effect="keyed")
def bump(ctx: RunContext[None], order: str) -> str:
    """Count an order; an order that was counted under this key is not counted again."""
    time.sleep(PAUSE)
    LEDGER.once(f"bump {order}", ctx.idempotency_key)
    time.sleep(PAUSE)
    return f"{order} is counted"


@tool(effect="irreversible")
def mail(ctx: RunContext[None], order: str) -> str:
    """Write to the customer."""
    time.sleep(PAUSE)
    LEDGER.record(f"mail {order}", ctx.idempotency_key)
    time.sleep(PAUSE)
    return f"the customer of {order} was told"


@tool(effect="keyed", approval=True)
def pay(ctx: RunContext[None], order: str) -> str:
    """Give the money back."""
    time.sleep(PAUSE)
    LEDGER.once(f"pay {order}", ctx.idempotency_key)
    time.sleep(PAUSE)
    return f"{order} is paid"


OPENAI, ANTHROPIC = "openai:gpt-5.5", "anthropic:claude-haiku-4-5"
agents = [
    Agent("counter", OPENAI, tools=[bump], settings=SETTINGS),
    Agent("mailer", OPENAI, tools=[mail], settings=SETTINGS),
    Agent("cashier", ANTHROPIC, tools=[pay], settings=SETTINGS),
    Agent("clerk", ANTHROPIC, fallbacks=[OPENAI], tools=[bump, mail, pay], settings=SETTINGS),
]
CALLS = {"counter": ("bump",), "mailer": ("mail",), "cashier": ("pay",), "clerk": ("bump", "pay", "mail")}
"""By agent: the tools that an order to it has called, one after the other."""
