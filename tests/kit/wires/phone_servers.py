"""Services that reach phones, on this machine: an ntfy server and a Telegram Bot API, each with a phone to press on.

They do what the real ones do as far as a channel can see: messages by id after a cursor, streams that wait, updates
that are delivered again until they are confirmed, buttons with at most 64 bytes. Faults can be planned.
"""

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple
from urllib.parse import parse_qs, urlsplit


class Fault(NamedTuple):
    """An answer in the place of the real one."""

    status: int
    body: dict[str, Any]


class PhoneServer:
    """What both have: a log of requests, planned faults, and somebody who waits for something."""

    def __init__(self) -> None:
        self.changed = threading.Condition()
        self.faults: list[tuple[str, Fault]] = []
        self.requests: list[tuple[str, Any]] = []
        self.url = ""
        self.closing = False

    def plan(self, where: str, status: int, times: int = 1, **body: Any) -> None:
        """The next requests whose path has these words are answered like this."""
        with self.changed:
            self.faults += [(where, Fault(status, body))] * times

    def give_up_faults(self) -> None:
        """Those that were planned and not met are left out."""
        with self.changed:
            self.faults.clear()

    def fault(self, path: str) -> Fault | None:
        with self.changed:
            found = next((each for each in self.faults if each[0] in path), None)
            if found is None:
                return None
            self.faults.remove(found)
            return found[1]

    def until(self, is_there: Callable[[], Any], seconds: float = 60.0) -> Any:
        """What is there, once it is."""
        with self.changed:
            assert self.changed.wait_for(is_there, seconds), f"it never came; there was {self.requests[-5:]}"
            return is_there()

    def note(self, path: str, body: Any) -> None:
        with self.changed:
            self.requests.append((path, body))
            self.changed.notify_all()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    service: Any

    def log_message(self, *_: Any) -> None:
        """Nothing: a test reads `requests`."""

    def handle(self) -> None:
        with suppress(ConnectionResetError):  # whoever asked was killed
            super().handle()

    def do_GET(self) -> None:
        with suppress(BrokenPipeError, ConnectionResetError):  # whoever asked was killed, or has what it wanted
            self.service.answer(self, "GET", b"")

    def do_POST(self) -> None:
        with suppress(BrokenPipeError, ConnectionResetError):
            self.service.answer(self, "POST", self.rfile.read(int(self.headers.get("content-length", "0"))))

    def reply(self, status: int, body: Any) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


@contextmanager
def listening(service: Any) -> Iterator[Any]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"service": service}))
    server.daemon_threads = True
    service.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield service
    finally:
        with service.changed:
            service.closing = True
            service.changed.notify_all()
        server.shutdown()
        server.server_close()


class NtfyServer(PhoneServer):
    """Topics: what was published to each, in order."""

    def __init__(self) -> None:
        super().__init__()
        self.topics: dict[str, list[dict[str, Any]]] = {}
        self.tokens: list[str] = []

    def answer(self, handler: Any, method: str, raw: bytes) -> None:
        self.tokens.append(handler.headers.get("authorization", ""))
        if (fault := self.fault(handler.path)) is not None:
            self.note(handler.path, None)
            handler.reply(*fault)
            return
        parts = urlsplit(handler.path)
        if method == "POST":
            body = json.loads(raw) if parts.path == "/" else {"topic": parts.path[1:], "message": raw.decode()}
            handler.reply(200, self.publish(body))
            return
        query = parse_qs(parts.query)
        self._stream(handler, parts.path.split("/")[1], query.get("since", [""])[0], "poll" in query)

    def publish(self, body: dict[str, Any]) -> dict[str, Any]:
        with self.changed:
            kept = self.topics.setdefault(body["topic"], [])
            number = sum(len(each) for each in self.topics.values()) + 1
            message = {"id": f"m{number:06d}", "time": int(time.time()), "event": "message", **body}
            kept.append(message)
        self.note("/" + body["topic"], body)
        return message

    def _stream(self, handler: Any, topic: str, since: str, poll: bool) -> None:
        handler.send_response(200)
        handler.send_header("content-type", "application/x-ndjson")
        handler.send_header("connection", "close")
        handler.end_headers()
        handler.close_connection = True
        if not poll:
            handler.wfile.write(json.dumps({"event": "open", "topic": topic}).encode() + b"\n")
        seen = 0
        while True:
            with self.changed:
                kept = list(self.topics.get(topic, ()))
            known = [number for number, each in enumerate(kept) if each["id"] == since]
            fresh = kept[max(seen, known[0] + 1 if known else 0) :]
            if since.isdigit():
                fresh = [each for each in fresh if each["time"] >= int(since)]
            seen = len(kept)
            for each in fresh:
                handler.wfile.write(json.dumps(each).encode() + b"\n")
            handler.wfile.flush()
            if poll or self.closing:
                return
            with self.changed:
                self.changed.wait_for(partial(self._has_more, topic, seen), 60)

    def _has_more(self, topic: str, seen: int) -> bool:
        return self.closing or len(self.topics.get(topic, ())) > seen

    # --- the phone ---------------------------------------------------------------------------------------------------

    def shown(self, topic: str) -> list[dict[str, Any]]:
        """What a phone that subscribes shows: a message that has been replaced counts once, as it is now."""
        found: dict[str, dict[str, Any]] = {}
        for each in self.topics.get(topic, ()):
            found[each.get("sequence_id", each["id"])] = each
        return list(found.values())

    def write(self, message: dict[str, Any], text: str) -> None:
        """Tap a message, which opens the topic of its answers, and write there."""
        self.publish({"topic": urlsplit(message["click"]).path[1:], "message": text})

    def press(self, message: dict[str, Any], label: str) -> str:
        """Press a button, as the app does; the code that it posted."""
        (button,) = [each for each in message["actions"] if each["label"] == label]
        self.publish({"topic": urlsplit(button["url"]).path[1:], "message": button["body"]})
        return str(button["body"])


