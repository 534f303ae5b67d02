"""Runs with calls that somebody has to let through, shared by the suites about approvals."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from kit.runs.engine_runs import calls
from wakeful import Agent, RunResult, Tool, run, tool
from wakeful.bootstrap.engines import new_engine
from wakeful.contracts.approvals import Approval, Decided
from wakeful.ports import Store
from wakeful.providers.scripted import ScriptedModel
from wakeful.service.commands.approvals import Outcome, decide
from wakeful.service.commands.turn_claims import recall
from wakeful.service.queries.replay import replay_turn
from wakeful.store.sqlite import SqliteStore

REFUND: tuple[str, dict[str, Any]] = ("refund", {"order": "A17", "cents": 4200})


class World:
    """What really ran, in the order it did."""

    def __init__(self) -> None:
        self.done: list[tuple[str, dict[str, Any]]] = []

    def tool(self, name: str = "refund", **options: Any) -> Tool[Any]:
        """A tool that notes the arguments it is run with."""

        async def note(order: str = "A17", cents: int = 100) -> str:
            self.done.append((name, {"order": order, "cents": cents}))
            return f"{name} done"

        made: Tool[Any] = tool(note, **{"effect": "irreversible", "name": name, **options})
        return made

    def reading(self, name: str = "look") -> Tool[Any]:
        async def look() -> str:
            self.done.append((name, {}))
            return "seen"

        return tool(look, effect="pure", name=name)

    @property
    def names(self) -> list[str]:
        return [name for name, _ in self.done]


def agent(tools: Sequence[Any], *rounds: Any, **options: Any) -> Agent[Any, str]:
    """An agent whose model makes these calls, round after round, and then says `done`."""
    steps: list[Any] = [*(calls(*each) if isinstance(each, tuple) else each for each in rounds), "done"]
    answer: Callable[[Any], Any] = lambda request: steps[min(request.answered, len(rounds))]  # noqa: E731
    return Agent("shop", ScriptedModel(answer), tools=list(tools), **options)


async def asked(support: Agent[Any, str], store: Store, **options: Any) -> RunResult[str]:
    """Run it until it waits for somebody."""
    result = await run(support, "go", store=store, key="k", **options)
    assert result.status == "approval_required", (result.status, result.message)
    return result


async def again(support: Agent[Any, str], store: Store, **options: Any) -> RunResult[str]:
    """Take it up again, and see that the stored turn decides the same."""
    result = await run(support, "go", store=store, key="k", **options)
    await check_replay(store, result)
    return result


async def say(store: Store, approval: Approval | str, decided: Decided, by: str = "ada", **parts: Any) -> Outcome:
    """Decide, as another process would."""
    name = approval if isinstance(approval, str) else approval.id
    return await decide(new_engine(store, **parts), name, decided, by=by)


async def check_replay(store: Store, result: RunResult[Any]) -> RunResult[Any]:
    """The stored turn decides the same again; what it comes to is told from the log alone."""
    row = await store.turn(result.turn_id)
    assert row is not None
    report = await replay_turn(store, row)
    assert report.identical, report.divergence
    return await recall(new_engine(store), row, None)


def answers(result: RunResult[Any]) -> list[Any]:
    """The tool answers in the conversation, in its order."""
    return [item for item in result.history() if item.role == "tool"]


async def opened(folder: Path) -> SqliteStore:
    return await SqliteStore.open(folder / "runs.db")
