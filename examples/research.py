"""Research with subtasks that work side by side: the model splits the question, the runtime keeps the tree.

    python examples/research.py

Runs offline with a scripted model. Kill it anywhere and run it again: every branch goes on where it was, and what was
found is not looked up twice. Afterwards: `wakeful tree --store research.db`, `wakeful cost --store research.db`.
For a real model put `model="anthropic:claude-haiku-4-5"` (or another) in the place of `scripted(...)`.
"""

from wakeful import Agent, Budget, run_sync, tool
from wakeful.providers import ModelRequest
from wakeful.testing import scripted

LIBRARY = {
    "lisbon": "Lisbon: 567,131 inhabitants (2024), 100.1 km2.",
    "porto": "Porto: 248,769 inhabitants (2024), 41.4 km2.",
    "braga": "Braga: 201,583 inhabitants (2024), 183.4 km2.",
}


@tool(effect="pure")
def look_up(city: str) -> str:
    """What the library says about a city."""
    return LIBRARY[city.lower()]


def researcher(request: ModelRequest) -> object:
    """Stands for a model: the root hands on one city each, a child looks its city up."""
    if request.level is None:
        if request.answered == 0:
            return {
                "calls": [
                    {
                        "name": "run_subtask",
                        "arguments": {
                            "title": city.title(),
                            "instructions": f"Find out how many people live in {city}.",
                            "tools": ["look_up"],
                            "output_schema": {
                                "type": "object",
                                "properties": {"city": {"type": "string"}, "people": {"type": "integer"}},
                                "required": ["city", "people"],
                            },
                        },
                    }
                    for city in LIBRARY
                ]
            }
        found = [item.text for item in request.history if item.role == "tool"]
        return "Lisbon has the most inhabitants of the three.\n" + "\n".join(found)
    city = request.history[0].text.removesuffix(".").rsplit(" ", 1)[-1]
    if request.answered == 0:
        return {"calls": [{"name": "look_up", "arguments": {"city": city}}]}
    people = int(request.history[-1].text.split(": ")[1].split(" ")[0].replace(",", ""))
    return {"calls": [{"name": "finish_subtask", "arguments": {"city": city, "people": people}}]}


agent = Agent(
    name="researcher",
    model=scripted(researcher),
    instructions="Answer with figures, and say where they are from.",
    tools=[look_up],
    subtasks=True,
)

if __name__ == "__main__":
    result = run_sync(
        agent,
        "Which of Lisbon, Porto and Braga has the most inhabitants?",
        store="research.db",
        key="cities",
        budget=Budget(model_calls=20, subtasks=5, seconds=60),
    )
    print(result.output)
    print(f"{result.model_calls} model calls, {result.tool_calls} tool calls, in one budget")
