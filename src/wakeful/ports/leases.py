"""Leases: who may append to a turn. Ownership is by thread, and every claim has an epoch."""

from dataclasses import dataclass, field
from typing import Literal, Protocol, TypeAlias

TakenFrom: TypeAlias = Literal["dead", "late"]
"""dead: its process is gone. late: its lease ran out and its process lives, so that it may wake up."""


@dataclass(slots=True)
class Claim:
    """The right to append to a turn: its thread's lease and the turn's own epoch. Stale ones are refused."""

    agent_id: str
    thread_id: str
    turn_id: str
    owner: str
    lease_epoch: int
    turn_epoch: int
    seen: int
    """Up to here the owner knows the stream: after an `append` that wrote something, the number of its last fact."""
    head: int = 0
    """The newest event of the agent's stream when it was claimed."""
    fresh: bool = field(default=True)
    """False when the turn was claimed before, here or elsewhere: what is open in it was cut off."""
    taken_from: TakenFrom | None = None
    """The owner before, if this claim replaced one: it was dead, or only late with its lease."""
    opens: bool = False
    """The turn has no row yet: what is appended first has to begin with its `turn.started`."""
    late_upto: int = 0
    """Calls that were dispatched up to this event may still be carried out, by an owner that was late and lives."""


class Leases(Protocol):
    """Takes threads and turns up, and lets them go."""

    async def claim(self, turn_id: str, *, reservation: str | None = None) -> Claim:
        """Take the thread's lease and the turn. Raises AgentBusy, naming the holder, while a live owner has it.

        Also while the turn is reserved for another caller who lives, until that one is late: a lease's time after the
        thread came free. Claiming ends the reservation.
        """
        ...

    async def claim_thread(self, agent_id: str, thread_id: str, turn_id: str) -> Claim:
        """Take the thread's lease for a turn that is not there yet: its owner opens it by `turn.started`.

        Raises AgentBusy while a turn of the thread is claimed, here or by another live owner. As long as the claim is
        held and the turn not opened, no turn of the thread can be claimed here either.
        """
        ...

    async def give_up(self, turn_id: str, reservation: str) -> None:
        """The caller waits no more: whoever comes next may run the turn."""
        ...

    async def release(self, claim: Claim) -> None:
        """Let go. Does not raise when the claim is stale."""
        ...

    async def hold(self, claim: Claim) -> None:
        """Make sure the lease is still ours, renewing it when it is old. Raises OwnerFenced. Asked before an effect."""
        ...

    async def is_held(self, agent_id: str, thread_id: str) -> bool:
        """Does anybody who lives run turns of this thread? Looking changes nothing."""
        ...
