"""What a tool returned, as parts for the model, and no more of it than a model is shown.

A string is text. A part, or a list with parts in it, is those parts. Bytes are text when they are UTF-8 and a file when
they are not. Everything else is compact JSON. None and an empty string become `(no output)`: some providers refuse an
empty result, and to a model it looks like a mistake.

Nothing a tool returns can break what stores it: lone surrogates and NUL become U+FFFD, NaN becomes a string, and what
has no JSON form raises ResultRefused, which is one failed call and nothing more.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from hashlib import sha256
from typing import Any, NamedTuple, TypeAlias

from pydantic_core import PydanticSerializationError, to_json, to_jsonable_python

from wakeful.contracts.budgets import MAX_TOOL_RESULT_BYTES
from wakeful.contracts.content import BlobRef, File, Image, Text
from wakeful.contracts.errors import ForTheModel
from wakeful.contracts.tools import MAX_RESULT_TOKENS
from wakeful.contracts.values import unchecked

ResultPart: TypeAlias = Text | Image | File

_plain = unchecked(Text)
NO_OUTPUT = "(no output)"
BYTES_PER_TOKEN = 3
MAX_SHOWN_BYTES = min(MAX_TOOL_RESULT_BYTES, MAX_RESULT_TOKENS * BYTES_PER_TOKEN)
"""How much text of one result a model is shown, the closing notice included, unless its tool has another budget."""


READ_ARTIFACT = "read_artifact"
"""The tool with which a model reads what was cut."""


class ResultRefused(ForTheModel):
    """The tool ran, and what it returned cannot be shown to a model."""


@dataclass(frozen=True, slots=True)
class ToolOutput:
    """A result with more to it than what the model reads. Tools that have nothing to add return the content itself."""

    content: Any
    """What the model is shown: whatever a tool may return."""
    artifacts: tuple[BlobRef, ...] = ()
    """Whole outputs kept by the tool (`ctx.keep`)."""
    truncated: bool = False
    """The content is less than what there was; an artifact has the rest."""
    partial: bool = False
    """Not everything that was asked for succeeded."""
    metadata: Mapping[str, Any] = field(default_factory=dict)
    """For people and programs, not for the model: `citations` and the like."""
    untrusted: str = ""
    """Why anybody may have written it, where only this call knows; blank: as the declaration says."""
    most_bytes: int | None = None
    """How much text of it the model may be shown, up to `MAX_TOOL_RESULT_BYTES`; None: as much as of any result."""


class ShownResult(NamedTuple):
    """A result as the model sees it."""

    parts: tuple[ResultPart, ...]
    whole: bytes | None
    """All of the text, UTF-8, when the parts hold less than that."""
    size: int
    """Bytes of the result, pictures and files included, before anything was cut."""


def show(
    value: Any, hide: Callable[[str], str] | None = None, most: int = MAX_SHOWN_BYTES, *, kept: bool = False
) -> ShownResult:
    """What a tool returned, ready for the model. Raises ResultRefused.

    `hide` takes out of every text what may not be in it, before anything is cut: no half of it stays. `kept`: the whole
    is kept as an artifact where it is cut, and the notice names the tool that reads it.
    """
    if hide is not None:
        return limit([_hidden(part, hide) for part in parts_from(value)], most, kept=kept)
    if type(value) is str and 0 < len(value) < 1_000 and value.isascii() and "\x00" not in value:
        return ShownResult((_plain(text=value),), None, len(value))  # nothing to clean and nothing to cut
    if type(value) is int and value.bit_length() <= 64:
        words = str(value)
        return ShownResult((_plain(text=words),), None, len(words))
    return limit(parts_from(value), most)


def excerpt_of(text: str, hide: Callable[[str], str], most: int) -> str:
    """The beginning of a text, as a result is cut, and no word about the rest: for whoever says that elsewhere."""
    part = limit([_hidden(_text(text), hide)], most, notice=False).parts[0]
    assert isinstance(part, Text)
    return part.text


def parts_from(value: Any) -> tuple[ResultPart, ...]:
    """A returned value as parts, at full length. Raises ResultRefused."""
    if value is None:
        return (Text(NO_OUTPUT),)
    if isinstance(value, str) and not isinstance(value, Enum):
        return (_text(value),)
    if isinstance(value, Text | Image | File):
        return (_clean_part(value),)
    if isinstance(value, list | tuple) and any(isinstance(piece, Text | Image | File) for piece in value):
        return tuple(part for piece in value for part in parts_from(piece))
    if isinstance(value, bytes | bytearray | memoryview):
        return _from_bytes(bytes(value))
    return (_text(_json(value)),)


def limit(
    parts: Sequence[ResultPart], most: int = MAX_SHOWN_BYTES, *, notice: bool = True, kept: bool = False
) -> ShownResult:
    """Keep at most `most` bytes of text, cut between characters, with a notice that says how much there was."""
    texts = [part for part in parts if isinstance(part, Text)]
    sizes = [len(part.text) if part.text.isascii() else len(part.text.encode()) for part in texts]
    total = sum(sizes)
    binary = sum(len(part.data or b"") for part in parts if isinstance(part, Image | File))
    if total <= most:
        return ShownResult(tuple(parts), None, total + binary)
    whole = (texts[0].text if len(texts) == 1 else "\n".join(part.text for part in texts)).encode()
    rest = f'; {READ_ARTIFACT}(artifact="{sha256(whole).hexdigest()[:12]}") reads the rest' if kept else ""
    end = f"\n[cut here: {most:,} of {total:,} bytes are shown{rest}]" if notice else ""
    left = most - len(end)
    shown: list[ResultPart] = []
    for part in parts:
        if not isinstance(part, Text):
            shown.append(part)
        elif left > 0:
            beginning = cut_text(part.text, left)
            left -= len(beginning.encode())
            if len(beginning) < len(part.text):
                left = 0
            shown.append(Text(beginning + end) if left == 0 else part)
    return ShownResult(tuple(shown), whole, total + binary)


def cut_text(words: str, most: int) -> str:
    """The beginning of a text, at most so many bytes of UTF-8, never half of a character."""
    # Every character is at least one byte: no need to encode more of a long text than could be shown.
    return words[:most].encode("utf-8", "surrogatepass")[:most].decode(errors="ignore")


def clean(text: str) -> str:
    """The text without what UTF-8 or a database cannot hold. Surrogates that make a pair become their character."""
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError:
            text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text.replace("\x00", "\ufffd") if "\x00" in text else text


def _text(value: str) -> Text:
    return Text(clean(str(value)) or NO_OUTPUT)


def _hidden(part: ResultPart, hide: Callable[[str], str]) -> ResultPart:
    if not isinstance(part, Text) or (words := hide(part.text)) == part.text:
        return part
    return part.model_copy(update={"text": words})


def _clean_part(part: ResultPart) -> ResultPart:
    return part.model_copy(update={"text": clean(part.text)}) if isinstance(part, Text) else part


def _from_bytes(data: bytes) -> tuple[ResultPart, ...]:
    if b"\x00" not in data:
        try:
            return (_text(data.decode()),)
        except UnicodeDecodeError:
            pass
    return (Text(f"[{len(data):,} bytes of binary data, attached as a file]"), File(name="result.bin", data=data))


def _json(value: Any) -> str:
    try:
        try:
            return to_json(value, inf_nan_mode="strings", bytes_mode="base64").decode()
        except (PydanticSerializationError, UnicodeEncodeError) as error:
            if "surrogates" not in str(error):
                raise
            plain = to_jsonable_python(value, inf_nan_mode="strings", bytes_mode="base64")
            return json.dumps(plain, ensure_ascii=False, separators=(",", ":"))
    except Exception as error:  # a user's own serialiser may raise anything
        raise ResultRefused(
            f"the tool returned a {type(value).__qualname__} that has no JSON form: {str(error)[:300]}",
            "return a string, a number, a list, a dict, a dataclass, a pydantic model, or parts",
        ) from error
