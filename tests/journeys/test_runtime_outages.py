"""A runtime whose provider is away: accepted messages wait, are answered once it is back, and are paid for once."""

import asyncio
import re
import subprocess
from pathlib import Path
from typing import Any

from kit.surfaces.command_line import command_line
from wakeful import Agent, Retry, RunContext, Runtime, open_store, tool
from wakeful.service.queries.overview import overview
from wakeful.testing import ProviderServer

SCRIPT = [{"calls": [{"name": "refund", "arguments": {"order": "A17"}}]}, "You have your money back."]


class Bank:
    def __init__(self) -> None:
        self.paid: list[str] = []

        @tool(effect="keyed")
        def refund(ctx: RunContext, order: str) -> str:
            """Give the money back."""
            self.paid.append(ctx.idempotency_key)
            return f"{order} is refunded"

        self.refund = refund


def agent(server: ProviderServer, bank: Bank, name: str = "clerk", **options: Any) -> Agent[Any, Any]:
    return Agent(name, server.model("openai:gpt-5.5"), tools=[bank.refund], **options)


async def test_an_outage_after_a_payment_ends_no_accepted_message_and_pays_once(tmp_path: Path) -> None:
    bank = Bank()
    with ProviderServer(SCRIPT) as server:
        server.weather.next("ok", "503", "503", "503", "503")
        async with Runtime(tmp_path / "home", agents=[agent(server, bank)]) as rt:
            sent = await rt.send("clerk", "Refund A17.", key="ticket-981")
            result = await rt.answer(sent)
            assert (result.status, result.output) == ("completed", SCRIPT[1])
            assert len(bank.paid) == 1
            assert result.model_calls == 2, "what the provider refused is no model call"
    async with open_store(tmp_path / "home" / "wakeful.db") as store:
        assert (await store.replay(result.turn_id)).identical
        kinds = [event.type async for event in store.events(result.turn_id)]
        assert "model.wait_started" in kinds and kinds.count("turn.completed") == 1 and "turn.failed" not in kinds


async def test_one_turn_asks_for_all_agents_and_all_go_on_when_it_is_answered(tmp_path: Path) -> None:
    bank, many = Bank(), 12
    with ProviderServer(SCRIPT) as server:
        agents = [agent(server, bank, f"clerk{number}") for number in range(many)]
        async with Runtime(tmp_path / "home", agents=agents) as rt:
            server.weather.always("503")
            sent = [await rt.send(each.name, "Refund A17.") for each in agents]
            await until(lambda: any("openai does not answer" in each for each in problems(rt)))
            for each in agents:  # until none of them is at its quick attempts any more
                await until_waiting(rt, each.name)
            shown: set[str] = set()
            while shown != {"openai"}:  # whoever asks it at this moment is at work
                await asyncio.sleep(0.05)
                shown = {each.waiting_for for each in (await overview(rt._here.engine, None)).agents}
            before = len(server.requests)
            late = await rt.send("clerk0", "And A18.", thread="other")
            await until(lambda: len(server.requests) > before)
            assert len(server.requests) - before < many, "they do not ask one by one"
            server.weather.clear()
            results = await asyncio.gather(*(rt.answer(each) for each in [*sent, late]))
            assert {each.status for each in results} == {"completed"}
            assert len(bank.paid) == len(set(bank.paid)) == many + 1
            await until(lambda: not problems(rt))


async def test_who_follows_an_agent_is_told_once_that_its_provider_is_away_and_once_that_it_is_back(
    tmp_path: Path,
) -> None:
    bank, home = Bank(), tmp_path / "home"
    with ProviderServer(SCRIPT) as server:
        server.weather.always("503")
        async with Runtime(home, agents=[agent(server, bank)]) as rt:
            sent = await rt.send("clerk", "Refund A17.")
            await until(lambda: len(server.requests) >= 7)  # three quick attempts, and then one each time
            (line,) = [each for each in await told(home, "tail") if "waiting for" in each]
            assert re.search(r" clerk +waiting for openai \(server_error\), next try in \d s$", line), line
            server.weather.always("429")
            await until(lambda: len(server.requests) >= 8)
            server.weather.clear()
            assert (await rt.answer(sent)).status == "completed"
    waits = [each for each in await told(home, "tail") if "openai" in each]
    assert [re.sub(r"\d+", "N", each.partition("clerk")[2].strip()) for each in waits] == [
        "waiting for openai (server_error), next try in N s",
        "waiting for openai (rate_limited), next try in N s",
        "openai:gpt-N.N answers, after N s",
    ]
    activity = await told(home, "tail", "--display", "verbose", "--limit", "50")
    assert sum("Model failed" in each for each in activity) == 3, "the quick attempts, and none of those that followed"
    spoken = [each for each in await told(home, "transcript", "clerk") if "openai" in each]
    assert sum("waiting for openai" in each for each in spoken) == 2 and "answers, after" in spoken[-1]


