"""Agents that need a provider that does not answer: who asks it, who waits, and that nobody waits longer than that.

The clock stands still unless a test advances it. The provider names the second at which it is to be asked again, so
that no quick attempts are made.
"""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kit.wires.notice_receiver import passes
from wakeful import Agent, Retry, RunContext, Runtime, tool
from wakeful.contracts.envelope import MAIN_THREAD, Fact
from wakeful.contracts.events import ProviderUnparked
from wakeful.runtime.parked_providers import append_to_runtime
from wakeful.service.commands.interruption import cancel_message, cancel_turn
from wakeful.testing import FixedClock, scripted

HOUR = 3600.0


class Provider:
    """A model of several agents. While it is away it fails each request."""

    def __init__(self, clock: FixedClock) -> None:
        self.clock, self.is_away = clock, True
        self.back_in: dict[str, float] = {}
        """By agent: what the provider tells it, in seconds; 10 to everybody else."""
        self.takes: dict[str, float] = {}
        """By agent: seconds until it gets its answer."""
        self.asked: list[str] = []
        """By whom."""

    def agent(self, name: str, **options: Any) -> Agent[Any, Any]:
        def reply(request: Any) -> Any:
            self.asked.append(name)
            if "tools" in options and not request.answered:
                return {"calls": [{"name": options["tools"][0].name, "arguments": {}}]}
            if not self.is_away:
                return "done"
            lost = {"kind": "overloaded", "retry_after": self.back_in.get(name, 10)}
            return {"fail": [lost], "delay": self.takes.get(name, 0)}

        return Agent(name, scripted(reply, clock=self.clock), **options)


async def until(holds: Callable[[], bool]) -> None:
    """While somebody waits for an answer, so that the runtime does not come to rest."""
    for _ in range(3000):
        if holds():
            return
        await asyncio.sleep(0.01)
    raise AssertionError("it never came to that")


def away(rt: Runtime) -> bool:
    return any("does not answer since" in words for words in rt._here.problems)


async def state(rt: Runtime, message: Any) -> tuple[str, str]:
    """Of the turn that takes a message: its id and its state."""
    row = await rt._here.engine.store.message(message.message_id)
    assert row is not None and row.turn_id is not None
    turn = await rt._here.engine.store.turn(row.turn_id)
    assert turn is not None
    return turn.turn_id, turn.state


async def test_whoever_was_to_ask_in_an_hour_goes_on_when_another_one_is_answered(tmp_path: Path) -> None:
    clock = FixedClock()
    provider = Provider(clock)
    provider.back_in = {"ann": HOUR, "bob": 2 * HOUR}
    async with Runtime(tmp_path, agents=[provider.agent("ann"), provider.agent("bob")], clock=clock) as rt:
        sent = [await rt.send(name, "Hello.") for name in ("ann", "bob")]
        await rt.settled()
        assert sorted(provider.asked) == ["ann", "bob"] and away(rt)
        provider.is_away = False
        await rt.resume("bob")
        assert [(await rt.answer(each)).output for each in sent] == ["done", "done"]
        assert not away(rt)


async def test_an_answer_from_before_the_outage_is_no_sign_that_the_provider_is_back(tmp_path: Path) -> None:
    @tool(effect="keyed", approval=True)
    def pay(ctx: RunContext[None]) -> str:
        """Pay."""
        return "paid"

    clock = FixedClock()
    provider = Provider(clock)
    agents = [provider.agent("payer", tools=[pay]), provider.agent("ann"), provider.agent("bob")]
    async with Runtime(tmp_path, agents=agents, clock=clock) as rt:
        paying = await rt.send("payer", "Pay.")
        await rt.settled()
        clock.advance(1)
        waiting = [await rt.send(name, "Hello.") for name in ("ann", "bob")]
        await rt.settled()
        before = list(provider.asked)
        turn_id, _ = await state(rt, paying)
        assert await cancel_turn(rt._here.engine, turn_id, requested_by="ann")
        await rt.settled()
        assert (await state(rt, paying))[1] == "cancelled"
        assert provider.asked == before and away(rt), "nobody was sent to ask"
        provider.is_away = False
        await passes(rt, clock, 11)
        assert [(await rt.answer(each)).output for each in waiting] == ["done", "done"]


