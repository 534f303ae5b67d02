"""The log: appending, reading and checking the events of an agent.

Everything that writes runs inside the writer's transaction and checks before its first write. A read takes a piece at
a time and keeps no cursor open in between.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import apsw
from pydantic_core import from_json

from wakeful.contracts.envelope import Fact, Recorded
from wakeful.contracts.errors import RestRefused, StoreDamaged
from wakeful.contracts.spending import WindowKey
from wakeful.ports import ActionRow, Admitted, Claim, Damage, RuleRow, TurnRow
from wakeful.store import chain
from wakeful.store.encoding import OUTSIDER, OWNER, SALT, Head, Stored, decode, read_head
from wakeful.store.leases import Lease, check, fenced
from wakeful.store.rows import Book, Changes, changes, message_of, not_ours
from wakeful.store.spending import Hold, HoldKey, Move
from wakeful.store.sqlite.connection import Statements
from wakeful.store.sqlite.spending import Windows
from wakeful.store.sqlite.views import Views

SHIFT = 40
CHUNK = 500
# Two look-ups by number take 1.5 us; one join of the same two rows takes 5.5.
_AGENT = "SELECT owner, epoch, seq, hash FROM agents WHERE id = ?"
_TURN = "SELECT epoch, heard FROM turns WHERE id = ?"
Row = tuple[int, bytes, bytes, bytes]
"""Sequence, header, body, hash."""


class Place(NamedTuple):
    """An agent's number in this database and the head of its stream."""

    agent: int
    seq: int
    hash: bytes


