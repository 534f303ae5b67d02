"""The tools of a host in one run: found by name, called with everybody's parameters, and each a tool of the runtime.

Every call of one passes the same gate as any other; its executor does the work. What the host's policies hide is
withheld: the turn's catalogue names it with the reason, and a call of it is refused like one of a tool there is not.
A call that a client makes becomes a request and pauses the run. A request that cannot be made, or that the host's
store cannot keep, is no request: its call fails and the run goes on, because nobody has been asked.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, TypeAlias

from wakeful.contracts.citations import PLACES
from wakeful.contracts.envelope import Fact
from wakeful.contracts.errors import AlreadyDecided, ToolAsks, ToolReported
from wakeful.contracts.events import ObserverFailed, RuntimeToolResolved
from wakeful.contracts.runtime_tools import RuntimeToolRequest
from wakeful.contracts.tools import ToolDeclaration, ToolError
from wakeful.contracts.transcript import Message, normalise
from wakeful.engine.run_request import Engine, RunRequest
from wakeful.hosts.loop.loop_events import Teller, describe
from wakeful.hosts.loop.options import LoopOptions
from wakeful.hosts.loop.run_calls import Sources
from wakeful.hosts.ports import ToolCall
from wakeful.hosts.run_access import resolve_principal
from wakeful.hosts.tools.tool_declaration import RuntimeToolDeclaration
from wakeful.hosts.tools.tool_execution import APPROVAL, ToolExecutionCore
from wakeful.ports.client_requests import RuntimeToolRequestStore
from wakeful.service.client_tools.lifecycle import RuntimeToolLifecycle
from wakeful.service.commands.turns import continue_turn
from wakeful.service.hooks import HookRegistry
from wakeful.service.run_result import RunResult
from wakeful.tools.call_runner import CallHandle
from wakeful.tools.client import ClientTool
from wakeful.tools.client_calls import ForClient
from wakeful.tools.context import RunContext
from wakeful.tools.results import ToolOutput
from wakeful.tools.source import Offer, ToolSource, WithheldTool
from wakeful.tools.tool import Tool

DENIED_HOOK = "tool_capability_denied"
NOT_KEPT = "runtime_tool_request_failed"
OWN_METADATA = ("agent", "thread")
"""What only wakeful's own store says about a request."""
RESTS = ("runtime_tool_pending", "approval_required")
"""A turn that rests on a person may rest on a client too."""
CallContext: TypeAlias = Callable[[RunContext[Any]], Awaitable[dict[str, Any]]]
"""What the executor gets as its context, made when the call begins."""
Assemble: TypeAlias = Callable[[RuntimeToolDeclaration, str, dict[str, Any]], ToolCall | dict[str, Any]]
"""(declaration, call id, the model's arguments) -> the call, or the failed result of one that is not made."""
Prepare: TypeAlias = Callable[[RuntimeToolDeclaration, str, dict[str, Any]], Awaitable[ToolCall | dict[str, Any]]]
Bound: TypeAlias = Callable[[str, dict[str, Any]], Awaitable[dict[str, Any]]]
"""(call id, a normalised result) -> the same, no larger than the host wants results to be."""


class ExecutorTool(Tool[Any]):
    """One declared tool. What its executor returned is kept whole in `returned`, by call."""

    def __init__(
        self,
        tool: RuntimeToolDeclaration,
        core: ToolExecutionCore,
        context: CallContext,
        prepare: Prepare,
        bound: Bound,
        returned: dict[str, dict[str, Any]],
        asked: dict[str, Message],
        for_client: Callable[[RuntimeToolDeclaration, dict[str, Any]], ForClient],
    ) -> None:
        self._tool = tool
        self._core = core
        self._context = context
        self._prepare = prepare
        self._bound = bound
        self._returned = returned
        self._asked = asked
        self._for_client = for_client

    @property
    def declaration(self) -> ToolDeclaration:
        return self._core.contract(self._tool)

    @property
    def name(self) -> str:
        return self._tool.name

    @property
    def needs_deps(self) -> bool:
        return False

    def for_client(self, arguments: dict[str, Any]) -> ForClient:
        return self._for_client(self._tool, arguments)

    def start(self, ctx: RunContext[Any], arguments: dict[str, Any]) -> CallHandle:
        # A plain executor runs on a thread, which nobody can stop: its late answer is still an answer.
        return CallHandle(
            asyncio.ensure_future(self._run(ctx, arguments)), is_thread=not self._core.is_async(self._tool)
        )

    async def _run(self, ctx: RunContext[Any], arguments: dict[str, Any]) -> str | ToolOutput:
        core, tool = self._core, self._tool
        call = await self._prepare(tool, ctx.call_id, arguments)
        result = call if isinstance(call, dict) else await core.run(call, tool, await self._context(ctx))
        if result.get("status") == APPROVAL and APPROVAL in result:
            envelope = self._asked[ctx.call_id] = normalise(result[APPROVAL])
            raise ToolAsks(envelope.content if isinstance(envelope.content, str) else "")
        result = self._returned[ctx.call_id] = await self._bound(ctx.call_id, result)
        if result["success"]:
            shown = json.dumps(result["result"], ensure_ascii=False, separators=(",", ":"))
            cited = {place: result["metadata"][place] for place in PLACES if place in result["metadata"]}
            return ToolOutput(shown, metadata=cited) if cited else shown
        metadata = dict(result["metadata"])
        kind = metadata.pop("error_type", None)
        raise ToolReported(
            ToolError(
                kind=kind if isinstance(kind, str) and kind else "execution_failed",
                message=result["error"],
                details=metadata or None,
            )
        )


