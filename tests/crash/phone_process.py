"""A runtime in a process of its own whose agent asks a person with a phone, with a kill at one commit or with none.

`main(folder, server, point)`; `server` is where notices go.

The agent asks on which day to pay, and is told in words; it then wants to pay, and somebody presses Approve. The phone
is in this process, too, and writes and presses again after a kill: it cannot know what arrived. Without a kill it goes
on to the end, and the places that were passed are in `points.json` of the folder.
"""

import asyncio
import json
import re
import urllib.request
from pathlib import Path
from typing import Any

from wakeful import Agent, RunContext, Runtime, ask_person, tool
from wakeful.contracts.events import ChannelInputReceived, ChannelInputSettled, ChannelMessageClosed
from wakeful.contracts.events.holds import RUNTIME_STREAM
from wakeful.ports import ModelRequest
from wakeful.store.sqlite import SqliteStore
from wakeful.testing import scripted
from wakeful.testing.crash_store import CrashingStore
from wakeful.testing.crash_switch import CrashSwitch, KillPoint


def clerk(folder: Path) -> Agent[None, str]:
    @tool(effect="keyed")
    def pay(ctx: RunContext[None], day: str) -> str:
        """Pay somebody, once for each key."""
        bank = folder / "bank"
        if not bank.exists() or ctx.idempotency_key not in bank.read_text():
            with bank.open("a") as file:
                file.write(f"{ctx.idempotency_key} {day}\n")
        return f"paid on {day}"

    def reply(request: ModelRequest) -> Any:
        answered = [str(item.text) for item in request.history if item.role == "tool"]
        if not answered:
            return {"calls": [{"name": ask_person.name, "arguments": {"question": "On which day?"}}]}
        return {"calls": [{"name": "pay", "arguments": {"day": answered[0]}}]} if len(answered) == 1 else "done"

    return Agent("clerk", scripted(reply), tools=[ask_person, pay])


class Phone:
    """It shows what was sent to its topic."""

    def __init__(self, address: str) -> None:
        self.address = address

    def shown(self) -> list[dict[str, Any]]:
        with urllib.request.urlopen(f"{self.address}/json?poll=1", timeout=60) as answer:
            return [json.loads(line) for line in answer.read().splitlines()]

    def act(self) -> None:
        """Answer every question and approve everything that can be, each once in this life."""
        for message in self.shown():
            if message.get("click") and "which day" in message["message"]:
                code = re.findall(r"[A-Z2-7]{4}-[A-Z2-7]{4}", message["message"])[-1]
                self._post(message["click"], f"{code} Friday")
            for each in message.get("actions", ()):
                if each["label"] == "Approve":
                    self._post(each["url"], each["body"])

    def _post(self, url: str, text: str) -> None:
        urllib.request.urlopen(urllib.request.Request(url, text.encode()), timeout=60).close()


async def paired(rt: Runtime, server: str, folder: Path) -> Phone:
    """The phone of this store, paired if it was not."""
    kept = folder / "topic"
    if kept.exists():
        return Phone(kept.read_text())
    made = await rt.channels.add("ntfy", "phone", server=server)
    assert made.subscribe is not None
    phone = Phone(made.subscribe)
    while not (shown := await asyncio.to_thread(phone.shown)):  # noqa: ASYNC110 - it happens on the server
        await asyncio.sleep(0.02)
    await rt.channels.pair("phone", shown[0]["message"].split("code is ")[1].split()[0])
    kept.write_text(made.subscribe)
    return phone


async def is_over(store: Any) -> bool:
    """Has all that the phone wanted been settled, and both messages on it been changed?"""
    runtime = [entry.fact.event for entry in await store.read(RUNTIME_STREAM)]
    wanted = {each.input_id for each in runtime if isinstance(each, ChannelInputReceived)}
    settled = {each.input_id for each in runtime if isinstance(each, ChannelInputSettled)}
    own = [entry.fact.event for entry in await store.read("clerk")]
    return wanted == settled and sum(isinstance(each, ChannelMessageClosed) for each in own) >= 2


async def main(folder: Path, server: str, point: KillPoint | None) -> None:
    path = folder / "wakeful.db"
    if not (folder / "topic").exists():  # nobody is killed while a phone is paired here
        async with Runtime(store=str(path), agents=[clerk(folder)]) as rt:
            await paired(rt, server, folder)
    switch = CrashSwitch(point)
    store: Any = CrashingStore(str(path), lambda: SqliteStore.open(path), switch)
    async with Runtime(store=store, agents=[clerk(folder)]) as rt:
        phone = await paired(rt, server, folder)
        sent = await rt.send("clerk", "Pay the rent.", key="rent")
        seen = 0
        while not await is_over(store):
            if (now := len(await asyncio.to_thread(phone.shown))) > seen:
                seen = now
                await asyncio.to_thread(phone.act)
            await asyncio.sleep(0.02)
        assert (await rt.answer(sent)).output == "done"
        await rt.settled()
    (folder / "points.json").write_text(json.dumps(switch.points()))
