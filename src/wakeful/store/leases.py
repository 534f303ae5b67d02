"""Who may write to a thread's turns. Pure: backends read and write the lease, this decides.

A thread of an agent has one lease: (owner, epoch, expiry). Threads of one agent may have different owners. A dead
owner is replaced at once; a live one when its lease ran out, which happens to processes that are stopped or hang.
Every change of owner raises the epoch, and every claim raises its turn's own, so that whoever was replaced is told so
by its next write. A live one may wake up in the middle of an effect: who takes over from it is told that, for as long
as that process lives.
"""

import time
from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias

from wakeful.contracts.envelope import Fact
from wakeful.contracts.errors import AgentBusy, EventRefused, OwnerFenced, TurnNotFound
from wakeful.contracts.events import TurnStarted
from wakeful.ports import Claim, TakenFrom

TTL = 30.0
Elapsed: TypeAlias = Callable[[], float]

_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


def elapsed() -> float:
    """Seconds that only grow and also count while the machine sleeps: a lease must not outlive a closed lid."""
    return time.clock_gettime(_CLOCK)


class Lease(NamedTuple):
    """A thread's lease as it is stored."""

    owner: str | None
    epoch: int
    expires: float


class Holder(NamedTuple):
    """Who holds a lease, in words a person can use."""

    pid: int
    host: str
    since: str

    def __str__(self) -> str:
        return f"process {self.pid} on {self.host}, since {self.since}"


def take(lease: Lease, me: str, now: float, ttl: float, alive: Callable[[str], bool]) -> Lease | None:
    """The lease in my hands; None while another live owner's has not run out."""
    if lease.owner == me:
        return Lease(me, lease.epoch, now + ttl)
    if is_held(lease, now, alive):
        return None
    return Lease(me, lease.epoch + 1, now + ttl)


def taken_from(lease: Lease, me: str, alive: Callable[[str], bool]) -> TakenFrom | None:
    """Whom somebody replaces who takes this lease: an owner that is dead, or one that lives and was late."""
    if lease.owner is None or lease.owner == me:
        return None
    return "late" if alive(lease.owner) else "dead"


def is_held(lease: Lease, now: float, alive: Callable[[str], bool]) -> bool:
    """Is there an owner who lives and has renewed it?"""
    return lease.owner is not None and now < lease.expires and alive(lease.owner)


def is_kept(lease: Lease, caller: str | None, mine: str | None, now: float, alive: Callable[[str], bool]) -> bool:
    """Is a turn kept for another caller, who lives and is not late? A thread that is free keeps the time it had."""
    return caller is not None and caller != mine and now < lease.expires and alive(owner_of(caller))


def owner_of(reservation: str) -> str:
    """Who made a reservation."""
    return reservation.partition("/")[0]


def check(claim: Claim, lease: Lease, turn_epoch: int) -> None:
    """Raises OwnerFenced unless the claim is the newest of its thread and of its turn."""
    if lease.owner != claim.owner or lease.epoch != claim.lease_epoch or turn_epoch != claim.turn_epoch:
        raise fenced(claim)


def check_turn(claim: Claim, facts: Sequence[Fact]) -> None:
    """An owner writes about its own turn: the epoch of another turn would go unchecked. A turn is opened first."""
    if claim.opens and facts and not isinstance(facts[0].event, TurnStarted):
        raise EventRefused(
            f"{facts[0].event.kind} names turn {claim.turn_id}, which nothing has opened",
            "Admit its message, or start it with queued ones, first.",
        )
    for fact in facts:
        if fact.turn_id is not None and fact.turn_id != claim.turn_id:
            raise EventRefused(
                f"{fact.event.kind} belongs to turn {fact.turn_id}, and the claim is for {claim.turn_id}",
                "Append it with its own turn's claim.",
            )


def fenced(claim: Claim) -> OwnerFenced:
    return OwnerFenced(
        f"turn {claim.turn_id} has another owner now, or its claim was released",
        "Stop working on it; what was to be written was not.",
    )


def no_stream(agent_id: str) -> TurnNotFound:
    return TurnNotFound(f"agent {agent_id} has no messages in this store", "Send it one first.")


def busy_here(turn_id: str) -> AgentBusy:
    return AgentBusy(f"turn {turn_id} runs in this process already", "Wait for that run to end.", here=True)


def busy_waiting(turn_id: str, holder: Holder | None, *, here: bool) -> AgentBusy:
    who = "this process" if here else str(holder or "another process")
    return AgentBusy(f"turn {turn_id} is about to be run by its caller, {who}", "Wait for that run to end.", here=here)


def busy_elsewhere(agent_id: str, thread_id: str, holder: Holder | None) -> AgentBusy:
    who = str(holder) if holder is not None else "another process"
    what = f"thread {thread_id!r} of agent {agent_id} is being run by {who}"
    return AgentBusy(what, "Wait for it to end, or stop that process.")
