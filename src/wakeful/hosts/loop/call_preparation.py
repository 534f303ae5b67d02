"""From what a model wrote to the call that an executor gets: the tools of one run, by name, and their parameters."""

from collections.abc import Mapping
from typing import Any

from wakeful.contracts.events import ObserverFailed
from wakeful.hosts.declarations.tool_declaration import RuntimeToolDeclaration
from wakeful.hosts.loop.event_reports import Teller, describe
from wakeful.hosts.loop.execution import ToolExecutionCore
from wakeful.hosts.loop.options import LoopOptions
from wakeful.hosts.loop.tool_calls import ToolCall
from wakeful.hosts.loop.view import Sources
from wakeful.hosts.principals import resolve_principal
from wakeful.service.hooks import HookRegistry

DENIED_HOOK = "tool_capability_denied"


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
