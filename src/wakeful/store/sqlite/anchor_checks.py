"""A database held against its anchor: when it is opened, and in full for a report.

A database that is behind its anchor has lost the end of its log: what is missing may have had effects, and running on
would repeat them. It is refused, until somebody restores it or says that it is meant to be as it is
(`wakeful store forget`).
"""

import shlex
from collections.abc import Iterator
from pathlib import Path

import apsw

from wakeful.contracts.errors import StoreRewound
from wakeful.ports import Damage
from wakeful.store.sqlite.anchor import AnchorRecord, Mark, Seals, anchor_path, read_anchor
from wakeful.store.sqlite.connection import Statements
from wakeful.store.sqlite.streams import Streams


def refuse_missing(path: Path, anchored: AnchorRecord | None) -> None:
    """Raises StoreRewound when there is no database, or an empty one, where the anchor knows of events."""
    if anchored is None or not anchored.marks:
        return
    try:
        if path.stat().st_size > 0:
            return
        what = "is empty"
    except FileNotFoundError:
        what = "is gone"
    raise _emptied(path, anchored, what)


def check_recent(sql: Statements, path: Path, anchored: AnchorRecord | None) -> None:
    """Raises StoreRewound unless the database has every event that was noted last."""
    if anchored is None or not anchored.marks:
        return
    if sql.one("SELECT 1 FROM sqlite_schema LIMIT 1") is None:
        raise _emptied(path, anchored, "is empty")
    if sql.one("SELECT 1 FROM sqlite_schema WHERE name = 'events'") is None:
        return  # no database of ours: whoever opens it says so
    streams = Streams(sql, path)
    for mark in anchored.marks:
        try:
            found = _difference(sql, streams, mark)
        except apsw.CorruptError:
            continue  # a damaged page stops the agents that are on it, when they are read, and no other
        if found is not None:
            raise StoreRewound(
                f"{path} has lost the end of its log: {found.what}",
                _hint(path, _cause(path, anchored)),
                agent_id=found.agent_id,
                sequence=found.seq,
            )


def all_damage(sql: Statements, path: Path, seals: Seals) -> list[Damage]:
    """Every record that the database does not keep to, and every seal that does not fit."""
    anchored = read_anchor(path, whole=True)
    if anchored is None:
        return []
    streams = Streams(sql, path)
    found = [damage for mark in anchored.marks if (damage := _difference(sql, streams, mark)) is not None]
    return [*found, *(_unsealed(sql, path, seals, anchored) if seals and anchored.is_keyed else ())]


def _emptied(path: Path, anchored: AnchorRecord, what: str) -> StoreRewound:
    held = f"{len(anchored.marks)} agent{'' if len(anchored.marks) == 1 else 's'}"
    return StoreRewound(f"{path} {what}, and {anchor_path(path)} says that it held the log of {held}", _hint(path))


def _difference(sql: Statements, streams: Streams, mark: Mark) -> Damage | None:
    stored = streams.hash_at_end(mark.agent, mark.seq)
    if stored == mark.hash or (stored is None and mark.seq < streams.cut(mark.agent)[0]):
        return None  # what is before a cut is gone on purpose, and the chain after it holds what it was
    agent = sql.one("SELECT agent_id, seq FROM agents WHERE id = ?", (mark.agent,))
    if agent is None:
        return Damage(
            "", mark.seq, f"event {mark.seq} of its agent {mark.agent} was written, and there is no such agent"
        )
    agent_id, seq = agent
    if stored is not None:
        return Damage(agent_id, mark.seq, f"event {mark.seq} of agent {agent_id} is not the one that was written")
    return Damage(agent_id, seq, f"event {mark.seq} of agent {agent_id} was written, and its log ends at {seq}")


def _unsealed(sql: Statements, path: Path, seals: Seals, anchored: AnchorRecord) -> Iterator[Damage]:
    anchor = anchor_path(path)
    if not seals.fits_header(anchored):
        yield Damage("", 0, f"{anchor} was not sealed with the secret of this home: nothing in it can be vouched for")
        return
    sealed = {mark.agent: mark for mark in anchored.marks}
    for number, agent_id, seq in sql.all("SELECT id, agent_id, seq FROM agents ORDER BY id"):
        mark = sealed.get(number)
        if mark is not None and not seals.fits(mark):
            yield Damage(agent_id, mark.seq, f"the log of agent {agent_id} has no valid seal of this home in {anchor}")
        elif mark is None and number > anchored.since and seq > 0:
            words = (
                f"the log of agent {agent_id} has no record in {anchor}, so nothing shows whether its end is missing"
            )
            why = "a power cut or a full disk leaves that behind, and the agent's next turn writes one"
            yield Damage(agent_id, seq, f"{words}; {why}", is_unproven=True)


def _cause(path: Path, anchored: AnchorRecord) -> str:
    if anchored.closed:
        return "The file was replaced by an older copy, or changed by another program. "
    return f"The write-ahead log {path.name}-wal is damaged or missing, or the file was replaced by an older copy. "


def _hint(path: Path, cause: str = "") -> str:
    named = shlex.quote(str(path))
    return (
        f"{cause}Restore {path.name} and what stands beside it from a backup. To go on with what is there now, "
        f"although effects that are not in it may be repeated: wakeful store forget {named}"
    )
