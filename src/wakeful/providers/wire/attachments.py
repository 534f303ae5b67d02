"""What a model can be shown beside text: one rule for every wire.

An attachment of a prompt that a model cannot take is refused by name before anything is sent, unless the caller said
beforehand that it may be left out (`accept_gap`). One in a tool's result is named in its place and left out: the model
asked for the result, and nobody can be asked about it. A text file is never a gap: it can be read to any model.
"""

import re
from typing import Literal, TypeAlias

from wakeful.contracts.content import File, Image
from wakeful.contracts.errors import ModelFailure
from wakeful.ports import RefusedAttachment
from wakeful.providers.profiles import ModelProfile
from wakeful.providers.wire.redaction import public_url

Kind: TypeAlias = Literal["image", "pdf", "text", "document", "audio", "video", "file"]
WireName: TypeAlias = Literal["openai_responses", "openai_chat", "anthropic", "gemini"]

IMAGES = ("image/jpeg", "image/png", "image/gif", "image/webp")
AUDIO = {"audio/wav": "wav", "audio/x-wav": "wav", "audio/mpeg": "mp3", "audio/mp3": "mp3"}
"""Sounds that Chat Completions takes, and what it calls them."""
GEMINI_IMAGES = (*IMAGES[:2], "image/webp", "image/heic", "image/heif")
UNKNOWN_TYPE = "application/octet-stream"
_TEXTUAL = re.compile(
    r"text/.*|application/(?:json|xml|yaml|x-yaml|toml|javascript|sql|x-sh|x-python)|.*\+(?:json|xml|yaml)"
)
_OFFICE = re.compile(
    r"application/(?:msword|rtf|vnd\.ms-(?:excel|powerpoint)|vnd\.oasis\.opendocument\..*"
    r"|vnd\.openxmlformats-officedocument\..*)"
)
_WORDS: dict[Kind, str] = {"image": "vision", "audio": "audio"}
"""The capability that a kind needs; every other needs `files`."""
_UNDECLARED = "it is not known to take "


