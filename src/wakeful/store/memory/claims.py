"""Claims in memory: the thread's lease and the turn's epoch."""

from wakeful.contracts.errors import TurnNotFound
from wakeful.ports import Claim, TurnRow
from wakeful.ports.mailbox import BUSY_THREADS, BusyThread
from wakeful.ports.turns import TURNS
from wakeful.store.leases import (
    Elapsed,
    Lease,
    busy_elsewhere,
    busy_here,
    busy_waiting,
    check,
    fenced,
    is_held,
    is_kept,
    no_stream,
    owner_of,
    take,
    taken_from,
)
from wakeful.store.memory.agent_log import AgentLog
from wakeful.store.memory.contents import Memory
from wakeful.store.watches import Wake


class MemoryClaims:
    """Turns and threads that one owner holds."""

    def __init__(self, memory: Memory, owner: str, ttl: float, clock: Elapsed) -> None:
        self._memory = memory
        self._owner = owner
        self._ttl = ttl
        self._clock = clock
        self._held: dict[str, Claim] = {}
        self._reserved = 0

    def reserve(self, agent: AgentLog, turn: TurnRow) -> str:
        """Keep a new turn for its caller. A thread that was free for long gets the time of a lease."""
        self._reserved += 1
        reservation = agent.callers[turn.turn_id] = f"{self._owner}/{self._reserved}"
        lease, now = agent.lease(turn.thread_id), self._clock()
        if lease.owner is None and lease.expires <= now:
            agent.leases[turn.thread_id] = lease._replace(expires=now + self._ttl)
        return reservation

    def give_up(self, turn_id: str, reservation: str) -> None:
        turn = self._memory.row(turn_id)
        agent = self._memory.agents[turn.agent_id]
        if agent.callers.get(turn_id) == reservation:
            del agent.callers[turn_id]
        self._memory.watches.wake(Wake(agent.agent_id, turn.thread_id, "lease"))

    def claim(self, turn_id: str, reservation: str | None) -> Claim:
        turn = self._memory.tables.get(TURNS, (turn_id,))
        if turn is None:
            raise TurnNotFound(f"there is no turn {turn_id} in this store", "List the turns that are there.")
        agent, thread, owners = self._memory.agents[turn.agent_id], turn.thread_id, self._memory.owners
        old = agent.lease(thread)
        for held in self._mine(agent.agent_id, thread) if old.owner == self._owner else []:
            if held.turn_id == turn_id or held.opens:
                raise busy_here(held.turn_id)
        lease = self._lease(agent, thread)
        caller = agent.callers.get(turn_id)
        if caller is not None and is_kept(old, caller, reservation, self._clock(), owners.__contains__):
            asker = owner_of(caller)
            raise busy_waiting(turn_id, owners.get(asker), here=asker == self._owner)
        agent.callers.pop(turn_id, None)
        return self._take(agent, thread, turn_id, lease)

    def claim_new(self, agent: AgentLog, turn: TurnRow) -> Claim | None:
        """Claim a turn as the only one of its thread; None: wait for the thread."""
        place = (turn.agent_id, turn.thread_id)
        old, thread = agent.lease(turn.thread_id), self._memory.tables.get(BUSY_THREADS, place)
        if old.owner is not None or thread != BusyThread(*place, turns=0, queued=1):
            return None
        lease = Lease(self._owner, old.epoch + 1, self._clock() + self._ttl)
        return self._take(agent, turn.thread_id, turn.turn_id, lease)

    def claim_thread(self, agent_id: str, thread_id: str, turn_id: str) -> Claim:
        """Claim a turn that its owner opens."""
        agent = self._memory.agents.get(agent_id)
        if agent is None:
            raise no_stream(agent_id)
        if agent.lease(thread_id).owner == self._owner and (mine := self._mine(agent_id, thread_id)):
            raise busy_here(mine[0].turn_id)
        claim = self._take(agent, thread_id, turn_id, self._lease(agent, thread_id))
        claim.opens = True
        return claim

    def release(self, claim: Claim) -> None:
        held = self._held.get(claim.turn_id)
        if held is None or held.turn_epoch != claim.turn_epoch:
            return
        del self._held[claim.turn_id]
        agent = self._memory.agents[claim.agent_id]
        lease = agent.lease(claim.thread_id)
        if lease.owner == self._owner and not self._mine(claim.agent_id, claim.thread_id):
            agent.leases[claim.thread_id] = lease._replace(owner=None, expires=self._clock() + self._ttl)
        self._memory.watches.wake(Wake(claim.agent_id, claim.thread_id, "lease"))

    def renew(self, claim: Claim) -> None:
        agent = self.check(claim)
        lease = agent.lease(claim.thread_id)
        agent.leases[claim.thread_id] = lease._replace(expires=self._clock() + self._ttl)

    def check(self, claim: Claim) -> AgentLog:
        """The agent whose turn it is. Raises when somebody else holds it by now."""
        agent = self._memory.agents[claim.agent_id]
        check(claim, agent.lease(claim.thread_id), agent.epochs[claim.turn_id])
        held = self._held.get(claim.turn_id)
        if held is None or held.turn_epoch != claim.turn_epoch:
            raise fenced(claim)
        return agent

    def is_held(self, agent_id: str, thread_id: str) -> bool:
        """By any owner."""
        agent = self._memory.agents.get(agent_id)
        alive = self._memory.owners.__contains__
        return agent is not None and is_held(agent.lease(thread_id), self._clock(), alive)

    def _mine(self, agent_id: str, thread_id: str) -> list[Claim]:
        """Claims of a thread's turns."""
        place = (agent_id, thread_id)
        return [held for held in self._held.values() if (held.agent_id, held.thread_id) == place]

    def _lease(self, agent: AgentLog, thread: str) -> Lease:
        """The thread's lease in our hands, once it is taken. Raises AgentBusy."""
        old, owners = agent.lease(thread), self._memory.owners
        lease = take(old, self._owner, self._clock(), self._ttl, owners.__contains__)
        if lease is None:
            raise busy_elsewhere(agent.agent_id, thread, owners.get(old.owner or ""))
        return lease

    def _take(self, agent: AgentLog, thread: str, turn_id: str, lease: Lease) -> Claim:
        old, late, owners = agent.lease(thread), agent.late.get(thread, {}), self._memory.owners
        if lease.epoch != old.epoch:
            for held in self._mine(agent.agent_id, thread):  # under an older epoch they are worth nothing
                del self._held[held.turn_id]
        before = taken_from(old, self._owner, owners.__contains__)
        if before == "late" and old.owner is not None:
            late[old.owner] = agent.seq
        agent.late[thread] = late = {owner: seq for owner, seq in late.items() if owner in owners}
        agent.leases[thread] = lease
        epoch = agent.epochs.get(turn_id, 0) + 1
        agent.epochs[turn_id] = epoch
        claim = Claim(
            agent.agent_id,
            thread,
            turn_id,
            self._owner,
            lease.epoch,
            epoch,
            seen=0,
            head=agent.seq,
            fresh=epoch == 1,
            taken_from=before,
            late_upto=max(late.values(), default=0),
        )
        self._held[turn_id] = claim
        return claim
