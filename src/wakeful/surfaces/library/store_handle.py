"""The store for programs that are not async, and `open_store`. Generated from `async_store` and
`stored_agents` by `make fix`.

Each method waits for the method of the same name. Inside a running event loop it would block everything else there:
it raises InvalidRequest and names the line to write.
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from os import PathLike
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from wakeful.contracts.approvals import Always, Answer, Approve, Edit, Reject
from wakeful.contracts.budgets import Money
from wakeful.contracts.probes import DidNotHappen, Happened
from wakeful.contracts.spending import Period
from wakeful.service.operations.turns import PAGE
from wakeful.surfaces.library.async_store import AsyncStore, Groups, TurnStates, checked_path
from wakeful.surfaces.library.sync import each_outside_loop, wait_outside_loop

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
        FailedTurnRecord,
        SpendingLimit,
        SteeredTurn,
        ThreadRecord,
        TurnRecord,
        UnknownCall,
    )
    from wakeful.views.store_upkeep import StoreStats, TransferReport, VerifyReport
    from wakeful.views.task_records import TaskOutput, TaskRecord
    from wakeful.views.tree import ExecutionTreeSnapshot, ThreadMessage
    from wakeful.views.trigger_records import DeliveryReceipt, TriggerRecord
    from wakeful.views.turn_record import TurnLatency


def open_store(path: "str | PathLike[str]", *, must_exist: bool = False) -> "StoreHandle":
    """A store by its path: its turns, threads, approvals, unknown outcomes, artifacts, cost and events.

    `store = open_store("runs.db")` in a program that is not async, `async with open_store("runs.db") as store` in one
    that is. A missing file is made, as `run` makes it, unless `must_exist`. Raises StoreProblem, or InvalidRequest.
    """
    return StoreHandle(checked_path(path, must_exist=must_exist))


class StoreHandle(PathLike[str]):
    """A store, for programs that are not async. `run_sync(..., store=store)` takes it wherever a path is taken.

    `with` keeps the file open from call to call. `async with` gives the same store with async methods.
    """

    def __init__(self, path: "str | PathLike[str]") -> None:
        self._store = AsyncStore(path)

    def __fspath__(self) -> str:
        return self._store.__fspath__()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.__fspath__()!r})"

    def __enter__(self) -> Self:
        wait_outside_loop(self._store.__aenter__())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        wait_outside_loop(self._store.__aexit__(kind, error, trace))

    async def __aenter__(self) -> AsyncStore:
        return await self._store.__aenter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._store.__aexit__(kind, error, trace)

    def turns(
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
        return wait_outside_loop(self._store.turns(state, thread, agent, key, limit=limit, before=before))

    def turn(self, turn: str) -> "TurnRecord":
        """One turn, by its id, its key, or the beginning of its id. Raises TurnNotFound."""
        return wait_outside_loop(self._store.turn(turn))

    def failed(
        self, agent: str | None = None, *, since: datetime | None = None, cause: str | None = None, limit: int = PAGE
    ) -> "list[FailedTurnRecord]":
        """Turns that failed or reached a limit, newest first. A `since` without a time zone is local time."""
        return wait_outside_loop(self._store.failed(agent, since=since, cause=cause, limit=limit))

    def retry(
        self,
        turn: str,
        *,
        by: str = "program",
        usd: str | float | None = None,
        tokens: int | None = None,
        model_calls: int | None = None,
        tool_calls: int | None = None,
        seconds: float | None = None,
        subtasks: int | None = None,
        max_steps: int | None = None,
    ) -> "SteeredTurn":
        """Open a failed turn again: whoever runs its agent goes on with it, and `wakeful.retry` runs it here.

        After a limit, say what the turn may use in all, what it has used included. Raises RetryRefused.
        """
        return wait_outside_loop(
            self._store.retry(
                turn,
                by=by,
                usd=usd,
                tokens=tokens,
                model_calls=model_calls,
                tool_calls=tool_calls,
                seconds=seconds,
                subtasks=subtasks,
                max_steps=max_steps,
            )
        )

    def replacement(self, turn: str) -> str:
        """A message to send in the place of a failed turn: what it asked, and the calls that have finished."""
        return wait_outside_loop(self._store.replacement(turn))

    def threads(self, agent: str | None = None, *, limit: int = PAGE) -> "list[ThreadRecord]":
        """Conversations, the most recently used first."""
        return wait_outside_loop(self._store.threads(agent, limit=limit))

    def delete_thread(
        self, thread: str, agent: str | None = None, *, by: str = "program", reason: str = ""
    ) -> "DeletedThread":
        """Delete a conversation: it is in no list, and the next message under its name begins an empty one.

        Its messages leave the store with the next pass of retention (`compact`); briefs, costs and approvals stay.
        Deleting it again changes nothing. Raises ThreadNotFound, or InvalidRequest for `main`, or with what is open.
        A tool of an agent may not delete one.
        """
        return wait_outside_loop(self._store.delete_thread(thread, agent, by=by, reason=reason))

    def messages(
        self, thread: str, agent: str | None = None, *, limit: int = PAGE, before: int | None = None
    ) -> "list[ThreadMessage]":
        """The newest messages of a thread, oldest first: what a chat page shows after a reload.

        Each answer has its `status` and, in `execution_tree`, the tool calls made for it. For the page before, give
        the first message's `event_seq` as `before`. A thread that does not exist yet has no messages.
        """
        return wait_outside_loop(self._store.messages(thread, agent, limit=limit, before=before))

    def events(
        self, turn: str, *, follow: bool = False, after: int = 0, limit: int | None = None, reveal: bool = False
    ) -> "Iterator[RuntimeEvent]":
        """The events of a turn in order, secrets redacted unless `reveal`.

        With `follow`, new events are yielded as they are stored, by whatever process, until the turn ends. `after` is
        the `sequence` of the last event you have, `limit` the number of events you want.
        """
        return each_outside_loop(self._store.events(turn, follow=follow, after=after, limit=limit, reveal=reveal))

    def approvals(self, turn: str | None = None, *, decided: bool = False) -> "list[Approval]":
        """Pending approvals and questions, oldest first; with `decided`, also those that were decided or expired."""
        return wait_outside_loop(self._store.approvals(turn, decided=decided))

    def approval(self, approval_id: str) -> "ApprovalDetails":
        """One approval or question, by its id or the beginning of it; with who was told, and what waits behind it.

        Raises ApprovalNotFound.
        """
        return wait_outside_loop(self._store.approval(approval_id))

    def reask(self, approval_id: str, *, by: str = "program") -> "SentMessage":
        """Have an agent of a runtime ask again about a call that nobody decided about in time.

        Raises ApprovalNotFound, AgentNotFound, or InvalidValue for one that is pending or was decided.
        """
        return wait_outside_loop(self._store.reask(approval_id, by=by))

    def decide(self, approval_id: str, decision: Approve | Reject | Edit | Answer | Always, *, by: str) -> "Approval":
        """Decide a pending approval or answer a question. `by` names the person and is stored as `app:<by>`.

        The run continues when somebody calls `run` with its key again, or `resume`. Raises ApprovalNotFound,
        AlreadyDecided (who and when), NotEntitled, and InvalidValue for a decision that does not fit. Your program
        vouches for `by`. A tool of an agent may not decide.
        """
        return wait_outside_loop(self._store.decide(approval_id, decision, by=by))

    def rules(self, agent: str | None = None, *, revoked: bool = False) -> "list[ApprovalRule]":
        """Rules made with `Always`, oldest first: calls that match one are not asked about. `revoked`: those, too."""
        return wait_outside_loop(self._store.rules(agent, revoked=revoked))

    def revoke(self, rule_id: str, *, by: str) -> "ApprovalRule":
        """Revoke a rule, by its id or the beginning of it: such calls are asked about again, also in open turns.

        A rule that is revoked already is returned as it is. Raises ApprovalNotFound. A tool of an agent may not revoke.
        """
        return wait_outside_loop(self._store.revoke(rule_id, by=by))

    def unknown(self) -> "list[UnknownCall]":
        """Calls whose outcome is unknown: each may or may not have happened."""
        return wait_outside_loop(self._store.unknown())

    def resolve(self, call_id: str, outcome: Happened | DidNotHappen, *, by: str = "program") -> "UnknownCall":
        """Say whether a call with an unknown outcome happened, and with what result. Raises CallNotFound.

        `call_id` may also be `turn_id/call_id`, the `reference` of the record, where two turns have a call of that id.
        """
        return wait_outside_loop(self._store.resolve(call_id, outcome, by=by))

    def tree(self, turn: str) -> "ExecutionTreeSnapshot":
        """The tool calls of a turn and of its subtasks, each with its parent. Works while the turn runs."""
        return wait_outside_loop(self._store.tree(turn))

    def why(self, call_id: str) -> "CallExplanation":
        """Why a call ran, waited or was refused: verdicts with their rules, hooks, approval, sandbox, outcome.

        `call_id` may also be `turn/call_id`. Raises CallNotFound.
        """
        return wait_outside_loop(self._store.why(call_id))

    def replay(self, turn: str) -> "ReplayReport":
        """Make every decision of a turn again from its log: `.identical`, or the first `.divergence`.

        Needs neither the model nor the tools, and runs nothing.
        """
        return wait_outside_loop(self._store.replay(turn))

    def context(self, turn: str, step: int | None = None) -> dict[str, Any]:
        """The parts of each request to a model, or of one `step`, with the reason for each. Secrets are redacted."""
        return wait_outside_loop(self._store.context(turn, step))

    def prompt(self, turn: str) -> "PromptReport":
        """The system prompt of a turn, and where each part of it is from."""
        return wait_outside_loop(self._store.prompt(turn))

    def tools(self, turn: str) -> "ToolInventory":
        """The tools of a turn: offered, asked about or denied, with the reason."""
        return wait_outside_loop(self._store.tools(turn))

    def latency(self, turn: str) -> "TurnLatency":
        """Where a turn spent its time: building requests, waiting for models, running tools."""
        return wait_outside_loop(self._store.latency(turn))

    def check_log(self) -> "list[CheckedEvent]":
        """Every event of the store, held against the published schema; `.problems` is empty where it fits."""
        return wait_outside_loop(self._store.check_log())

    def stats(self, *, retention: "Retention | None" = None) -> "StoreStats":
        """The size of the store, by table and by agent, and what retention would free now. Reads everything."""
        return wait_outside_loop(self._store.stats(retention=retention))

    def compact(self, *, retention: "Retention | None" = None, dry_run: bool = False) -> "RetentionReport":
        """Remove what has reached its age now, as a `Runtime` does by itself, and give the space back.

        Without `retention`, `[retention]` of the owner's file says how long things are kept. With `dry_run` nothing is
        removed.
        """
        return wait_outside_loop(self._store.compact(retention=retention, dry_run=dry_run))

    def verify(self) -> "VerifyReport":
        """Every stored byte held against the hash chains, and the database against its anchor: `.damage` is empty."""
        return wait_outside_loop(self._store.verify())

    def export_logs(self, path: "str | PathLike[str]", agents: "Sequence[str]" = ()) -> "TransferReport":
        """Write the logs of these agents, or of all, with the contents they refer to, to a new file of JSON lines."""
        return wait_outside_loop(self._store.export_logs(path, agents))

    def import_logs(self, path: "str | PathLike[str]") -> "TransferReport":
        """Take in the logs of a file that `export_logs` wrote. Those that are here already are passed over, so that an
        import that was cut off can be repeated. A file that does not verify, or has another log of an agent that is
        here, is refused, and nothing is written.
        """
        return wait_outside_loop(self._store.import_logs(path))

    def artifacts(self, turn: str) -> "list[Artifact]":
        """Outputs of a turn's tools that were too long for the model, or that a tool kept with `ctx.keep`."""
        return wait_outside_loop(self._store.artifacts(turn))

    def artifact(self, artifact_id: str, turn: str | None = None, *, reveal: bool = False) -> "ArtifactContent":
        """One artifact with its bytes: `.data`, or `.text`. Secrets in text are redacted unless `reveal`.

        Without `turn`, the newest one that left it. Raises ArtifactNotFound.
        """
        return wait_outside_loop(self._store.artifact(artifact_id, turn, reveal=reveal))

    def cost(
        self, by: Groups = "model", *, since: datetime | None = None, agent: str | None = None, turn: str | None = None
    ) -> "CostReport":
        """The cost of requests to models, in groups. A `since` without a time zone is local time."""
        return wait_outside_loop(self._store.cost(by, since=since, agent=agent, turn=turn))

    def status(self, agent: str | None = None) -> "list[AgentStatus]":
        """Each agent: open turns, queued messages, pending actions, unknown outcomes and tokens used.

        Raises InvalidConfig for an agent that never ran here.
        """
        return wait_outside_loop(self._store.status(agent))

    def feed(
        self, after: str | None = None, *, follow: bool = False, display: "DisplayMode" = "verbose"
    ) -> "Iterator[FeedEntry]":
        """Entries for operators about all agents of a runtime, in the order in which they were stored, with cursors.

        `after` is the cursor of the last entry you have. With `follow`, new entries are yielded as they are stored, by
        whatever process. `display="info"` gives results alone. Raises CursorGone.
        """
        return each_outside_loop(self._store.feed(after, follow=follow, display=display))

    def tail(self, agent: str | None = None, *, limit: int = 20, display: "DisplayMode" = "info") -> "list[FeedEntry]":
        """The newest entries of the feed, of one agent or of all, the oldest of them first."""
        return wait_outside_loop(self._store.tail(agent, limit=limit, display=display))

    def replayed(self, agent: str, *, after: int = 0, limit: int = PAGE) -> "list[ReplayedEvent]":
        """An agent's events behind an `event_seq`, each with its provenance in an envelope apart from its payload."""
        return wait_outside_loop(self._store.replayed(agent, after=after, limit=limit))

    def transcript(self, agent: str, *, thread: str | None = None, turns: int = 20) -> "list[TranscriptLine]":
        """An agent's conversation with its operator: messages, briefs, and failures of providers between them."""
        return wait_outside_loop(self._store.transcript(agent, thread=thread, turns=turns))

    def memory(self, agent: str, find: str | None = None, *, limit: int = PAGE) -> "list[MemoryRecord]":
        """An agent's memory entries, the newest first; with `find`, those nearest to these words."""
        return wait_outside_loop(self._store.memory(agent, find, limit=limit))

    def memory_entry(self, agent: str, source_ref: str) -> "MemoryRecord":
        """One entry, with its source and last use. Raises InvalidRequest."""
        return wait_outside_loop(self._store.memory_entry(agent, source_ref))

    def edit_memory(self, agent: str, source_ref: str, text: str, *, by: str = "program") -> "MemoryRecord":
        """Have an entry say something else."""
        return wait_outside_loop(self._store.edit_memory(agent, source_ref, text, by=by))

    def forget_memory(self, agent: str, source_ref: str, *, by: str = "program") -> "MemoryRecord":
        """Have an entry found by no search and shown in no prompt any more."""
        return wait_outside_loop(self._store.forget_memory(agent, source_ref, by=by))

    def working_memory(self, agent: str) -> "WorkingMemoryState":
        """The working memory that an agent's turns begin with, by revision."""
        return wait_outside_loop(self._store.working_memory(agent))

    def triggers(self, agent: str | None = None) -> "list[TriggerRecord]":
        """The triggers of an agent or of all agents, by name. Their addresses are not in it. Raises AgentNotFound."""
        return wait_outside_loop(self._store.triggers(agent))

    def create_trigger(
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
        return wait_outside_loop(
            self._store.create_trigger(
                agent, name, say=say, thread=thread, signature=signature, signing_env=signing_env, by=by
            )
        )

    def rotate_trigger(self, trigger: str, *, by: str = "program", reason: str = "") -> "TriggerRecord":
        """Give a trigger another address; the one before is refused from now on."""
        return wait_outside_loop(self._store.rotate_trigger(trigger, by=by, reason=reason))

    def revoke_trigger(self, trigger: str, *, by: str = "program", reason: str = "") -> "TriggerRecord":
        """Let a trigger take nothing any more. `create_trigger` makes it again, with another address."""
        return wait_outside_loop(self._store.revoke_trigger(trigger, by=by, reason=reason))

    def trigger_url(self, trigger: str, *, base: str = "", by: str = "program", purpose: str = "") -> str:
        """The secret address of a trigger: its holder can wake the agent. The log says that it was given to you.

        `base` is the URL at which the runtime is reached from outside; without it the address is a path.
        """
        return wait_outside_loop(self._store.trigger_url(trigger, base=base, by=by, purpose=purpose))

    def deliver(self, address: str, body: bytes = b"", headers: Mapping[str, str] | None = None) -> "DeliveryReceipt":
        """Hand over what came to the address of a trigger, as `Runtime.deliver` does; the runtime finds it in the log.

        The answer says `accepted`, `duplicate` or `refused`, with the reason.
        """
        return wait_outside_loop(self._store.deliver(address, body, headers))

    def tasks(self, agent: str | None = None, *, over: bool = False, limit: int = PAGE) -> "list[TaskRecord]":
        """Commands in the background and child agents, the newest first: of one agent, or of all.

        With `over`, those of an agent that have ended too. Raises AgentNotFound.
        """
        return wait_outside_loop(self._store.tasks(agent, over=over, limit=limit))

    def task(self, task_id: str) -> "TaskRecord":
        """One task: what it is, how it stands, how it ended. Raises InvalidRequest."""
        return wait_outside_loop(self._store.task(task_id))

    def task_output(self, task_id: str) -> "TaskOutput":
        """Both ends of what a task has said; of a child agent, its last words. Raises InvalidRequest."""
        return wait_outside_loop(self._store.task_output(task_id))

    def stop_task(self, task_id: str, *, by: str = "program", reason: str = "") -> "TaskRecord":
        """Have a task end: a command, or a child agent with everything it has begun. Its agent is told.

        The runtime of the store ends it; if none is at work, the next one does. A tool of an agent may not stop one.
        """
        return wait_outside_loop(self._store.stop_task(task_id, by=by, reason=reason))

    def limits(self) -> "list[SpendingLimit]":
        """The spending limits that apply now, and how much of each is used."""
        return wait_outside_loop(self._store.limits())

    def grant(
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
        return wait_outside_loop(
            self._store.grant(usd, agent=agent, principal=principal, window=window, by=by, reason=reason)
        )
