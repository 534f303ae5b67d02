"""Telegram: a bot of yours, asked for its updates by long polling. No port, no SDK; plain text, never markup."""

from dataclasses import dataclass
from typing import Any

from wakeful.contracts.channels import ChannelMessage, ChannelUpdate, ChannelUpdates
from wakeful.ports.channels import ChannelFailure
from wakeful.tools.channels.service_calls import ServiceCalls

WAIT_SECONDS = 50
MOST_AT_ONCE = 100
ANOTHER = "another program asks for the updates of this bot, and only one can: stop it, or make a bot of its own"


@dataclass(slots=True)
class TelegramChannel:
    """A bot."""

    calls: ServiceCalls
    token: str

    async def publish(self, peer: str, message: ChannelMessage) -> str:
        found = await self._call("sendMessage", {"chat_id": peer, **_shown(message)})
        ref = found.get("message_id") if isinstance(found, dict) else None
        if ref is None:
            raise ChannelFailure(f"{self.calls.host} took the message and did not say what it is called")
        return str(ref)

    async def revise(self, peer: str, ref: str, message: ChannelMessage) -> None:
        try:
            await self._call("editMessageText", {"chat_id": peer, "message_id": int(ref), **_shown(message)})
        except ChannelFailure as problem:
            if "not modified" not in problem.words:
                raise

    async def receive(self, cursor: str) -> ChannelUpdates:
        asked = {"timeout": WAIT_SECONDS, "limit": MOST_AT_ONCE, "allowed_updates": ["message", "callback_query"]}
        if cursor:
            asked["offset"] = int(cursor)
        try:
            found = await self._call("getUpdates", asked, seconds=WAIT_SECONDS + 20)
        except ChannelFailure as problem:
            if "HTTP 409" in problem.words:
                raise ChannelFailure(ANOTHER, retry_after=problem.retry_after, needs_person=True) from None
            raise
        if not isinstance(found, list):
            raise ChannelFailure(f"{self.calls.host} answered getUpdates with something else than a list of updates")
        updates = [each for each in found if isinstance(each, dict) and isinstance(each.get("update_id"), int)]
        newest = max((each["update_id"] for each in updates), default=None)
        taken = tuple(update for each in updates if (update := _update(each)) is not None)
        return ChannelUpdates(taken, cursor if newest is None else str(newest + 1))

    async def acknowledge(self, update: ChannelUpdate, words: str) -> None:
        if update.press_id:
            await self._call("answerCallbackQuery", {"callback_query_id": update.press_id, "text": words[:200]})

    async def _call(self, method: str, data: dict[str, Any], *, seconds: float = 20.0) -> Any:
        found = await self.calls.ask("POST", f"/bot{self.token}/{method}", data, seconds=seconds)
        if not isinstance(found, dict) or found.get("ok") is not True:
            raise ChannelFailure(f"{self.calls.host} did not do {method}")
        return found.get("result")


def _shown(message: ChannelMessage) -> dict[str, Any]:
    shown: dict[str, Any] = {
        "text": f"{message.title}\n\n{message.text}" if message.title else message.text,
        "link_preview_options": {"is_disabled": True},
    }
    if message.buttons:
        rows = [[{"text": each.label, "callback_data": each.code}] for each in message.buttons]
        flat = [button for row in rows for button in row]
        shown["reply_markup"] = {"inline_keyboard": [flat] if len(flat) <= 3 else rows}
    return shown


def _update(given: dict[str, Any]) -> ChannelUpdate | None:
    """A press or a message in a private chat; nothing else is looked at."""
    name = str(given["update_id"])
    pressed, message = given.get("callback_query"), given.get("message")
    if isinstance(pressed, dict):
        chat = pressed.get("message", {}).get("chat", {}) if isinstance(pressed.get("message"), dict) else {}
        who, said = pressed.get("from"), pressed.get("data")
        if isinstance(chat, dict) and isinstance(who, dict) and isinstance(said, str):
            peer = str(chat.get("id", who.get("id")))
            return ChannelUpdate(name, peer, said, str(pressed.get("id", "")))
    if isinstance(message, dict):
        chat, said = message.get("chat"), message.get("text")
        is_private = isinstance(chat, dict) and chat.get("type", "private") == "private"
        if isinstance(chat, dict) and is_private and isinstance(said, str):
            before = message.get("reply_to_message")
            shown = before.get("text") if isinstance(before, dict) else None
            return ChannelUpdate(name, str(chat.get("id")), said, reply_to=shown if isinstance(shown, str) else "")
    return None
