"""The store in a program: the same questions and decisions as on the command line, through the same operations.

    async with open_store("runs.db") as store:
        for approval in await store.approvals():
            await store.decide(approval.approval_id, Approve(), by="ann")

This is the one class; `store_handle` is its view for programs that are not async, generated from it.
"""

import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack
from datetime import datetime
from os import PathLike, fspath
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Self, TypeAlias, TypeVar

from wakeful.bootstrap.store_operations import perform, reading_store
from wakeful.bootstrap.stores import check_not_lost, opened_store
from wakeful.contracts.approvals import Always, Answer, Approve, Edit, Reject
from wakeful.contracts.budgets import Money
from wakeful.contracts.errors import AlreadyDecided, InvalidRequest, StoreProblem
from wakeful.contracts.probes import DidNotHappen, Happened
from wakeful.contracts.spending import PERIODS, RUNTIME, Period, agent_scope, principal_scope
from wakeful.service.operations.agents import STATUS, AgentName, StatusQuery
from wakeful.service.operations.approvals import (
    DECIDE,
    LIST_APPROVALS,
    LIST_RULES,
    REASK,
    REVOKE_RULE,
    SHOW_APPROVAL,
    ApprovalDecision,
    ApprovalFilter,
    ApprovalName,
    ApprovalReask,
    RuleName,
)
from wakeful.service.operations.artifacts import LIST_ARTIFACTS, SHOW_ARTIFACT, ArtifactName
from wakeful.service.operations.calls import EXPLAIN, LIST_UNKNOWN, RESOLVE, CallName, OutcomeOfCall
from wakeful.service.operations.log import CHECK_LOG
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
from wakeful.service.operations.spending import GRANT, LIST_SPENDING, SHOW_COSTS, CostQuestion, SpendGrant
from wakeful.service.operations.tasks import (
    LIST_TASKS,
    SHOW_OUTPUT,
    SHOW_TASK,
    STOP_TASK,
    TaskName,
    TaskQuery,
    TaskToStop,
)
from wakeful.service.operations.threads import (
    DELETE_THREAD,
    LIST_MESSAGES,
    LIST_THREADS,
    MessageQuery,
    ThreadQuery,
    ThreadRemoval,
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
from wakeful.service.operations.turn_reports import (
    REPLAY,
    SHOW_CONTEXT,
    SHOW_LATENCY,
    SHOW_PROMPT,
    SHOW_TOOLS,
    SHOW_TREE,
    TurnStep,
)
from wakeful.service.operations.turns import LIST_TURNS, PAGE, SHOW_TURN, EventQuery, TurnName, TurnQuery, read_events
from wakeful.service.operations.upkeep import (
    COMPACT,
    EXPORT,
    IMPORT,
    STATS,
    VERIFY,
    WOULD_FREE,
    RetentionTerms,
    TransferFile,
)

if TYPE_CHECKING:
    from wakeful.contracts.approvals import Approval
    from wakeful.contracts.envelope import RuntimeEvent
    from wakeful.contracts.retention import Retention, RetentionReport
    from wakeful.contracts.triggers import Signature
    from wakeful.service.queries.log_check import CheckedEvent
    from wakeful.service.queries.replay import ReplayReport
    from wakeful.service.queries.tool_inventory import ToolInventory
    from wakeful.views.agent_status import AgentStatus
    from wakeful.views.approval_details import ApprovalDetails
    from wakeful.views.cost import CostReport
    from wakeful.views.explanation import CallExplanation
    from wakeful.views.memory_records import MemoryRecord, WorkingMemoryState
    from wakeful.views.presentation.display_modes import DisplayMode
    from wakeful.views.presentation.feed_entries import FeedEntry, TranscriptLine
    from wakeful.views.presentation.replayed_events import ReplayedEvent
    from wakeful.views.prompt_report import PromptReport
    from wakeful.views.runtime_records import SentMessage
    from wakeful.views.store_records import (
        ApprovalRule,
        Artifact,
        ArtifactContent,
        DeletedThread,
        SpendingLimit,
        ThreadRecord,
        TurnRecord,
        UnknownCall,
    )
    from wakeful.views.store_upkeep import StoreStats, TransferReport, VerifyReport
    from wakeful.views.task_records import TaskOutput, TaskRecord
    from wakeful.views.tree import ExecutionTreeSnapshot, ThreadMessage
    from wakeful.views.trigger_records import DeliveryReceipt, TriggerRecord
    from wakeful.views.turn_record import TurnLatency

Q = TypeVar("Q")
A = TypeVar("A")
TurnStates: TypeAlias = Literal["admitted", "running", "suspended", "completed", "incomplete", "failed", "cancelled"]
Groups: TypeAlias = Literal["model", "agent", "day", "depth"]


class AsyncStore(PathLike[str]):
    """A store, for async programs. `run(..., store=store)` takes it wherever a path is taken.

    Made by `async with open_store(path) as store`, which keeps the file open.
    """

    def __init__(self, path: "str | PathLike[str]") -> None:
        self._path = fspath(path)
        self._held: list[AsyncExitStack] = []

    def __fspath__(self) -> str:
        return self._path

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._path!r})"

    async def __aenter__(self) -> Self:
        stack = AsyncExitStack()
        await stack.enter_async_context(opened_store(self._path, reading=True))
        self._held.append(stack)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._held.pop().aclose()

    # --- memory -------------------------------------------------------------------------------------------------------

    async def memory(self, agent: str, find: str | None = None, *, limit: int = PAGE) -> "list[MemoryRecord]":
        """An agent's memory entries, the newest first; with `find`, those nearest to these words."""
        return await self._perform(LIST_MEMORY, MemoryQuery(agent, find, _count(limit)))

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

    # --- turns and threads --------------------------------------------------------------------------------------------

    async def turns(
        self,
        state: TurnStates | None = None,
        thread: str | None = None,
        agent: str | None = None,
        key: str | None = None,
        *,
        limit: int = PAGE,
        before: str | None = None,
    ) -> "list[TurnRecord]":
        """Turns that match, newest first. For the next page, give the last turn's id as `before`."""
        asked = TurnQuery(state, thread, agent, key, _count(limit), before)
        return await self._perform(LIST_TURNS, asked)

    async def turn(self, turn: str) -> "TurnRecord":
        """One turn, by its id, its key, or the beginning of its id. Raises TurnNotFound."""
        return await self._perform(SHOW_TURN, TurnName(turn))

    async def threads(self, agent: str | None = None, *, limit: int = PAGE) -> "list[ThreadRecord]":
        """Conversations, the most recently used first."""
        return await self._perform(LIST_THREADS, ThreadQuery(agent, _count(limit)))

    async def delete_thread(
        self, thread: str, agent: str | None = None, *, by: str = "program", reason: str = ""
    ) -> "DeletedThread":
        """Delete a conversation: it is in no list, and the next message under its name begins an empty one.

        Its messages leave the store with the next pass of retention (`compact`); briefs, costs and approvals stay.
        Deleting it again changes nothing. Raises ThreadNotFound, or InvalidRequest for `main`, or with what is open.
        A tool of an agent may not delete one.
        """
        return await self._perform(DELETE_THREAD, ThreadRemoval(thread, agent, by, reason))

    async def messages(
        self, thread: str, agent: str | None = None, *, limit: int = PAGE, before: int | None = None
    ) -> "list[ThreadMessage]":
        """The newest messages of a thread, oldest first: what a chat page shows after a reload.

        Each answer has its `status` and, in `execution_tree`, the tool calls made for it. For the page before, give
        the first message's `event_seq` as `before`. A thread that does not exist yet has no messages.
        """
        asked = MessageQuery(thread, agent, _count(limit), before)
        return await self._perform(LIST_MESSAGES, asked)

    async def events(
        self, turn: str, *, follow: bool = False, after: int = 0, limit: int | None = None, reveal: bool = False
    ) -> "AsyncIterator[RuntimeEvent]":
        """The events of a turn in order, secrets redacted unless `reveal`.

        With `follow`, new events are yielded as they are stored, by whatever process, until the turn ends. `after` is
        the `sequence` of the last event you have, `limit` the number of events you want.
        """
        asked = EventQuery(turn, after, None if limit is None else _count(limit), reveal)
        async with reading_store(self._path) as opened:
            async for event in read_events(opened, asked, follow_it=follow):
                yield event

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
        return await self._perform(SHOW_TAIL, TailQuery(agent, _count(limit), display))

    async def replayed(self, agent: str, *, after: int = 0, limit: int = PAGE) -> "list[ReplayedEvent]":
        """An agent's events behind an `event_seq`, each with its provenance in an envelope apart from its payload."""
        return await self._perform(REPLAY_EVENTS, ReplayQuery(agent, after, _count(limit)))

    async def transcript(self, agent: str, *, thread: str | None = None, turns: int = 20) -> "list[TranscriptLine]":
        """An agent's conversation with its operator: messages, briefs, and failures of providers between them."""
        return await self._perform(SHOW_TRANSCRIPT, TranscriptQuery(agent, thread, _count(turns)))

    # --- what waits for a person --------------------------------------------------------------------------------------

    async def approvals(self, turn: str | None = None, *, decided: bool = False) -> "list[Approval]":
        """Pending approvals and questions, oldest first; with `decided`, also those that were decided or expired."""
        return await self._perform(LIST_APPROVALS, ApprovalFilter(turn, decided))

    async def approval(self, approval_id: str) -> "ApprovalDetails":
        """One approval or question, by its id or the beginning of it; with who was told, and what waits behind it.

        Raises ApprovalNotFound.
        """
        return await self._perform(SHOW_APPROVAL, ApprovalName(approval_id))

    async def reask(self, approval_id: str, *, by: str = "program") -> "SentMessage":
        """Have an agent of a runtime ask again about a call that nobody decided about in time.

        Raises ApprovalNotFound, AgentNotFound, or InvalidValue for one that is pending or was decided.
        """
        return await self._perform(REASK, ApprovalReask(approval_id, by))

    async def decide(
        self, approval_id: str, decision: Approve | Reject | Edit | Answer | Always, *, by: str
    ) -> "Approval":
        """Decide a pending approval or answer a question. `by` names the person and is stored as `app:<by>`.

        The run continues when somebody calls `run` with its key again, or `resume`. Raises ApprovalNotFound,
        AlreadyDecided (who and when), NotEntitled, and InvalidValue for a decision that does not fit. Your program
        vouches for `by`. A tool of an agent may not decide.
        """
        if not isinstance(decision, Approve | Reject | Edit | Answer | Always):
            raise InvalidRequest(
                f"decide({approval_id!r}, {decision!r})",
                'give Approve(), Reject("why"), Edit({...}), Answer(...) or Always(...)',
            )
        asked = ApprovalDecision(approval_id, decision, _app(by))
        outcome = await self._perform(DECIDE, asked)
        record = outcome.approval
        if outcome.duplicate:
            raise AlreadyDecided(record.approval_id, record.status, record.decided_by, record.decided_at)
        return record

    async def rules(self, agent: str | None = None, *, revoked: bool = False) -> "list[ApprovalRule]":
        """Rules made with `Always`, oldest first: calls that match one are not asked about. `revoked`: those, too."""
        rows = await self._perform(LIST_RULES, AgentName(agent))
        return [row for row in rows if revoked or row.revoked_at is None]

    async def revoke(self, rule_id: str, *, by: str) -> "ApprovalRule":
        """Revoke a rule, by its id or the beginning of it: such calls are asked about again, also in open turns.

        A rule that is revoked already is returned as it is. Raises ApprovalNotFound. A tool of an agent may not revoke.
        """
        return await self._perform(REVOKE_RULE, RuleName(rule_id, _app(by)))

    async def unknown(self) -> "list[UnknownCall]":
        """Calls whose outcome is unknown: each may or may not have happened."""
        return await self._perform(LIST_UNKNOWN, NoRequest())

    async def resolve(self, call_id: str, outcome: Happened | DidNotHappen, *, by: str = "program") -> "UnknownCall":
        """Say whether a call with an unknown outcome happened, and with what result. Raises CallNotFound.

        `call_id` may also be `turn_id/call_id`, the `reference` of the record, where two turns have a call of that id.
        """
        match outcome:
            case Happened(result=str(words)):
                found = OutcomeOfCall(call_id, True, words, _app(by))
            case Happened(result=value):
                found = OutcomeOfCall(call_id, True, "" if value is None else _json(value), _app(by))
            case DidNotHappen():
                found = OutcomeOfCall(call_id, False, by=_app(by))
            case _:
                raise InvalidRequest(f"resolve({call_id!r}, {outcome!r})", "give Happened(result) or DidNotHappen()")
        return await self._perform(RESOLVE, found)

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
        return await self._perform(LIST_TASKS, TaskQuery(agent, over, _count(limit)))

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

    # --- why something happened ---------------------------------------------------------------------------------------

    async def status(self, agent: str | None = None) -> "list[AgentStatus]":
        """Each agent: open turns, queued messages, pending actions, unknown outcomes and tokens used.

        Raises InvalidConfig for an agent that never ran here.
        """
        return await self._perform(STATUS, StatusQuery(agent))

    async def tree(self, turn: str) -> "ExecutionTreeSnapshot":
        """The tool calls of a turn and of its subtasks, each with its parent. Works while the turn runs."""
        return await self._perform(SHOW_TREE, TurnName(turn))

    async def why(self, call_id: str) -> "CallExplanation":
        """Why a call ran, waited or was refused: verdicts with their rules, hooks, approval, sandbox, outcome.

        `call_id` may also be `turn/call_id`. Raises CallNotFound.
        """
        return await self._perform(EXPLAIN, CallName(call_id))

    async def replay(self, turn: str) -> "ReplayReport":
        """Make every decision of a turn again from its log: `.identical`, or the first `.divergence`.

        Needs neither the model nor the tools, and runs nothing.
        """
        return await self._perform(REPLAY, TurnName(turn))

    async def context(self, turn: str, step: int | None = None) -> dict[str, Any]:
        """The parts of each request to a model, or of one `step`, with the reason for each. Secrets are redacted."""
        return await self._perform(SHOW_CONTEXT, TurnStep(turn, step))

    async def prompt(self, turn: str) -> "PromptReport":
        """The system prompt of a turn, and where each part of it is from."""
        return await self._perform(SHOW_PROMPT, TurnName(turn))

    async def tools(self, turn: str) -> "ToolInventory":
        """The tools of a turn: offered, asked about or denied, with the reason."""
        return await self._perform(SHOW_TOOLS, TurnName(turn))

    async def latency(self, turn: str) -> "TurnLatency":
        """Where a turn spent its time: building requests, waiting for models, running tools."""
        return await self._perform(SHOW_LATENCY, TurnName(turn))

    async def check_log(self) -> "list[CheckedEvent]":
        """Every event of the store, held against the published schema; `.problems` is empty where it fits."""
        return await self._perform(CHECK_LOG, NoRequest())

    # --- artifacts and cost -------------------------------------------------------------------------------------------

    async def stats(self, *, retention: "Retention | None" = None) -> "StoreStats":
        """The size of the store, by table and by agent, and what retention would free now. Reads everything."""
        return await self._perform(STATS, RetentionTerms(retention))

    async def compact(self, *, retention: "Retention | None" = None, dry_run: bool = False) -> "RetentionReport":
        """Remove what has reached its age now, as a `Runtime` does by itself, and give the space back.

        Without `retention`, `[retention]` of the owner's file says how long things are kept. With `dry_run` nothing is
        removed.
        """
        return await self._perform(WOULD_FREE if dry_run else COMPACT, RetentionTerms(retention))

    async def verify(self) -> "VerifyReport":
        """Every stored byte held against the hash chains, and the database against its anchor: `.damage` is empty."""
        return await self._perform(VERIFY, NoRequest())

    async def export_logs(self, path: "str | PathLike[str]", agents: "Sequence[str]" = ()) -> "TransferReport":
        """Write the logs of these agents, or of all, with the contents they refer to, to a new file of JSON lines."""
        return await self._perform(EXPORT, TransferFile(fspath(path), tuple(agents)))

    async def import_logs(self, path: "str | PathLike[str]") -> "TransferReport":
        """Take in the logs of a file that `export_logs` wrote. A file that does not verify, or has an agent that is
        here already, is refused, and nothing is written."""
        return await self._perform(IMPORT, TransferFile(fspath(path)))

    async def artifacts(self, turn: str) -> "list[Artifact]":
        """Outputs of a turn's tools that were too long for the model, or that a tool kept with `ctx.keep`."""
        return await self._perform(LIST_ARTIFACTS, TurnName(turn))

    async def artifact(self, artifact_id: str, turn: str | None = None, *, reveal: bool = False) -> "ArtifactContent":
        """One artifact with its bytes: `.data`, or `.text`. Secrets in text are redacted unless `reveal`.

        Without `turn`, the newest one that left it. Raises ArtifactNotFound.
        """
        return await self._perform(SHOW_ARTIFACT, ArtifactName(artifact_id, turn, reveal))

    async def cost(
        self, by: Groups = "model", *, since: datetime | None = None, agent: str | None = None, turn: str | None = None
    ) -> "CostReport":
        """The cost of requests to models, in groups. A `since` without a time zone is local time."""
        start = None if since is None else round(since.timestamp() * 1_000_000)
        return await self._perform(SHOW_COSTS, CostQuestion(by, start, agent, turn))

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
        asked = SpendGrant(scope, usd, window, _app(by), reason)
        return await self._perform(GRANT, asked)

    async def _perform(self, operation: Operation[Q, A], asked: Q) -> A:
        return await perform(operation, asked, self._path)


