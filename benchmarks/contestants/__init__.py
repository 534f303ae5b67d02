"""Who takes part, one module a library.

Each entry names a function `prepare(rounds, folder)` that builds everything which is not the turn itself (agent,
graph, the scripted replies) and returns `turn`, an async function that runs one whole turn and returns the final
text. Modules are imported one at a time, in the cell's own process: a library that is measured never shares its
process with another one.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

Turn = Callable[[], Awaitable[str]]
Prepare = Callable[[int, Path], Turn]


@dataclass(frozen=True)
class Contestant:
    """A row of the table: where its code is, which distribution gives its version, and whether it leaves a database."""

    name: str
    module: str
    function: str
    distribution: str
    durable: bool
    note: str

    def load(self) -> Prepare:
        prepare: Prepare = getattr(import_module(f"contestants.{self.module}"), self.function)
        return prepare


CONTESTANTS = {
    c.name: c
    for c in (
        Contestant(
            "wakeful+sqlite",
            "on_wakeful",
            "sqlite",
            "wakeful",
            True,
            "`run(agent, ..., store=path)`, a new database file",
        ),
        Contestant(
            "bare apsw",
            "on_apsw",
            "prepare",
            "apsw",
            True,
            "no agent: a loop that commits four hashed facts a round, the yardstick for a durable round",
        ),
        Contestant("wakeful", "on_wakeful", "memory", "wakeful", False, "the same on the memory store"),
        Contestant(
            "pydantic-ai", "on_pydantic_ai", "prepare", "pydantic-ai-slim", False, "`Agent.run`, a `Model` subclass"
        ),
        Contestant(
            "openai-agents",
            "on_openai_agents",
            "prepare",
            "openai-agents",
            False,
            "`Runner.run`, a `Model` subclass, tracing off",
        ),
        Contestant(
            "langgraph", "on_langgraph", "memory", "langgraph", False, "`StateGraph` + `ToolNode`, no checkpointer"
        ),
        Contestant(
            "langgraph+sqlite",
            "on_langgraph",
            "sqlite",
            "langgraph-checkpoint-sqlite",
            True,
            "the same graph with `AsyncSqliteSaver`, durability `async`, its default, on a new database file",
        ),
        Contestant(
            "langgraph+sqlite, sync",
            "on_langgraph",
            "sqlite_sync",
            "langgraph-checkpoint-sqlite",
            True,
            "the same with durability `sync`: each checkpoint is written before the next step begins",
        ),
        Contestant(
            "langgraph+sqlite, delta",
            "on_langgraph",
            "sqlite_delta",
            "langgraph-checkpoint-sqlite",
            True,
            "as `langgraph+sqlite`, with the messages in a `DeltaChannel` (beta in langgraph): they are stored once",
        ),
    )
}
