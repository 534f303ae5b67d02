"""From a call to a normalised result, without owning a single tool: `ToolExecutionCore`.

     find the declaration, by name or alias      -> `tool_not_found`
     the parameters are put together             -> `invalid_parameters`
     required parameters are there               -> `missing_required_parameters`
     the parameters fit the schema               -> `invalid_parameters`
     the principal's ceiling permits it          -> `capability_denied`
     the executor it goes to is there            -> `executor_target_unavailable`
     the executor is called                      -> `executor_exception`
     what it returned is made a result           -> `invalid_tool_result`

Whatever goes wrong is a failed result with its `metadata.error_type`. Nothing is raised.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, Literal, TypeAlias

from wakeful.contracts.citations import with_safe_citations
from wakeful.contracts.errors import InvalidValue
from wakeful.contracts.jsonable import NotJson, plain
from wakeful.contracts.principals import ExecutionPrincipal
from wakeful.contracts.runtime_metadata import merged_runtime
from wakeful.contracts.tools import ToolDeclaration
from wakeful.contracts.transcript import normalise
from wakeful.decisions.parameters import assemble
from wakeful.decisions.policy.verdict import ceiling_verdict
from wakeful.gate.argument_validation import compile as compile_schema
from wakeful.hosts.host_calls import in_its_place, is_async
from wakeful.hosts.ports import ToolCall, ToolCallMetadata, ToolExecutor
from wakeful.hosts.tools.tool_declaration import RuntimeToolDeclaration

ErrorType: TypeAlias = Literal[
    "tool_not_found",
    "missing_required_parameters",
    "executor_exception",
    "executor_target_unavailable",
    "invalid_prepared_tool_call",
    "capability_denied",
    "ability_name_missing",
    "pre_tool_mediation_rejected",
    "tool_call_gate_rejected",
    "pre_tool_mediation_error",
    "invalid_tool_call",
    "invalid_parameters",
    "invalid_tool_result",
    "sibling_skipped",
    "tool_mediation_disabled",
    "action_forbidden",
    "budget_exceeded",
]
ENVELOPE = ("success", "tool_name", "result", "error", "error_type", "metadata", "runtime", "status")
APPROVAL = "approval_required"
PAUSES = ("runtime_tool_pending",)


NO_CONTEXTS: Mapping[str, Mapping[str, Any] | None] = {}


class ToolExecutionCore:
    """The tools of a host: declarations, and the executors behind them.

    A tool whose `runtime.executor_target` names a target goes to that target's executor and to no other.
    """

    def __init__(
        self,
        declarations: Iterable[RuntimeToolDeclaration],
        executor: ToolExecutor | None,
        targets: Mapping[str, ToolExecutor] | None = None,
        heard: Callable[[ToolCall, Any], Awaitable[None]] | None = None,
    ) -> None:
        self._executor = executor
        self._heard = heard
        """Told what an executor returned, as it returned it."""
        self._targets = dict(targets or {})
        self._tools = {tool.name: tool for tool in declarations}
        self._contracts: dict[str, ToolDeclaration] = {
            name: tool.to_declaration() for name, tool in self._tools.items()
        }
        aliases: dict[str, list[str]] = {}
        for tool in self._tools.values():
            for alias in tool.names[1:]:
                aliases.setdefault(alias, []).append(tool.name)
        self._aliases = {alias: names[0] for alias, names in aliases.items() if len(names) == 1}

    def is_async(self, tool: RuntimeToolDeclaration) -> bool:
        executor = self._executor_of(tool)
        return executor is None or is_async(executor.execute)

    def find(self, name: str) -> RuntimeToolDeclaration | None:
        """A tool by its name, or by an alias that is its alone."""
        return self._tools.get(name) or self._tools.get(self._aliases.get(name, ""))

    def contract(self, tool: RuntimeToolDeclaration) -> ToolDeclaration:
        """The declaration that the runtime enforces."""
        return self._contracts[tool.name]

    async def execute(
        self,
        name: str,
        parameters: Mapping[str, Any],
        *,
        tool_call_id: str = "",
        context: dict[str, Any] | None = None,
        contexts: Mapping[str, Mapping[str, Any] | None] | None = None,
        principal: ExecutionPrincipal | None = None,
    ) -> dict[str, Any]:
        """One call from its name to its result. `contexts` are what bindings read; without them, `context` alone."""
        tool = self.find(name)
        if tool is None:
            return failed(name, f"Tool '{name}' not found", "tool_not_found")
        read = contexts if contexts is not None else {"context": context}
        call = self.prepared(tool, name, parameters, tool_call_id, contexts=read, principal=principal)
        return call if isinstance(call, dict) else await self.run(call, tool, context or {})

    def prepared(
        self,
        tool: RuntimeToolDeclaration,
        called_as: str,
        parameters: Mapping[str, Any],
        tool_call_id: str,
        *,
        contexts: Mapping[str, Mapping[str, Any] | None] = NO_CONTEXTS,
        principal: ExecutionPrincipal | None = None,
    ) -> ToolCall | dict[str, Any]:
        """The call as the executor gets it, or the failed result of one that it does not get."""
        assembled = assemble(tool.plan, parameters, contexts)
        if assembled.errors:
            return failed(tool.name, f"Tool '{tool.name}': {'; '.join(assembled.errors)}", "invalid_parameters")
        if assembled.missing:
            missing = list(assembled.missing)
            text = f"Tool '{tool.name}' misses required parameters: {', '.join(missing)}"
            return failed(tool.name, text, "missing_required_parameters", missing_parameters=missing)
        violations = compile_schema(tool.input_schema).check(assembled.arguments)
        if violations:
            paths = list(dict.fromkeys(violation.path for violation in violations))
            text = "; ".join(f"{violation.path or 'parameters'}: {violation.message}" for violation in violations)
            return failed(tool.name, f"Tool '{tool.name}': {text}", "invalid_parameters", paths=paths)
        return _capability_denied(tool, principal) or ToolCall(
            tool_name=tool.name,
            parameters=assembled.arguments,
            metadata=ToolCallMetadata(source=tool.source, provider_tool_name=called_as, tool_call_id=tool_call_id),
            id=tool_call_id or None,
        )

    def _executor_of(self, tool: RuntimeToolDeclaration) -> ToolExecutor | None:
        """Who executes it; None when that is somebody who is not here. Nobody else steps in."""
        return self._targets.get(tool.executor_target) if tool.executor_target else self._executor

    async def run(self, call: ToolCall, tool: RuntimeToolDeclaration, context: dict[str, Any]) -> dict[str, Any]:
        """Call the executor and make a result of what comes back. Only a cancel is raised."""
        if call.tool_name != tool.name:
            text = f"the prepared call is of {call.tool_name!r} and the declaration is of {tool.name!r}"
            return failed(tool.name, text, "invalid_prepared_tool_call")
        executor = self._executor_of(tool)
        if executor is None:
            text = f"Tool '{tool.name}' is for the executor {tool.executor_target!r}, which is not registered"
            return failed(tool.name, text, "executor_target_unavailable", runtime=tool.runtime)
        try:
            returned = await in_its_place(executor.execute, call, tool, context)
        except Exception as error:
            return failed(tool.name, f"{type(error).__name__}: {error}", "executor_exception", runtime=tool.runtime)
        if self._heard is not None:
            await self._heard(call, returned)
        return normalised(returned, tool)


def _capability_denied(tool: RuntimeToolDeclaration, principal: ExecutionPrincipal | None) -> dict[str, Any] | None:
    """Nobody in particular has no capabilities: without a principal there is no ceiling that could permit."""
    needed = tool.required_capability
    if not needed:
        return None
    if principal is None:
        why = "the run has no principal"
    elif ceiling_verdict(principal.effective_ceiling(), tool.name, needed) is None:
        return None
    else:
        why = f"the ceiling of its principal ({principal.auth_source}) does not permit it"
    text = f"Tool '{tool.name}' needs the capability {needed!r}, and {why}"
    return failed(tool.name, text, "capability_denied", runtime=tool.runtime, required_capability=needed)


def normalised(returned: Any, tool: RuntimeToolDeclaration) -> dict[str, Any]:
    """An executor's return as a tool result: `{success, tool_name, metadata, runtime?, status?, result | error}`."""
    if not isinstance(returned, Mapping):
        text = f"the executor returned a {type(returned).__name__} instead of an object"
        return failed(tool.name, text, "invalid_tool_result", runtime=tool.runtime)
    own_runtime = returned.get("runtime")
    try:
        given: dict[str, Any] = plain({key: value for key, value in returned.items() if key != "runtime"})
    except NotJson as error:
        return failed(
            tool.name, f"the executor's result is not JSON: {error}", "invalid_tool_result", runtime=tool.runtime
        )
    if given.get("type") == APPROVAL or given.get("status") == APPROVAL:
        return _asking(given, tool)
    if given.get("status") in PAUSES or given.get("type") in PAUSES or "runtime_tool_request" in given:
        text = f"Tool '{tool.name}' asked to pause the run, which is not available in this version of wakeful"
        return failed(tool.name, text, "invalid_tool_result", runtime=tool.runtime)
    if "success" not in given:
        return _with_runtime({"success": True, "tool_name": tool.name, "metadata": {}, "result": given}, tool, None)
    metadata = given["metadata"] if isinstance(given.get("metadata"), dict) else {}
    if given.get("error_type") and "error_type" not in metadata:
        metadata = {**metadata, "error_type": given["error_type"]}
    result: dict[str, Any] = {"success": given["success"] is True, "tool_name": given.get("tool_name") or tool.name}
    if "status" in given:
        result["status"] = given["status"]
    result["metadata"] = with_safe_citations(metadata)
    if result["success"]:
        rest = {key: value for key, value in given.items() if key not in ENVELOPE}
        result["result"] = given.get("result", rest)
    else:
        words = given.get("error")
        result["error"] = words if isinstance(words, str) and words else f"Tool '{tool.name}' failed"
    return _with_runtime(result, tool, own_runtime)


