"""wakeful: the public API, `run(agent, prompt, store=...)` on a scripted model, with no budget to stop it."""

from pathlib import Path

from contestants import Turn
from contestants.work import FINAL, PROMPT, TOOL, add, arguments
from wakeful import Agent, Budget, run, tool
from wakeful.testing import scripted


def _prepare(rounds: int, store: str | None) -> Turn:
    replies: list[object] = [{"calls": [{"name": TOOL, "arguments": arguments(i)}]} for i in range(rounds)]
    agent = Agent(name="bench", model=scripted([*replies, FINAL]), tools=[tool(add, effect="pure")])

    async def turn() -> str:
        result = await run(agent, PROMPT, store=store, budget=Budget.unlimited())
        return result.output

    return turn


def sqlite(rounds: int, folder: Path) -> Turn:
    return _prepare(rounds, str(folder / "runs.db"))


def memory(rounds: int, folder: Path) -> Turn:
    return _prepare(rounds, None)
