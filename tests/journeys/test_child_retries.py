"""The failed turn of a child agent is tried again: its parent, which was told of the failure, is told of the new end.

Parent and child ask a provider that answers the child with nonsense until it is mended.
"""

import asyncio
import os
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from kit.runs.child_agents import name_of, of_kind, only_task
from kit.runs.repositories import repository
from kit.surfaces.command_line import command_line
from wakeful import Agent, Budget, RunContext, Runtime, open_store, tool
from wakeful.contracts.envelope import Fact
from wakeful.contracts.events import (
    AgentStateChanged,
    GrantRenewed,
    GrantReserved,
    GrantSettled,
    MessageAdmitted,
    TaskEnded,
    TaskRetried,
    TurnStarted,
)
from wakeful.errors import RetryRefused
from wakeful.ports import Store, TurnRow
from wakeful.ports.tasks import TaskRow
from wakeful.service.commands.turn_retries import retry_turn
from wakeful.store.sqlite import SqliteStore
from wakeful.testing import ProviderServer
from wakeful.testing.provider_server.wire_requests import WireRequest
from wakeful.testing.wrapped_store import WrappedStore

GRANT = 6


class Crew:
    """A foreman who has a bill paid by a child, and says each time what he was told of it."""

    def __init__(self, bank: Path) -> None:
        self.bank = bank
        self.broken = True
        self.rains = True
        self.bills = 1
        self.told: list[str] = []
        """What the runtime told the foreman of the task, as his model reads it."""
        self.spawns: dict[str, Any] = {"budget": {"model_calls": GRANT}}

        @tool(effect="keyed")
        def pay(ctx: RunContext) -> str:
            """Pay the bill."""
            with bank.open("a") as ledger:
                ledger.write(f"{ctx.idempotency_key}\n")
            return "paid"

        self.pay = pay

    @property
    def paid(self) -> int:
        return len(self.bank.read_text().splitlines())

    def reply(self, asked: WireRequest) -> Any:
        said = [turn.text for turn in asked.turns if turn.role == "user"]
        if "Pay the bill." in said[0]:
            if not self.rains:
                return {"calls": [{"name": "wait_for", "arguments": {"reason": "rain", "wake": "external"}}]}
            if asked.rounds < self.bills:
                return {"calls": [{"name": "pay", "arguments": {}}]}
            return {"fail": {"kind": "invalid_response"}} if self.broken else "The bill is paid."
        if "Have it paid." in said[0]:
            if not asked.rounds:
                return {"calls": [{"name": "spawn_agent", "arguments": {"initial_message": "Pay the bill."}}]}
            return {"fail": {"kind": "invalid_response"}}
        if "Task task_" in asked.prompt:
            if asked.prompt not in self.told:
                self.told.append(asked.prompt)
            return "Then I will look into it." if "is failed" in asked.prompt else "Then it is settled."
        if not asked.results:
            spawned = {"initial_message": "Pay the bill.", **self.spawns}
            return {"calls": [{"name": "spawn_agent", "arguments": spawned}]}
        return "It is being paid."

    def agent(self, server: ProviderServer, **options: Any) -> Agent[Any, Any]:
        return Agent(
            "foreman", server.model("openai:gpt-5.5"), tools=[self.pay], spawn=True,
            **{"budget": Budget(model_calls=20), **options},
        )  # fmt: skip


@pytest.fixture
def crew(tmp_path: Path) -> Crew:
    return Crew(tmp_path / "bank.txt")


@pytest.fixture
def server(crew: Crew) -> Iterator[ProviderServer]:
    with ProviderServer(crew.reply) as running:
        yield running


def store_of(rt: Runtime) -> Store:
    return rt._here.engine.store


async def results_told(store: Store) -> list[MessageAdmitted]:
    return [each for each in await of_kind(store, "foreman", MessageAdmitted) if each.message_kind == "task_result"]


async def failed_turn(rt: Runtime) -> tuple[TaskRow, TurnRow]:
    """The task of the child, and its turn, once both have failed and the parent has been told."""
    await rt.answer(await rt.send("foreman", "Have the bill paid."))
    await rt.settled()
    task = await only_task(store_of(rt), "foreman")
    assert task.status == "failed"
    *_, turn = await store_of(rt).turns_of_thread(name_of(task), "main")
    return task, turn


