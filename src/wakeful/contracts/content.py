"""Parts: what prompts, replies and tool results are made of.

A part holds its bytes inline, names a URL, or refers to a blob in the store. The runner moves large bytes behind a
reference before anything is logged, so that no event outgrows its limit.
"""

import mimetypes
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import Field, model_validator

from wakeful.contracts.values import Value, unchecked


class BlobRef(Value):
    """Names content by what it is: `sha256:<hex>`, its size and its media type."""

    digest: str
    size: int
    media_type: str = "application/octet-stream"


class Text(Value):
    """Words. `Text("hello")` works as well as `Text(text="hello")`."""

    type: Literal["text"] = "text"
    text: str = ""
    ref: BlobRef | None = None
    """Where the whole text is, when it was too long to stand here; `text` is then a preview."""

    def __init__(self, text: str = "", **data: Any) -> None:
        super().__init__(**{"text": text, **data})

    # Reading stored values does not go through it: a text is what most of a log is made of.
    __init__.__pydantic_base_init__ = True  # type: ignore[attr-defined]


class _Binary(Value):
    media_type: str
    data: bytes | None = None
    url: str | None = None
    ref: BlobRef | None = None

    @model_validator(mode="after")
    def _has_one_source(self) -> "_Binary":
        if sum(source is not None for source in (self.data, self.url, self.ref)) != 1:
            raise ValueError("give exactly one of data, url or ref")
        return self


class Image(_Binary):
    """A picture: `Image(data=..., media_type="image/png")`, `Image(url=...)` or `Image.from_path(path)`."""

    type: Literal["image"] = "image"
    media_type: str = "image/png"

    @classmethod
    def from_path(cls, path: str | Path) -> "Image":
        """Read a picture from disk; its media type follows from the file name."""
        path = Path(path)
        return cls(data=path.read_bytes(), media_type=mimetypes.guess_type(path.name)[0] or "image/png")


class File(_Binary):
    """A document with a name."""

    type: Literal["file"] = "file"
    name: str = "file"
    media_type: str = "application/octet-stream"

    @classmethod
    def from_path(cls, path: str | Path) -> "File":
        """Read a document from disk."""
        path = Path(path)
        kind = mimetypes.guess_type(path.name)[0] or "application/octet-stream"
        return cls(name=path.name, data=path.read_bytes(), media_type=kind)


class Thinking(Value):
    """A model's reasoning, kept exactly as its provider gave it so that it can be handed back untouched."""

    type: Literal["thinking"] = "thinking"
    text: str = ""
    provider: str = ""
    """Whose reasoning it is: blocks of another provider are left out of a request (and stay in the log)."""
    opaque: dict[str, Any] = {}
    """Signatures, ids, encrypted content: never read by us."""
    ref: BlobRef | None = None
    """Where text and opaque content are, as JSON, when they are too large to stand here."""


Part: TypeAlias = Annotated[Text | Image | File | Thinking, Field(discriminator="type")]
Prompt: TypeAlias = (
    "str | Text | Image | File | list[str | Text | Image | File] | tuple[str | Text | Image | File, ...]"
)


_text = unchecked(Text)


def parts_of(prompt: Prompt) -> tuple[Text | Image | File, ...]:
    """A prompt in any of its spellings, as parts."""
    if isinstance(prompt, str):
        return (_text(text=prompt) if type(prompt) is str else Text(prompt),)
    if isinstance(prompt, Text | Image | File):
        return (prompt,)
    return tuple(Text(piece) if isinstance(piece, str) else piece for piece in prompt)


def text_of(parts: tuple[Any, ...]) -> str:
    """The words among parts, in order."""
    return "".join([part.text for part in parts if isinstance(part, Text)])
