"""Conversation items in the words of the Responses API, one at a time and the same way each time.

What the provider gave goes back as it came, but for the ids of its items: where it stored nothing, or does not have it
any more, they name nothing and are refused. A server that wants them gets everything. Reasoning goes back where it can
be read without what was stored: encrypted, or in its own words (then with its id, which some servers ask for). What
another provider gave as its own is left out.
"""

import base64
import json
from collections.abc import Callable
from typing import Any

from pydantic_core import PydanticSerializationError, to_json

from wakeful.contracts.content import File, Image, Text, Thinking
from wakeful.contracts.conversation import AssistantItem, AssistantPart, CallPart, ToolItem, UserItem
from wakeful.contracts.errors import ModelFailure
from wakeful.providers.openai_responses.output import SAID
from wakeful.providers.wire.attachments import Attachments, kind_of, read_out
from wakeful.providers.wire.names import WireNames

_OF_A_KEPT_ITEM = ("id", "status")
_EMPTY_BY_DEFAULT = ("annotations", "logprobs")


class ItemEncoder:
    """Encodes items for one provider and one set of tool names."""

    __slots__ = ("_attachments", "_freeform", "_ids", "_names", "_plain_reasoning", "_provider", "_reasons")

    def __init__(
        self,
        names: WireNames,
        *,
        provider: str,
        attachments: Attachments,
        ids: bool = False,
        plain_reasoning: bool = False,
        reasons: bool = True,
        freeform: bool = False,
    ) -> None:
        self._names = names
        self._freeform = names.freeform if freeform else {}
        """Calls of these tools, and what came of them, are in the words of tools that take a bare text."""
        self._provider = provider
        self._ids = ids
        self._plain_reasoning = plain_reasoning
        self._reasons = reasons
        self._attachments = attachments

    def encode(self, item: UserItem | AssistantItem | ToolItem) -> bytes:
        """The item's wire items, each with a comma before it; nothing when nothing of it is for this provider."""
        if isinstance(item, UserItem):
            # One without parts only makes another provider go on where it paused.
            shown = [self._piece(part, self._attachments.left_out) for part in item.parts]
            return _entry({"type": "message", "role": "user", "content": shown}) if shown else b""
        if isinstance(item, ToolItem):
            return _entry(self._result(item))
        return b"".join(_entry(entry) for entry in self._said(item))

    def _result(self, item: ToolItem) -> dict[str, Any]:
        only_words = all(isinstance(part, Text) for part in item.parts)
        shown = [self._piece(part, self._attachments.left_out_of_result) for part in item.parts]
        output = item.text if only_words else shown
        kind = "custom_tool_call_output" if item.name in self._freeform else "function_call_output"
        return {"type": kind, "call_id": item.call_id, "output": output}

    def _piece(self, part: Text | Image | File, left_out: Callable[[Image | File], str | None]) -> dict[str, Any]:
        if part.ref is not None:
            raise _unfetched(part.type)
        if isinstance(part, Text):
            return {"type": "input_text", "text": part.text}
        words = left_out(part)
        if words is None and isinstance(part, File) and not self._attachments.takes_files:
            words = read_out(part)
        if words is not None:
            return {"type": "input_text", "text": words}
        if isinstance(part, Image) or kind_of(part) == "image":
            return {"type": "input_image", "detail": "auto", "image_url": part.url or _data_url(part)}
        if part.url is not None:
            return {"type": "input_file", "file_url": part.url}
        return {"type": "input_file", "filename": part.name, "file_data": _data_url(part)}

    def _said(self, item: AssistantItem) -> list[dict[str, Any]]:
        ours = item.provider == self._provider
        entries: list[dict[str, Any]] = []
        frame: dict[str, Any] | None = None
        words: list[str] = []

        def close_message() -> None:
            nonlocal frame
            message = self._message(frame, words)
            if message is not None:
                entries.append(message)
            frame = None
            words.clear()

        for part in item.parts:
            if isinstance(part, Text):
                if part.ref is not None:
                    raise _unfetched(part.type)
                words.append(part.text)
                continue
            close_message()
            if isinstance(part, Thinking):
                if not (ours and part.provider == self._provider):
                    continue
                if part.ref is not None:
                    raise _unfetched(part.type)
                if part.opaque.get("type") == "message":
                    frame = part.opaque
                else:
                    entries.extend(self._own(part.opaque))
            elif isinstance(part, CallPart):
                entries.append(self._call(part, ours))
            else:
                # Pictures and files a model made have no place in what the assistant said; the rest of it goes on.
                entries.append({"type": "message", "role": "assistant", "content": f"[{_named(part)}]"})
        close_message()
        return entries

    def _message(self, frame: dict[str, Any] | None, words: list[str]) -> dict[str, Any] | None:
        """A message of the assistant, in its frame when it is this provider's and still fits its words."""
        content = _filled(frame["content"], words) if frame is not None else None
        if frame is None or content is None:
            text = "".join(words)
            return {"type": "message", "role": "assistant", "content": text} if text else None
        if self._ids:
            return {**frame, "content": content}
        bare = [_without_defaults(piece) for piece in content]
        if len(bare) == 1 and bare[0].keys() == {"type", "text"}:
            return {**self._bare(frame), "content": bare[0]["text"]}
        return {**self._bare(frame), "content": bare}

    def _own(self, opaque: dict[str, Any]) -> list[dict[str, Any]]:
        """The provider's own item: reasoning, or one that is not known here. Without a type it is no wire item."""
        kind = opaque.get("type")
        if not isinstance(kind, str):
            return []
        if kind == "reasoning" and not self._reasons:
            return []  # a model that does not reason refuses it
        if kind == "reasoning" and not self._ids:
            if opaque.get("content") or self._plain_reasoning:
                return [{key: value for key, value in opaque.items() if key != "status"}]
            if not opaque.get("encrypted_content"):
                return []  # its id alone may name nothing
        if kind == "web_search_call" and not self._ids:
            return [{key: value for key, value in opaque.items() if key != "id"}]  # its status is part of what it says
        return [opaque if self._ids else self._bare(opaque)]

    def _call(self, part: CallPart, ours: bool) -> dict[str, Any]:
        if part.arguments_ref is not None:
            raise _unfetched("call's arguments")
        written = part.raw_arguments if part.arguments is None else dumped(part.arguments).decode()
        call = {"call_id": part.call_id, "name": self._names.to_wire(part.name)}
        bare = self._freeform.get(part.name)
        if bare is None:
            call |= {"type": "function_call", "arguments": written or ""}
        else:
            text = (part.arguments or {}).get(bare)
            call |= {"type": "custom_tool_call", "input": text if isinstance(text, str) else written or ""}
        if not ours:
            return call
        return {**(part.opaque if self._ids else self._bare(part.opaque)), **call}

    @staticmethod
    def _bare(entry: dict[str, Any]) -> dict[str, Any]:
        return {key: value for key, value in entry.items() if key not in _OF_A_KEPT_ITEM}


