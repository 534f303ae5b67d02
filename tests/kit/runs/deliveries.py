"""Deliveries to triggers, signed as senders sign them, and an agent that notes what it was shown."""

import hashlib
import hmac
from base64 import b64encode
from datetime import UTC, datetime
from typing import Any

from wakeful import Agent, Runtime
from wakeful.ports import ModelRequest
from wakeful.testing import scripted

NOON = datetime(2040, 1, 2, 12, tzinfo=UTC)
SECRET = "a secret of the CI"
JSON = {"Content-Type": "application/json"}


class Ears:
    """An agent's model: it notes what it was shown."""

    def __init__(self) -> None:
        self.shown: list[str] = []

    def agent(self, **options: Any) -> Agent[None, str]:
        def answer(request: ModelRequest) -> object:
            self.shown.append(str(request.history[-1].text))
            wants = "transfer" in self.shown[-1] and request.answered == 0
            return {"calls": [{"name": "pay", "arguments": {"cents": 5}}]} if wants else "noted"

        return Agent("ops", scripted(answer), **options)


def hub(raw: bytes, secret: str = SECRET) -> dict[str, str]:
    code = hmac.new(secret.encode(), raw, hashlib.sha256).hexdigest()
    return {**JSON, "X-Hub-Signature-256": f"sha256={code}"}


def standard(raw: bytes, name: str = "msg_1", at: datetime = NOON, secret: str = SECRET) -> dict[str, str]:
    moment = str(int(at.timestamp()))
    code = hmac.new(secret.encode(), f"{name}.{moment}.".encode() + raw, hashlib.sha256).digest()
    signature = f"v1a,nothing v1,{b64encode(code).decode()}"
    return {**JSON, "webhook-id": name, "webhook-timestamp": moment, "webhook-signature": signature}


async def events(rt: Runtime, prefix: str) -> list[Any]:
    found = [entry.fact.event for entry in await rt._here.engine.store.read("ops")]
    return [event for event in found if event.kind.startswith(prefix)]
