"""The log: what is appended to an agent's stream, and read from it.

Rows follow from facts in the transaction that appends these. Nothing is shown, returned or acknowledged before it is
committed, and every read is awaited: a backend may have to ask another machine.
"""

from collections.abc import Callable, Coroutine, Sequence
from typing import Any, NamedTuple, Protocol, TypeAlias

from wakeful.contracts.envelope import Fact, StoredFact
from wakeful.ports.leases import Claim
from wakeful.ports.mailbox import MessageRow
from wakeful.ports.turns import TurnRow

TurnReader: TypeAlias = Callable[[], Coroutine[Any, Any, list[StoredFact]]]
"""Reads all facts of one turn, in order."""


class AdmissionAnswer(NamedTuple):
    """The answer to an admission."""

    turn: TurnRow | None
    """None: no turn has the message yet. It waits in its thread's queue."""
    created: bool
    """False: the key, or the message, was there already and nothing was written."""
    reservation: str | None = None
    """What the caller claims it with, if it was reserved."""
    claim: Claim | None = None
    """The new turn in the caller's hands, where it could be claimed at once."""
    queued: MessageRow | None = None
    """A message that was put into its thread's queue."""


class Log(Protocol):
    """Appends and reads facts. The store numbers them in its transaction and chains their hashes for each agent."""

    async def admit(
        self, agent_id: str, facts: Sequence[Fact], *, reserve: bool = False, claim: bool = False
    ) -> AdmissionAnswer | None:
        """Append outsider facts, with a barrier: what returns survives a power cut.

        A `message.admitted` that names a turn opens that turn's row. One that names none waits in its thread's queue.
        When one that waits in a queue, or one with a key, has the id of a message that is there already, nothing is
        written and the turn that has it, if any, is returned. When the message's key is taken, nothing is written and
        the turn of that key is returned; the caller compares fingerprints. Returns None when no message was among the
        facts.
        With `reserve` the new turn is kept for the caller, who waits for its thread and claims it with the reservation.
        With `claim` it is claimed in the same transaction, where nothing else is open in its thread and nobody has the
        thread's lease; then there is no reservation.
        Raises EventRefused for a kind that outsiders may not append, AlreadyDecided for a second decision.
        """
        ...

    async def append(
        self, claim: Claim, facts: Sequence[Fact], *, barrier: bool = False, rest: bool = False, last: bool = False
    ) -> list[StoredFact]:
        """Append the owner's facts in one transaction and return the outsiders' facts of this turn not seen before.

        Without `barrier` what returns survives a kill; with it, a power cut. With `rest`, raises RestRefused and writes
        nothing while an outsider's fact has not been seen. With `last`, the turn is over with these facts, and the
        claim is let go in the same transaction. Raises OwnerFenced when the claim is stale. Writes nothing and raises
        AlreadyDecided when it decides what somebody outside has just decided, WindowFull when a spend window has no
        room for what a request holds back, AlreadyNoticed for a second notice about a window.
        """
        ...

    async def sync(self) -> None:
        """A barrier for everything committed so far."""
        ...

    async def read(
        self,
        agent_id: str,
        *,
        after: int = 0,
        thread_id: str | None = None,
        turn_id: str | None = None,
        limit: int | None = None,
    ) -> list[StoredFact]:
        """Events in order, verified against the chain. Raises StoreDamaged, naming the agent."""
        ...

    def turn_reader(self, agent_id: str, turn_id: str) -> TurnReader:
        """Reads a turn with a connection of its own: on whatever loop it is awaited, also after this store was closed.

        Making the reader reads nothing."""
        ...

    async def agents(self) -> list[str]: ...

    async def head(self, agent_id: str) -> int:
        """The number of an agent's newest event; 0: it has none."""
        ...
