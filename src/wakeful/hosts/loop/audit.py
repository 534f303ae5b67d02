"""The audit entries of a run: one for each call, safe for observers and exports."""

import copy
from collections.abc import Callable
from typing import Any

from wakeful.contracts.audit import ToolAudit
from wakeful.contracts.citations import PLACES
from wakeful.contracts.events import ObserverFailed
from wakeful.contracts.principals import ExecutionPrincipal
from wakeful.hosts.host_calls import at_once
from wakeful.hosts.loop.loop_events import Teller, describe
from wakeful.hosts.loop.run_calls import ExecutedCall, Sources
from wakeful.hosts.loop.turn_reply import RunnerCall
from wakeful.hosts.loop.view import LoopView
from wakeful.hosts.ports import ToolCall
from wakeful.hosts.tools.tool_execution import APPROVAL, failed
from wakeful.service.hooks import HookRegistry
from wakeful.views.audit_entry import audit_entry, audited_parameters

AUDIT_HOOK = "tool_audit_parameters"


class Auditor:
    """Makes them, with the host's hook heard about the parameters."""

    def __init__(
        self,
        hooks: HookRegistry,
        view: LoopView,
        sources: Sources,
        teller: Teller,
        context: Callable[[int], dict[str, Any]],
    ) -> None:
        self._hooks = hooks
        self._view = view
        self._sources = sources
        self._teller = teller
        self._context = context

    async def entries(self) -> list[ToolAudit]:
        """Of every call that has its result, and then of those that wait for a person."""
        view = self._view
        paused = [
            ExecutedCall(
                RunnerCall(each.call_id, each.name, each.name, each.parameters),
                each.turn,
                {**failed(each.name, "waits for approval", APPROVAL), "status": APPROVAL},
                "paused",
            )
            for each in view.calls.approvals
        ]
        return [await self._entry(done) for done in (*view.calls.executed, *paused)]

    async def _entry(self, done: ExecutedCall) -> ToolAudit:
        declaration = self._sources.declarations.get(done.name)
        adjusted = None
        if self._hooks.has(AUDIT_HOOK):
            safe = audited_parameters(done.call.parameters, declaration)
            raw = dict(done.call.parameters or {})
            try:
                adjusted = await self._hooks.value(
                    AUDIT_HOOK, safe, raw, done.name, declaration, self._context(done.turn)
                )
            except Exception as error:  # the default stands
                await self._teller.record(ObserverFailed(surface=AUDIT_HOOK, error=describe(error)))
                await self._teller.catch_up()
        return audit_entry(
            turn_count=done.turn,
            tool_name=done.name,
            tool_call_id=done.call.call_id,
            tool_source=self._sources.providers.get(done.name),
            parameters=done.call.parameters,
            result=done.result,
            declaration=declaration,
            adjusted=adjusted,
        )


SINK = "private_audit"


class PrivateAudit:
    """Tells the sink of one run about every call that an executor carried out."""

    def __init__(
        self,
        sink: Callable[[dict[str, Any]], Any] | None,
        teller: Teller,
        turn: Callable[[], int],
        principal: Callable[[], ExecutionPrincipal | None],
    ) -> None:
        self._sink = sink
        self._teller = teller
        self._turn = turn
        self._principal = principal

    async def keep(self, call: ToolCall, returned: Any) -> None:
        """`returned` is what the executor gave, with nothing taken out of it. A sink that raises leaves a trace."""
        if self._sink is None:
            return
        principal = self._principal()
        try:
            metadata = returned.get("metadata") if isinstance(returned, dict) else None
            given = metadata if isinstance(metadata, dict) else {}
            record = {
                "schema_version": 1,
                "type": "tool_call_private",
                "turn_count": self._turn(),
                "tool_name": call.tool_name,
                "tool_call_id": call.metadata.tool_call_id,
                "principal": principal.model_dump(mode="json") if principal is not None else None,
                **{place: copy.deepcopy(given[place]) for place in PLACES if place in given},
            }
            await at_once(self._sink, record)
        except Exception as error:
            await self._teller.record(ObserverFailed(surface=SINK, error=describe(error)))