_METHODS = {
    "getUpdates": "_updates_after",
    "sendMessage": "_send",
    "editMessageText": "_edit",
    "answerCallbackQuery": "_answer_press",
}


class TelegramServer(PhoneServer):
    """A bot: its chats, and updates that wait until they are confirmed."""

    TOKEN = "123:bot-secret-of-the-test"

    def __init__(self) -> None:
        super().__init__()
        self.updates: list[dict[str, Any]] = []
        self.chats: dict[int, dict[int, dict[str, Any]]] = {}
        self.answered: list[str] = []
        self.offsets: list[int | None] = []
        self._number = 100

    def answer(self, handler: Any, method: str, raw: bytes) -> None:
        path, data = handler.path, json.loads(raw or b"{}")
        name = path.rpartition("/")[2]
        self.note(name, data)
        if (fault := self.fault(path)) is not None:
            handler.reply(fault.status, {"ok": False, "error_code": fault.status, **fault.body})
        elif path != f"/bot{self.TOKEN}/{name}":
            handler.reply(401, {"ok": False, "description": "Unauthorized"})
        else:
            try:
                result = getattr(self, _METHODS[name])(data)
            except (KeyError, ValueError) as problem:
                handler.reply(400, {"ok": False, "description": f"Bad Request: {problem}"})
            else:
                handler.reply(200, {"ok": True, "result": result})

    def _updates_after(self, data: dict[str, Any]) -> list[dict[str, Any]]:
        offset = data.get("offset")
        with self.changed:
            self.offsets.append(offset)
            if offset is not None:
                self.updates = [each for each in self.updates if each["update_id"] >= offset]
            self.changed.wait_for(lambda: self.updates or self.closing, data.get("timeout", 0))
            return list(self.updates)[: data.get("limit", 100)]

    def _send(self, data: dict[str, Any]) -> dict[str, Any]:
        assert "parse_mode" not in data
        for row in data.get("reply_markup", {}).get("inline_keyboard", ()):
            if any(len(each["callback_data"].encode()) > 64 for each in row):
                raise ValueError("BUTTON_DATA_INVALID")
        with self.changed:
            self._number += 1
            self.chats.setdefault(int(data["chat_id"]), {})[self._number] = {**data, "edits": []}
            self.changed.notify_all()
            return {"message_id": self._number}

    def _edit(self, data: dict[str, Any]) -> dict[str, Any]:
        with self.changed:
            message = self.chats[int(data["chat_id"])][data["message_id"]]
            message["edits"].append(message["text"])
            message["text"] = data["text"]
            message["reply_markup"] = data.get("reply_markup", {})
            self.changed.notify_all()
            return {"message_id": data["message_id"]}

    def _answer_press(self, data: dict[str, Any]) -> bool:
        with self.changed:
            self.answered.append(data["callback_query_id"])
            self.changed.notify_all()
        return True

    # --- the phone ---------------------------------------------------------------------------------------------------

    def shown(self, chat: int) -> list[dict[str, Any]]:
        return list(self.chats.get(chat, {}).values())

    def write(self, chat: int, text: str, *, reply_to: dict[str, Any] | None = None) -> None:
        """Somebody writes to the bot, or replies to a message of it."""
        before = {"reply_to_message": {"message_id": 1, "text": reply_to["text"]}} if reply_to is not None else {}
        self._arrives({"message": {"message_id": 1, "chat": {"id": chat, "type": "private"}, "text": text, **before}})

    def press(self, chat: int, label: str) -> str:
        """Somebody presses a button of the newest message that has it; the code that it carries."""
        for name, message in reversed(self.chats[chat].items()):
            for row in message.get("reply_markup", {}).get("inline_keyboard", ()):
                for button in row:
                    if button["text"] == label:
                        self.send_code(chat, name, button["callback_data"])
                        return str(button["callback_data"])
        raise AssertionError(f"no message has {label}")

    def send_code(self, chat: int, message: int, code: str) -> None:
        shown = {"message_id": message, "chat": {"id": chat, "type": "private"}}
        self._arrives({"callback_query": {"from": {"id": chat}, "message": shown, "data": code}})

    def _arrives(self, update: dict[str, Any]) -> None:
        with self.changed:
            self._number += 1
            if "callback_query" in update:
                update["callback_query"]["id"] = f"press{self._number}"
            self.updates.append({"update_id": self._number, **update})
            self.changed.notify_all()
