"""Items of a conversation as Chat Completions messages, each encoded by itself and once.

A message's bytes begin with a comma, so that messages can be put one after the other without being touched again. What
chat cannot say in a tool message, a picture or a document, is said in a user message after the round's last result:
every call is still answered by its own tool message, right behind the message that made it.
"""

import hashlib
import re
from base64 import b64encode
from typing import Any, TypeAlias

from pydantic_core import PydanticSerializationError, from_json, to_json

from wakeful.contracts.content import File, Image, Text, Thinking
from wakeful.contracts.conversation import AssistantItem, CallPart, ToolItem, UserItem
from wakeful.providers.openai_chat.dialect import IN_CONTENT, Dialect
from wakeful.providers.wire.attachments import AUDIO, Attachments, kind_of, plain_type, read_out
from wakeful.providers.wire.names import WireNames
from wakeful.providers.wire.text import storable

OPAQUE = "openai_chat"
"""Under this name a part keeps what this wire format gave it: the same provider may have another format as well."""
_NINE = re.compile(r"[A-Za-z0-9]{9}")
_ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
LONGEST_ID = 40

Shown: TypeAlias = Text | Image | File


def dumps(value: Any) -> bytes:
    """Compact JSON. What UTF-8 cannot hold is replaced, not refused: it is somebody's prompt."""
    try:
        return to_json(value)
    except PydanticSerializationError:
        return to_json(storable(value))


class Messages:
    """Encodes items for one model at one endpoint."""

    __slots__ = ("_attachments", "_dialect", "_names", "_provider")

    def __init__(self, *, provider: str, names: WireNames, dialect: Dialect, attachments: Attachments) -> None:
        self._provider = provider
        self._names = names
        self._dialect = dialect
        self._attachments = attachments

    def encode(self, item: UserItem | AssistantItem | ToolItem) -> bytes:
        """One message with a comma before it; nothing for a reply that said nothing this provider may be shown."""
        message: dict[str, Any] | None
        if isinstance(item, UserItem):
            # One without parts only makes another provider go on where it paused.
            message = {"role": "user", "content": self._content(item.parts)} if item.parts else None
        elif isinstance(item, ToolItem):
            message = {"role": "tool", "tool_call_id": self.call_id(item.call_id), "content": self._result(item)}
        else:
            message = self._assistant(item)
        return b"," + dumps(message) if message is not None else b""

    def shown_after(self, item: UserItem | AssistantItem | ToolItem) -> bytes:
        """What of a tool result has to stand in a user message: its content parts, a comma before each."""
        if not isinstance(item, ToolItem):
            return b""
        parts = [self._attachment(part) for part in item.parts if self._follows(part)]
        if not parts:
            return b""
        whose = f"From the result of {self._names.to_wire(item.name)} ({self.call_id(item.call_id)}):"
        return b"".join(b"," + dumps(part) for part in ({"type": "text", "text": whose}, *parts))

    def call_id(self, call_id: str) -> str:
        """An id as this server takes it. The same id always becomes the same: calls and results stay paired."""
        style = self._dialect.call_ids
        if style == "any" or (style == "forty" and len(call_id) <= LONGEST_ID):
            return call_id
        if style == "nine" and _NINE.fullmatch(call_id):
            return call_id
        digest = hashlib.sha256(call_id.encode("utf-8", "surrogatepass")).digest()
        if style == "forty":
            return f"call_{digest.hex()[:32]}"
        return "".join(_ALPHABET[byte % len(_ALPHABET)] for byte in digest[:9])

    # --- what a person or the runtime said ---------------------------------------------------------------------

    def _content(self, parts: tuple[Shown, ...]) -> str | list[dict[str, Any]]:
        pieces = [
            {"type": "text", "text": words} if (words := self._said(part)) is not None else self._attachment(part)
            for part in parts
        ]
        texts = [piece["text"] for piece in pieces if piece["type"] == "text"]
        if len(texts) == len(pieces) and (len(texts) <= 1 or not self._dialect.content_parts):
            return "\n\n".join(texts)
        return pieces

    def _said(self, part: Shown) -> str | None:
        """What of a prompt goes as text. Raises ModelFailure for an attachment that the model cannot take."""
        words = _words(part)
        return words if words is not None or isinstance(part, Text) else self._attachments.left_out(part)

    def _attachment(self, part: Shown) -> dict[str, Any]:
        """A part that is not text, and that the model takes."""
        assert isinstance(part, Image | File)
        if kind_of(part) == "image":
            return {"type": "image_url", "image_url": {"url": part.url or _data_url(part)}}
        assert isinstance(part, File)
        sound = AUDIO.get(plain_type(part))
        if sound is not None:
            return {"type": "input_audio", "input_audio": {"data": b64encode(_bytes(part)).decode(), "format": sound}}
        return {"type": "file", "file": {"filename": part.name, "file_data": _data_url(part)}}

    # --- what a tool said -------------------------------------------------------------------------------------------

    def _result(self, item: ToolItem) -> str:
        return "\n".join(self._in_result(part) for part in item.parts)

    def _in_result(self, part: Shown) -> str:
        words = _words(part)
        if words is not None:
            return words
        assert isinstance(part, Image | File)
        what = f"{part.name}, {part.media_type}" if isinstance(part, File) else part.media_type
        left_out = self._attachments.left_out_of_result(part)
        return left_out or f"[{what}: shown in the user message after the results]"

    def _follows(self, part: Shown) -> bool:
        """A tool's picture that the model cannot see is named and left out; a person's is refused instead."""
        if isinstance(part, Text) or _words(part) is not None:
            return False
        return self._attachments.left_out_of_result(part) is None

    # --- what the model said ----------------------------------------------------------------------------------------

    def _assistant(self, item: AssistantItem) -> dict[str, Any] | None:
        ours = item.provider == self._provider
        content = self._spoken(item)
        calls = [self._call(call, ours) for call in item.calls]
        kept = self._kept(item) if self._dialect.returns else {}
        if not (content or calls or kept):
            return None
        empty = dict.fromkeys(self._dialect.required, "")
        message: dict[str, Any] = {"role": "assistant", "content": content or (None if calls else ""), **empty, **kept}
        if calls:
            message["tool_calls"] = calls
        return message

    def _spoken(self, item: AssistantItem) -> str | list[dict[str, Any]]:
        """The words, with the reasoning that stood among them when it is this server's and goes back to it."""
        pieces: list[str | dict[str, Any]] = []
        for part in item.parts:
            if isinstance(part, Text):
                pieces.append(part.text)
            elif isinstance(part, Thinking) and part.provider == self._provider and IN_CONTENT in self._dialect.returns:
                held = part.opaque.get(OPAQUE, {}).get(IN_CONTENT)
                if isinstance(held, dict):
                    pieces.append(
                        _thinking_part(held["part"], part.text) if "part" in held else _block(held, part.text)
                    )
        if all(isinstance(piece, str) for piece in pieces):
            return "".join(str(piece) for piece in pieces)
        return [{"type": "text", "text": piece} if isinstance(piece, str) else piece for piece in pieces]

    def _kept(self, item: AssistantItem) -> dict[str, Any]:
        """Reasoning and other fields this server gave and wants back, as it gave them; another provider's never."""
        found: dict[str, Any] = {}
        for part in item.parts:
            if not isinstance(part, Thinking) or part.provider != self._provider:
                continue
            if part.ref is not None:
                raise ValueError("reasoning stands behind a reference and was not fetched")
            opaque = part.opaque.get(OPAQUE, {})
            for name in opaque.get("said_in", ()):
                found[name] = part.text
            found.update(opaque.get("fields", {}))
        return {name: found[name] for name in self._dialect.returns if name in found and name != IN_CONTENT}

    def _call(self, call: CallPart, ours: bool) -> dict[str, Any]:
        opaque = call.opaque.get(OPAQUE, {}) if ours else {}
        function = {"name": self._names.to_wire(call.name), "arguments": self._arguments(call)}
        return {
            **opaque.get("call", {}),
            "id": self.call_id(call.call_id),
            "type": "function",
            "function": {**opaque.get("function", {}), **function},
        }

    def _arguments(self, call: CallPart) -> str:
        """The model sees its own arguments again, the malformed ones too."""
        if call.arguments is not None:
            return dumps(call.arguments).decode()
        if call.arguments_ref is not None:
            raise ValueError(f"the arguments of {call.call_id} were not fetched")
        raw = call.raw_arguments or ""
        as_it_is = raw and (not self._dialect.json_arguments or _is_json_object(raw))
        return raw if as_it_is else dumps({"malformed_arguments": raw}).decode()


