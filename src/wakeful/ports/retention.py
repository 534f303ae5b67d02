"""Retention: how what has reached its age leaves the store, a step at a time.

What may go is not decided here (`decisions.retention`). A step is one short transaction, so that others write in
between, and it may be repeated: killed anywhere, the log is whole, its chain verifies, and the next pass goes on.
"""

from collections.abc import Collection
from typing import Any, NamedTuple, Protocol

from wakeful.ports.tables import Table
from wakeful.ports.turns import TurnRow

STEP_ROWS = 1_000
"""At most so many rows of the log are changed or removed in one transaction."""


class FreedSpace(NamedTuple):
    """What one step removed."""

    items: int = 0
    """Events, rows or blobs: what the step is about."""
    bytes: int = 0
    """What was stored of them."""
    more: int | None = None
    """Where the next step goes on; None: it is done."""


class StoreSize(NamedTuple):
    """What a store takes."""

    total_bytes: int
    """The database, what is written and not yet moved into it, and large blobs beside it."""
    free_bytes: int
    """Of these: pages of the database that hold nothing any more."""
    tables: dict[str, int]
    """By table, with its indexes; empty where the backend cannot tell."""
    agents: dict[str, int]
    """The log of each agent."""


def left_mark(position: int, before: int) -> str:
    """The retention mark of a table: up to which position rows have left, and from before which time they were."""
    return f"{position} {before}"


def left_upto(mark: str | None) -> int:
    """The last position that has left; 0: none has."""
    return 0 if mark is None else int(mark.partition(" ")[0])


def left_before(mark: str) -> int:
    """Rows that have left are from before this time."""
    return int(mark.partition(" ")[2])


class RetentionStore(Protocol):
    """Removes what it is told to. With `dry`, nothing is removed, and the answer says what would be."""

    async def expire_events(
        self, turn: TurnRow, kinds: Collection[str], *, after: int = 0, dry: bool = False
    ) -> FreedSpace:
        """Take the bodies of these kinds of events of a turn that ended. Numbers, times, ids and the chain stay."""
        ...

    async def expire_facts(self, agent_id: str, seqs: Collection[int], *, dry: bool = False) -> FreedSpace:
        """Take the bodies of these events of an agent, which nobody decides anything from any more: a step. What
        rows follow from them was written beside them before (`turn.emptied`)."""
        ...

    async def bundle_rows(self, agent_id: str, *, before: int, anew: bool = False) -> FreedSpace:
        """Store rows of an agent's log that are from before that time, of turns that ended before it, together, where
        that takes less: a step, from where the last one stopped. `anew` looks from the beginning. What is read stays
        as it was."""
        ...

    async def cut_log(self, agent_id: str, *, now: int, before: int, dry: bool = False) -> FreedSpace:
        """Replace the whole log of an agent by one `log.checkpointed`, if its newest event is from before that time.
        Rows that are to stay are kept in that fact; turns, messages, threads and artifacts go with the log. Raises
        EventRefused for a log that has to stay."""
        ...

    async def expire_rows(self, table: Table[Any], *, before: int, after: int = 0, dry: bool = False) -> FreedSpace:
        """Remove the oldest rows of a table that numbers them, as long as they are from before that time: a step. The
        newest row stays. What left is noted under the table's name (`left_mark`) in the same transaction."""
        ...

    async def finish_cuts(self) -> FreedSpace:
        """Go on with removing logs that were cut: a step."""
        ...

    async def doubt_outputs(
        self, digests: Collection[str], *, now: int, dry: bool = False, anew: bool = False
    ) -> set[str]:
        """Those of these results, kept in full, whose bytes nothing else uses: no message, no record, no other blob.
        They are noted as blobs to which nothing refers, before anything is read. What the log names is known from
        before; `anew` reads all of it again."""
        ...

    async def remove_blob(self, digest: str, *, dry: bool = False) -> FreedSpace:
        """Remove a blob that is noted so. Nothing is done where somebody has put the same bytes since."""
        ...

    async def sweep_blobs(self, *, now: int, grace: int, dry: bool = False, anew: bool = False) -> FreedSpace:
        """Remove blobs to which nothing has referred for so many microseconds. That nothing refers to a blob is noted
        when it is first seen. What the log names is known from before; `anew` reads all of it again."""
        ...

    async def release_space(self, pages: int) -> int:
        """Give pages that hold nothing back to the file system; how many are left."""
        ...

    async def retention_mark(self, name: str) -> str | None:
        """How far a pass has come."""
        ...

    async def set_retention_mark(self, name: str, value: str) -> None: ...

    async def used_bytes(self) -> int:
        """What the files take."""
        ...

    async def size(self) -> StoreSize:
        """The same in detail. Reads every page."""
        ...