class Log:
    """The events of one database."""

    def __init__(self, sql: Statements, path: Path, views: Views) -> None:
        self._sql = sql
        self._path = path
        self._views = views
        self._windows = Windows(sql)
        self._turns: dict[str, tuple[int, int]] = {}
        """Turn id to the numbers of its agent and of itself: both are for life."""
        self._unheld: dict[str, int] = {}
        """Turns that hold nothing in a spend window, and the epoch of the claim under which that was seen: only their
        owner changes it, and most never do."""

    def admit(self, agent_id: str, facts: Sequence[Fact], stored: Sequence[Stored]) -> Admitted | None:
        message, event = message_of(facts)
        if message is not None and event is not None:
            taken = None if event.key is None else self._views.turn_of_key(event.key)
            if taken is not None:
                return Admitted(taken, created=False)
            there = self._views.turn(message.turn_id or "")
            if there is not None and there.agent_id != agent_id:
                raise not_ours(there)
        place = self.place(agent_id)
        known = _Known(self, agent_id, None if place is None else place.agent)
        made = changes(facts, OUTSIDER, 0 if place is None else place.seq, known)
        if place is None:
            place = self._make_agent(agent_id)
        self._write(place, stored, made)
        return None if message is None else Admitted(made.turns.get(message.turn_id or "") or self._row(message), True)

    def append(
        self, claim: Claim, facts: Sequence[Fact], stored: Sequence[Stored], rest: bool
    ) -> tuple[list[Recorded], int]:
        """The outsiders' facts that are new to the owner, and the sequence up to which it has seen all of them."""
        agent, turn = self._turns.get(claim.turn_id) or self._numbers(claim)
        owned, begun = self._sql.one(_AGENT, (agent,)), self._sql.one(_TURN, (turn,))
        if owned is None or begun is None:
            raise fenced(claim)
        owner, epoch, seq, digest = owned
        turn_epoch, heard = begun
        check(claim, Lease(owner, epoch, 0.0), turn_epoch)
        others: list[Recorded] = []
        if heard > claim.seen:
            if rest:
                raise RestRefused(f"turn {claim.turn_id} has not seen event {heard}", "Fold what arrived, then decide.")
            others = self._others(agent, claim, heard)
        if facts:
            made = changes(facts, OWNER, seq, _Known(self, claim.agent_id, agent, claim.turn_id, turn_epoch))
            self._write(Place(agent, seq, digest), stored, made)
        return others, seq + len(facts)

    def place(self, agent_id: str) -> Place | None:
        sql = "SELECT id, seq, hash FROM agents WHERE agent_id = ?"
        found = self._sql.one(sql, (agent_id,))
        return None if found is None else Place(*found)

    def agents(self) -> list[tuple[int, str]]:
        return [(number, agent_id) for number, agent_id in self._sql.all("SELECT id, agent_id FROM agents ORDER BY id")]

    def hash_at(self, agent: int, agent_id: str, seq: int) -> bytes:
        """What the event after `seq` is chained to."""
        if seq == 0:
            return chain.origin(agent_id)
        found = self._sql.one("SELECT hash FROM events WHERE id = ?", (agent << SHIFT | seq,))
        if found is None:
            raise self._damaged(agent_id, seq, "is missing")
        return bytes(found[0])

    def chunk(self, agent: int, agent_id: str, after: int, previous: bytes, upto: int) -> tuple[list[Row], bytes]:
        """The next rows, checked against the chain, and the hash of the last of them."""
        base = agent << SHIFT
        rows = self._sql.all(
            "SELECT id, header, body, hash FROM events WHERE id > ? AND id <= ? ORDER BY id LIMIT ?",
            (base | after, base | upto, CHUNK),
        )
        checked: list[Row] = []
        for at, (number, header, body, digest) in enumerate(rows, after + 1):
            if number != base | at:
                raise self._damaged(agent_id, at, "is missing")
            if chain.link(previous, header, body) != digest:
                raise self._damaged(agent_id, at, "is not what was written")
            previous = digest
            checked.append((at, header, body, digest))
        if not rows and after < upto:
            raise self._damaged(agent_id, after + 1, "is missing")
        return checked, previous

    def events_of(self, agent_id: str, turn_id: str) -> list[Recorded]:
        """A turn's events, all at once."""
        place, row = self.place(agent_id), self._views.turn(turn_id)
        found: list[Recorded] = []
        if place is None or row is None:
            return found
        after = row.first_seq - 1
        previous = self.hash_at(place.agent, agent_id, after)
        while after < place.seq:
            rows, previous = self.chunk(place.agent, agent_id, after, previous, place.seq)
            for seq, header, body, _ in rows:
                head = read_head(header)
                if head.turn_id == turn_id:
                    found.append(self.recorded(agent_id, seq, head, body))
            after = rows[-1][0]
        return found

    def recorded(self, agent_id: str, seq: int, head: Head, body: bytes) -> Recorded:
        try:
            return Recorded(agent_id, seq, decode(head, body))
        except ValueError as error:
            raise self._damaged(agent_id, seq, f"does not fit its kind, {head.kind}: {error}") from error

    def damage(self, agent: int, agent_id: str) -> Damage | None:
        """The first place where the agent's stream is not what was written."""
        try:
            place = self.place(agent_id)
            assert place is not None
            seq, previous = 0, chain.origin(agent_id)
            while seq < place.seq:
                rows, previous = self.chunk(agent, agent_id, seq, previous, place.seq)
                seq = rows[-1][0]
            if previous != place.hash:
                return Damage(agent_id, seq, "the head of the stream does not match its last event")
            beyond = "SELECT 1 FROM events WHERE id > ? AND id < ? LIMIT 1"
            if self._sql.one(beyond, (agent << SHIFT | seq, agent + 1 << SHIFT)) is not None:
                return Damage(agent_id, seq + 1, "there are events after the head of the stream")
        except StoreDamaged as found:
            return Damage(agent_id, found.sequence, found.message)
        except apsw.CorruptError as error:
            return Damage(agent_id, 0, f"its rows cannot be read: {error}")
        return None

    def book(self, agent: int, agent_id: str, windows: dict[WindowKey, Move]) -> Book:
        """The agent's rows as its log has them; what it spent is added to the windows."""
        book = Book(agent_id, windows)
        place = self.place(agent_id)
        assert place is not None
        seq, previous = 0, chain.origin(agent_id)
        while seq < place.seq:
            rows, previous = self.chunk(agent, agent_id, seq, previous, place.seq)
            for seq, header, body, _ in rows:
                head = read_head(header)
                fact = self.recorded(agent_id, seq, head, body).fact
                book.record([fact], changes([fact], head.writer, seq - 1, book))
        return book

    def name_of(self, agent: int | None) -> str:
        found = self._sql.one("SELECT name FROM agents WHERE id = ?", (agent,))
        return "" if found is None else str(found[0])

    def turn_of(self, agent_id: str, turn_id: str) -> TurnRow | None:
        row = self._views.turn(turn_id)
        return row if row is not None and row.agent_id == agent_id else None

    def action(self, action_id: str) -> ActionRow | None:
        return self._views.action(action_id)

    def rule(self, rule_id: str) -> RuleRow | None:
        return self._views.rule(rule_id)

    def window(self, key: WindowKey) -> Move | None:
        return self._windows.one(key)

    def hold(self, key: HoldKey, epoch: int | None) -> Hold | None:
        """What the turn holds there. With the epoch of its owner's claim, nothing is looked for twice in vain."""
        turn_id, _ = key
        if epoch is None:
            return self._windows.hold(key)
        if self._unheld.get(turn_id) == epoch:
            return None
        held = self._windows.holds_of(turn_id)
        if not held:
            self._unheld[turn_id] = epoch
        return held.get(key)

    def holds_of(self, turn_id: str) -> dict[HoldKey, Hold]:
        return self._windows.holds_of(turn_id)

    def has_turn(self, agent: int | None, turn_id: str) -> bool:
        sql = "SELECT 1 FROM turns WHERE turn_id = ? AND agent = ?"
        return self._sql.one(sql, (turn_id, agent)) is not None

    def safe_args(self, agent: int, turn: TurnRow, call_id: str) -> dict[str, Any] | None:
        """Newest first: an outcome on the way means that the call had been settled before."""
        base = agent << SHIFT
        before = agent + 1 << SHIFT
        while True:
            rows = self._sql.all(
                "SELECT id, header, body FROM events WHERE id >= ? AND id < ? ORDER BY id DESC LIMIT ?",
                (base | turn.first_seq, before, CHUNK),
            )
            for before, header, body in rows:  # noqa: B007  (the last one is where the next chunk begins)
                head = read_head(header)
                if head.call_id != call_id or head.turn_id != turn.turn_id:
                    continue
                if head.kind == "tool.started":
                    args: dict[str, Any] = from_json(body[SALT:]).get("safe_args") or {}
                    return args
                if head.kind in ("tool.result", "tool.failed"):
                    return None
            if not rows:
                return None

    def _numbers(self, claim: Claim) -> tuple[int, int]:
        row = self._sql.one("SELECT agent, id FROM turns WHERE turn_id = ?", (claim.turn_id,))
        if row is None:
            raise fenced(claim)
        found = self._turns[claim.turn_id] = (row[0], row[1])
        return found

    def forget(self, turn_id: str) -> None:
        """A turn that nobody here owns needs no place in memory."""
        self._turns.pop(turn_id, None)
        self._unheld.pop(turn_id, None)

    def _others(self, agent: int, claim: Claim, heard: int) -> list[Recorded]:
        base = agent << SHIFT
        rows = self._sql.all(
            "SELECT id, header, body FROM events WHERE id > ? AND id <= ? ORDER BY id",
            (base | claim.seen, base | heard),
        )
        others = []
        for number, header, body in rows:
            head = read_head(header)
            if head.writer == OUTSIDER and head.turn_id == claim.turn_id:
                others.append(self.recorded(claim.agent_id, number - base, head, body))
        return others

    def _make_agent(self, agent_id: str) -> Place:
        origin = chain.origin(agent_id)
        self._sql.do("INSERT INTO agents (agent_id, hash) VALUES (?, ?)", (agent_id, origin))
        return Place(self._sql.new_id(), 0, origin)

    def _write(self, place: Place, stored: Sequence[Stored], made: Changes) -> None:
        agent, seq, digest = place
        number = agent << SHIFT | seq
        rows = []
        for header, body in stored:
            number += 1
            digest = chain.link(digest, header, body)
            rows.append((number, header, body, digest))
        self._sql.many("INSERT INTO events (id, header, body, hash) VALUES (?, ?, ?, ?)", rows)
        self._views.write(agent, seq + len(rows), digest, made)
        for turn_id, _ in made.spending.holds:
            self._unheld.pop(turn_id, None)
        self._windows.write(agent, made.spending)

    def _row(self, fact: Fact) -> TurnRow:
        row = self._views.turn(fact.turn_id or "")
        assert row is not None
        return row

    def _damaged(self, agent_id: str, seq: int, what: str) -> StoreDamaged:
        return StoreDamaged(
            f"event {seq} of agent {agent_id} in {self._path} {what}",
            "Other agents are not affected. Restore the database from a backup to get this one back.",
            agent_id=agent_id,
            sequence=seq,
        )