def checked_path(path: "str | PathLike[str]", *, must_exist: bool) -> str:
    """The path of a store. Raises InvalidRequest for memory, StoreProblem where a file has to be and is not."""
    given: Any = path
    if not isinstance(given, str | PathLike):
        raise InvalidRequest(f"open_store({given!r})", 'give the path of a store: open_store("runs.db")')
    if given == ":memory:":
        raise InvalidRequest("a store in memory ends with its run", 'name a file: open_store("runs.db")')
    location = fspath(given)
    if must_exist and not Path(location).exists():
        check_not_lost(location)
        raise StoreProblem(f"there is no store {location}", "check the path, or leave out must_exist=True to make one")
    return location


def _count(limit: int) -> int:
    given: Any = limit
    if isinstance(given, bool) or not isinstance(given, int) or given < 1:
        raise InvalidRequest(f"limit={given!r}", "give a whole number, at least 1")
    return limit


def _app(by: str) -> str:
    """Who acts, as it is stored."""
    given: Any = by
    if not isinstance(given, str) or not given.strip() or not given.isprintable():
        raise InvalidRequest(f"by={given!r}", 'name who decides, for example by="ann"')
    return f"app:{given}"


def _json(value: Any) -> str:
    try:
        return json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError) as error:
        raise InvalidRequest(f"Happened({value!r}): {error}", "give a text or JSON data") from None
