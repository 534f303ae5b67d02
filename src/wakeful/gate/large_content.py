"""Large content goes behind references before it is logged, and comes back before a model is asked.

No event outgrows its limit, and no request lacks what its items refer to. Deciding never needs a blob.
"""

import json
from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

from wakeful.contracts.content import BlobRef, File, Image, Text, Thinking
from wakeful.contracts.conversation import AssistantItem, CallPart, ToolItem, UserItem
from wakeful.decisions.prompt_size import refers

AnyItem: TypeAlias = UserItem | AssistantItem | ToolItem
Keep: TypeAlias = Callable[[bytes, str], Awaitable[BlobRef]]
Fetch: TypeAlias = Callable[[str], Awaitable[bytes]]

INLINE_BYTES = 48_000
"""An item up to this size, encoded, stands in its event; the event has room for the rest of itself."""
SMALL_BYTES = 512
"""Parts below this are not worth a reference."""
PREVIEW_CHARS = 200
_NUMBERS = (int, float)


async def offload(item: AnyItem, keep: Keep) -> AnyItem:
    """The item with its largest parts behind references, as many as it takes to fit."""
    if _surely_small(item):
        return item
    parts: list[Any] = list(item.parts)
    sizes = [_encoded_size(part) for part in parts]
    for index in sorted(range(len(parts)), key=lambda index: -sizes[index]):
        if sum(sizes) <= INLINE_BYTES or sizes[index] <= SMALL_BYTES:
            break
        parts[index] = await _behind_reference(parts[index], keep)
        sizes[index] = _encoded_size(parts[index])
    return item.model_copy(update={"parts": tuple(parts)})


def _surely_small(item: AnyItem) -> bool:
    """True without encoding anything: text is at most six bytes a character in JSON."""
    total = 0
    for part in item.parts:
        if isinstance(part, Text):
            total += len(part.text) * 6
        elif isinstance(part, CallPart):
            if part.arguments and not _small_arguments(part.arguments):
                return False
            total += 400 + len(part.raw_arguments or "") * 6
        else:
            return False
    return total <= INLINE_BYTES


def _small_arguments(arguments: dict[str, Any]) -> bool:
    if len(arguments) > 16:
        return False
    for value in arguments.values():
        if not (value is None or isinstance(value, _NUMBERS) or (isinstance(value, str) and len(value) < 60)):
            return False
    return True


def _encoded_size(part: Any) -> int:
    return len(part.model_dump_json().encode())  # bytes: a character may take four


async def _behind_reference(part: Any, keep: Keep) -> Any:
    if isinstance(part, Text) and part.ref is None:
        ref = await keep(part.text.encode("utf-8", "replace"), "text/plain; charset=utf-8")
        return Text(part.text[:PREVIEW_CHARS], ref=ref)
    if isinstance(part, Image | File) and part.data is not None:
        ref = await keep(part.data, part.media_type)
        return part.model_copy(update={"data": None, "ref": ref})
    if isinstance(part, Thinking) and part.ref is None:
        whole = {"text": part.text, "opaque": part.opaque}
        return Thinking(provider=part.provider, ref=await keep(json.dumps(whole).encode(), "application/json"))
    if isinstance(part, CallPart) and part.arguments is not None:
        ref = await keep(json.dumps(part.arguments).encode(), "application/json")
        return part.model_copy(update={"arguments": None, "arguments_ref": ref})
    if isinstance(part, CallPart) and part.raw_arguments is not None:
        return part.model_copy(update={"raw_arguments": part.raw_arguments[:PREVIEW_CHARS]})
    return part


async def resolve(item: AnyItem, fetch: Fetch) -> AnyItem:
    """The item whole again, for a model to read."""
    if not refers(item):
        return item
    return item.model_copy(update={"parts": tuple([await _whole(part, fetch) for part in item.parts])})


async def _whole(part: Any, fetch: Fetch) -> Any:
    if isinstance(part, CallPart):
        return part.model_copy(update={"arguments": await arguments_of(part, fetch), "arguments_ref": None})
    ref: BlobRef | None = getattr(part, "ref", None)
    if ref is None:
        return part
    data = await fetch(ref.digest)
    if isinstance(part, Text):
        return Text(data.decode("utf-8", "replace"))
    if isinstance(part, Thinking):
        return Thinking(provider=part.provider, **json.loads(data))
    return part.model_copy(update={"data": data, "ref": None})


async def arguments_of(part: CallPart, fetch: Fetch) -> dict[str, Any] | None:
    """A call's arguments, wherever they are."""
    if part.arguments_ref is None:
        return part.arguments
    loaded = json.loads(await fetch(part.arguments_ref.digest))
    return loaded if isinstance(loaded, dict) else None
