"""The store: the log, the rows that follow from it, leases and blobs."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, Protocol, TypeAlias

from wakeful.contracts.content import BlobRef
from wakeful.contracts.envelope import Fact, StoredFact
from wakeful.ports.approvals import Approvals
from wakeful.ports.mailbox import Mailbox
from wakeful.ports.spending import Spending
from wakeful.ports.taint import TaintedFiles
from wakeful.ports.turn_costs import TurnCosts
from wakeful.ports.turns import TurnRow
from wakeful.ports.unknown_outcomes import UnknownOutcomes
from wakeful.ports.usage import Usage
from wakeful.ports.wakes import Wakes


class WorkflowRow(NamedTuple):
    """One revision of a workflow. Revisions are numbered from 1 without gaps and never change."""

    workflow_id: str
    revision: int
    name: str
    graph: str
    """JSON, as it was given: the store does not read it."""
    created_at: int


RunKind: TypeAlias = Literal["task", "package"]


class TaskRunRow(NamedTuple):
    """A run that was handed to an executor or to a host: a task, or a package. Claimed once."""

    run_id: str
    kind: RunKind
    session_id: str
    status: str
    record: str
    """JSON, as it was given: the store does not read it."""
    revision: int
    """From 1; each change adds one, and has to name the one it is based on."""
    created_at: int
    updated_at: int


class TaskRunEvent(NamedTuple):
    """Something that happened to a run, numbered from 1 within it."""

    seq: int
    at: int
    name: str
    payload: str
    """JSON."""


class ImportedAgent(NamedTuple):
    """An agent that came in a bundle."""

    slug: str
    definition: str
    """JSON, as it was given: the store does not read it."""
    imported_at: int


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


class AdmissionAnswer(NamedTuple):
    """The answer to an admission."""

    turn: TurnRow | None
    """None: no turn has the message yet. It waits in its thread's queue."""
    created: bool
    """False: the key, or the message, was there already and nothing was written."""
    reservation: str | None = None
    """What the caller claims it with, if it was reserved."""


class Damage(NamedTuple):
    """A place where stored bytes are not what was written."""

    agent_id: str
    seq: int
    what: str


Feed: TypeAlias = Literal["all", "outsiders", "lease"]
"""What a watch follows. all: every fact. outsiders: facts that are not the owner's. lease: turns that were let go, and
owners that are gone."""


class Watch(Protocol):
    """Wakes whoever follows an agent's stream. May wake for nothing; never misses a commit."""

    async def wait(self, timeout: float | None = None) -> None: ...

    def close(self) -> None: ...


class TaskRunStore(Protocol):
    """Runs of tasks and packages, and what happened to each. All writing is done with a barrier."""

    async def claim(
        self,
        run_id: str,
        kind: RunKind,
        session_id: str,
        status: str,
        record: str,
        *,
        at: int,
        event: str,
        payload: str,
    ) -> bool:
        """Begin a run, with its first event. False, and nothing is written, when the id was claimed before."""
        ...

    async def get(self, run_id: str) -> TaskRunRow | None: ...

    async def all(self, kind: RunKind, *, limit: int | None = None) -> list[TaskRunRow]:
        """Newest first."""
        ...

    async def change(
        self, run_id: str, revision: int, status: str, record: str, *, at: int, event: str, payload: str
    ) -> bool:
        """The next revision, with its event. False, and nothing is written, unless `revision` is the newest."""
        ...

    async def note(self, run_id: str, *, at: int, event: str, payload: str) -> bool:
        """Add an event and change nothing else. False when there is no such run."""
        ...

    async def events(self, run_id: str, *, after: int = 0, limit: int | None = None) -> list[TaskRunEvent]:
        """In order."""
        ...


class ImportedAgents(Protocol):
    """Agents that came in bundles, by slug. All writing is done with a barrier."""

    async def put(self, slug: str, definition: str, *, at: int, replace: bool) -> bool:
        """False, and nothing is written, when one is there and is not to be replaced."""
        ...

    async def get(self, slug: str) -> ImportedAgent | None: ...

    async def all(self) -> list[ImportedAgent]:
        """By slug."""
        ...


