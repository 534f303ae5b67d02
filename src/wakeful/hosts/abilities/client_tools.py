"""Abilities over requests to clients: list, get, submit, time out, cancel. For the run's owner, and for managers.

Who calls is what the host attests, never what the input says. Somebody else's request and one that is not there are
refused alike: nobody learns of a request by asking for it.
"""

from collections.abc import Callable, Mapping
from typing import Any

from wakeful.contracts.errors import InvalidValue
from wakeful.contracts.events import MessageAdmitted, TurnStarted
from wakeful.contracts.principals import ExecutionPrincipal
from wakeful.contracts.runtime_tools import NOT_FOUND
from wakeful.engine.run_request import Engine
from wakeful.hosts.abilities.registry import Abilities, Ability
from wakeful.hosts.run_access import owner_of, principal_id
from wakeful.ports import ActionRow
from wakeful.service.client_tools.lifecycle import Continuation, RuntimeToolLifecycle
from wakeful.service.client_tools.store import KIND, OwnRequestStore
from wakeful.service.commands.client_requests import time_out_late_requests
from wakeful.service.hooks import HookRegistry
from wakeful.service.hooks import hooks as default_hooks

MANAGE = "manage_runtime_tool_requests"
"""The capability of a manager."""
_ID: Mapping[str, Any] = {"request_id": {"type": "string", "minLength": 1}}
_ONE: Mapping[str, Any] = {"type": "object", "properties": _ID, "required": ["request_id"]}
_LIST: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "run_id": {"type": "string"},
        "tool_name": {"type": "string"},
        "before": {"type": "string"},
        "limit": {"type": "integer", "minimum": 1},
    },
    "additionalProperties": False,
}
_SUBMIT: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        **_ID,
        "tool_name": {"type": "string"},
        "success": {"type": "boolean"},
        "result": {},
        "error": {"type": "string"},
        "metadata": {"type": "object"},
    },
    "required": ["request_id"],
    "additionalProperties": False,
}


class RuntimeToolAbilities:
    """The five abilities of one host. `caller` says who asks now; None is nobody, who may do nothing."""

    def __init__(
        self,
        engine: Engine,
        caller: Callable[[], ExecutionPrincipal | None],
        *,
        is_manager: Callable[[ExecutionPrincipal], bool] | None = None,
        continuation: Continuation | None = None,
        hooks: HookRegistry = default_hooks,
    ) -> None:
        self._engine = engine
        self._caller = caller
        self._is_manager = is_manager if is_manager is not None else _granted
        self._continuation = continuation
        self._hooks = hooks
        self._store = OwnRequestStore(engine)
        self._lifecycle = RuntimeToolLifecycle(hooks, record=self._store.record)

    def register(self, abilities: Abilities) -> None:
        """Add them to a host's abilities."""
        one = self._may_use
        for name, says, run, permission, schema in (
            ("list_runtime_tool_requests", "What waits for a client.", self._list, self._is_somebody, _LIST),
            ("get_runtime_tool_request", "One request.", self._get, one, _ONE),
            ("submit_runtime_tool_result", "A client's answer.", self._submit, one, _SUBMIT),
            ("timeout_runtime_tool_request", "No client will answer.", self._timeout, one, _ONE),
            ("cancel_runtime_tool_request", "Nobody wants the answer.", self._cancel, one, _ONE),
        ):
            ability = Ability(f"agents/{name}", run, permission, says, schema, category="runtime_tools")
            abilities.register(ability)

    # --- who may ----------------------------------------------------------------------------------------------------

    def _is_somebody(self, given: Any) -> bool:
        return self._caller() is not None

    async def _may_use(self, given: Any) -> bool:
        caller = self._caller()
        if caller is None:
            return False
        row = await self._engine.store.action(given["request_id"])
        if self._is_manager(caller):
            return True  # and is told when there is no such request
        return row is not None and row.kind == KIND and await self._owns(caller, row)

    async def _owns(self, caller: ExecutionPrincipal, row: ActionRow) -> bool:
        """Is the run of this request the caller's? A run that is nobody's is a manager's alone."""
        owner = principal_id(owner_of(caller))
        if owner is None:
            return False
        for entry in await self._engine.store.read(row.agent_id, turn_id=row.turn_id, limit=1) if row.turn_id else ():
            event = entry.fact.event
            if isinstance(event, MessageAdmitted | TurnStarted):
                return event.principal == owner
        return False

    # --- what they do -----------------------------------------------------------------------------------------------

    async def _list(self, given: Any) -> dict[str, Any]:
        await time_out_late_requests(self._engine, hooks=self._hooks)
        caller = self._caller()
        assert caller is not None
        query = dict(given or {})
        limit = query.pop("limit", None)
        found = []
        for request in await self._lifecycle.recent_pending_requests(self._store, query):
            row = await self._engine.store.action(request.request_id)
            if row is not None and (self._is_manager(caller) or await self._owns(caller, row)):
                found.append(request.model_dump(mode="json"))
        return {"requests": found[:limit]}

    async def _get(self, given: Any) -> dict[str, Any]:
        request = await self._store.get(given["request_id"])
        if request is None:
            raise InvalidValue(NOT_FOUND, "request_id", f"there is no request {given['request_id']!r}")
        return {"request": request.model_dump(mode="json")}

    async def _submit(self, given: Any) -> dict[str, Any]:
        await time_out_late_requests(self._engine, hooks=self._hooks)
        return await self._lifecycle.submit_result(self._store, given, self._continuation)

    async def _timeout(self, given: Any) -> dict[str, Any]:
        return await self._lifecycle.timeout_request(self._store, given["request_id"], self._continuation)

    async def _cancel(self, given: Any) -> dict[str, Any]:
        return await self._lifecycle.cancel_request(self._store, given["request_id"], self._continuation)


def _granted(caller: ExecutionPrincipal) -> bool:
    """A manager is who the host names so in a ceiling: without one, nobody is."""
    ceiling = caller.capability_ceiling
    return ceiling is not None and ceiling.allowed is not None and ceiling.permits(MANAGE)