async def test_one_who_was_paused_while_another_is_asking_keeps_nobody_waiting(tmp_path: Path) -> None:
    """Bob is to ask from now on, while ann is still waiting for her answer; then bob is paused."""
    clock = FixedClock()
    provider = Provider(clock)
    async with Runtime(tmp_path, agents=[provider.agent("ann"), provider.agent("bob")], clock=clock) as rt:
        sent = await rt.send("ann", "Hello.")
        await rt.send("bob", "Hello.")
        await rt.settled()
        provider.takes, provider.back_in = {"ann": 5}, {"bob": 2}
        asked = len(provider.asked)
        await rt.resume("ann")
        await until(lambda: provider.asked[asked:] == ["ann"])
        await rt.resume("bob")
        await until(lambda: provider.asked[asked:] == ["ann", "bob"])
        await rt.pause("bob")

        def is_over() -> bool:
            clock.advance(1)
            return len(provider.asked) > asked + 2 or not rt._here.scheduler.is_running("ann", "main")

        provider.takes = {}  # from now on nobody sleeps while it is asked

        await until(is_over)
        provider.is_away = False
        for _ in range(4):
            await passes(rt, clock, 20)
        assert (await state(rt, sent))[1] == "completed"
        assert not away(rt)


async def test_a_cancelled_asker_hands_on_and_a_cancelled_waiter_is_forgotten(tmp_path: Path) -> None:
    clock = FixedClock()
    provider = Provider(clock)
    names = ("ann", "bob", "eve")
    async with Runtime(tmp_path, agents=[provider.agent(name) for name in names], clock=clock) as rt:
        sent = {name: await rt.send(name, "Hello.") for name in names}
        await rt.settled()
        for name in ("ann", "bob"):  # whoever came last may wait without a turn
            row = await rt._here.engine.store.message(sent[name].message_id)
            assert row is not None
            await cancel_message(rt._here.engine, row, requested_by="ann")
        await rt.settled()
        provider.is_away = False
        await passes(rt, clock, 20)
        assert (await state(rt, sent["eve"]))[1] == "completed"
        assert not away(rt)


async def test_patience_ends_turns_also_where_the_file_of_another_agent_is_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = FixedClock()
    provider = Provider(clock)
    (tmp_path / "wakeful.toml").write_text("[retry]\npatience = 900\n")
    monkeypatch.setenv("WAKEFUL_HOME", str(tmp_path))
    (tmp_path / "away.yaml").write_text("[{fail: [{kind: overloaded, retry_after: 10}]}]\n")
    (tmp_path / "agents").mkdir()
    file = tmp_path / "agents" / "ann.yaml"
    file.write_text(f"name: ann\nmodel: scripted:{tmp_path / 'away.yaml'}\ninstructions: Answer.\n")
    long = provider.agent("long", retry=Retry(patience=2 * HOUR))
    async with Runtime(tmp_path, agents=[provider.agent("bob"), long], clock=clock) as rt:
        sent = [await rt.send(name, "Hello.") for name in ("ann", "bob", "long")]
        await rt.settled()
        file.unlink()
        await rt.reload()
        for _ in range(20):
            await passes(rt, clock, 60)
        assert [(await state(rt, each))[1] for each in sent] == ["suspended", "failed", "suspended"]
        provider.is_away = False
        for _ in range(3):
            await passes(rt, clock, 60)
        assert (await state(rt, sent[2]))[1] == "completed"


async def test_a_turn_that_a_person_paused_does_not_run_out_of_patience(tmp_path: Path) -> None:
    clock = FixedClock()
    provider = Provider(clock)
    ann, bob = provider.agent("ann", retry=Retry(patience=600)), provider.agent("bob")
    async with Runtime(tmp_path, agents=[ann, bob], clock=clock) as rt:
        sent = await rt.send("ann", "Hello.")
        await rt.send("bob", "Hello.")
        await rt.settled()
        await rt.pause("ann", by="eve")
        for _ in range(12):
            await passes(rt, clock, 600)
        assert (await state(rt, sent))[1] == "suspended"
        provider.is_away = False
        await rt.resume("ann")
        assert (await rt.answer(sent)).output == "done"


