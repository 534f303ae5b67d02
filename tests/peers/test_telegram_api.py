"""A Telegram Bot API written by others (npm telegram-test-api): our adapter speaks to it as to the real one."""

import asyncio
import json
import shutil
import subprocess
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kit.wires.loopback import free_port
from wakeful.contracts.channels import Button, ChannelMessage
from wakeful.tools.channels.service_calls import ServiceCalls
from wakeful.tools.channels.telegram import TelegramChannel

TOKEN, CHAT = "123:secret", 17
START = """
const TelegramServer = require('telegram-test-api');
const server = new TelegramServer({port: PORT, host: '127.0.0.1'});
server.start().then(() => console.log('listening'));
"""


class Phone:
    """Somebody who talks to the bot, through the peer's own door."""

    def __init__(self, url: str) -> None:
        self.url = url

    def _post(self, path: str, body: dict[str, Any]) -> Any:
        headers = {"content-type": "application/json"}
        request = urllib.request.Request(f"{self.url}{path}", json.dumps(body).encode(), headers)
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.loads(answer.read())["result"]

    def write(self, text: str) -> None:
        self._post("/sendMessage", {**self._envelope(), "text": text})

    def press(self, data: str) -> None:
        self._post("/sendCallback", {**self._envelope(), "data": data, "message": self._envelope()})

    def shown(self) -> list[dict[str, Any]]:
        found = self._post("/getUpdatesHistory", {"token": TOKEN})
        return [each["message"] for each in found if "chat_id" in each.get("message", {})]

    def _envelope(self) -> dict[str, Any]:
        return {"botToken": TOKEN, "from": {"id": CHAT}, "chat": {"id": CHAT, "type": "private"}, "date": 1}


@pytest.fixture
def phone(root: Path) -> Iterator[Phone]:
    if shutil.which("node") is None:
        pytest.skip("needs node 20 or newer to run telegram-test-api")
    if not (root / ".peers" / "node_modules" / "telegram-test-api").is_dir():
        pytest.skip("needs telegram-test-api, which is not installed; run: make peers")
    port = free_port()
    line = ["node", "-e", START.replace("PORT", str(port))]
    process = subprocess.Popen(line, cwd=root / ".peers", stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "listening\n"
        yield Phone(f"http://127.0.0.1:{port}")
    finally:
        process.kill()
        process.communicate()


async def test_messages_buttons_presses_and_edits_go_through_a_bot_api_of_others(phone: Phone) -> None:
    bot = TelegramChannel(ServiceCalls(phone.url), TOKEN)
    await asyncio.to_thread(phone.write, "/start")
    (first,) = (found := await bot.receive("")).updates
    assert (first.peer, first.text, first.press_id) == (str(CHAT), "/start", "")
    ref = await bot.publish(first.peer, ChannelMessage("ops", "wants to pay *5*", (Button("Approve", "x.a.mac"),)))
    (shown,) = await asyncio.to_thread(phone.shown)
    assert shown["text"] == "ops\n\nwants to pay *5*" and "parse_mode" not in shown
    assert shown["reply_markup"]["inline_keyboard"] == [[{"text": "Approve", "callback_data": "x.a.mac"}]]
    await asyncio.to_thread(phone.press, "x.a.mac")
    (press,) = (await bot.receive(found.cursor)).updates
    assert (press.peer, press.text) == (str(CHAT), "x.a.mac") and press.press_id
    await bot.acknowledge(press, "noted")
    await bot.revise(first.peer, ref, ChannelMessage("ops", "decided"))
    (edited,) = await asyncio.to_thread(phone.shown)
    assert edited["text"] == "ops\n\ndecided"
