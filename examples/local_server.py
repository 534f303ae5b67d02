"""An agent on a model that runs on this machine, behind any server that speaks Chat Completions.

    python examples/local_server.py qwen3                                  # Ollama, where it usually listens
    python examples/local_server.py qwen3 http://127.0.0.1:8000/v1         # vLLM
    python examples/local_server.py qwen3 http://127.0.0.1:1234/v1         # LM Studio

The address may also stand in BASE_URL, and a key, for a server that wants one, in SERVER_KEY.
"""

import os
import sys

from wakeful import Agent, run_sync, tool
from wakeful.providers import OpenAIChat

OLLAMA = "http://127.0.0.1:11434/v1"


@tool(effect="pure")
def add(a: int, b: int) -> int:
    """The sum of two numbers."""
    return a + b


def main(name: str = "qwen3", base_url: str = os.environ.get("BASE_URL", OLLAMA)) -> None:
    model = OpenAIChat(
        name,
        base_url=base_url,
        api_key=os.environ.get("SERVER_KEY"),
        profile={"context_window": 32_768},  # what you know better than the table: any field of ModelProfile
    )
    agent = Agent(
        name="adder", model=model, instructions="Use the tool to add. Answer with the sum alone.", tools=[add]
    )
    result = run_sync(agent, "What is 17 and 25?")
    if not result.completed:
        sys.exit(f"{result.status}: {result.message}\nIs a server running at {base_url}, and does it have {name}?")
    print(result.output)


if __name__ == "__main__":
    main(*sys.argv[1:])
