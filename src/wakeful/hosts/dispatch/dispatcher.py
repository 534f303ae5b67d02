"""Dispatching: who takes work, handing it over, and what can be done with a run afterwards.

The core finds targets, chooses one, records the run and holds what comes back to its contract. What is done for a task
is done by the target's handler, and by nobody here. A run is recorded before its handler is called, and its id is good
for one call.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

from wakeful.contracts.errors import InvalidValue
from wakeful.contracts.principals import ExecutionPrincipal
from wakeful.decisions.redaction import redact
from wakeful.engine.run_request import Engine
from wakeful.hosts.agent_registry import AgentRegistry
from wakeful.hosts.dispatch.dispatch_request import (
    INVALID_RESULT,
    INVALID_TARGET,
    TARGET_LIST_SCHEMA,
    DispatchRequest,
    DispatchResult,
    ExecutionPlacement,
    ExecutorTarget,
    RunOwner,
)
from wakeful.hosts.dispatch.local_target import LocalTarget
from wakeful.hosts.dispatch.records import DispatchRecords, DispatchRun, answered
from wakeful.hosts.host_calls import awaited
from wakeful.hosts.run_access import RunAccess, RunRefused, failure_of, owner_of
from wakeful.ports.client_requests import PlainOrAsync
from wakeful.service.hooks import HookRegistry
from wakeful.service.hooks import hooks as default_hooks
from wakeful.service.queries.record_names import several


class Fallback(NamedTuple):
    """A target was asked for by name, and another was chosen."""

    preferred_target: str
    selected_target: str
    reason: str


class Selection(NamedTuple):
    """The target, when there is one; and why it is not the one that was preferred."""

    target: ExecutorTarget | None
    fallback: Fallback | None = None


def unfit(
    target: ExecutorTarget,
    *,
    allowed_targets: Sequence[str] = (),
    resource_class: str | None = None,
    required_capabilities: Iterable[str] = (),
) -> str | None:
    """Why a target will not do, or None. No resource class: any."""
    if allowed_targets and target.id not in allowed_targets:
        return "it is not among the allowed targets"
    if resource_class is not None and target.resource_classes and resource_class not in target.resource_classes:
        return f"it does not take the resource class {resource_class!r}"
    missing = [name for name in required_capabilities if name not in target.capabilities]
    return f"it lacks the capabilities {', '.join(missing)}" if missing else None


def select(targets: Sequence[ExecutorTarget], placement: ExecutionPlacement) -> Selection:
    """Targets are given in the order in which they were registered."""
    reasons = {
        target.id: unfit(
            target,
            allowed_targets=placement.allowed_targets,
            resource_class=placement.resource_class,
            required_capabilities=placement.required_capabilities,
        )
        for target in targets
    }
    survivors = [target for target in targets if reasons[target.id] is None]
    if not survivors:
        return Selection(None)
    preferred = placement.preferred_target
    for target in survivors:
        if target.id == preferred:
            return Selection(target)
    if preferred is None:
        return Selection(survivors[0])
    reason = reasons.get(preferred) or "there is no such target"
    return Selection(survivors[0], Fallback(preferred, survivors[0].id, reason))


TARGETS_INVALID = "execution_targets_invalid"
NO_HANDLER = "task_no_handler"
HINT = "nothing was run; who takes dispatched work, and how an agent is named: wakeful targets"
ALREADY_STARTED = "task_run_already_started"
HANDLER_FAILED = "task_handler_failed"
NOT_FOUND = "task_run_not_found"
INVALID_STATUS = "task_run_invalid_status"
INVALID_CANCEL = "task_run_invalid_cancel_result"
NOT_RESUMABLE = "task_run_not_resumable"

HandlerAnswer: TypeAlias = DispatchResult | Mapping[str, Any] | Exception
"""The answer of a handler: a result, an object like one, or an error, returned or raised."""
Handler: TypeAlias = Callable[[DispatchRequest, ExecutorTarget], PlainOrAsync[HandlerAnswer]]
Control: TypeAlias = Callable[[DispatchResult], PlainOrAsync[HandlerAnswer | None]]
"""A host's own word on a run, answered as by a handler; None: nothing to say."""


