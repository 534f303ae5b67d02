"""Research with subtasks that run in parallel under one budget, with a live display of its own.

    python examples/research.py

Runs offline. Kill it anywhere and run it again: each branch continues where it stopped. Afterwards try
`wakeful tree --store research.db`. For a real model put `"anthropic:claude-haiku-4-5"` in the place of `scripted(...)`.
"""

import asyncio

from wakeful import Agent, Budget, stream, tool
from wakeful.events import SubtaskEvent, ToolCallEvent, ToolResultEvent
from wakeful.providers import ModelRequest
from wakeful.testing import scripted

PEOPLE = {"Lisbon": 567_131, "Porto": 248_769, "Braga": 201_583}


@tool(effect="pure")
def inhabitants(city: str) -> int:
    """How many people live in a city."""
    return PEOPLE[city]


def researcher(request: ModelRequest) -> object:
    """Stands for a model: the root starts one subtask for each city, a child looks its city up."""
    if request.level is None and request.answered == 0:
        given = [{"title": city, "instructions": city, "tools": ["inhabitants"]} for city in PEOPLE]
        return {"calls": [{"name": "run_subtask", "arguments": arguments} for arguments in given]}
    if request.level is None:
        found = [item.text for item in request.history if item.role == "tool"]
        return "Lisbon has the most inhabitants: " + ", ".join(found)
    if request.answered == 0:
        return {"calls": [{"name": "inhabitants", "arguments": {"city": request.history[0].text}}]}
    return f"{request.history[0].text} {request.history[-1].text}"


agent = Agent("researcher", scripted(researcher), "Answer with figures.", tools=[inhabitants], subtasks=True)


async def main() -> None:
    budget = Budget(model_calls=20, subtasks=5, seconds=60)
    question = "Which of Lisbon, Porto and Braga has the most inhabitants?"
    async with stream(agent, question, store="research.db", key="cities", budget=budget) as s:
        async for event in s:
            indent = "  " * len(event.path)
            match event:
                case SubtaskEvent():
                    print(f"{indent}subtask {event.title} {event.status}")
                case ToolCallEvent() | ToolResultEvent() if event.path:
                    print(f"{indent}{event.type} {event.tool}")
        result = await s.result()
    print(result.output)
    print(f"{result.model_calls} model calls, {result.tool_calls} tool calls, in one budget")


if __name__ == "__main__":
    asyncio.run(main())
