"""Importing bundles: one result for each spec, in order, and no bad one stops the others.

A host's importers are asked first (the hook `import_runtime_bundle`). The built-in one takes bundles with an agent in
them and registers it. An unknown word for what a conflict means is refused before anybody is asked.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from wakeful.contracts.errors import InvalidValue, StoreProblem, WakefulError
from wakeful.hosts.agent_registry import AgentRegistry
from wakeful.hosts.packages.bundles import bundled_agent, conflict_rule
from wakeful.hosts.packages.package_run import (
    AGENT_EXISTS,
    REGISTER_FAILED,
    REGISTRY_UNAVAILABLE,
    SOURCE_INVALID_JSON,
    SOURCE_INVALID_SHAPE,
    SOURCE_READ_FAILED,
    SOURCE_UNREADABLE,
    SPEC_INVALID,
    UNCLAIMED,
    OnConflict,
)
from wakeful.hosts.run_access import RunRefused, failure_of
from wakeful.service.hooks import HookRegistry
from wakeful.service.hooks import hooks as default_hooks

MAX_BYTES = 10_000_000
"""A larger file is nobody's bundle."""


class BundleImporter:
    """Imports bundles into one host. Without a registry the built-in importer can keep nothing, and says so."""

    def __init__(self, agents: AgentRegistry | None, *, hooks: HookRegistry = default_hooks) -> None:
        self._agents = agents
        self._hooks = hooks

    async def import_all(self, bundle_specs: Any, given: Mapping[str, Any] | None = None) -> list[dict[str, Any]]:
        """One result for each spec: `index`, `success`, and what was registered or why not."""
        specs = bundle_specs if isinstance(bundle_specs, list | tuple) else [bundle_specs]
        return [await self._one(index, spec, given if given is not None else {}) for index, spec in enumerate(specs)]

    async def _one(self, index: int, spec: Any, given: Mapping[str, Any]) -> dict[str, Any]:
        try:
            done = await self._imported(index, spec, given)
        except Exception as error:  # one bad spec never stops the others
            code, words = failure_of(error, REGISTER_FAILED)
            path = getattr(error, "path", "")
            more = {"data": {"path": path}} if isinstance(path, str) and path else {}
            return {"index": index, "success": False, "error": {"code": code, "message": words, **more}}
        return {**done, "index": index, "success": True}

    async def _imported(self, index: int, spec: Any, given: Mapping[str, Any]) -> dict[str, Any]:
        if not isinstance(spec, Mapping):
            raise InvalidValue(SPEC_INVALID, "", f"expected an object, not a {type(spec).__name__}")
        bundle, source = spec.get("bundle"), spec.get("source")
        if (bundle is None) == (source is None):
            raise InvalidValue(SPEC_INVALID, "bundle", "either a bundle or a source is needed, and not both")
        if bundle is not None and not isinstance(bundle, Mapping):
            raise InvalidValue(SPEC_INVALID, "bundle", f"expected an object, not a {type(bundle).__name__}")
        if source is not None and (not isinstance(source, str) or not source.strip()):
            raise InvalidValue(SPEC_INVALID, "source", "the path of a JSON file is needed")
        rule = conflict_rule(given, spec)
        answer = await self._hooks.resolve("import_runtime_bundle", dict(spec), dict(given), index)
        if isinstance(answer, Exception):
            raise answer
        if answer is not None:
            return _claimed(answer)
        found = bundle if bundle is not None else _read(Path(str(source)))
        if not isinstance(found.get("agent"), Mapping):
            raise InvalidValue(UNCLAIMED, "", "no importer took the bundle", "the built-in one wants an `agent` object")
        return await self._registered(found, spec, given, rule)

    async def _registered(
        self, bundle: Mapping[str, Any], spec: Mapping[str, Any], given: Mapping[str, Any], rule: OnConflict
    ) -> dict[str, Any]:
        agent = bundled_agent(bundle, spec, given)
        if self._agents is None:
            raise InvalidValue(REGISTRY_UNAVAILABLE, "", "this host keeps no agents")
        try:
            kept = await self._agents.register(agent, replace=rule == "upgrade")
        except StoreProblem as problem:
            raise InvalidValue(REGISTRY_UNAVAILABLE, "", problem.message, problem.hint) from problem
        except WakefulError as problem:
            raise InvalidValue(REGISTER_FAILED, "agent", problem.message, problem.hint) from problem
        if not kept and rule == "error":
            raise InvalidValue(AGENT_EXISTS, "", f"there is an agent {agent.slug!r} already")
        return {"status": "registered" if kept else "skipped", "agent_slug": agent.slug}


def _claimed(answer: Any) -> dict[str, Any]:
    """What a host's importer says of a bundle it took."""
    if not isinstance(answer, Mapping):
        raise RunRefused(REGISTER_FAILED, f"an importer answered a {type(answer).__name__}", "answer an object")
    if answer.get("success") is False or answer.get("error"):
        error = answer.get("error")
        said = error if isinstance(error, Mapping) else {"message": str(error or "it was not imported")}
        raise RunRefused(str(said.get("code") or REGISTER_FAILED), str(said.get("message") or "it was not imported"))
    return dict(answer)


def _read(path: Path) -> Mapping[str, Any]:
    try:
        if not path.is_file():
            raise InvalidValue(SOURCE_UNREADABLE, "source", f"{path} is not a readable file")
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except PermissionError as error:
        raise InvalidValue(SOURCE_UNREADABLE, "source", f"{path}: {error.strerror}") from None
    except OSError as error:
        raise InvalidValue(SOURCE_READ_FAILED, "source", f"{path}: {error.strerror or error}") from None
    if len(data) > MAX_BYTES:
        raise InvalidValue(SOURCE_READ_FAILED, "source", f"{path} has more than {MAX_BYTES} bytes")
    try:
        bundle = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise InvalidValue(SOURCE_INVALID_JSON, "source", f"{path} is not JSON: {error}") from None
    if not isinstance(bundle, Mapping):
        raise InvalidValue(SOURCE_INVALID_SHAPE, "source", f"{path} holds a {type(bundle).__name__}, not an object")
    return bundle