class Attachments:
    """What one model can be shown over one wire. `accepted` are the gaps that the caller can do without."""

    __slots__ = ("_accepted", "_profile", "_ref", "_wire", "key")

    def __init__(self, ref: str, profile: ModelProfile, wire: WireName, accepted: frozenset[str] = frozenset()) -> None:
        self._ref = ref
        self._profile = profile
        self._wire: WireName = wire
        self._accepted = accepted
        self.key = (
            f"{ref}/{profile.images}/{profile.files}/{profile.audio}/{profile.video}/{','.join(sorted(accepted))}"
        )
        """Whatever changes how a part is written changes it."""

    @property
    def takes_files(self) -> bool:
        """Files go as files; otherwise those of text are read out."""
        return self._profile.files

    def untaken(self, part: Image | File) -> RefusedAttachment | None:
        """Why it cannot be shown; None when it can."""
        kind = kind_of(part)
        why = self._against(part, kind)
        if why is None:
            return None
        word = _WORDS.get(kind, "files")
        said = f"{self._ref} cannot take {label(part)}: {why}. It takes {self._takes()}. "
        said += f"Convert it, use a model that takes it, or have it left out: settings accept_gap=[{word!r}]"
        if why.startswith(_UNDECLARED):
            field = why.removeprefix(_UNDECLARED)
            said += f"; if this model does take {field}, say so in its profile: {field} = true"
        return RefusedAttachment(word, said)

    def left_out(self, part: Image | File) -> str | None:
        """The words in the place of a prompt's attachment that the caller can do without; None for one that is shown.

        Raises ModelFailure for one that nobody said may be left out.
        """
        gap = self.untaken(part)
        if gap is None:
            return None
        if gap.capability not in self._accepted:
            raise ModelFailure(gap.why, kind="contract_error", stage="send", retryable=False)
        return f"[{label(part)} was left out: {self._against(part, kind_of(part))}]"

    def left_out_of_result(self, part: Image | File) -> str | None:
        """The words in the place of what a tool returned and this model cannot be shown; None for what it can be."""
        why = self._against(part, kind_of(part))
        if why is None:
            return None
        return f"[{label(part)} was left out: {why}. It is kept with the result of this call.]"

    def _against(self, part: Image | File, kind: Kind) -> str | None:
        """What speaks against showing it."""
        profile, by_url = self._profile, part.url is not None
        if kind == "text" and not by_url:
            return None
        if kind == "video":
            return self._against_video()
        if kind == "audio":
            if self._wire == "gemini":
                return None if profile.audio else _UNDECLARED + "audio"
            if self._wire != "openai_chat":
                return f"the wire format {self._wire} does not support audio"
            if not profile.audio:
                return _UNDECLARED + "audio"
            if by_url or plain_type(part) not in AUDIO:
                return "audio has to be given as bytes, as WAV or MP3"
            return None
        if kind == "image":
            if not profile.images:
                return _UNDECLARED + "images"
            formats = GEMINI_IMAGES if self._wire == "gemini" else IMAGES
            return (
                None if by_url or plain_type(part) in formats else f"{plain_type(part)} is not a format that it takes"
            )
        if not profile.files:
            return _UNDECLARED + "files"
        return self._against_file(part, kind)

    def _against_video(self) -> str | None:
        if self._wire != "gemini":
            return f"the wire format {self._wire} does not support video"
        return None if self._profile.video else _UNDECLARED + "video"

    def _against_file(self, part: Image | File, kind: Kind) -> str | None:
        by_url = part.url is not None
        unknown = by_url and plain_type(part) == UNKNOWN_TYPE  # nobody said what is there
        if self._wire == "openai_responses":
            return None if unknown or kind in ("pdf", "text", "document") else f"{plain_type(part)} is not supported"
        if self._wire == "openai_chat" and by_url:
            return "Chat Completions does not support files by URL; give its bytes"
        return None if unknown or kind == "pdf" else f"{plain_type(part)} is not supported here"

    def _takes(self) -> str:
        profile = self._profile
        takes = ["text files"]
        if profile.images:
            takes.append(f"images (JPEG, PNG, {'WebP, HEIC' if self._wire == 'gemini' else 'GIF, WebP'})")
        if profile.files:
            takes.append("PDF and office documents" if self._wire == "openai_responses" else "PDF")
        if profile.audio and self._wire in ("openai_chat", "gemini"):
            takes.append("audio (WAV, MP3)" if self._wire == "openai_chat" else "audio")
        if profile.video and self._wire == "gemini":
            takes.append("video")
        return " and ".join(takes) if len(takes) < 3 else f"{', '.join(takes[:-1])} and {takes[-1]}"


def kind_of(part: Image | File) -> Kind:
    """What it is, by its media type; a type that says little is looked into."""
    if isinstance(part, Image):
        return "image"
    named = plain_type(part)
    family = named.partition("/")[0]
    if family == "image":
        return "image"
    if family == "audio":
        return "audio"
    if family == "video":
        return "video"
    if named == "application/pdf":
        return "pdf"
    if _OFFICE.fullmatch(named):
        return "document"
    if part.data is not None:
        return "text" if as_text(part.data) is not None else "file"
    # By URL or not fetched yet: what it says of itself has to do.
    return "text" if _TEXTUAL.fullmatch(named) or part.ref is not None else "file"


def as_text(data: bytes) -> str | None:
    """The words in a file; None when it holds something else."""
    try:
        words = data.decode("utf-8")
    except UnicodeDecodeError:
        return None
    return None if "\x00" in words else words


def read_out(part: File) -> str | None:
    """A file of text as words; None when it is none."""
    words = as_text(part.data) if part.data is not None and kind_of(part) == "text" else None
    return None if words is None else f"File {part.name}:\n{words}"


def plain_type(part: Image | File) -> str:
    """The media type without its parameters, by its proper name."""
    named = part.media_type.partition(";")[0].strip().lower()
    return "image/jpeg" if named == "image/jpg" else named


def label(part: Image | File) -> str:
    """Which attachment it is."""
    what = "image" if isinstance(part, Image) else f"the file {part.name!r}"
    if part.url is not None:
        where = f" at {public_url(part.url)}"
    elif isinstance(part, Image) and part.data is not None:
        where = f" of {len(part.data):,} bytes"
    else:
        where = ""
    return f"{'the ' if isinstance(part, Image) else ''}{what}{where} ({part.media_type})"
