"""The tools and the agent of `refund.workflow.json`, a workflow in which a person has to agree. Needs no key.

    cd examples
    wakeful workflow validate refund.workflow.json --tools refund_workflow:code
    wakeful workflow save refund.workflow.json --tools refund_workflow:code
    wakeful workflow run refund --input order=A17 --tools refund_workflow:code

At a terminal the question is put at once. Elsewhere the run rests, and says which commands answer or reject it.
Its only answer is "yes": whoever does not want it rejects the question, and what depends on it is skipped.
"""

from typing import Any

from wakeful import Agent, tool
from wakeful.providers.scripted import ScriptedModel

ORDERS = {"A17": {"customer": "Ada", "cents": 4200}}


@tool(effect="pure")
def look_up(order: str) -> dict[str, Any]:
    """An order: who bought it, and what it cost."""
    return {"order": order, **ORDERS[order]}


@tool(effect="keyed")
def refund(order: str, cents: int, agreed: str, reason: str = "") -> str:
    """Give the money back. `agreed` is what the person said who agreed to it."""
    return f"{cents / 100:.2f} for {order} paid back"


clerk = Agent(
    name="clerk",
    model=ScriptedModel(["Dear Ada, we are sorry. Your money is on its way back."]),
    instructions="You write letters to customers.",
)

code = [look_up, refund, clerk]
