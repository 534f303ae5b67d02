"""The store in a program: the same questions and decisions as on the command line, through the same operations.

    async with open_store("runs.db") as store:
        for approval in await store.approvals():
            await store.decide(approval.approval_id, Approve(), by="ann")

What it says of agents is in `stored_agents`. `store_handle` is its view for programs that are not async, generated from
both.
"""

import json
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack
from datetime import datetime
from os import PathLike, fspath
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Self, TypeAlias

from wakeful.bootstrap.store_operations import reading_store
from wakeful.bootstrap.stores import check_not_lost, opened_store
from wakeful.contracts.approvals import Always, Answer, Approve, Edit, Reject
from wakeful.contracts.errors import AlreadyDecided, InvalidRequest, StoreProblem
from wakeful.contracts.probes import DidNotHappen, Happened
from wakeful.service.operations.agents import AgentName
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
from wakeful.service.operations.operation import NoRequest
from wakeful.service.operations.retries import LIST_FAILED, RETRY, SHOW_REPLACEMENT, FailureQuery, TurnRetry
from wakeful.service.operations.spending import SHOW_COSTS, CostQuestion
from wakeful.service.operations.threads import (
    DELETE_THREAD,
    LIST_MESSAGES,
    LIST_THREADS,
    MessageQuery,
    ThreadQuery,
    ThreadRemoval,
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
from wakeful.surfaces.library.stored_agents import StoredAgents, caller_of, checked_limit

if TYPE_CHECKING:
    from wakeful.contracts.approvals import Approval
    from wakeful.contracts.envelope import RuntimeEvent
    from wakeful.contracts.retention import Retention, RetentionReport
    from wakeful.service.queries.log_check import CheckedEvent
    from wakeful.service.queries.replay import ReplayReport
    from wakeful.service.queries.tool_inventory import ToolInventory
    from wakeful.views.approval_details import ApprovalDetails
    from wakeful.views.cost import CostReport
    from wakeful.views.explanation import CallExplanation
    from wakeful.views.prompt_report import PromptReport
    from wakeful.views.runtime_records import SentMessage
    from wakeful.views.store_records import (
        ApprovalRule,
        Artifact,
        ArtifactContent,
        DeletedThread,
        FailedTurnRecord,
        SteeredTurn,
        ThreadRecord,
        TurnRecord,
        UnknownCall,
    )
    from wakeful.views.store_upkeep import StoreStats, TransferReport, VerifyReport
    from wakeful.views.tree import ExecutionTreeSnapshot, ThreadMessage
    from wakeful.views.turn_record import TurnLatency

TurnStates: TypeAlias = Literal["admitted", "running", "suspended", "completed", "incomplete", "failed", "cancelled"]
Groups: TypeAlias = Literal["model", "agent", "day", "depth"]


class AsyncStore(StoredAgents, PathLike[str]):
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
        asked = TurnQuery(state, thread, agent, key, checked_limit(limit), before)
        return await self._perform(LIST_TURNS, asked)

    async def turn(self, turn: str) -> "TurnRecord":
        """One turn, by its id, its key, or the beginning of its id. Raises TurnNotFound."""
        return await self._perform(SHOW_TURN, TurnName(turn))

    async def failed(
        self, agent: str | None = None, *, since: datetime | None = None, cause: str | None = None, limit: int = PAGE
    ) -> "list[FailedTurnRecord]":
        """Turns that failed or reached a limit, newest first. A `since` without a time zone is local time."""
        start = None if since is None else round(since.timestamp() * 1_000_000)
        return await self._perform(LIST_FAILED, FailureQuery(agent, start, cause, checked_limit(limit)))

    async def retry(
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
        money = None if usd is None else str(usd)
        asked = TurnRetry(turn, by, money, tokens, model_calls, tool_calls, seconds, subtasks, max_steps)
        return await self._perform(RETRY, asked)

    async def replacement(self, turn: str) -> str:
        """A message to send in the place of a failed turn: what it asked, and the calls that have finished."""
        found = await self._perform(SHOW_REPLACEMENT, TurnName(turn))
        return found.text

    async def threads(self, agent: str | None = None, *, limit: int = PAGE) -> "list[ThreadRecord]":
        """Conversations, the most recently used first."""
        return await self._perform(LIST_THREADS, ThreadQuery(agent, checked_limit(limit)))

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
        asked = MessageQuery(thread, agent, checked_limit(limit), before)
        return await self._perform(LIST_MESSAGES, asked)

    async def events(
        self, turn: str, *, follow: bool = False, after: int = 0, limit: int | None = None, reveal: bool = False
    ) -> "AsyncIterator[RuntimeEvent]":
        """The events of a turn in order, secrets redacted unless `reveal`.

        With `follow`, new events are yielded as they are stored, by whatever process, until the turn ends. `after` is
        the `sequence` of the last event you have, `limit` the number of events you want.
        """
        asked = EventQuery(turn, after, None if limit is None else checked_limit(limit), reveal)
        async with reading_store(self._path) as opened:
            async for event in read_events(opened, asked, follow_it=follow):
                yield event

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
        asked = ApprovalDecision(approval_id, decision, caller_of(by))
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
        return await self._perform(REVOKE_RULE, RuleName(rule_id, caller_of(by)))

    async def unknown(self) -> "list[UnknownCall]":
        """Calls whose outcome is unknown: each may or may not have happened."""
        return await self._perform(LIST_UNKNOWN, NoRequest())

    async def resolve(self, call_id: str, outcome: Happened | DidNotHappen, *, by: str = "program") -> "UnknownCall":
        """Say whether a call with an unknown outcome happened, and with what result. Raises CallNotFound.

        `call_id` may also be `turn_id/call_id`, the `reference` of the record, where two turns have a call of that id.
        """
        match outcome:
            case Happened(result=str(words)):
                found = OutcomeOfCall(call_id, True, words, caller_of(by))
            case Happened(result=value):
                found = OutcomeOfCall(call_id, True, "" if value is None else _json(value), caller_of(by))
            case DidNotHappen():
                found = OutcomeOfCall(call_id, False, by=caller_of(by))
            case _:
                raise InvalidRequest(f"resolve({call_id!r}, {outcome!r})", "give Happened(result) or DidNotHappen()")
        return await self._perform(RESOLVE, found)

    # --- why something happened ---------------------------------------------------------------------------------------

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
        """Take in the logs of a file that `export_logs` wrote. Those that are here already are passed over, so that an
        import that was cut off can be repeated. A file that does not verify, or has another log of an agent that is
        here, is refused, and nothing is written."""
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


def _json(value: Any) -> str:
    try:
        return json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError) as error:
        raise InvalidRequest(f"Happened({value!r}): {error}", "give a text or JSON data") from None
