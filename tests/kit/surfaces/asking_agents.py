"""An agent that reads before it asks, tells somebody that it asks, and has subtasks: it does what its message says."""

import re
from pathlib import Path

from kit.surfaces.served_agents import refund, work_until
from wakeful import Agent, tool
from wakeful.contracts.conversation import UserItem
from wakeful.ports import ModelRequest
from wakeful.testing import scripted


@tool(effect="pure")
def read_page(path: str) -> str:
    """Read a page of the handbook."""
    return f"this is {Path(path).name}"


@tool(effect="pure")
def count_orders() -> int:
    """Count the orders of today."""
    return 3


def _calls(name: str, **arguments: object) -> dict[str, object]:
    return {"name": name, "arguments": arguments}


def answer(request: ModelRequest) -> object:
    """`refund` reads two pages, counts, and asks for money; `dig NAME` has a subtask that waits for a file NAME."""
    text = [item.text for item in request.history if isinstance(item, UserItem)][-1]
    said = re.search(r"(refund|dig|hold) ?(\w*)", text)
    match (said and said[1], request.answered):
        case "refund", 0:
            pages = [_calls("read_page", path=f"/handbook/{name}") for name in ("policy.md", "limits.md")]
            return {"calls": [*pages, _calls("count_orders")]}
        case "refund", 1:
            return {"calls": [_calls("refund", cents=42)]}
        case "dig", 0:
            title, told = "who calls pay()?", f"hold {said[2] if said else ''}"
            return {"calls": [_calls("run_subtask", title=title, instructions=told, tools=["work_until"])]}
        case "hold", 0:
            return {"calls": [_calls("work_until", file=said[2] if said else "")]}
    return "finished"


asker = Agent(
    "asker",
    scripted(answer),
    tools=[read_page, count_orders, refund, work_until],
    subtasks=True,
    notify={"to": ["cat"], "on": ["action_required"]},
)
agents = [asker]
