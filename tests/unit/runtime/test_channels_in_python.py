"""Phones in a program: `rt.channels`, with a service that reaches a phone on this machine."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from kit.wires.phone_servers import NtfyServer, listening
from wakeful import Runtime
from wakeful.errors import InvalidRequest


async def shown(ntfy: NtfyServer, topic: str, number: int) -> dict[str, Any]:
    """The message of that number on the phone, once it is there."""
    found: dict[str, Any] = await asyncio.to_thread(
        ntfy.until, lambda: len(ntfy.topics.get(topic, ())) > number and ntfy.topics[topic][number]
    )
    return found


async def test_a_program_adds_pairs_tests_and_forgets_a_phone(tmp_path: Path) -> None:
    with listening(NtfyServer()) as ntfy:
        async with Runtime(tmp_path) as rt:
            made = await rt.channels.add("ntfy", "phone", server=ntfy.url)
            assert made.subscribe is not None and (made.state, made.added_by) == ("open", "program")
            topic = made.subscribe.rpartition("/")[2]
            code = (await shown(ntfy, topic, 0))["message"].split("code is ")[1].split()[0]
            with pytest.raises(InvalidRequest, match="no phone was shown this code"):
                await rt.channels.pair("phone", "AAAA-AAAA")
            with pytest.raises(InvalidRequest, match="is paired with no phone"):
                await rt.channels.test("phone")
            assert (await rt.channels.pair("phone", code)).state == "paired"
            await rt.channels.test("phone")
            ntfy.press(await shown(ntfy, topic, 1), "OK")
            while (found := (await rt.channels.list())[0]).heard_at is None:  # noqa: ASYNC110
                await asyncio.sleep(0.02)
            assert (found.channel, found.caller, found.refused) == ("phone", "channel:ntfy:phone", 0)
            assert (await rt.channels.open_pairing("phone")).subscribe == made.subscribe
            assert (await rt.channels.remove("phone")).state == "removed"
            assert await rt.channels.list() == []
            again = await rt.channels.add("ntfy", "phone", server=ntfy.url)
            assert again.subscribe != made.subscribe, "its topics are others"