def _block(held: dict[str, Any], text: str) -> str:
    return f"{held['before']}{text}{held['after']}"


def _thinking_part(frame: dict[str, Any], text: str) -> dict[str, Any]:
    """A `thinking` part with its words put back: where each of them stood, there is its length."""
    thinking = frame["thinking"]
    if isinstance(thinking, int):
        return {**frame, "thinking": text}
    pieces: list[Any] = []
    at = 0
    for piece in thinking:
        if isinstance(piece, dict) and isinstance(size := piece.get("text"), int):
            piece, at = {**piece, "text": text[at : at + size]}, at + size
        pieces.append(piece)
    return {**frame, "thinking": pieces}


def _words(part: Shown) -> str | None:
    """A part as text, when it is text: a text file is read to the model, because chat takes no other files than PDF."""
    if getattr(part, "ref", None) is not None:
        raise ValueError("a part stands behind a reference and was not fetched")
    if isinstance(part, Text):
        return part.text
    return read_out(part) if isinstance(part, File) else None


def _is_json_object(text: str) -> bool:
    """True of the arguments of a call that its provider refused for another reason."""
    try:
        return isinstance(from_json(text, allow_inf_nan=False), dict)
    except ValueError:
        return False


def _bytes(part: Image | File) -> bytes:
    assert part.data is not None
    return part.data


def _data_url(part: Image | File) -> str:
    return f"data:{part.media_type};base64,{b64encode(_bytes(part)).decode()}"
