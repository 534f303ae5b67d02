"""The log: appending to the streams of a database, and what its rows are made from.

Everything that writes runs inside the writer's transaction and checks before its first write.
"""

from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeAlias

import apsw
from pydantic_core import from_json

from wakeful.contracts.envelope import Fact, StoredFact
from wakeful.contracts.errors import RestRefused, StoreDamaged, WakefulError
from wakeful.contracts.events import MessageAdmitted
from wakeful.ports import AdmissionAnswer, Claim, Damage, TurnRow
from wakeful.ports.mailbox import BUSY_THREADS, MESSAGES, BusyThread
from wakeful.ports.operator_feed import FEED
from wakeful.ports.tables import Table
from wakeful.ports.threads import THREADS
from wakeful.ports.turns import TURN_OF_KEY, TURNS
from wakeful.store import chain
from wakeful.store.encoding import OUTSIDER, PackedRow
from wakeful.store.leases import Lease, check, fenced
from wakeful.store.sqlite.connection import Statements
from wakeful.store.sqlite.outside_facts import OutsideFacts
from wakeful.store.sqlite.streams import SHIFT, Place, Span, Streams
from wakeful.store.sqlite.tables import SqliteTables
from wakeful.store.table_changes import Changes, changes, message_of, needs_of
from wakeful.store.tables.new_messages import is_new_message, needs_of_new_messages, rows_of_new_messages
from wakeful.store.tables.row_rules import Need, OpenCall, OpenCost, RowKey, RowList
from wakeful.views.model_calls import CALL_FACTS, CostTally

# Look-ups by number take 0.7 us each; a join of the same rows takes several times that.
_AGENT = "SELECT seq, hash, name FROM agents WHERE id = ?"
_LEASE = "SELECT owner, epoch FROM leases WHERE agent = ? AND thread_id = ?"
_CLAIM = "SELECT epoch FROM turn_claims WHERE turn_id = ?"
_HEARD = "SELECT heard FROM turns WHERE turn_id = ?"
_CALL_FACTS = frozenset(CALL_FACTS)
_CALL_KINDS = frozenset(event.kind for event in CALL_FACTS)
_MOVE_HEAD = "UPDATE agents SET seq = ?, hash = ? WHERE id = ?"
_APPEND = "INSERT INTO appends (id, turn, header, body, hash) VALUES (?, ?, ?, ?, ?)"


MOST_AGENTS = 1_024
"""So many agents that got messages are known by their numbers."""
_OF_QUEUES = frozenset((THREADS, MESSAGES, BUSY_THREADS, FEED))
"""A queue that becomes due has a wake, too."""
_TO = attrgetter("agent_id")
TakeNew: TypeAlias = Callable[[int, int, TurnRow], Claim | None]
"""Claims a new turn, given the number of its agent and the newest event of its stream."""