async def told(home: Path, *command: str) -> list[str]:
    """The lines of a command on the runtime's store, as a person reads them."""
    typed = command_line(*command, "--store", str(home / "wakeful.db"))
    done = await asyncio.to_thread(subprocess.run, typed, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


async def test_a_runtime_that_is_opened_again_goes_on_with_what_waits(tmp_path: Path) -> None:
    bank = Bank()
    with ProviderServer(SCRIPT) as server:
        server.weather.always("503")
        async with Runtime(tmp_path / "home", agents=[agent(server, bank)]) as rt:
            sent = await rt.send("clerk", "Refund A17.")
            await until(lambda: bool(problems(rt)))
        server.weather.clear()
        async with Runtime(tmp_path / "home", agents=[agent(server, bank)]) as rt:
            assert (await rt.answer(sent)).status == "completed"
            assert len(bank.paid) == 1


async def test_patience_of_an_agent_ends_its_turn_and_a_retry_goes_on_with_it(tmp_path: Path) -> None:
    bank = Bank()
    with ProviderServer(SCRIPT) as server:
        server.weather.next("ok")
        server.weather.always("503")
        async with Runtime(tmp_path / "home", agents=[agent(server, bank, retry=Retry(patience=1))]) as rt:
            sent = await rt.send("clerk", "Refund A17.")
            await until(lambda: bool(problems(rt)))
            await asyncio.sleep(1.2)
            await rt._here.absent.look()
            failed = await rt.answer(sent)
            assert (failed.status, failed.stop_reason, failed.retryable) == ("failed", "provider_error", True)
            server.weather.clear()
            await rt.retry(failed.turn_id)
            done = await rt.answer(sent)
            assert (done.status, done.turn_id, len(bank.paid)) == ("completed", failed.turn_id, 1)


async def test_a_key_that_is_refused_parks_the_provider_and_keeps_the_turn(tmp_path: Path) -> None:
    bank = Bank()
    with ProviderServer(SCRIPT) as server:
        server.weather.next("ok", "401")
        async with Runtime(tmp_path / "home", agents=[agent(server, bank)]) as rt:
            sent = await rt.send("clerk", "Refund A17.")
            first = await rt.answer(sent)
            assert (first.status, first.waiting_for) == ("waiting", "provider")
            await until_true(rt, "refused its key")
            await rt.resume("clerk")
            done = await answered(rt, sent)
            assert (done.status, done.turn_id, len(bank.paid)) == ("completed", first.turn_id, 1)


def problems(rt: Runtime) -> list[str]:
    return rt._here.problems


async def answered(rt: Runtime, sent: Any) -> Any:
    for _ in range(300):
        result = await rt.answer(sent)
        if result.status != "waiting":
            return result
        await asyncio.sleep(0.1)
    raise AssertionError(result)


async def until_waiting(rt: Runtime, name: str) -> None:
    for _ in range(300):
        story = await rt.why(name)
        if "openai does not answer since" in story.sentence:
            assert story.state == "waiting"
            return
        await asyncio.sleep(0.1)
    raise AssertionError(story.sentence)


async def until_true(rt: Runtime, words: str) -> None:
    for _ in range(300):
        if any(words in notice.text for notice in await rt.notices()):
            return
        await asyncio.sleep(0.1)
    raise AssertionError([notice.text for notice in await rt.notices()])


async def until(holds: Any) -> None:
    for _ in range(300):
        if holds():
            return
        await asyncio.sleep(0.1)
    raise AssertionError("it never came to that")
