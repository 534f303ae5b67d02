"""Claims: the thread's lease and the turn's epoch, in the database; the newest expiry, in memory.

As long as a lease has not run out nobody may take it, so that asking for it before an effect costs nothing; it is
renewed when half of it is used.
"""

from dataclasses import dataclass
from typing import TypeAlias

from wakeful.contracts.errors import TurnNotFound
from wakeful.ports import Claim, TurnRow
from wakeful.store.leases import (
    Elapsed,
    Lease,
    busy_elsewhere,
    busy_here,
    busy_waiting,
    fenced,
    is_held,
    is_kept,
    no_stream,
    owner_of,
    take,
    taken_from,
)
from wakeful.store.sqlite.connection import Statements
from wakeful.store.sqlite.owners import LivingOwners

FIRST_EPOCH = 1
"""Of a turn that is claimed for the first time."""
Thread: TypeAlias = tuple[str, str]
"""Agent and thread."""


@dataclass(slots=True)
class _Mine:
    """A thread's lease in our hands."""

    agent: int
    epoch: int
    expires: float
    turns: dict[str, int]
    """Turn id to epoch, for each claim that was not released."""
    opening: str | None = None
    """The one of them that has no row yet."""


class Claims:
    """What this store owns. Everything that writes runs inside the writer's transaction."""

    def __init__(self, sql: Statements, owners: LivingOwners, ttl: float, clock: Elapsed) -> None:
        self._sql = sql
        self._owners = owners
        self._ttl = ttl
        self._clock = clock
        self._mine: dict[Thread, _Mine] = {}
        self._reserved = 0

    def __bool__(self) -> bool:
        return bool(self._mine)

    @property
    def has_one_turn(self) -> bool:
        """A single turn is running: nobody else could share its transactions."""
        return len(self._mine) == 1 and len(next(iter(self._mine.values())).turns) == 1

    def reserve(self, turn: TurnRow) -> str:
        """Keep a new turn for its caller. A thread that was free for long gets the time of a lease."""
        self._reserved += 1
        reservation = f"{self._owners.me}/{self._reserved}"
        self._sql.do("INSERT OR REPLACE INTO turn_claims VALUES (?, 0, ?)", (turn.turn_id, reservation))
        now = self._clock()
        self._sql.do(
            "INSERT INTO leases SELECT agent, thread_id, NULL, 0, ? FROM turns WHERE turn_id = ?"
            " ON CONFLICT DO UPDATE SET expires = excluded.expires WHERE owner IS NULL AND expires <= ?",
            (now + self._ttl, turn.turn_id, now),
        )
        return reservation

    def give_up(self, turn_id: str, reservation: str) -> None:
        self._sql.do("UPDATE turn_claims SET caller = NULL WHERE turn_id = ? AND caller = ?", (turn_id, reservation))

    def claim(self, turn_id: str, reservation: str | None = None) -> Claim:
        found = self._sql.one(
            "SELECT a.id, a.agent_id, a.seq, t.thread_id, coalesce(c.epoch, 0), c.caller FROM turns t"
            " JOIN agents a ON a.id = t.agent LEFT JOIN turn_claims c ON c.turn_id = t.turn_id WHERE t.turn_id = ?",
            (turn_id,),
        )
        if found is None:
            raise TurnNotFound(f"there is no turn {turn_id} in this store", "List the turns that are there.")
        agent, agent_id, head, thread_id, turn_epoch, caller = found
        me, old, thread = self._owners.me, self._lease(agent, thread_id), (agent_id, thread_id)
        mine = self._mine.get(thread)
        if mine is not None and old.owner == me and mine.epoch == old.epoch:
            if turn_id in mine.turns:
                raise busy_here(turn_id)
            if mine.opening is not None:
                raise busy_here(mine.opening)
        now, alive = self._clock(), self._owners.alive
        lease = take(old, me, now, self._ttl, alive)
        if lease is None:
            raise busy_elsewhere(agent_id, thread_id, self._owners.holder(old.owner or ""))
        if is_kept(old, caller, reservation, now, alive):
            asker = owner_of(caller)
            raise busy_waiting(turn_id, self._owners.holder(asker), here=asker == me)
        self._sql.do("INSERT OR REPLACE INTO turn_claims VALUES (?, ?, NULL)", (turn_id, turn_epoch + 1))
        return self._take(agent, thread, turn_id, turn_epoch + 1, lease, old, head)

    def claim_new(self, agent: int, head: int, turn: TurnRow) -> Claim | None:
        """Claim a turn in the transaction that opens it, as the only one of its thread; None: wait for the thread."""
        thread = turn.agent_id, turn.thread_id
        old = self._lease(agent, turn.thread_id)
        if old.owner is not None or thread in self._mine:
            return None  # of a turn that has ended, and is about to be let go
        lease = Lease(self._owners.me, old.epoch + 1, self._clock() + self._ttl)
        self._sql.do("INSERT OR REPLACE INTO turn_claims VALUES (?, ?, NULL)", (turn.turn_id, FIRST_EPOCH))
        return self._take(agent, thread, turn.turn_id, FIRST_EPOCH, lease, old, head)

    def claim_thread(self, agent_id: str, thread_id: str, turn_id: str) -> Claim:
        """Claim a turn that its owner opens."""
        found = self._sql.one("SELECT id, seq FROM agents WHERE agent_id = ?", (agent_id,))
        if found is None:
            raise no_stream(agent_id)
        agent, head = found
        me, old, thread = self._owners.me, self._lease(agent, thread_id), (agent_id, thread_id)
        mine = self._mine.get(thread)
        if mine is not None and old.owner == me and mine.epoch == old.epoch and mine.turns:
            raise busy_here(next(iter(mine.turns)))
        lease = take(old, me, self._clock(), self._ttl, self._owners.alive)
        if lease is None:
            raise busy_elsewhere(agent_id, thread_id, self._owners.holder(old.owner or ""))
        claim = self._take(agent, thread, turn_id, FIRST_EPOCH, lease, old, head)
        self._mine[thread].opening = turn_id
        claim.opens = True
        return claim

    def opened(self, claim: Claim) -> None:
        """The turn has its row."""
        claim.opens = False
        mine = self._held(claim)
        if mine is not None:
            mine.opening = None

    def _take(
        self, agent: int, thread: Thread, turn_id: str, turn_epoch: int, lease: Lease, old: Lease, head: int
    ) -> Claim:
        """Write the lease down and note the claim."""
        agent_id, thread_id = thread
        before = taken_from(old, self._owners.me, self._owners.alive)
        if before == "late":
            values = (agent, thread_id, old.owner, head)
            self._sql.do("INSERT OR REPLACE INTO late_owners VALUES (?, ?, ?, ?)", values)
        self._sql.do("INSERT OR REPLACE INTO leases VALUES (?, ?, ?, ?, ?)", (agent, thread_id, *lease))
        # Noted before the commit, so that another claim in the same transaction sees it; `released` undoes it.
        mine = self._mine.get(thread)
        if mine is None or mine.epoch != lease.epoch:
            mine = self._mine[thread] = _Mine(agent, lease.epoch, lease.expires, {})
        mine.expires = lease.expires
        mine.turns[turn_id] = turn_epoch
        return Claim(
            agent_id,
            thread_id,
            turn_id,
            self._owners.me,
            lease.epoch,
            turn_epoch,
            seen=0,
            head=head,
            fresh=turn_epoch == FIRST_EPOCH,
            taken_from=before,
            late_upto=self._late_upto(agent, thread_id) if old.epoch else 0,  # nobody had it before
        )

    def _lease(self, agent: int, thread_id: str) -> Lease:
        sql = "SELECT owner, epoch, expires FROM leases WHERE agent = ? AND thread_id = ?"
        found = self._sql.one(sql, (agent, thread_id))
        return Lease(None, 0, 0.0) if found is None else Lease(*found)

    def _late_upto(self, agent: int, thread_id: str) -> int:
        """The newest event at which somebody who lives was replaced; those who died meanwhile are forgotten."""
        upto = 0
        sql = "SELECT owner, seq FROM late_owners WHERE agent = ? AND thread_id = ?"
        for owner, seq in self._sql.all(sql, (agent, thread_id)):
            if self._owners.alive(owner):
                upto = max(upto, seq)
            else:
                gone = (agent, thread_id, owner)
                self._sql.do("DELETE FROM late_owners WHERE agent = ? AND thread_id = ? AND owner = ?", gone)
        return upto

    def is_held(self, agent_id: str, thread_id: str) -> bool:
        agent = self._sql.one("SELECT id FROM agents WHERE agent_id = ?", (agent_id,))
        return agent is not None and is_held(self._lease(agent[0], thread_id), self._clock(), self._owners.alive)

    def released(self, claim: Claim) -> bool:
        """Take the claim out of our hands. True when the lease can go too."""
        mine = self._held(claim)
        if mine is None:
            return False
        del mine.turns[claim.turn_id]
        if mine.opening == claim.turn_id:
            mine.opening = None
        if mine.turns:
            return False
        del self._mine[claim.agent_id, claim.thread_id]
        return True

    def let_go(self, claim: Claim) -> None:
        if (claim.agent_id, claim.thread_id) in self._mine:
            return  # claimed again in the meantime
        self._give_back(claim)

    def let_go_with(self, claim: Claim) -> bool:
        """In the transaction of the turn's last facts. False: another turn of the thread goes on under the lease."""
        mine = self._held(claim)
        if mine is None or len(mine.turns) > 1:
            return False
        self._give_back(claim)
        return True

    def _give_back(self, claim: Claim) -> None:
        self._sql.do(
            "UPDATE leases SET owner = NULL, expires = ? WHERE agent = (SELECT id FROM agents WHERE agent_id = ?)"
            " AND thread_id = ? AND owner = ? AND epoch = ?",
            (self._clock() + self._ttl, claim.agent_id, claim.thread_id, claim.owner, claim.lease_epoch),
        )

    def check(self, claim: Claim) -> None:
        """Raises OwnerFenced for a claim that was released or that we know to be lost."""
        if self._held(claim) is None:
            raise fenced(claim)

    def _held(self, claim: Claim) -> _Mine | None:
        mine = self._mine.get((claim.agent_id, claim.thread_id))
        if mine is None or mine.epoch != claim.lease_epoch or mine.turns.get(claim.turn_id) != claim.turn_epoch:
            return None
        return mine

    def is_fresh(self, claim: Claim) -> bool:
        """Less than half of the lease is used: nobody can have taken it."""
        return self._mine[claim.agent_id, claim.thread_id].expires - self._clock() > self._ttl / 2

    def renew(self, claim: Claim) -> None:
        if not self._renew((claim.agent_id, claim.thread_id)):
            raise fenced(claim)

    def renew_all(self) -> None:
        for thread in list(self._mine):
            self._renew(thread)

    def is_due(self) -> bool:
        """Some lease is more than half used."""
        soon = self._clock() + self._ttl / 2
        return any(mine.expires < soon for mine in self._mine.values())

    def _renew(self, thread: Thread) -> bool:
        mine = self._mine.get(thread)
        if mine is None:
            return False
        expires = self._clock() + self._ttl
        found = self._sql.one(
            "UPDATE leases SET expires = ? WHERE agent = ? AND thread_id = ? AND owner = ? AND epoch = ? RETURNING 1",
            (expires, mine.agent, thread[1], self._owners.me, mine.epoch),
        )
        if found is None:
            del self._mine[thread]  # replaced: every claim of it is stale
            return False
        mine.expires = expires
        return True
