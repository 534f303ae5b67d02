"""The audit entries of a run: one for each call, safe for observers and exports."""

from collections.abc import Callable
from typing import Any

from wakeful.contracts.audit import ToolAudit
from wakeful.contracts.events import ObserverFailed
from wakeful.decisions.audit import audit_entry, audited_parameters
from wakeful.service.hooks import HookRegistry
from wakeful.surfaces.loop.execution import APPROVAL, failed
from wakeful.surfaces.loop.telling import Teller, describe
from wakeful.surfaces.loop.turn_results import Asked
from wakeful.surfaces.loop.view import Executed, LoopView, Sources

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
            Executed(
                Asked(each.call_id, each.name, each.name, each.parameters),
                each.turn,
                {**failed(each.name, "waits for approval", APPROVAL), "status": APPROVAL},
                "paused",
            )
            for each in view.approvals
        ]
        return [await self._entry(done) for done in (*view.executed, *paused)]

    async def _entry(self, done: Executed) -> ToolAudit:
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
