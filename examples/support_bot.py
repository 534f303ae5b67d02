"""A support bot whose refunds need approval from a colleague in another process.

    python examples/support_bot.py ask       # the bot looks the order up and asks for approval; the program ends
    python examples/support_bot.py decide    # in another terminal: shows the pending refund and approves it
    python examples/support_bot.py ask       # the same run continues and answers

For a real model put `"anthropic:claude-haiku-4-5"` in the place of `scripted(...)`.
"""

import sys

from wakeful import Agent, Approve, open_store, run_sync, tool
from wakeful.testing import scripted

STORE = "support.db"


@tool(effect="pure")
def look_up(order: str) -> dict[str, object]:
    """An order with its state and its price in cents."""
    return {"order": order, "state": "arrived broken", "cents": 4200}


@tool(effect="keyed", approval=lambda call: call.arguments["cents"] > 1_000)
def refund(order: str, cents: int) -> str:
    """Give the customer the money back. Refunds over 10 dollars need approval."""
    return f"refunded {cents} for {order}"


SCRIPT = [
    {"calls": [{"name": "look_up", "arguments": {"order": "A17"}}]},
    {"calls": [{"name": "refund", "arguments": {"order": "A17", "cents": 4200}}]},
    "Your money is on its way back. Sorry about the broken cup!",
]
bot = Agent("support", scripted(SCRIPT), "Refund broken orders, never more than was paid.", tools=[look_up, refund])


def ask() -> None:
    result = run_sync(bot, "My cup from order A17 arrived broken.", store=STORE, key="ticket-981")
    print(result.output if result.completed else "A colleague has to approve: python support_bot.py decide")


def decide() -> None:
    with open_store(STORE) as store:
        for approval in store.approvals():
            print(f"{approval.tool} {dict(approval.arguments)}")
            decided = store.decide(approval.approval_id, Approve("I saw the photo."), by="ann")
            print(f"{decided.status} by {decided.decided_by}")


if __name__ == "__main__":
    {"ask": ask, "decide": decide}[sys.argv[1] if len(sys.argv) > 1 else "ask"]()
