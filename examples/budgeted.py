"""A run with a budget that stops well: it is told when there is room for one more reply, and answers with what it has.

    python examples/budgeted.py

Runs offline with a scripted model that would go on for ever. Three runs of the same work: with room for four replies
it ends with an answer; a tool that may be called twice is not called a third time; and where money is limited, a model
whose price nobody knows is never asked. A stop like that is a result: it says which limit, and keeps what there is.
"""

from wakeful import Agent, Budget, run_sync, tool
from wakeful.providers import ModelRequest, OpenAIChat
from wakeful.testing import scripted

UNPRICED = OpenAIChat("some-model", base_url="https://models.example/v1")
PAGES = [f"page {number}: a figure of {number * 7}" for number in range(1, 100)]


@tool(effect="pure")
def read_page(number: int) -> str:
    """A page of the report."""
    return PAGES[number - 1]


def reader(request: ModelRequest) -> object:
    """Stands for a model that reads page after page, unless it may not call tools any more."""
    if request.tool_choice == "none":
        read = sum(item.role == "tool" for item in request.history)
        return f"Read {read} pages of 99; the figures so far rise by 7 a page. The rest is not read."
    return {"calls": [{"name": "read_page", "arguments": {"number": request.answered + 1}}]}


agent = Agent(name="reader", model=scripted(reader), instructions="Summarise the report.", tools=[read_page])

if __name__ == "__main__":
    for name, model, budget in (
        ("four replies", agent.model, Budget(model_calls=4)),
        ("two pages", agent.model, Budget(per_tool={"read_page": 2})),
        ("no money for a model without a price", UNPRICED, Budget(usd="0.01")),
    ):
        result = run_sync(agent, "What does the report say?", model=model, budget=budget)
        said = result.final_content or result.message or "(no words)"
        print(f"{name}: {result.status} ({result.stop_reason}) after {result.model_calls} replies\n  {said}")