class HostTools(ToolSource):
    """What a host offers in one run, and what its policies hide, by name and with the reason."""

    def __init__(self, tools: Iterable[Tool[Any]], hidden: Mapping[str, str]) -> None:
        listed = {tool.name: tool for tool in tools}
        self._offer = Offer(
            tuple(tool for name, tool in listed.items() if name not in hidden),
            tuple(
                WithheldTool(name, hidden[name], tool.declaration.description, "denied")
                for name, tool in listed.items()
                if name in hidden
            ),
        )

    @property
    def name(self) -> str:
        return "host"

    async def offer(self) -> Offer:
        return self._offer


class Preparer:
    """Knows the tools of one run; `core` is None where nobody runs any."""

    def __init__(
        self,
        core: ToolExecutionCore | None,
        options: LoopOptions,
        sources: Sources,
        hooks: HookRegistry,
        teller: Teller,
    ) -> None:
        self._core = core
        self._options = options
        self._sources = sources
        self._hooks = hooks
        self._teller = teller
        self.principal = options.request.principal if options.request is not None else None
        """For whom the run acts: whom its request names, or else the host's hook."""

    async def learn_principal(self) -> None:
        """Ask the host for whom the run acts, where the request does not say. Raises InvalidValue for no principal."""
        if self.principal is None:
            self.principal = await resolve_principal(self._options.context, hooks=self._hooks)

    def find(self, name: str) -> RuntimeToolDeclaration | None:
        return self._core.find(name) if self._core is not None else None

    def canonical(self, name: str) -> str:
        """The name of a tool, whatever it was called; a name that nobody knows stays."""
        tool = self.find(name)
        return tool.name if tool is not None else name

    async def prepare(
        self, tool: RuntimeToolDeclaration, call_id: str, arguments: dict[str, Any]
    ) -> ToolCall | dict[str, Any]:
        """The call with everybody's parameters in it, or why it is not made."""
        call = self.assemble(tool, call_id, arguments)
        if isinstance(call, dict) and call["metadata"]["error_type"] == "capability_denied":
            await self._tell_denied(tool, call_id)
        return call

    def assemble(
        self, tool: RuntimeToolDeclaration, call_id: str, arguments: dict[str, Any]
    ) -> ToolCall | dict[str, Any]:
        """The same, with nobody told."""
        assert self._core is not None
        context, request, principal = self._options.context, self._options.request, self.principal
        client = context.get("client_context")
        return self._core.prepared(
            tool,
            self._called_as(call_id) or tool.name,
            arguments,
            call_id,
            contexts={
                "context": context,
                "client_context": client if isinstance(client, Mapping) else None,
                "caller_context": principal.caller_context if principal is not None else None,
                "runtime_context": request.runtime_context if request is not None else None,
            },
            principal=principal,
        )

    async def _tell_denied(self, tool: RuntimeToolDeclaration, call_id: str) -> None:
        principal = self.principal
        payload = {
            "tool_name": tool.name,
            "tool_call_id": call_id,
            "required_capability": tool.required_capability,
            "principal": principal.to_safe_metadata() if principal is not None else None,
        }
        for error in await self._hooks.observe(DENIED_HOOK, payload):
            await self._teller.record(ObserverFailed(surface=DENIED_HOOK, error=describe(error)))

    def _called_as(self, call_id: str) -> str:
        calls = (call for taken in self._sources.taken.values() for call in taken.calls)
        return next((call.called_as for call in calls if call.call_id == call_id), "")