class TableReads(TurnCosts, Usage, Spending, UnknownOutcomes, Approvals, TaintedFiles, Mailbox, Wakes, Protocol):
    """Everything that is read from declared tables. A backend inherits it, and gives the three methods of `Rows`."""


class Store(TableReads, Protocol):
    """The log and the rows that follow from it. One interface, several backends, one contract suite.

    The store numbers events inside its transaction, chains their hashes for each agent, and changes the rows a fact
    stands for in that fact's own transaction. It never shows, returns or acknowledges what is not committed.
    """

    @property
    def location(self) -> str:
        """What a person would type after `--store`."""
        ...

    @property
    def runtime_id(self) -> str:
        """The installation this store belongs to."""
        ...

    @property
    def secret(self) -> bytes:
        """Known to this store alone: what approvals are bound with. Never shown, logged or handed on."""
        ...

    @property
    def task_runs(self) -> TaskRunStore: ...

    @property
    def imported_agents(self) -> ImportedAgents: ...

    async def admit(self, agent_id: str, facts: Sequence[Fact], *, reserve: bool = False) -> AdmissionAnswer | None:
        """Append outsider facts, with a barrier: what returns survives a power cut.

        A `message.admitted` that names a turn opens that turn's row. One that names none waits in its thread's queue;
        when a message of that id is there already, nothing is written. When the message's key is taken, nothing is
        written and the turn of that key is returned; the caller compares fingerprints. Returns None when no message
        was among the facts.
        With `reserve` the new turn is kept for the caller, who waits for its thread and claims it with the reservation.
        Raises EventRefused for a kind that outsiders may not append, AlreadyDecided for a second decision.
        """
        ...

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

    async def append(
        self, claim: Claim, facts: Sequence[Fact], *, barrier: bool = False, rest: bool = False
    ) -> list[StoredFact]:
        """Append the owner's facts in one transaction and return the outsiders' facts of this turn not seen before.

        Without `barrier` what returns survives a kill; with it, a power cut. With `rest`, raises RestRefused and writes
        nothing while an outsider's fact has not been seen. Raises OwnerFenced when the claim is stale. Writes nothing
        and raises AlreadyDecided when it decides what somebody outside has just decided, WindowFull when a spend window
        has no room for what a request holds back, AlreadyNoticed for a second notice about a window.
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

    async def is_held(self, agent_id: str, thread_id: str) -> bool:
        """Does anybody who lives run turns of this thread? Looking changes nothing."""
        ...

    async def agents(self) -> list[str]: ...

    async def save_workflow(
        self,
        name: str,
        graph: str,
        *,
        new_id: str,
        created_at: int,
        workflow_id: str | None = None,
        key: str | None = None,
    ) -> WorkflowRow:
        """Keep a graph, with a barrier, as the next revision of `workflow_id`.

        Without one: of the workflow that has this name now, or as the first revision of `new_id`. Raises
        WorkflowNotFound, and WorkflowNameTaken when another workflow has the name. What was saved under the same key
        before is returned, and nothing is written.
        """
        ...

    async def workflow(self, workflow_id: str, revision: int | None = None) -> WorkflowRow | None:
        """A revision, or the newest."""
        ...

    async def workflows(self) -> list[WorkflowRow]:
        """The newest revision of each, by name."""
        ...

    async def delete_workflow(self, workflow_id: str) -> bool:
        """Forget every revision; False when there was none. What runs has its own copy of the graph."""
        ...

    async def put_blob(self, data: bytes, media_type: str) -> BlobRef:
        """Keep bytes under the hash of what they are. On disk before any event can refer to them."""
        ...

    async def get_blob(self, digest: str) -> bytes:
        """Raises StoreDamaged when the bytes do not match their name."""
        ...

    def reader(self, agent_id: str, turn_id: str) -> Callable[[], list[StoredFact]]:
        """A function that reads a turn's events without the loop, also after this store was closed."""
        ...

    def watch(self, agent_id: str, *, thread_id: str | None = None, feed: Feed = "all") -> Watch:
        """Follow an agent's stream, or one thread of it."""
        ...

    async def rebuild_views(self) -> None:
        """Throw the rows away and make them again from the log."""
        ...

    async def verify(self) -> list[Damage]:
        """Read everything and check it against what was written."""
        ...

    async def close(self) -> None: ...