async def test_a_childs_retry_reaches_its_parent_as_a_later_result_of_the_task(
    crew: Crew, server: ProviderServer, tmp_path: Path
) -> None:
    async with Runtime(tmp_path / "home", agents=[crew.agent(server)]) as rt:
        task, turn = await failed_turn(rt)
        (first,) = await results_told(store_of(rt))
        crew.broken = False
        await rt.retry(turn.turn_id, by="ada")
        await rt.settled()
        assert [row.status for row in await rt.tasks("foreman", over=True)] == ["completed"]
        _, later = await results_told(store_of(rt))
        answer = await rt.answer(later.message_id)
        assert (answer.status, answer.output) == ("completed", "Then it is settled.")
        child = await store_of(rt).runtime_agent(name_of(task))
        assert child is not None and child.control == "stopped", "nothing more of the child runs"
        (same,) = await store_of(rt).turns_of_thread(name_of(task), "main")
        assert (same.turn_id, same.state) == (turn.turn_id, "completed")
    assert crew.paid == 1, "what was paid before is not paid again"
    before, after = [told.splitlines() for told in crew.told]
    assert before[2].startswith(f"Task {task.task_id} is failed after ")
    seconds = later.item.text.partition(" after ")[2].partition(" s:")[0]
    assert after[2:] == [
        f"Task {task.task_id} is completed after {seconds} s: Pay the bill.",
        "It has done what it was asked for.",
        "This is a later result. You were told before that the task had failed; since then it was tried again, and "
        "this is how it ended now.",
        "It said 17 bytes; task_output shows them.",
    ]
    same_in = ("message_kind", "origin", "authority_class", "derived_from", "delivery_surface", "task_id")
    assert [getattr(first, name) for name in same_in] == [getattr(later, name) for name in same_in]
    async with open_store(tmp_path / "home" / "wakeful.db") as store:
        assert (await store.replay(turn.turn_id)).identical
        assert all([(await store.replay(each.turn_id)).identical for each in await store.turns(agent="foreman")])