class LoopClientTool(ClientTool):
    """A client's tool of a loop: parameters that are not the model's to give are put in before the client is asked."""

    def __init__(self, tool: RuntimeToolDeclaration, assemble: Assemble, run_id: str) -> None:
        super().__init__(tool.to_declaration())
        self._tool = tool
        self._assemble = assemble
        self._run_id = run_id

    def for_client(self, arguments: dict[str, Any]) -> ForClient:
        return sent_to_client(self._tool, self._assemble, self._run_id, arguments)


def sent_to_client(
    tool: RuntimeToolDeclaration, assemble: Assemble, run_id: str, arguments: dict[str, Any]
) -> ForClient:
    """What whoever carries out a call is sent: everybody's parameters, and what the tool says about itself."""
    call = assemble(tool, "", arguments)
    sent = call.parameters if isinstance(call, ToolCall) and call.parameters != arguments else None
    return ForClient(sent, dict(tool.runtime), {"run_id": run_id} if run_id else {})


class ClientCalls:
    """The requests of one run."""

    def __init__(
        self,
        engine: Engine,
        hooks: HookRegistry,
        store: RuntimeToolRequestStore | None,
        find: Callable[[str], RuntimeToolDeclaration | None],
        prepare: Prepare,
        context: Callable[[], Mapping[str, Any]],
        request_ids: Mapping[str, str],
    ) -> None:
        self._engine = engine
        self._request_ids = request_ids
        self._store = store
        self._lifecycle = RuntimeToolLifecycle(hooks)
        self._find = find
        self._prepare = prepare
        self._context = context
        self._made: dict[str, RuntimeToolRequest] = {}
        """What was asked for, by the name it has in the log."""

    async def ask(
        self, result: RunResult[Any], request: RunRequest
    ) -> tuple[RunResult[Any], tuple[RuntimeToolRequest, ...]]:
        """Make the requests that a turn rests on; what cannot be made fails, and the turn goes on with that.

        The turn as it rests then, and what it waits for.
        """
        while result.status in RESTS:
            refused = False
            for pending in result.runtime_tools:
                if pending.request_id not in self._made:
                    refused = not await self._request(pending) or refused
            if not refused:
                break
            result = await continue_turn(self._engine, result.turn_id, request)
        waiting = {pending.request_id for pending in result.runtime_tools}
        return result, tuple(made for name, made in self._made.items() if name in waiting)

    async def _request(self, pending: RuntimeToolRequest) -> bool:
        tool = self._find(pending.tool_name)
        assert tool is not None, f"{pending.tool_name} was offered and is not declared"
        # Parameters that could be put together are in the request already; why others could not is said here.
        call = await self._prepare(tool, pending.tool_call_id, pending.parameters)
        if isinstance(call, dict):
            await self._fail(pending, call["error"], call["metadata"])
            return False
        try:
            own = {name: value for name, value in pending.metadata.items() if name not in OWN_METADATA}
            named = self._request_ids.get(pending.tool_call_id, pending.request_id)
            made = pending.model_copy(update={"request_id": named, "metadata": own})
            if self._store is not None:
                made = await self._lifecycle.create_pending_request(self._store, made, dict(self._context()))
            if not made.is_pending:
                raise ValueError(f"it was asked for before and is {made.status}")
        except Exception as error:  # whatever the host's store raises: a request that is not kept cannot be answered
            words = f"the request for {pending.tool_name} could not be kept: {type(error).__name__}: {error}"
            await self._fail(pending, words, {"error_type": NOT_KEPT})
            return False
        self._made[pending.request_id] = made
        return True

    async def _fail(self, pending: RuntimeToolRequest, error: str, metadata: Mapping[str, Any]) -> None:
        row = await self._engine.store.action(pending.request_id)
        assert row is not None
        event = RuntimeToolResolved(
            request_id=row.action_id,
            tool_name=row.tool_name,
            status="runtime_tool_completed",
            success=False,
            error=error,
            metadata=dict(metadata),
            not_sent=True,
            submitted_by="loop",
        )
        fact = Fact(event, self._engine.clock.now(), row.thread_id, row.turn_id, row.step, row.call_id, row.action_id)
        try:
            await self._engine.store.admit(row.agent_id, [fact])
        except AlreadyDecided:
            pass  # its time ran out meanwhile: it has an end, and that is what matters
