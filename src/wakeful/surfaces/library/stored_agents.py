"""The agents of a store, as `AsyncStore` has them: how they stand, what they said, their memory, triggers and tasks,
and what they may spend."""

from collections.abc import AsyncIterator, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from wakeful.bootstrap.store_operations import perform, reading_store
from wakeful.contracts.budgets import Money
from wakeful.contracts.errors import InvalidRequest
from wakeful.contracts.spending import PERIODS, RUNTIME, Period, agent_scope, principal_scope
from wakeful.service.operations.agents import STATUS, AgentName, StatusQuery
from wakeful.service.operations.memory import (
    EDIT_MEMORY,
    FORGET_MEMORY,
    LIST_MEMORY,
    SHOW_MEMORY,
    SHOW_WORKING_MEMORY,
    MemoryEdit,
    MemoryName,
    MemoryOwner,
    MemoryQuery,
)
from wakeful.service.operations.operation import NoRequest, Operation
from wakeful.service.operations.operator_feed import (
    LIST_FEED,
    REPLAY_EVENTS,
    SHOW_TAIL,
    SHOW_TRANSCRIPT,
    FeedQuery,
    ReplayQuery,
    TailQuery,
    TranscriptQuery,
    follow_feed,
)
from wakeful.service.operations.spending import GRANT, LIST_SPENDING, SpendGrant
from wakeful.service.operations.tasks import (
    LIST_TASKS,
    SHOW_OUTPUT,
    SHOW_TASK,
    STOP_TASK,
    TaskName,
    TaskQuery,
    TaskToStop,
)
from wakeful.service.operations.triggers import (
    CREATE_TRIGGER,
    DELIVER,
    LIST_TRIGGERS,
    REVOKE_TRIGGER,
    ROTATE_TRIGGER,
    SHOW_TRIGGER_URL,
    NewTrigger,
    TriggerAddress,
    TriggerChange,
    TriggerDelivery,
)
from wakeful.service.operations.turns import PAGE

if TYPE_CHECKING:
    from wakeful.contracts.triggers import Signature
    from wakeful.views.agent_status import AgentStatus
    from wakeful.views.memory_records import MemoryRecord, WorkingMemoryState
    from wakeful.views.presentation.display_modes import DisplayMode
    from wakeful.views.presentation.feed_entries import FeedEntry, TranscriptLine
    from wakeful.views.presentation.replayed_events import ReplayedEvent
    from wakeful.views.store_records import (
        SpendingLimit,
    )
    from wakeful.views.task_records import TaskOutput, TaskRecord
    from wakeful.views.trigger_records import DeliveryReceipt, TriggerRecord

Q = TypeVar("Q")
A = TypeVar("A")


