"""Dispatches: runs of what was handed to a target or to a package, and what happened to each.

They are no view of the log: what somebody else did is not decided here, and cannot be decided again.
"""

from typing import Literal, NamedTuple, Protocol, TypeAlias

DispatchKind: TypeAlias = Literal["target", "package"]
"""target: work that a host handed to a target. package: a run of a package."""


class DispatchRow(NamedTuple):
    """A run that was handed to a target or to a host. Claimed once."""

    run_id: str
    kind: DispatchKind
    session_id: str
    status: str
    record: str
    """JSON, as it was given: the store does not read it."""
    revision: int
    """From 1; each change adds one, and has to name the one it is based on."""
    created_at: int
    updated_at: int


class DispatchEvent(NamedTuple):
    """Something that happened to a run, numbered from 1 within it."""

    seq: int
    at: int
    name: str
    payload: str
    """JSON."""


class Dispatches(Protocol):
    """Runs that were handed on, and what happened to each. All writing is done with a barrier."""

    async def claim(
        self,
        run_id: str,
        kind: DispatchKind,
        session_id: str,
        status: str,
        record: str,
        *,
        at: int,
        event: str,
        payload: str,
    ) -> bool:
        """Begin a run, with its first event. False, and nothing is written, when the id was claimed before."""
        ...

    async def get(self, run_id: str) -> DispatchRow | None: ...

    async def all(self, kind: DispatchKind, *, limit: int | None = None) -> list[DispatchRow]:
        """Newest first."""
        ...

    async def change(
        self, run_id: str, revision: int, status: str, record: str, *, at: int, event: str, payload: str
    ) -> bool:
        """The next revision, with its event. False, and nothing is written, unless `revision` is the newest."""
        ...

    async def note(self, run_id: str, *, at: int, event: str, payload: str) -> bool:
        """Add an event and change nothing else. False when there is no such run."""
        ...

    async def events(self, run_id: str, *, after: int = 0, limit: int | None = None) -> list[DispatchEvent]:
        """In order."""
        ...
