"""Notices as values: what the people of an agent are told without asking, and where it goes."""

import re
from typing import Any, Final, Literal, Self, TypeAlias
from urllib.parse import urlsplit

from pydantic import Field, field_validator, model_validator

from wakeful.contracts.channels import NAME
from wakeful.contracts.described_values import DescribedValue

NoticeKind: TypeAlias = Literal["action_required", "failure", "budget", "missed", "progress", "change", "test"]
"""action_required: somebody has to decide or answer. failure: something went wrong and does not mend itself. budget: a
spending limit is used up, or nearly. missed: due times passed. progress: the agent wanted you to know. change: it came
to something else than the last time. test: somebody asked for it."""
NoticeState: TypeAlias = Literal["pending", "delivered", "given_up", "not_sent"]
"""given_up: it was tried often enough. not_sent: nobody wants to be told of this kind."""
AttemptOutcome: TypeAlias = Literal["delivered", "failed", "given_up", "not_sent", "held"]
"""held: it is quiet, and the notice is tried again when it is not."""

DEFAULT_ON: Final[tuple[NoticeKind, ...]] = ("action_required", "failure", "budget", "missed")
MOST_WORDS: Final = 1_000
QUIET: Final = r"^([01]\d|2[0-3]):[0-5]\d-([01]\d|2[0-3]):[0-5]\d$"
"""Hours of a day."""
TIME: Final = r"^([01]\d|2[0-3]):[0-5]\d$"
_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}")
_CHANNEL: Final = re.compile(rf"channel:({NAME})")


def in_hours(hours: str, moment: str) -> bool:
    """Is a time of day in these hours? Both as they are written: `22:00-07:00` and `08:00`."""
    begins, _, ends = hours.partition("-")
    return begins <= moment or moment < ends if begins > ends else begins <= moment < ends


class NotifyTarget(DescribedValue):
    """Where notices go, and which."""

    to: str | tuple[str, ...]
    """A URL that is sent JSON by POST, the words of a command that is given it on its standard input, `channel:NAME`
    for a phone that is paired (`wakeful channel`), or the name of a `[notify.NAME]` of the owner's file."""
    on: tuple[NoticeKind, ...] = DEFAULT_ON
    """Which kinds: action_required, failure, budget, missed, progress, change."""
    quiet: str | None = Field(None, pattern=QUIET)
    """Hours in which only `action_required` is sent, and the rest afterwards: `22:00-07:00`."""
    digest: str | None = Field(None, pattern=TIME)
    """One message a day, at this time, instead of one for each notice but `action_required`: `08:00`."""
    timezone: str = "UTC"
    """Of the quiet hours and the digest, by its name in the tz database."""
    allow_private: bool = False
    """Let the URL lead to an address of this network."""

    @field_validator("to", mode="before")
    @classmethod
    def _list_of_words(cls, value: Any) -> Any:
        return tuple(value) if isinstance(value, list) else value

    @model_validator(mode="after")
    def _leads_somewhere(self) -> Self:
        if isinstance(self.to, str) and not self.is_name and self.channel is None:
            parts = urlsplit(self.to)
            if parts.scheme not in ("http", "https") or not parts.hostname:
                raise ValueError(f"to is {self.to!r}: give a http or https URL, or a command as a list of words")
        elif not self.to or (not isinstance(self.to, str) and not all(self.to)):
            raise ValueError('to is a command without words: give ["notify-send", "wakeful"]')
        if self.digest is not None and self.quiet is not None and in_hours(self.quiet, self.digest):
            raise ValueError(f"digest is {self.digest}, in the quiet hours {self.quiet}: give a time after them")
        return self

    @property
    def is_name(self) -> bool:
        """Does the owner's file say where it leads?"""
        return isinstance(self.to, str) and _NAME.fullmatch(self.to) is not None

    @property
    def channel(self) -> str | None:
        """The channel that it goes to; None: it goes elsewhere."""
        found = _CHANNEL.fullmatch(self.to) if isinstance(self.to, str) else None
        return None if found is None else found[1]

    @property
    def place(self) -> str:
        """Where it goes, without what may be secret in it."""
        if isinstance(self.to, str) and not self.is_name and self.channel is None:
            parts = urlsplit(self.to)
            return f"{parts.scheme}://{parts.hostname}" + (f":{parts.port}" if parts.port else "")
        return self.to if isinstance(self.to, str) else self.to[0]