def _asking(given: dict[str, Any], tool: RuntimeToolDeclaration) -> dict[str, Any]:
    """An executor that wants a person to decide first: its envelope whole, and no result yet."""
    own = given.get("approval_required") if given.get("type") != APPROVAL else given
    try:
        envelope = normalise({"type": APPROVAL, **own} if isinstance(own, dict) else own or given)
        if envelope.type != APPROVAL or not envelope.payload.get("action_id"):
            raise InvalidValue("", "payload.action_id", "payload.action_id is missing")
    except InvalidValue as error:
        text = f"Tool '{tool.name}' asked for approval without a usable envelope: {error.reason}"
        return failed(tool.name, text, "invalid_tool_result", runtime=tool.runtime)
    result = failed(tool.name, f"Tool '{tool.name}' needs approval", APPROVAL, runtime=tool.runtime)
    return {**result, "status": APPROVAL, APPROVAL: envelope.to_wire()}


def failed(
    tool_name: str,
    error: str,
    error_type: ErrorType | str,
    *,
    runtime: Mapping[str, Any] | None = None,
    **metadata: Any,
) -> dict[str, Any]:
    """A failed result."""
    result: dict[str, Any] = {
        "success": False,
        "tool_name": tool_name,
        "metadata": {"error_type": error_type, **metadata},
        "error": error,
    }
    if runtime:
        result["runtime"] = dict(runtime)
    return result


def _with_runtime(result: dict[str, Any], tool: RuntimeToolDeclaration, own: Any) -> dict[str, Any]:
    """The declaration's hints, and over them what the executor said about this one result."""
    runtime = merged_runtime(tool.runtime, own)
    if runtime:
        result["runtime"] = runtime
    return result