class Dispatcher:
    """The tasks of one host."""

    def __init__(
        self,
        engine: Engine,
        agents: AgentRegistry | None = None,
        *,
        hooks: HookRegistry = default_hooks,
        access: RunAccess | None = None,
        status_handler: Control | None = None,
        cancel_handler: Control | None = None,
        local: LocalTarget | None = None,
    ) -> None:
        """`local` is the built-in target; None: turns run in this process."""
        self._engine = engine
        self._hooks = hooks
        self._access = access if access is not None else RunAccess()
        registry = agents if agents is not None else AgentRegistry(engine)
        self._local = local if local is not None else LocalTarget(engine, registry)
        self._records = DispatchRecords(engine)
        self._status_handler = status_handler
        self._cancel_handler = cancel_handler

    # --- who takes tasks ----------------------------------------------------------------------------------------------

    async def targets(self) -> tuple[ExecutorTarget, ...]:
        """In the order they were registered, the built-in one first. Raises for a list or a target that is none."""
        own = await self._local.target()
        try:
            listed = await self._hooks.value("execution_targets", [own.to_wire()] if own is not None else [])
        except Exception as error:
            raise RunRefused(TARGETS_INVALID, f"a hook raised {type(error).__name__}: {error}") from error
        if not isinstance(listed, list | tuple):
            raise RunRefused(TARGETS_INVALID, f"a hook answered a {type(listed).__name__}", "answer a list of targets")
        found: dict[str, ExecutorTarget] = {}
        for index, each in enumerate(listed):
            target = ExecutorTarget.normalise(each, f"targets[{index}]")
            if target.id in found:
                raise InvalidValue(INVALID_TARGET, f"targets[{index}].id", f"{target.id!r} is there twice")
            found[target.id] = target
        return tuple(found.values())

    async def list_targets(self, query: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """The targets that fit `allowed_targets`, `resource_class` and `required_capabilities`, as far as given."""
        wanted = ExecutionPlacement.normalise(query or {})
        any_class = not (query or {}).get("resource_class")
        fitting = [
            target.to_wire()
            for target in await self.targets()
            if unfit(
                target,
                allowed_targets=wanted.allowed_targets,
                resource_class=None if any_class else wanted.resource_class,
                required_capabilities=wanted.required_capabilities,
            )
            is None
        ]
        return {"schema": TARGET_LIST_SCHEMA, "targets": fitting}

    # --- handing over -------------------------------------------------------------------------------------------------

    async def run(self, raw: DispatchRequest | Mapping[str, Any], caller: ExecutionPrincipal | None) -> DispatchResult:
        """Hand a task to a target and wait for what its handler says.

        Raises InvalidValue for a task that is none. Raises RunRefused when no target takes it, when its id is taken,
        and with the handler's own error; the run is on record as failed then.
        """
        given = DispatchRequest.normalise(raw, self._engine.ids.new)
        selection = select(await self.targets(), given.placement)
        handler = await self._handler(given, selection.target, owner_of(caller)) if selection.target else None
        if selection.target is None or handler is None:
            why = (
                "no target fits its placement" if selection.target is None else f"{selection.target.id} has no handler"
            )
            await self._told(NO_HANDLER, given)
            raise RunRefused(NO_HANDLER, f"no target takes the task {given.task_id!r}: {why}", HINT)
        return await self._dispatched(given, selection.target, handler, selection.fallback, owner_of(caller))

    async def resume(self, session_id: str, run_id: str, caller: ExecutionPrincipal | None) -> DispatchResult:
        """Go on with a run of the built-in target that a dead process left, or that rested on somebody."""
        run = await self._found(session_id, run_id, caller)
        if run.result.executor_id != self._local.id:
            raise RunRefused(NOT_RESUMABLE, f"{run.result.executor_id} runs {run_id}, and it alone goes on with it")
        result = await self._settled(run)
        return result if result.is_over else await self._answered(run.given, self._here(run.result.owner), None)

    async def _handler(self, given: DispatchRequest, target: ExecutorTarget, owner: RunOwner | None) -> Handler | None:
        try:
            found = await self._hooks.resolve("task_handler", given.model_copy(deep=True), target)
        except Exception:  # nobody can say who would do it: nobody does
            return None
        if found is None and target.id == self._local.id:
            return self._here(owner)
        return found if callable(found) else None

    def _here(self, owner: RunOwner | None) -> Handler:
        async def run(given: DispatchRequest, target: ExecutorTarget) -> Any:
            async def is_cancelled() -> bool:
                now = await self._records.get(given.run_id)
                return now is not None and now.result.status == "cancelling"

            return await self._local.run(given, owner, is_cancelled)

        return run

    async def _dispatched(
        self,
        given: DispatchRequest,
        target: ExecutorTarget,
        handler: Handler,
        fallback: Fallback | None,
        owner: RunOwner | None,
    ) -> DispatchResult:
        said = fallback._asdict() if fallback is not None else None
        if await self._records.start(given, target, owner, said) is None:
            await self._told(ALREADY_STARTED, given)
            raise RunRefused(ALREADY_STARTED, f"the run {given.run_id!r} was started before", "leave run_id out")
        return await self._answered(given, handler, target)

    async def _answered(
        self, given: DispatchRequest, handler: Handler, target: ExecutorTarget | None
    ) -> DispatchResult:
        """Call the handler and keep what it says. Whatever it says, the run is not left without a word."""
        try:
            theirs = given.model_copy(deep=True)
            said = await awaited(
                handler(
                    theirs, target if target is not None else ExecutorTarget(id=self._local.id, label=self._local.id)
                )
            )
            if isinstance(said, Exception):
                raise said
        except Exception as error:
            code, words = failure_of(error, HANDLER_FAILED)
            await self._failed(given, code, words)
            raise RunRefused(code, words, getattr(error, "hint", "")) from error
        try:
            fields = _fields(said)
            return await self._records.change(given.run_id, lambda now: answered(now, fields, INVALID_RESULT))
        except InvalidValue as error:
            await self._failed(given, error.code, error.message)
            raise

    async def _failed(self, given: DispatchRequest, code: str, words: str) -> None:
        diagnostics = {"error_code": code, "error_message": words}
        failed = {"status": "failed", "diagnostics": diagnostics}
        await self._records.change(given.run_id, lambda now: answered(now, failed, INVALID_RESULT))
        await self._told(code, given)

    async def _told(self, code: str, given: DispatchRequest) -> None:
        await self._hooks.observe("task_dispatch_failed", code, redact(given.to_wire()))

    # --- runs ---------------------------------------------------------------------------------------------------------

    async def get(self, session_id: str, run_id: str, caller: ExecutionPrincipal | None) -> DispatchResult:
        """A run as it is now. Raises RunRefused `task_run_not_found` also for somebody else's."""
        return await self._settled(await self._found(session_id, run_id, caller))

    async def cancel(
        self, session_id: str, run_id: str, caller: ExecutionPrincipal | None
    ) -> tuple[bool, DispatchResult]:
        """Ask a run to stop: whether it was asked, and how it stands. Safe to repeat."""
        run = await self._found(session_id, run_id, caller)
        result = await self._settled(run)
        if result.is_over:
            return False, result
        if self._cancel_handler is not None:
            said = await self._asked(self._cancel_handler, result, INVALID_CANCEL)
            if said is not None:
                kept = await self._records.change(run_id, lambda now: answered(now, said, INVALID_CANCEL))
                return kept.status in ("cancelling", "cancelled"), kept
        result = await self._records.change(run_id, _cancelling)
        if result.executor_id == self._local.id and not result.is_over:
            await self._local.cancel(run_id)
        return result.status in ("cancelling", "cancelled"), result

    async def all(self, caller: ExecutionPrincipal | None, limit: int | None = None) -> list[DispatchResult]:
        """The runs that the caller may see, newest first."""
        runs = [run for run in await self._records.all() if self._access.may_see(caller, run.result.owner)]
        return [await self._settled(run) for run in runs[:limit]]

    async def find(self, named: str, caller: ExecutionPrincipal | None) -> DispatchResult:
        """A run as a person names it: by its id, or the beginning of it. Raises RunRefused `task_run_not_found`."""
        exact = await self._records.get(named)
        runs = [exact] if exact is not None else await self._records.all()
        fitting = [
            run for run in runs if run.given.run_id.startswith(named) and self._access.may_see(caller, run.result.owner)
        ]
        if len(fitting) == 1:
            return await self._settled(fitting[0])
        if fitting:
            raise RunRefused(NOT_FOUND, *several(named, "runs", [run.given.run_id for run in fitting]))
        raise RunRefused(NOT_FOUND, f"there is no run {named!r}", "List the runs: wakeful dispatch list")

    async def events(self, session_id: str, run_id: str, caller: ExecutionPrincipal | None) -> list[dict[str, Any]]:
        """The log of a run, in order."""
        await self._found(session_id, run_id, caller)
        return await self._records.events(run_id)

    async def _found(self, session_id: str, run_id: str, caller: ExecutionPrincipal | None) -> DispatchRun:
        run = await self._records.get(run_id)
        if run is None or run.result.session_id != session_id or not self._access.may_see(caller, run.result.owner):
            raise RunRefused(NOT_FOUND, f"there is no run {run_id!r} in the session {session_id!r}")
        return run

    async def _settled(self, run: DispatchRun) -> DispatchResult:
        """The run, with what has become of it since somebody last looked."""
        if run.result.is_over:
            return run.result
        said: Mapping[str, Any] | None = None
        if self._status_handler is not None:
            said = await self._asked(self._status_handler, run.result, INVALID_STATUS)
        if said is None and run.result.executor_id == self._local.id:
            said = await self._local.status(run.given.run_id)
        if said is None:
            return run.result
        fields = said
        return await self._records.change(run.given.run_id, lambda now: _changed(now, fields))

    async def _asked(self, control: Control, result: DispatchResult, code: str) -> Mapping[str, Any] | None:
        """What a host's own handler says, when it is about this run and fits. Raises with `code`."""
        try:
            said = await awaited(control(result))
            if isinstance(said, Exception):
                raise said
        except Exception as error:
            raise RunRefused(code, failure_of(error, code)[1]) from error
        if said is None:
            return None
        try:
            fields = _fields(said)
            answered(result, fields, code)
        except InvalidValue as error:
            raise RunRefused(code, error.reason) from error
        return fields


def _fields(said: Any) -> Mapping[str, Any]:
    if isinstance(said, DispatchResult):
        return said.to_wire()
    if not isinstance(said, Mapping):
        raise InvalidValue(INVALID_RESULT, "", f"expected an object, not a {type(said).__name__}")
    return said


def _changed(now: DispatchResult, fields: Mapping[str, Any]) -> DispatchResult | None:
    """None when nothing is different: reading writes nothing then."""
    later = answered(now.model_copy(update={"events": []}), fields, INVALID_STATUS)
    events = [*(event for event in now.events if event not in later.events), *later.events]
    later = later.model_copy(update={"events": events})
    return None if later == now else later


def _cancelling(now: DispatchResult) -> DispatchResult | None:
    return None if now.status == "cancelling" else now.model_copy(update={"status": "cancelling"})
