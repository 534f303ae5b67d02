"""An agent on a real model, with nothing but a key.

    export ANTHROPIC_API_KEY=...      # or OPENAI_API_KEY
    python examples/with_a_key.py

Kill it while it works and run the same line again: it goes on where it was, and asks for nothing twice.
`wakeful events --store with_a_key.db` shows what happened.
"""

import os
import sys

from wakeful import Agent, Budget, run_sync, tool

MODELS = {"ANTHROPIC_API_KEY": "anthropic:claude-haiku-4-5", "OPENAI_API_KEY": "openai:gpt-5-mini"}
STOCK = {"tea": 12, "coffee": 0, "cocoa": 3}


@tool(effect="pure")
def in_stock(item: str) -> int:
    """How many of an item are in the shop."""
    return STOCK.get(item.lower(), 0)


def chosen_model() -> str:
    """The model of the first key that is set."""
    for variable, model in MODELS.items():
        if os.environ.get(variable):
            return model
    sys.exit(
        f"No key is set. Set one of {' or '.join(MODELS)} and run this again.\n"
        "Without a key: wakeful demo crash, or a model on this machine: python examples/local_server.py"
    )


def main() -> None:
    clerk = Agent(
        name="clerk",
        model=chosen_model(),
        instructions="You keep a small shop. Look up what is in stock, then answer in one short sentence.",
        tools=[in_stock],
    )
    result = run_sync(
        clerk,
        "Do we have tea, and do we have coffee?",
        store="with_a_key.db",
        key="stock-question-1",  # the same key is the same run: this line also resumes it
        budget=Budget(model_calls=6, seconds=120),
    )
    if not result.completed:
        sys.exit(f"{result.status}: {result.message}\nIs the model there at all?  wakeful models test {clerk.model}")
    print(result.output)
    cost = "unknown" if result.cost_usd is None else f"${result.cost_usd:.6f}"
    print(f"{result.model_calls} model calls, {result.usage.total_tokens} tokens, cost {cost}")


if __name__ == "__main__":
    main()
