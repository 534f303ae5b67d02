"""Calls of a run that a client makes: each becomes a request, with everybody's parameters in it, and pauses the run.

A request that cannot be made, or that the host's store cannot keep, is no request: its call fails and the run goes on.
Nobody has been asked then, and nothing can have happened.
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeAlias

from wakeful.contracts.envelope import Fact
from wakeful.contracts.errors import AlreadyDecided
from wakeful.contracts.events import RuntimeToolResolved
from wakeful.contracts.runtime_tools import RuntimeToolRequest
from wakeful.engine.run_request import Engine, RunRequest
from wakeful.hosts.declarations.tool_declaration import RuntimeToolDeclaration
from wakeful.hosts.ports import ToolCall
from wakeful.ports.client_requests import RuntimeToolRequestStore
from wakeful.service.client_tools.lifecycle import RuntimeToolLifecycle
from wakeful.service.commands.turns import continue_turn
from wakeful.service.hooks import HookRegistry
from wakeful.service.run_result import RunResult
from wakeful.tools.client import ClientTool
from wakeful.tools.client_calls import ForClient

NOT_KEPT = "runtime_tool_request_failed"
OWN_METADATA = ("agent", "thread")
"""What only wakeful's own store says about a request."""
RESTS = ("runtime_tool_pending", "approval_required")
"""A turn that rests on a person may rest on a client too."""
Assemble: TypeAlias = Callable[[RuntimeToolDeclaration, str, dict[str, Any]], ToolCall | dict[str, Any]]
"""(declaration, call id, the model's arguments) -> the call, or the failed result of one that is not made."""
Prepare: TypeAlias = Callable[[RuntimeToolDeclaration, str, dict[str, Any]], Awaitable[ToolCall | dict[str, Any]]]


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

    async def ask(self, result: RunResult[Any], request: RunRequest) -> tuple[RuntimeToolRequest, ...]:
        """Make the requests that a turn rests on; what cannot be made fails, and the turn goes on with that."""
        while result.status in RESTS:
            refused = False
            for pending in result.runtime_tools:
                if pending.request_id not in self._made:
                    refused = not await self._request(pending) or refused
            if not refused:
                break
            result = await continue_turn(self._engine, result.turn_id, request)
        waiting = {pending.request_id for pending in result.runtime_tools}
        return tuple(made for name, made in self._made.items() if name in waiting)

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
