"""The abilities over tasks: run one, list who takes them, read a run, ask it to stop."""

from collections.abc import Callable, Mapping
from typing import Any

from wakeful.contracts.principals import ExecutionPrincipal
from wakeful.hosts.abilities.registry import Abilities, Ability
from wakeful.hosts.dispatch.dispatcher import Dispatcher
from wakeful.hosts.run_access import RunAccess

CATEGORY = "tasks"
_NAMES: Mapping[str, Any] = {"type": "array"}
_TARGETS: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "allowed_targets": _NAMES,
        "resource_class": {"type": "string"},
        "required_capabilities": _NAMES,
    },
    "additionalProperties": False,
}
_RUN: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "session_id": {"type": "string", "minLength": 1},
        "run_id": {"type": "string", "minLength": 1},
    },
    "required": ["session_id", "run_id"],
    "additionalProperties": False,
}


class DispatchAbilities:
    """The four abilities of one host. `caller` says who asks now; None is nobody, who may do nothing."""

    def __init__(
        self, dispatcher: Dispatcher, caller: Callable[[], ExecutionPrincipal | None], access: RunAccess | None = None
    ) -> None:
        self._dispatcher = dispatcher
        self._caller = caller
        self._access = access if access is not None else RunAccess()

    def register(self, abilities: Abilities) -> None:
        """Add them to a host's abilities."""
        # What a task has to be is said by its own contract, with its own code: `run_task` has no schema beside it.
        for name, says, run, schema, destructive, idempotent in (
            ("run_task", "Hand a task to a target.", self._run, None, True, False),
            ("list_execution_targets", "Who takes tasks.", self._targets, _TARGETS, False, True),
            ("get_task_run", "A run as it is now.", self._get, _RUN, False, True),
            ("cancel_task_run", "Ask a run to stop.", self._cancel, _RUN, True, True),
        ):
            abilities.register(
                Ability(
                    f"agents/{name}",
                    run,
                    self._is_somebody,
                    says,
                    schema,
                    category=CATEGORY,
                    annotations={"destructive": destructive, "idempotent": idempotent},
                )
            )

    def _is_somebody(self, given: Any) -> bool:
        return self._caller() is not None

    async def _run(self, given: Any) -> dict[str, Any]:
        return (await self._dispatcher.run(given, self._caller())).to_wire()

    async def _targets(self, given: Any) -> dict[str, Any]:
        return await self._dispatcher.list_targets(given)

    async def _get(self, given: Any) -> dict[str, Any]:
        caller = self._caller()
        result = await self._dispatcher.get(given["session_id"], given["run_id"], caller)
        return self._access.shown(result.to_wire(), caller)

    async def _cancel(self, given: Any) -> dict[str, Any]:
        caller = self._caller()
        asked, result = await self._dispatcher.cancel(given["session_id"], given["run_id"], caller)
        return {"cancelled": asked, "run": self._access.shown(result.to_wire(), caller)}
