"""More agents than a small screen has rows: those of `watched_agents`, one that asks to publish much, and many more."""

from kit.surfaces import watched_agents
from wakeful import Agent, tool
from wakeful.ports import ModelRequest
from wakeful.testing import scripted

PAGE = "\n".join(f"paragraph {number} of the page" for number in range(1, 61))


@tool(effect="keyed", approval=True)
def publish(text: str) -> str:
    """Put a page on the web."""
    return "published"


def _answer(request: ModelRequest) -> object:
    if request.answered:
        return "finished"
    return {"calls": [{"name": "publish", "arguments": {"text": PAGE}}]}


def _said(request: ModelRequest) -> str:
    return "noted"


editor = Agent("editor", scripted(_answer), tools=[publish])
agents = [*watched_agents.agents, editor, *(Agent(f"shop-{number:02}", scripted(_said)) for number in range(1, 27))]