class SqliteLog:
    """The events of one database."""

    def __init__(self, sql: Statements, path: Path) -> None:
        self._sql = sql
        self._tables = SqliteTables(sql)
        self.streams = Streams(sql, path)
        self._turns: dict[str, tuple[int, int]] = {}
        """Turn id to the number of its agent, and its first event: both are for life."""
        self.written: dict[int, tuple[int, bytes]] = {}
        """What the transaction under way has appended: each agent's number, with its newest sequence and hash."""
        self.appended: list[tuple[str, int, Sequence[Fact]]] = []
        """The same as facts: their agent, the event before them, and they."""
        self.has_fed = False
        """The transaction under way has added to the feed over all agents."""
        self.makes_due = False
        """By the transaction under way something may be due that was not: it changes more than queues at which somebody
        is to look anyway."""
        self._costs_so_far: dict[str, CostTally | None] = {}
        """What was said of requests to models in turns that began here; None: the log knows better."""
        self._version: int | None = None
        """Of the database, after our newest commit: with another one, somebody else has written since."""
        self._ends: dict[int, Place] = {}
        """Where streams of open turns, and of agents that get messages, end, as we found or left them, by the agent's
        number."""
        self._agents: dict[str, int] = {}
        """The numbers of agents that get messages: they are for life."""
        self._owned: dict[str, Claim] = {}
        """Claims that were held against the database, by the id of their turn."""

    def admit_all(self, admissions: Sequence[OutsideFacts]) -> list[AdmissionAnswer | WakefulError | None]:
        """What becomes of each, in their order."""
        answers: list[AdmissionAnswer | WakefulError | None] = []
        for agent_id, several in groupby(admissions, _TO):
            these = [*several]
            answers += self._admit_together(agent_id, these) or [self._admit_alone(each) for each in these]
        return answers

    def _admit_alone(self, admission: OutsideFacts) -> AdmissionAnswer | WakefulError | None:
        try:
            return self.admit(*admission)
        except WakefulError as refusal:
            return refusal

    def _admit_together(self, agent_id: str, admissions: Sequence[OutsideFacts]) -> list[AdmissionAnswer]:
        """New messages to one agent are one append of several rows: rows that each of them changes are written once.

        Empty: not these. Whether one of them was admitted before is not looked up, because the database refuses a
        second row of its id; the transaction is repeated then, with each of them alone.
        """
        place = self._place(agent_id) if len(admissions) > 1 else None
        if place is None or not all(is_new_message(admission.facts) for admission in admissions):
            return []
        facts = [admission.facts[0] for admission in admissions]
        keys = [(fact.event.message_id,) for fact in facts if isinstance(fact.event, MessageAdmitted)]
        if len({*keys}) < len(keys):
            return []
        found = self._find(agent_id, needs_of_new_messages(agent_id, facts))
        rows = rows_of_new_messages(facts, place.seq, agent_id, found)
        if rows is not None:
            made = Changes(rows, None)
        else:
            try:
                found = self._find(agent_id, needs_of(facts, agent_id), {RowKey(MESSAGES, key): None for key in keys})
                made = changes(facts, place.seq, agent_id, place.name, found)
            except WakefulError:
                return []  # one of them is refused, and the others are not
        stored = [row for admission in admissions for row in admission.stored]
        self._write(place, stored, made, new=(MESSAGES, FEED))
        self.appended.append((agent_id, place.seq, facts))
        queued = made.rows[MESSAGES]
        return [AdmissionAnswer(None, created=True, queued=queued[key]) for key in keys]

    def admit(
        self, agent_id: str, facts: Sequence[Fact], stored: Sequence[PackedRow], take: TakeNew | None = None
    ) -> AdmissionAnswer | None:
        """`take` claims a new turn that is all that is open in its thread, if it can be claimed."""
        message, event = message_of(facts)
        known: dict[Need, Any] = {}
        if event is not None and event.key is not None:
            for taken in self._tables.page(TURNS, TURN_OF_KEY, (event.key,)):
                return AdmissionAnswer(taken, created=False)
        if message is not None and event is not None and (message.turn_id is None or event.key is not None):
            there = self._tables.get(MESSAGES, (event.message_id,))
            if there is not None:
                return AdmissionAnswer(self._tables.get(TURNS, (there.turn_id,)), created=False)
            known[RowKey(MESSAGES, (event.message_id,))] = None
        place = self._place(agent_id)
        seq, name = (0, "") if place is None else (place.seq, place.name)
        found = self._find(agent_id, needs_of(facts, agent_id), known)
        made = changes(facts, seq, agent_id, name, found)
        if place is None:
            place = self._make_agent(agent_id)
        end = self._write(place, stored, made)
        self.appended.append((agent_id, seq, facts))
        if message is None or event is None:
            return None
        if message.turn_id is None:
            return AdmissionAnswer(None, created=True, queued=made.rows[MESSAGES][event.message_id,])
        row: TurnRow = made.rows[TURNS][message.turn_id,]
        alone = BusyThread(agent_id, row.thread_id, turns=0, queued=1)
        if take is not None and made.rows[BUSY_THREADS].get(BUSY_THREADS.key_of(alone)) == alone:
            claim = take(end.agent, end.seq, row)
            if claim is not None:
                self._own(claim, end, row.first_seq)
                return AdmissionAnswer(row, created=True, claim=claim)
        return AdmissionAnswer(row, created=True)

    def _own(self, claim: Claim, end: Place, first: int) -> None:
        """A turn that is new and ours: what its next append needs is known."""
        self._turns[claim.turn_id] = end.agent, first
        self._ends[end.agent] = end
        self._owned[claim.turn_id] = claim

    def append(
        self, claim: Claim, facts: Sequence[Fact], stored: Sequence[PackedRow], rest: bool, last: bool = False
    ) -> tuple[list[StoredFact], int]:
        """The outsiders' facts that are new to the owner, and the sequence up to which it has seen all of them. `last`:
        no other append of the turn follows."""
        if claim.opens:
            return [], self._open(claim, facts, stored)
        agent, first = self._turns.get(claim.turn_id) or self._numbers(claim)
        end = self._ends.get(agent)
        if end is None or self._owned.get(claim.turn_id) is not claim:
            end = self._found(claim, agent)
        seq = end.seq
        others: list[StoredFact] = []
        # Where the stream ends with what the owner has seen, nobody said anything since.
        heard = 0 if seq == claim.seen else self._sql.all(_HEARD, (claim.turn_id,))[0][0]
        if heard > claim.seen:
            if rest:
                raise RestRefused(f"turn {claim.turn_id} has not seen event {heard}", "Fold what arrived, then decide.")
            others = self._others(Span(agent, claim.agent_id, heard, claim.turn_id, first), claim.seen)
        if facts:
            if claim.fresh and claim.turn_id not in self._costs_so_far:
                self._costs_so_far[claim.turn_id] = CostTally()
            found = self._find(claim.agent_id, needs_of(facts, claim.agent_id))
            made = changes(facts, seq, claim.agent_id, end.name, found)
            self._write(end, stored, made)
            self.appended.append((claim.agent_id, seq, facts))
            if (tally := self._costs_so_far.get(claim.turn_id)) is not None:
                for fact in facts:
                    if type(fact.event) in _CALL_FACTS:
                        tally.take(fact)
        return others, seq + len(facts)

    def _open(self, claim: Claim, facts: Sequence[Fact], stored: Sequence[PackedRow]) -> int:
        """Append the first facts of a turn that has no row: they begin with the one that opens it."""
        place = self.streams.place(claim.agent_id)
        owned = None if place is None else self._sql.one(_LEASE, (place.agent, claim.thread_id))
        if place is None or owned is None:
            raise fenced(claim)
        owner, epoch = owned
        check(claim, Lease(owner, epoch, 0.0), claim.turn_epoch)
        if facts:
            found = self._find(claim.agent_id, needs_of(facts, claim.agent_id))
            made = changes(facts, place.seq, claim.agent_id, place.name, found)
            self._own(claim, place, place.seq + 1)
            self._write(place, stored, made)
            self.appended.append((claim.agent_id, place.seq, facts))
            self._sql.do("INSERT OR REPLACE INTO turn_claims VALUES (?, ?, NULL)", (claim.turn_id, claim.turn_epoch))
            self._costs_so_far[claim.turn_id] = CostTally(f for f in facts if type(f.event) in _CALL_FACTS)
        return place.seq + len(facts)

    def _found(self, claim: Claim, agent: int) -> Place:
        """Read in the transaction: other owners append to this stream, too. Raises OwnerFenced."""
        head, claimed = self._sql.one(_AGENT, (agent,)), self._sql.one(_CLAIM, (claim.turn_id,))
        owned = self._sql.one(_LEASE, (agent, claim.thread_id))
        if head is None or claimed is None or owned is None:
            raise fenced(claim)
        (turn_epoch,) = claimed
        owner, epoch = owned
        check(claim, Lease(owner, epoch, 0.0), turn_epoch)
        end = self._ends[agent] = Place(agent, *head)
        self._owned[claim.turn_id] = claim
        return end

    def began(self) -> bool:
        """A transaction has begun. Has anybody else written since our newest one? Then what we know is no longer so."""
        is_behind = self._version != self._sql.version()
        if is_behind:
            self._forget_ends()
        return is_behind

    def committed(self) -> None:
        self._version = self._sql.version()

    def _forget_ends(self) -> None:
        self._ends.clear()
        self._owned.clear()

    def pieces_of(self, agent_id: str, turn_id: str) -> Iterator[list[StoredFact]]:
        """A turn's events, piece by piece."""
        row = self._turn_of(agent_id, turn_id)
        span = None if row is None else self.streams.of_turn(agent_id, row)
        at = 0
        while span is not None and at < span.upto:
            entries, at = self.streams.piece(span, at)
            yield [self.streams.recorded(agent_id, entry) for entry in entries]

    def damage(self, agent_id: str) -> Damage | None:
        """The first place where the agent's stream is not what was written."""
        try:
            place = self.streams.place(agent_id)
            assert place is not None
            for _ in self.streams.entries(Span(place.agent, agent_id, place.seq)):
                pass
            if place.seq and self.streams.hash_at_end(place.agent, place.seq) != place.hash:
                return Damage(agent_id, place.seq, "the head of the stream does not match its last event")
            if self.streams.is_past(place.agent, place.seq):
                return Damage(agent_id, place.seq + 1, "there are events after the head of the stream")
        except StoreDamaged as found:
            return Damage(agent_id, found.sequence, found.message)
        except apsw.CorruptError as error:
            return Damage(agent_id, 0, f"its rows cannot be read: {error}")
        return None

    def _turn_of(self, agent_id: str, turn_id: str) -> TurnRow | None:
        row = self._tables.get(TURNS, (turn_id,))
        return row if row is not None and row.agent_id == agent_id else None

    def _place(self, agent_id: str) -> Place | None:
        """Where an agent's stream ends: messages come one after the other, and each moves it on."""
        if (end := self._ends.get(self._agents.get(agent_id, 0))) is not None:
            return end
        place = self.streams.place(agent_id)
        if place is not None:
            if len(self._agents) >= MOST_AGENTS:
                self._agents.clear()
            self._agents[agent_id] = place.agent
            self._ends[place.agent] = place
        return place

    def _find(
        self, agent_id: str, needs: Sequence[Need], beforehand: Mapping[Need, Any] = MappingProxyType({})
    ) -> dict[Need, Any]:
        """What rules of declared tables named, but for what was read beforehand."""
        found: dict[Need, Any] = {}
        for need in needs:
            if need in beforehand:
                found[need] = beforehand[need]
                continue
            match need:
                case RowKey(table, key):
                    found[need] = self._tables.get(table, key)
                case RowList(table, query, equal):
                    found[need] = self._tables.page(table, query, equal)
                case OpenCall(turn_id, call_id):
                    found[need] = self._safe_args(self._turn_of(agent_id, turn_id), call_id)
                case OpenCost(turn_id):
                    found[need] = self._cost_so_far(agent_id, turn_id)
        return found

    def _safe_args(self, turn: TurnRow | None, call_id: str) -> dict[str, Any] | None:
        """None when the call has its outcome, or never began."""
        span = None if turn is None else self.streams.of_turn(turn.agent_id, turn)
        args: dict[str, Any] | None = None
        for entry in self.streams.entries(span) if span is not None else ():
            if entry.head.call_id != call_id:
                continue
            if entry.head.kind == "tool.started":
                args = {} if entry.payload is None else from_json(entry.payload).get("safe_args") or {}
            elif entry.head.kind in ("tool.result", "tool.failed"):
                args = None
        return args

    def _numbers(self, claim: Claim) -> tuple[int, int]:
        row = self._sql.one("SELECT agent, first_seq FROM turns WHERE turn_id = ?", (claim.turn_id,))
        if row is None:
            raise fenced(claim)
        found = self._turns[claim.turn_id] = (row[0], row[1])
        return found

    def _first(self, turn_id: str, made: Changes) -> int:
        """The first event of a turn that there is, or that these changes open."""
        if (known := self._turns.get(turn_id)) is not None:
            return known[1]
        if (changed := made.rows.get(TURNS, {}).get((turn_id,))) is not None:
            return int(changed.first_seq)
        ((first,),) = self._sql.all("SELECT first_seq FROM turns WHERE turn_id = ?", (turn_id,))
        return int(first)

    def _cost_so_far(self, agent_id: str, turn_id: str) -> CostTally:
        """What is stored of an open turn's requests to models; read, where the turn did not begin here."""
        if (kept := self._costs_so_far.get(turn_id)) is not None:
            return kept
        row = self._turn_of(agent_id, turn_id)
        span = None if row is None else self.streams.of_turn(agent_id, row)
        entries = self.streams.entries(span) if span is not None else ()
        of_calls = [self.streams.recorded(agent_id, entry) for entry in entries if entry.head.kind in _CALL_KINDS]
        return CostTally(entry.fact for entry in of_calls)

    def rolled_back(self) -> None:
        """The transaction under way did not happen."""
        self.written.clear()
        self.appended.clear()
        self.has_fed = self.makes_due = False
        self._forget_ends()
        self._costs_so_far = dict.fromkeys(self._costs_so_far)

    def forget(self, turn_id: str) -> None:
        """A turn that nobody here owns needs no place in memory."""
        self._costs_so_far.pop(turn_id, None)
        self._owned.pop(turn_id, None)
        if (numbers := self._turns.pop(turn_id, None)) is not None:
            self._ends.pop(numbers[0], None)

    def _others(self, span: Span, seen: int) -> list[StoredFact]:
        others: list[StoredFact] = []
        while seen < span.upto:
            entries, seen = self.streams.piece(span, seen)
            others += [
                self.streams.recorded(span.agent_id, entry) for entry in entries if entry.head.writer == OUTSIDER
            ]
        return others

    def _make_agent(self, agent_id: str) -> Place:
        origin = chain.origin(agent_id)
        self._sql.do("INSERT INTO agents (agent_id, hash) VALUES (?, ?)", (agent_id, origin))
        return Place(self._sql.new_id(), 0, origin)

    def _write(
        self,
        place: Place,
        stored: Sequence[PackedRow],
        made: Changes,
        new: Container[Table[Any]] = (),
    ) -> Place:
        """Where the stream ends now. `new`: tables that rows are added to."""
        agent, seq, digest, name = place
        base = agent << SHIFT
        appended: list[tuple[Any, ...]] = []
        for row in stored:
            digest = row.link(digest)
            turn = 0 if row.turn_id is None else base | self._first(row.turn_id, made)
            appended.append((base | seq + 1, turn, row.header, row.body, digest))
            seq += len(row.payloads)
        self._sql.many(_APPEND, appended)
        self._sql.do(_MOVE_HEAD, (seq, digest, agent))
        if made.agent_name is not None:
            self._sql.do("UPDATE agents SET name = ? WHERE id = ?", (made.agent_name, agent))
        self.makes_due = self.makes_due or not made.rows or not made.rows.keys() <= _OF_QUEUES
        if made.rows:
            self._tables.write(agent, made.rows, new)
            self.has_fed = self.has_fed or FEED in made.rows
        self.written.pop(agent, None)  # last in order, as it is the newest
        self.written[agent] = (seq, digest)
        end = Place(agent, seq, digest, made.agent_name or name)
        if agent in self._ends:
            self._ends[agent] = end
        return end
