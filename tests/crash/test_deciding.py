"""Several real processes round one approval."""

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from crash import deciding
from crash.approval_scenarios import calls
from wakeful import Agent, RunContext, run, tool
from wakeful.providers.scripted import ScriptedModel
from wakeful.store.sqlite import SqliteStore
from wakeful.testing.crash_children import Nursery

ROUNDS = 40
TESTS = Path(__file__).parent.parent


@pytest.mark.spec("CTL-APPR-07")
@pytest.mark.parametrize("edit", [False, True], ids=["approved", "edited"])
def test_asked_by_one_process_decided_by_another_run_once_by_a_third(edit: bool, tmp_path: Path) -> None:
    with Nursery(deciding.ask_and_die) as nursery:

        def child(function: Any, *arguments: Any) -> Any:
            return nursery.run(function, tmp_path, *arguments, output=tmp_path / function.__name__, seconds=60)

        assert child(deciding.ask_and_die).how == "killed"
        waits = child(deciding.go_on)
        assert waits.how == "raised", "it waits, and so has no end yet"
        second = child(deciding.decide_it, edit)
        assert (second.how, second.value) == ("done", "approved"), second.words
        third = child(deciding.go_on)
        assert third.how == "done", third.words
        ran = [("B2", 1)] if edit else [("A17", 4200)]
        assert third.value == {
            "states": ["completed"],
            "ran": ran,
            "effects": ["look_up", "notify", "pay_irreversible"],
        }
        again = child(deciding.go_on)
        assert (again.how, again.value["effects"]) == ("done", third.value["effects"]), "over is over"


@contextmanager
def decider(store: Path, name: str) -> Iterator["subprocess.Popen[str]"]:
    command = [sys.executable, str(TESTS / "crash" / "deciding.py"), str(store), name]
    around = {**os.environ, "PYTHONPATH": str(TESTS)}
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(command, text=True, bufsize=1, env=around, **pipes) as child:  # type: ignore[call-overload]
        try:
            yield child
        finally:
            child.stdin.close()


async def test_of_two_processes_that_decide_at_once_one_wins_and_the_other_is_told_who(tmp_path: Path) -> None:
    ran: list[str] = []

    @tool(effect="irreversible", approval=True)
    async def pay(ctx: RunContext[None], order: str) -> str:
        ran.append(order)
        return "paid"

    path = tmp_path / "runs.db"
    store = await SqliteStore.open(path)

    def shop(order: str) -> Agent[None, str]:
        steps: list[Any] = [calls(("pay", {"order": order})), "done"]
        return Agent("shop", ScriptedModel(lambda request: steps[min(request.answered, 1)]), tools=[pay])

    wins = {"yes": 0, "no": 0}
    with ExitStack() as stack:
        both = [stack.enter_context(decider(path, name)) for name in wins]
        for child in both:
            assert await asyncio.to_thread(child.stdout.readline) == "ready\n"  # type: ignore[union-attr]
        for number in range(ROUNDS):
            key = f"k{number}"
            (approval,) = (await run(shop(key), "go", store=store, key=key)).approvals
            for child in both if number % 2 else reversed(both):
                child.stdin.write(f"{approval.id}\n")  # type: ignore[union-attr]
                child.stdin.flush()  # type: ignore[union-attr]
            lines = [await asyncio.to_thread(child.stdout.readline) for child in both]  # type: ignore[union-attr]
            said = [json.loads(line) for line in lines]
            assert sorted(each["duplicate"] for each in said) == [False, True], "one decided"
            (winner,) = {(each["status"], each["by"], each["note"]) for each in said}
            name = winner[1]
            assert winner == ("approved" if name == "yes" else "rejected", name, name), "and both know who, and what"
            assert said[list(wins).index(name)]["duplicate"] is False
            wins[name] += 1
            result = await run(shop(key), "go", store=store, key=key)
            assert (result.status, key in ran) == ("completed", name == "yes")
            facts = [entry.fact.event.kind for entry in result.facts()]
            assert facts.count("action.resolved") == 1
    assert len(ran) == len(set(ran)) == wins["yes"]
    assert sum(wins.values()) == ROUNDS
    assert await store.verify() == []
    await store.close()
