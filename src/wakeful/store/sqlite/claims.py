"""Claims: the agent's lease and the turn's epoch, in the database; the newest expiry, in memory.

As long as a lease has not run out nobody may take it, so that asking for it before an effect costs nothing; it is
renewed when half of it is used.
"""

from dataclasses import dataclass

from wakeful.contracts.errors import TurnNotFound
from wakeful.ports import Claim
from wakeful.store.leases import Elapsed, Lease, busy_elsewhere, busy_here, fenced, is_held, take
from wakeful.store.sqlite.connection import Statements
from wakeful.store.sqlite.owners import Owners


@dataclass(slots=True)
class _Mine:
    """An agent's lease in our hands."""

    agent: int
    epoch: int
    expires: float
    turns: dict[str, int]
    """Turn id to epoch, for each claim that was not released."""


class Claims:
    """What this store owns. Everything that writes runs inside the writer's transaction."""

    def __init__(self, sql: Statements, owners: Owners, ttl: float, clock: Elapsed) -> None:
        self._sql = sql
        self._owners = owners
        self._ttl = ttl
        self._clock = clock
        self._mine: dict[str, _Mine] = {}

    def __bool__(self) -> bool:
        return bool(self._mine)

    @property
    def has_one_turn(self) -> bool:
        """A single turn is running: nobody else could share its transactions."""
        return len(self._mine) == 1 and len(next(iter(self._mine.values())).turns) == 1

    def claim(self, turn_id: str) -> Claim:
        found = self._sql.one(
            "SELECT a.id, a.agent_id, a.owner, a.epoch, a.expires, t.epoch, t.id FROM turns t"
            " JOIN agents a ON a.id = t.agent WHERE t.turn_id = ?",
            (turn_id,),
        )
        if found is None:
            raise TurnNotFound(f"there is no turn {turn_id} in this store", "List the turns that are there.")
        agent, agent_id, owner, epoch, expires, turn_epoch, turn = found
        me, old = self._owners.me, Lease(owner, epoch, expires)
        mine = self._mine.get(agent_id)
        if mine is not None and owner == me and mine.epoch == epoch and turn_id in mine.turns:
            raise busy_here(turn_id)
        lease = take(old, me, self._clock(), self._ttl, self._owners.alive)
        if lease is None:
            raise busy_elsewhere(agent_id, self._owners.holder(owner))
        self._sql.do(
            "UPDATE agents SET owner = ?, epoch = ?, expires = ? WHERE id = ?", (me, lease.epoch, lease.expires, agent)
        )
        self._sql.do("UPDATE turns SET epoch = epoch + 1 WHERE id = ?", (turn,))
        turn_epoch += 1
        # Noted before the commit, so that another claim in the same transaction sees it; `released` undoes it.
        if mine is None or mine.epoch != lease.epoch:
            mine = self._mine[agent_id] = _Mine(agent, lease.epoch, lease.expires, {})
        mine.expires = lease.expires
        mine.turns[turn_id] = turn_epoch
        return Claim(agent_id, turn_id, me, lease.epoch, turn_epoch, seen=0, fresh=turn_epoch == 1)

    def is_held(self, agent_id: str) -> bool:
        found = self._sql.one("SELECT owner, epoch, expires FROM agents WHERE agent_id = ?", (agent_id,))
        return found is not None and is_held(Lease(*found), self._clock(), self._owners.alive)

    def released(self, claim: Claim) -> bool:
        """Take the claim out of our hands. True when the lease can go too."""
        mine = self._mine.get(claim.agent_id)
        if mine is None or mine.epoch != claim.agent_epoch or mine.turns.get(claim.turn_id) != claim.turn_epoch:
            return False
        del mine.turns[claim.turn_id]
        if mine.turns:
            return False
        del self._mine[claim.agent_id]
        return True

    def let_go(self, claim: Claim) -> None:
        if claim.agent_id in self._mine:
            return  # claimed again in the meantime
        self._sql.do(
            "UPDATE agents SET owner = NULL WHERE agent_id = ? AND owner = ? AND epoch = ?",
            (claim.agent_id, claim.owner, claim.agent_epoch),
        )

    def check(self, claim: Claim) -> None:
        """Raises Fenced for a claim that was released or that we know to be lost."""
        mine = self._mine.get(claim.agent_id)
        if mine is None or mine.epoch != claim.agent_epoch or mine.turns.get(claim.turn_id) != claim.turn_epoch:
            raise fenced(claim)

    def is_fresh(self, claim: Claim) -> bool:
        """Less than half of the lease is used: nobody can have taken it."""
        return self._mine[claim.agent_id].expires - self._clock() > self._ttl / 2

    def renew(self, claim: Claim) -> None:
        if not self._renew(claim.agent_id):
            raise fenced(claim)

    def renew_all(self) -> None:
        for agent_id in list(self._mine):
            self._renew(agent_id)

    def is_due(self) -> bool:
        """Some lease is more than half used."""
        soon = self._clock() + self._ttl / 2
        return any(mine.expires < soon for mine in self._mine.values())

    def _renew(self, agent_id: str) -> bool:
        mine = self._mine.get(agent_id)
        if mine is None:
            return False
        expires = self._clock() + self._ttl
        found = self._sql.one(
            "UPDATE agents SET expires = ? WHERE id = ? AND owner = ? AND epoch = ? RETURNING 1",
            (expires, mine.agent, self._owners.me, mine.epoch),
        )
        if found is None:
            del self._mine[agent_id]  # replaced: every claim of it is stale
            return False
        mine.expires = expires
        return True
