"""ntfy: a topic that a phone subscribes to, and a second one that the buttons of its messages post to.

Both names are long and random, and nobody needs an account. The runtime waits at the second topic, so that no port has
to be open. Whoever can read a topic can see what is in it: a server of your own keeps that to yourself.
"""

from dataclasses import dataclass
from typing import Any

from wakeful.contracts.channels import BUTTONS, TOPIC, ChannelMessage, ChannelUpdate, ChannelUpdates
from wakeful.ports.channels import ChannelFailure
from wakeful.tools.channels.service_calls import ServiceCalls

WAIT_SECONDS = 100.0
"""It says that it is alive every 45 seconds."""
MOST_ACTIONS = BUTTONS["ntfy"]


@dataclass(slots=True)
class NtfyChannel:
    """A pair of topics on a server."""

    calls: ServiceCalls
    topic: str
    reply_topic: str
    since: int
    """Unix seconds: nothing that is older is ours."""

    async def publish(self, peer: str, message: ChannelMessage) -> str:
        found = await self.calls.ask("POST", "/", self._body(message))
        ref = found.get("id") if isinstance(found, dict) else None
        if not isinstance(ref, str) or not ref:
            raise ChannelFailure(f"{self.calls.host} took the message and did not say what it is called")
        return ref

    async def revise(self, peer: str, ref: str, message: ChannelMessage) -> None:
        """Servers from 2.16 on replace the message; older ones show another one."""
        await self.calls.ask("POST", "/", {**self._body(message), "sequence_id": ref})

    async def receive(self, cursor: str) -> ChannelUpdates:
        waited = f"/{self.reply_topic}/json?since={cursor or self.since}"
        async with self.calls.lines(waited, seconds=WAIT_SECONDS) as lines:
            async for line in lines:
                if isinstance(line, dict) and line.get("event") == "message":
                    break
            else:
                return ChannelUpdates((), cursor)
        return await self._waiting(cursor)

    async def _waiting(self, cursor: str) -> ChannelUpdates:
        """Everything that came, together: a flood is looked at at once, and not line by line."""
        found: list[ChannelUpdate] = []
        async with self.calls.lines(
            f"/{self.reply_topic}/json?poll=1&since={cursor or self.since}", seconds=20
        ) as all_:
            async for line in all_:
                if isinstance(line, dict) and line.get("event") == "message" and isinstance(line.get("id"), str):
                    said = line.get("message")
                    text = said if isinstance(said, str) else ""
                    found.append(ChannelUpdate(line["id"], TOPIC, text))
        return ChannelUpdates(tuple(found), found[-1].update_id if found else cursor)

    async def acknowledge(self, update: ChannelUpdate, words: str) -> None:
        """The button says by itself that it was pressed."""

    def _body(self, message: ChannelMessage) -> dict[str, Any]:
        body: dict[str, Any] = {"topic": self.topic, "title": message.title, "message": message.text}
        if message.urgent:
            body["priority"] = 4
        answers = f"{self.calls.server}/{self.reply_topic}"
        actions: list[dict[str, Any]] = [
            {
                "action": "http",
                "label": button.label,
                "url": answers,
                "method": "POST",
                "body": button.code,
                "clear": True,
            }
            for button in message.buttons
        ]
        if message.wants_words:  # the page of the topic has a field to write in
            body["click"] = answers
            actions += [{"action": "view", "label": "Answer", "url": answers}] if len(actions) < MOST_ACTIONS else []
        if actions:
            body["actions"] = actions
        return body