class _Known:
    """What is stored, for the rules of `store.rows`; looked up only when a rule asks."""

    def __init__(
        self, log: Log, agent_id: str, agent: int | None, turn_id: str | None = None, epoch: int | None = None
    ) -> None:
        self._log = log
        self._epoch = epoch
        """Of the owner's claim of that turn."""
        self._agent = agent
        self._turn_id = turn_id
        self.agent_id = agent_id

    @property
    def agent_name(self) -> str:
        return self._log.name_of(self._agent)

    def has_turn(self, turn_id: str) -> bool:
        return turn_id == self._turn_id or self._log.has_turn(self._agent, turn_id)

    def turn(self, turn_id: str) -> TurnRow | None:
        return self._log.turn_of(self.agent_id, turn_id)

    def safe_args(self, turn_id: str, call_id: str) -> dict[str, Any] | None:
        row = self.turn(turn_id)
        return None if row is None or self._agent is None else self._log.safe_args(self._agent, row, call_id)

    def action(self, action_id: str) -> ActionRow | None:
        return self._log.action(action_id)

    def rule(self, rule_id: str) -> RuleRow | None:
        return self._log.rule(rule_id)

    @property
    def checks_windows(self) -> bool:
        return True

    def window(self, key: WindowKey) -> Move | None:
        return self._log.window(key)

    def hold(self, key: HoldKey) -> Hold | None:
        return self._log.hold(key, self._epoch if key[0] == self._turn_id else None)

    def holds_of(self, turn_id: str) -> dict[HoldKey, Hold]:
        return self._log.holds_of(turn_id)