async def test_the_command_line_tries_the_turn_of_a_child_again_and_the_next_runtime_tells_the_parent(
    crew: Crew, server: ProviderServer, tmp_path: Path
) -> None:
    home = tmp_path / "home"
    async with Runtime(home, agents=[crew.agent(server)]) as rt:
        _, turn = await failed_turn(rt)
    typed = command_line("retry", turn.turn_id)
    done = await asyncio.to_thread(
        subprocess.run,
        typed,
        env={**os.environ, "WAKEFUL_HOME": str(home)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "is tried again" in done.stdout
    assert "they go on with the next wakeful daemon start" in " ".join(done.stdout.split())
    crew.broken = False
    async with Runtime(home, agents=[crew.agent(server)]) as rt:
        await rt.settled()
        assert [each.status for each in await of_kind(store_of(rt), "foreman", TaskEnded)] == ["failed", "completed"]
        assert len(crew.told) == 2
    async with Runtime(home, agents=[crew.agent(server)]) as rt:
        await rt.settled()
        assert len(await results_told(store_of(rt))) == 2, "told once, however often the runtime is opened"


async def test_a_retry_that_fails_again_is_told_and_can_be_tried_once_more(
    crew: Crew, server: ProviderServer, tmp_path: Path
) -> None:
    async with Runtime(tmp_path / "home", agents=[crew.agent(server)]) as rt:
        _, turn = await failed_turn(rt)
        await rt.retry(turn.turn_id)
        await rt.settled()
        crew.broken = False
        await rt.retry(turn.turn_id)
        await rt.settled()
        ends = [each.status for each in await of_kind(store_of(rt), "foreman", TaskEnded)]
        assert ends == ["failed", "failed", "completed"]
        told = await results_told(store_of(rt))
        assert len({each.message_id for each in told}) == len(told) == 3
        assert all("This is a later result" in each.item.text for each in told[1:])
        with pytest.raises(RetryRefused, match="was completed"):
            await rt.retry(turn.turn_id)


async def test_a_retry_goes_on_with_what_is_left_of_the_grant_or_with_more_that_is_given(
    crew: Crew, server: ProviderServer, tmp_path: Path
) -> None:
    crew.broken, crew.bills, crew.spawns = False, 2, {"budget": {"tool_calls": 1}}
    async with Runtime(tmp_path / "home", agents=[crew.agent(server)]) as rt:
        _, turn = await failed_turn(rt)
        with pytest.raises(RetryRefused, match="would end at once as before"):
            await rt.retry(turn.turn_id)
        await rt.retry(turn.turn_id, budget=Budget(tool_calls=3))
        await rt.settled()
        assert (await only_task(store_of(rt), "foreman")).status == "completed"
        (renewed,) = await of_kind(store_of(rt), "foreman", GrantRenewed)
        assert renewed.grant.tool_calls == 0, "nothing was left, and a person's gift is not the parent's"


async def test_while_the_parents_turn_runs_the_retry_takes_its_part_of_the_budget_again(
    crew: Crew, server: ProviderServer, tmp_path: Path
) -> None:
    go = asyncio.Event()

    @tool(effect="pure")
    async def look_on() -> str:
        """Look on until somebody says stop."""
        await go.wait()
        return "seen"

    def reply(asked: WireRequest) -> Any:
        if "Pay the bill." in next(turn.text for turn in asked.turns if turn.role == "user"):
            return crew.reply(asked)
        if asked.rounds == 1 and "Task task_" not in asked.prompt:
            return {"calls": [{"name": "look_on", "arguments": {}}]}
        return crew.reply(asked)

    with ProviderServer(reply) as busy:
        agent = crew.agent(busy)
        agent = agent.changed(tools=[*agent.tools, look_on])
        async with Runtime(tmp_path / "home", agents=[agent]) as rt:
            sent = await rt.send("foreman", "Have the bill paid.")
            store = store_of(rt)
            task = await once(store, "failed")
            (turn,) = await store.turns_of_thread(name_of(task), "main")
            crew.broken = False
            await rt.retry(turn.turn_id)
            await once(store, "completed")
            go.set()
            await rt.answer(sent)
            await rt.settled()
            (given,) = await of_kind(store, "foreman", GrantReserved)
            (renewed,) = await of_kind(store, "foreman", GrantRenewed)
            first, second = await of_kind(store, "foreman", GrantSettled)
    left = [each.model_calls for each in (given.grant, first.left, renewed.grant, second.left)]
    assert left == [GRANT, GRANT - 3, GRANT - 3, GRANT - 4], "what came back is taken again, and the rest returns"
    async with open_store(tmp_path / "home" / "wakeful.db") as opened:
        assert all([(await opened.replay(each.turn_id)).identical for each in await opened.turns(agent="foreman")])


async def once(store: Store, status: str) -> TaskRow:
    """The task of the foreman, once it stands so."""
    while True:
        rows = await store.tasks_of("foreman")
        if rows and rows[0].status == status:
            return rows[0]
        await asyncio.sleep(0.01)


async def test_a_child_that_worked_in_a_worktree_gets_it_back(
    crew: Crew, server: ProviderServer, tmp_path: Path
) -> None:
    crew.spawns = {"workspace_mode": "worktree"}
    agent = crew.agent(server, workspace=repository(tmp_path / "repo"))
    async with Runtime(tmp_path / "home", agents=[agent]) as rt:
        task, turn = await failed_turn(rt)
        (tree,) = await store_of(rt).worktrees_of_task(task.task_id)
        assert not Path(tree.worktree_path).exists()
        crew.broken = False
        await rt.retry(turn.turn_id)
        await rt.settled()
        assert (await only_task(store_of(rt), "foreman")).status == "completed"
        assert not Path(tree.worktree_path).exists(), "and it goes again, since nothing is in it"


async def test_the_retry_of_a_child_whose_parent_was_deleted_runs_and_tells_nobody(
    crew: Crew, server: ProviderServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in server.environment().items():
        monkeypatch.setenv(name, value)
    async with Runtime(tmp_path / "home", tools=[crew.pay]) as rt:
        await rt.create({"name": "foreman", "model": "openai:gpt-5.5", "tools": ["pay"], "spawn": True})
        task, turn = await failed_turn(rt)
        await rt.delete("foreman")
        told = len(crew.told)
        crew.broken = False
        await rt.retry(turn.turn_id)
        await rt.settled()
        assert (await store_of(rt).turn(turn.turn_id)).state == "completed"  # type: ignore[union-attr]
        assert (await store_of(rt).task(task.task_id)).status == "completed"  # type: ignore[union-attr]
        assert len(await results_told(store_of(rt))) == len(crew.told) == told == 1
        child = await store_of(rt).runtime_agent(name_of(task))
        assert child is not None and child.control == "stopped"


async def test_a_child_whose_parent_is_stopped_is_not_tried_again(
    crew: Crew, server: ProviderServer, tmp_path: Path
) -> None:
    async with Runtime(tmp_path / "home", agents=[crew.agent(server)]) as rt:
        task, turn = await failed_turn(rt)
        await rt.stop("foreman", by="ada")
        with pytest.raises(RetryRefused, match="works for foreman, which is stopped") as refusal:
            await rt.retry(turn.turn_id)
        store_option = f" --store {tmp_path / 'home' / 'wakeful.db'}"
        assert refusal.value.hint == f"let it run again first: wakeful agent resume foreman{store_option}"
        await rt.resume("foreman", by="ada")
        crew.broken = False
        await rt.retry(turn.turn_id)
        await rt.settled()
        assert (await only_task(store_of(rt), "foreman")).status == "completed"
        assert len(await of_kind(store_of(rt), "foreman", TaskRetried)) == 1
        assert len(await of_kind(store_of(rt), name_of(task), TurnStarted)) == 1


async def test_a_child_whose_own_parent_is_over_is_not_tried_again(
    crew: Crew, server: ProviderServer, tmp_path: Path
) -> None:
    """The child fails, and so does its own."""
    crew.spawns = {"initial_message": "Have it paid.", "budget": {"model_calls": 12}}
    async with Runtime(tmp_path / "home", agents=[crew.agent(server)]) as rt:
        task, _ = await failed_turn(rt)
        inner = await only_task(store_of(rt), name_of(task))
        (below,) = await store_of(rt).turns_of_thread(name_of(inner), "main")
        with pytest.raises(RetryRefused, match=f"works for {name_of(task)}, which is over") as refusal:
            await rt.retry(below.turn_id)
        assert "wakeful send foreman " in refusal.value.hint and "Pay the bill." in refusal.value.in_its_place


async def test_a_child_whose_task_was_stopped_is_not_tried_again(
    crew: Crew, server: ProviderServer, tmp_path: Path
) -> None:
    crew.spawns, crew.rains = {"initial_message": "Have it paid.", "budget": {"model_calls": 12}}, False
    async with Runtime(tmp_path / "home", agents=[crew.agent(server)]) as rt:
        await rt.answer(await rt.send("foreman", "Have the bill paid."))
        await rt.settled()
        task = await only_task(store_of(rt), "foreman")
        (turn,) = await store_of(rt).turns_of_thread(name_of(task), "main")
        assert (task.status, turn.state) == ("running", "failed"), "its own child waits for rain"
        await rt.stop_task(task.task_id)
        await rt.settled()
        assert (await only_task(store_of(rt), "foreman")).status == "cancelled"
        with pytest.raises(RetryRefused, match="was made for one task, which was stopped") as refusal:
            await rt.retry(turn.turn_id)
        assert "wakeful send foreman " in refusal.value.hint


class RetriesBeforeTheEnd(WrappedStore):
    """Somebody tries the turn of a child again in the moment in which its runtime is about to stop it."""

    engine: Any = None
    retried = False

    async def admit(self, agent_id: str, facts: Sequence[Fact], **terms: Any) -> Any:
        event = facts[0].event
        if isinstance(event, AgentStateChanged) and event.control == "stopped" and not self.retried:
            self.retried = True
            (turn,) = await self.inner.turns_of_thread(agent_id, "main")
            await retry_turn(self.engine, turn.turn_id, requested_by="ada")
        return await super().admit(agent_id, facts, **terms)


async def test_a_retry_in_the_moment_in_which_the_child_ends_is_carried_out(
    crew: Crew, server: ProviderServer, tmp_path: Path
) -> None:
    store = RetriesBeforeTheEnd(await SqliteStore.open(tmp_path / "runs.db"))
    async with Runtime(agents=[crew.agent(server)], store=store) as rt:
        store.engine = rt._here.engine
        await rt.answer(await rt.send("foreman", "Have the bill paid."))
        await rt.settled()
        assert [each.status for each in await of_kind(store, "foreman", TaskEnded)] == ["failed"]
        assert len(crew.told) == 1
        task = await only_task(store, "foreman")
        (turn,) = await store.turns_of_thread(name_of(task), "main")
        kinds = [entry.fact.event.kind for entry in await store.read(name_of(task), turn_id=turn.turn_id)]
        assert (turn.state, kinds.count("turn.failed"), kinds.count("turn.retried")) == ("failed", 2, 1)
    await store.close()
