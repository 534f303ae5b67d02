"""Agents whose people have phones: those of `served_agents`, `desk`, which says which phone is told, `miner`, whose
provider lets nobody in while there is a file `dry` in the home, and `planner` and `chatty`, which ask when to pay."""

import os
from pathlib import Path

from kit.surfaces import served_agents
from wakeful import Agent, ask_person, tool
from wakeful.ports import ModelRequest
from wakeful.testing import scripted


def paid(request: ModelRequest) -> object:
    """A model whose key ran dry, for as long as the file says so."""
    if (Path(os.environ["WAKEFUL_HOME"]) / "dry").exists():
        return {"fail": [{"kind": "quota_exhausted", "message": "the balance is used up"}]}
    return "dug"


desk = Agent("desk", scripted(served_agents.answer), tools=[served_agents.refund], notify={"to": "channel:chat"})
miner = Agent("miner", scripted(paid))


@tool(effect="keyed")
def pay(day: str) -> str:
    """Pay somebody."""
    return f"paid on {day}"


def plan(request: ModelRequest) -> object:
    """Asks a question, pays on the day of the answer, and says what came of it."""
    answered = [str(item.text) for item in request.history if item.role == "tool"]
    match len(answered):
        case 0:
            words = str(request.history[-1].text)
            return {"calls": [{"name": ask_person.name, "arguments": {"question": f"On which day? {words}"}}]}
        case 1:
            return {"calls": [{"name": "pay", "arguments": {"day": answered[0]}}]}
    return f"done: {answered[-1]}"


planner = Agent("planner", scripted(plan), tools=[ask_person, pay])
chatty = Agent("chatty", scripted(plan), tools=[ask_person, pay], notify={"to": "channel:chat"})
agents = [*served_agents.agents, desk, miner, planner, chatty]