class StoredAgents:
    """What a store can say of its agents, and change about them."""

    _path: str

    # --- how they stand ----------------------------------------------------------------------------------------------

    async def status(self, agent: str | None = None) -> "list[AgentStatus]":
        """Each agent: open turns, queued messages, pending actions, unknown outcomes and tokens used.

        Raises InvalidConfig for an agent that never ran here.
        """
        return await self._perform(STATUS, StatusQuery(agent))

    # --- what operators see -------------------------------------------------------------------------------------------

    async def feed(
        self, after: str | None = None, *, follow: bool = False, display: "DisplayMode" = "verbose"
    ) -> "AsyncIterator[FeedEntry]":
        """Entries for operators about all agents of a runtime, in the order in which they were stored, with cursors.

        `after` is the cursor of the last entry you have. With `follow`, new entries are yielded as they are stored, by
        whatever process. `display="info"` gives results alone. Raises CursorGone.
        """
        async with reading_store(self._path) as opened:
            if follow:
                async for entry in follow_feed(opened, FeedQuery(after, display=display)):
                    yield entry
                return
            while page := await LIST_FEED.handler(opened, FeedQuery(after, PAGE, display)):
                for entry in page:
                    yield entry
                after = page[-1].cursor

    async def tail(
        self, agent: str | None = None, *, limit: int = 20, display: "DisplayMode" = "info"
    ) -> "list[FeedEntry]":
        """The newest entries of the feed, of one agent or of all, the oldest of them first."""
        return await self._perform(SHOW_TAIL, TailQuery(agent, checked_limit(limit), display))

    async def replayed(self, agent: str, *, after: int = 0, limit: int = PAGE) -> "list[ReplayedEvent]":
        """An agent's events behind an `event_seq`, each with its provenance in an envelope apart from its payload."""
        return await self._perform(REPLAY_EVENTS, ReplayQuery(agent, after, checked_limit(limit)))

    async def transcript(self, agent: str, *, thread: str | None = None, turns: int = 20) -> "list[TranscriptLine]":
        """An agent's conversation with its operator: messages, briefs, and failures of providers between them."""
        return await self._perform(SHOW_TRANSCRIPT, TranscriptQuery(agent, thread, checked_limit(turns)))

    # --- memory -------------------------------------------------------------------------------------------------------

    async def memory(self, agent: str, find: str | None = None, *, limit: int = PAGE) -> "list[MemoryRecord]":
        """An agent's memory entries, the newest first; with `find`, those nearest to these words."""
        return await self._perform(LIST_MEMORY, MemoryQuery(agent, find, checked_limit(limit)))

    async def memory_entry(self, agent: str, source_ref: str) -> "MemoryRecord":
        """One entry, with its source and last use. Raises InvalidRequest."""
        return await self._perform(SHOW_MEMORY, MemoryName(agent, source_ref))

    async def edit_memory(self, agent: str, source_ref: str, text: str, *, by: str = "program") -> "MemoryRecord":
        """Have an entry say something else."""
        return await self._perform(EDIT_MEMORY, MemoryEdit(agent, source_ref, text, by))

    async def forget_memory(self, agent: str, source_ref: str, *, by: str = "program") -> "MemoryRecord":
        """Have an entry found by no search and shown in no prompt any more."""
        return await self._perform(FORGET_MEMORY, MemoryName(agent, source_ref, by))

    async def working_memory(self, agent: str) -> "WorkingMemoryState":
        """The working memory that an agent's turns begin with, by revision."""
        return await self._perform(SHOW_WORKING_MEMORY, MemoryOwner(agent))

    # --- triggers -----------------------------------------------------------------------------------------------------

    async def triggers(self, agent: str | None = None) -> "list[TriggerRecord]":
        """The triggers of an agent or of all agents, by name. Their addresses are not in it. Raises AgentNotFound."""
        return await self._perform(LIST_TRIGGERS, AgentName(agent))

    async def create_trigger(
        self,
        agent: str,
        name: str = "",
        *,
        say: str = "",
        thread: str = "main",
        signature: "Signature | None" = None,
        signing_env: str | None = None,
        by: str = "program",
    ) -> "TriggerRecord":
        """A trigger through which a program outside sends an agent messages, as `Runtime.create_trigger` makes it.

        Raises AgentNotFound, or InvalidRequest for a name that is taken. A tool of an agent may not create one.
        """
        asked = NewTrigger(agent, name, say, thread, signature, signing_env, by)
        return await self._perform(CREATE_TRIGGER, asked)

    async def rotate_trigger(self, trigger: str, *, by: str = "program", reason: str = "") -> "TriggerRecord":
        """Give a trigger another address; the one before is refused from now on."""
        return await self._perform(ROTATE_TRIGGER, TriggerChange(trigger, by, reason))

    async def revoke_trigger(self, trigger: str, *, by: str = "program", reason: str = "") -> "TriggerRecord":
        """Let a trigger take nothing any more. `create_trigger` makes it again, with another address."""
        return await self._perform(REVOKE_TRIGGER, TriggerChange(trigger, by, reason))

    async def trigger_url(self, trigger: str, *, base: str = "", by: str = "program", purpose: str = "") -> str:
        """The secret address of a trigger: its holder can wake the agent. The log says that it was given to you.

        `base` is the URL at which the runtime is reached from outside; without it the address is a path.
        """
        return (await self._perform(SHOW_TRIGGER_URL, TriggerAddress(trigger, by, purpose, base))).trigger_url

    async def deliver(
        self, address: str, body: bytes = b"", headers: Mapping[str, str] | None = None
    ) -> "DeliveryReceipt":
        """Hand over what came to the address of a trigger, as `Runtime.deliver` does; the runtime finds it in the log.

        The answer says `accepted`, `duplicate` or `refused`, with the reason.
        """
        return await self._perform(DELIVER, TriggerDelivery(address, body, headers or {}))

    # --- tasks --------------------------------------------------------------------------------------------------------

    async def tasks(self, agent: str | None = None, *, over: bool = False, limit: int = PAGE) -> "list[TaskRecord]":
        """Commands in the background and child agents, the newest first: of one agent, or of all.

        With `over`, those of an agent that have ended too. Raises AgentNotFound.
        """
        return await self._perform(LIST_TASKS, TaskQuery(agent, over, checked_limit(limit)))

    async def task(self, task_id: str) -> "TaskRecord":
        """One task: what it is, how it stands, how it ended. Raises InvalidRequest."""
        return await self._perform(SHOW_TASK, TaskName(task_id))

    async def task_output(self, task_id: str) -> "TaskOutput":
        """Both ends of what a task has said; of a child agent, its last words. Raises InvalidRequest."""
        return await self._perform(SHOW_OUTPUT, TaskName(task_id))

    async def stop_task(self, task_id: str, *, by: str = "program", reason: str = "") -> "TaskRecord":
        """Have a task end: a command, or a child agent with everything it has begun. Its agent is told.

        The runtime of the store ends it; if none is at work, the next one does. A tool of an agent may not stop one.
        """
        return await self._perform(STOP_TASK, TaskToStop(task_id, by, reason))

    # --- what they may spend ------------------------------------------------------------------------------------------

    async def limits(self) -> "list[SpendingLimit]":
        """The spending limits that apply now, and how much of each is used."""
        return await self._perform(LIST_SPENDING, NoRequest())

    async def grant(
        self,
        usd: Money,
        *,
        agent: str | None = None,
        principal: str | None = None,
        window: Period | None = None,
        by: str,
        reason: str = "",
    ) -> "SpendingLimit":
        """Raise a spending limit until it resets: of an agent, of a principal, or with neither of everything here.

        `window` may be left out where there is only one. Turns that wait for the limit continue with `resume`, or with
        `run` and their key. Raises InvalidConfig. A tool of an agent may not grant.
        """
        if agent is not None and principal is not None:
            raise InvalidRequest(f"grant(agent={agent!r}, principal={principal!r})", "grant to one of them at a time")
        if window is not None and window not in PERIODS:
            raise InvalidRequest(f"grant(window={window!r})", f"give one of: {', '.join(PERIODS)}")
        scope = agent_scope(agent) if agent is not None else RUNTIME
        scope = principal_scope(principal) if principal is not None else scope
        asked = SpendGrant(scope, usd, window, caller_of(by), reason)
        return await self._perform(GRANT, asked)

    async def _perform(self, operation: Operation[Q, A], asked: Q) -> A:
        return await perform(operation, asked, self._path)


def checked_limit(limit: int) -> int:
    """How many to list at most. Raises InvalidRequest for what is no whole number above 0."""
    given: Any = limit
    if isinstance(given, bool) or not isinstance(given, int) or given < 1:
        raise InvalidRequest(f"limit={given!r}", "give a whole number, at least 1")
    return limit


def caller_of(by: str) -> str:
    """Who acts, as it is stored. Raises InvalidRequest for a name that is none."""
    given: Any = by
    if not isinstance(given, str) or not given.strip() or not given.isprintable():
        raise InvalidRequest(f"by={given!r}", 'name who decides, for example by="ann"')
    return f"app:{given}"