async def test_everything_paused_asks_nobody_and_goes_on_afterwards(tmp_path: Path) -> None:
    clock = FixedClock()
    provider = Provider(clock)
    names = ("ann", "bob")
    async with Runtime(tmp_path, agents=[provider.agent(name) for name in names], clock=clock) as rt:
        sent = [await rt.send(name, "Hello.") for name in names]
        await rt.settled()
        await rt.pause_all(by="eve")
        await rt.settled()
        before = list(provider.asked)
        for _ in range(3):
            await passes(rt, clock, 60)
        assert provider.asked == before
        provider.is_away = False
        await rt.resume_all(by="eve")
        for _ in range(3):
            await passes(rt, clock, 60)
        assert [(await state(rt, each))[1] for each in sent] == ["completed", "completed"]
        assert not away(rt)


async def test_agents_go_on_whose_provider_was_let_in_again_just_before_a_kill(tmp_path: Path) -> None:
    """It takes the key again, that was written, and the process died before its agents went on."""
    clock, refused = FixedClock(), Agent("ann", scripted([{"fail": [{"kind": "auth_error"}]}]))
    async with Runtime(tmp_path, agents=[refused], clock=clock) as rt:
        sent = [await rt.send("ann", "Hello.", thread="one")]
        await rt.settled()
        sent.append(await rt.send("ann", "Hello.", thread="two"))
        await rt.settled()
        assert (await rt.agent("ann")).cause == "provider"
    async with Runtime(tmp_path, agents=[refused], clock=clock) as rt:
        await rt.settled()
        assert (await rt.agent("ann")).cause == "provider", "it is kept as long as its provider is"
        taken_off = ProviderUnparked(provider="scripted", by="runtime")
        await append_to_runtime(rt._here.engine, Fact(taken_off, clock.now(), MAIN_THREAD))
    async with Runtime(tmp_path, agents=[Agent("ann", scripted(lambda: "done"))], clock=clock) as rt:
        assert [(await rt.answer(each)).output for each in sent] == ["done"] * 2


async def test_hours_in_which_nothing_was_asked_use_up_no_patience(tmp_path: Path) -> None:
    """The clock jumps over ten hours, and a restart takes ten more: after each a turn has a quarter of its patience."""
    clock = FixedClock()
    provider = Provider(clock)
    ann, bob = (provider.agent(name, retry=Retry(patience=2_000)) for name in ("ann", "bob"))
    async with Runtime(tmp_path, agents=[ann, bob], clock=clock) as rt:
        sent = [await rt.send(name, "Hello.") for name in ("ann", "bob")]
        for seconds in (60, 10 * HOUR, *[60] * 7):
            await passes(rt, clock, seconds)
        assert [(await state(rt, each))[1] for each in sent] == ["suspended"] * 2
    clock.advance(10 * HOUR)
    async with Runtime(tmp_path, agents=[ann, bob], clock=clock) as rt:
        for _ in range(8):
            await passes(rt, clock, 60)
        assert [(await state(rt, each))[1] for each in sent] == ["suspended"] * 2
        for _ in range(6):
            await passes(rt, clock, 60)
        assert [(await state(rt, each))[1] for each in sent] == ["failed"] * 2


async def test_a_turn_that_a_kill_cut_off_goes_on_with_the_others_once_the_provider_answers(tmp_path: Path) -> None:
    clock = FixedClock()
    provider = Provider(clock)
    provider.takes = {"ann": HOUR}
    agents = [provider.agent("ann"), provider.agent("bob")]
    async with Runtime(tmp_path, agents=agents, clock=clock, grace=0) as rt:
        cut_off = await rt.send("ann", "Hello.")
        await until(lambda: provider.asked == ["ann"])
        await rt.pause("ann")
    provider.takes.clear()
    async with Runtime(tmp_path, agents=agents, clock=clock) as rt:
        await rt.send("bob", "Hello.")
        await rt.settled()
        await rt.resume("ann")
        await rt.settled()
        assert away(rt) and (await state(rt, cut_off))[1] == "running", "bob asks for both"
        provider.is_away = False
        clock.advance(11)
        await rt.settled()
        assert (await state(rt, cut_off))[1] == "completed"