def _entry(entry: dict[str, Any]) -> bytes:
    return b"," + dumped(entry)


def dumped(value: Any) -> bytes:
    """JSON without a space too many."""
    try:
        return to_json(value)
    except PydanticSerializationError:  # half a character, which only an escape can say
        return json.dumps(value, separators=(",", ":")).encode()


def _filled(frame: Any, words: list[str]) -> list[dict[str, Any]] | None:
    """The frame of a message with its words put back; None when they do not belong together any more."""
    if not isinstance(frame, list) or not all(isinstance(piece, dict) for piece in frame):
        return None
    left = list(reversed(words))
    filled = []
    for piece in frame:
        field = SAID.get(str(piece.get("type")))
        if field is None:
            filled.append(piece)
        elif left:
            filled.append({**piece, field: left.pop()})
        else:
            return None
    return filled if not left else None


def _without_defaults(piece: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in piece.items() if key not in _EMPTY_BY_DEFAULT or value}


def _data_url(part: Image | File) -> str:
    return f"data:{part.media_type};base64,{base64.b64encode(part.data or b'').decode()}"


def _named(part: AssistantPart) -> str:
    return f"{part.type} made earlier"


def _unfetched(what: str) -> ModelFailure:
    return ModelFailure(
        f"a {what} stands behind a reference that was not fetched before the request",
        kind="contract_error",
        stage="send",
    )
