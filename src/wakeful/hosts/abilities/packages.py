"""The abilities over package runs: run, read, cancel, and page through what happened. For managers, and whom the host
grants it."""

from collections.abc import Callable, Mapping
from typing import Any

from wakeful.contracts.principals import ExecutionPrincipal
from wakeful.hosts.abilities.registry import Abilities, Ability
from wakeful.hosts.packages.runs import MAX_PAGE, PAGE, PackageRuns
from wakeful.hosts.run_access import Grant, RunAccess

RUN = "agents/run_runtime_package"
_ID: Mapping[str, Any] = {"run_id": {"type": "string", "minLength": 1}}
_ONE: Mapping[str, Any] = {"type": "object", "properties": _ID, "required": ["run_id"], "additionalProperties": False}
_PAGE: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        **_ID,
        "cursor": {"type": ["string", "integer"]},
        "limit": {"type": "integer", "minimum": 1, "maximum": MAX_PAGE},
    },
    "required": ["run_id"],
    "additionalProperties": False,
}
_DICTS = ("package", "workflow", "input", "options", "metadata", "replay")
_REQUEST: Mapping[str, Any] = {
    "type": "object",
    "properties": {**{name: {"type": "object"} for name in _DICTS}, "run_id": {"type": "string"}},
    "additionalProperties": False,
}


class PackageAbilities:
    """The four abilities of one host. `may` is the host's grant to others than managers."""

    def __init__(
        self,
        runs: PackageRuns,
        caller: Callable[[], ExecutionPrincipal | None],
        access: RunAccess | None = None,
        *,
        may: Grant | None = None,
    ) -> None:
        self._runs = runs
        self._caller = caller
        self._access = access if access is not None else RunAccess()
        self._may = may

    def register(self, abilities: Abilities) -> None:
        """Add them to a host's abilities."""
        for name, says, run, schema, destructive, idempotent in (
            (RUN, "Run a workflow of a package.", self._run, _REQUEST, True, False),
            ("agents/get_runtime_package_run", "A run as it is now.", self._get, _ONE, False, True),
            ("agents/cancel_runtime_package_run", "End a run.", self._cancel, _ONE, True, True),
            ("agents/list_runtime_package_run_events", "What happened.", self._events, _PAGE, False, True),
        ):
            annotations = {"destructive": destructive, "idempotent": idempotent}
            abilities.register(
                Ability(name, run, self._permitted, says, schema, category="packages", annotations=annotations)
            )

    def _permitted(self, given: Any) -> bool:
        caller = self._caller()
        return self._access.manages(caller) or (caller is not None and self._may is not None and self._may(caller))

    async def _run(self, given: Any) -> dict[str, Any]:
        return (await self._runs.run(given)).model_dump(mode="json")

    async def _get(self, given: Any) -> dict[str, Any]:
        return self._shown((await self._runs.get(given["run_id"])).model_dump(mode="json"))

    async def _cancel(self, given: Any) -> dict[str, Any]:
        asked, result = await self._runs.cancel(given["run_id"])
        return {"cancelled": asked, "run": self._shown(result.model_dump(mode="json"))}

    async def _events(self, given: Any) -> dict[str, Any]:
        return self._shown(await self._runs.events(given["run_id"], given.get("cursor"), given.get("limit", PAGE)))

    def _shown(self, payload: dict[str, Any]) -> dict[str, Any]:
        return self._access.shown(payload, self._caller())
