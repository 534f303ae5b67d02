"""Steps 1 to 4 of the gate: what is called, with what, and whether it can be called so.

What is wrong is an error in words a model can act on; the call goes no further then.
"""

import difflib
from collections.abc import Mapping
from typing import Any

from wakeful.contracts.agents import TurnConfig
from wakeful.contracts.errors import InvalidConfig
from wakeful.contracts.tools import ToolDeclaration, ToolError
from wakeful.decisions.injected_fields import split
from wakeful.decisions.levels import Call
from wakeful.gate import argument_validation
from wakeful.gate.call_at_gate import CallAtGate
from wakeful.gate.turn_gate import GateParts
from wakeful.tools.tool import Tool


class Preparation:
    """Reads the calls of one level, by its configuration and its tools."""

    def __init__(self, config: TurnConfig, tools: Mapping[str, Tool[Any]], parts: GateParts) -> None:
        self._config = config
        self.tools = tools
        self._parts = parts
        self._injected = frozenset(config.injected_tool_args)

    def find(self, at: CallAtGate) -> bool:
        """What the call names. A tool that is not there has a declaration without anything in it."""
        name = at.tool_name
        declared, tool = self._config.tool(name), self.tools.get(name)
        at.declared = at.declaration = declared or ToolDeclaration(name=name, input_schema={})
        if tool is not None:
            at.tool = tool
        return declared is not None and tool is not None

    def read(self, at: CallAtGate, arguments: dict[str, Any]) -> None:
        """The model's own arguments, and what was never the tool's. Whoever wrote others wrote what is run."""
        at.written, injected = split(arguments, self._injected)
        at.record.injected_args = injected or None
        replaced = at.call.replaced
        at.is_rewritten = replaced is not None
        at.arguments = at.written if replaced is None else split(replaced, self._injected).executable

    def complete(self, at: CallAtGate, arguments: dict[str, Any] | None) -> None:
        """All of it. `arguments` is None when the model did not write a JSON object."""
        is_there = self.find(at)
        if at.call.part.refused is not None:
            at.error = _refused_by_provider(at.call, self._offered())
        elif not is_there:
            at.declaration = ToolDeclaration(name=at.tool_name, input_schema={})
            at.error = _not_found(at.tool_name, self._offered())
        elif arguments is None and at.call.replaced is None:
            at.error = _no_object(at.call)
        else:
            self.read(at, arguments or {})
            at.error = self._misfit(at) or self._settle(at)

    def _offered(self) -> tuple[str, ...]:
        return tuple(tool.name for tool in self._config.tools)

    def _misfit(self, at: CallAtGate) -> ToolError | None:
        """What of the arguments does not fit the declared schema."""
        try:
            violations = argument_validation.compile(at.declared.input_schema).check(at.arguments)
        except InvalidConfig as broken:  # a schema that is none fits nothing: the call is refused, and the turn goes on
            violations = [argument_validation.Violation("", f"the tool's own schema is {broken.message}")]
        return _invalid(at.tool_name, violations) if violations else None

    def _settle(self, at: CallAtGate) -> ToolError | None:
        try:
            _consequences(at)
        except Exception as raised:
            why = self._parts.safe_words(f"{type(raised).__name__}: {raised}")
            return ToolError(
                kind="invalid_prepared_tool_call",
                message=f"{at.tool_name} could not say what this call would do ({why}), so it is not run",
            )
        return None


def rewrite(at: CallAtGate, arguments: dict[str, Any]) -> None:
    """Other arguments: whatever follows from them is worked out anew. Raises what the tool raises."""
    at.arguments, at.is_rewritten = arguments, True
    _consequences(at)


def _consequences(at: CallAtGate) -> None:
    """What follows from the arguments. A tool may be stricter about one call than its declaration, never looser."""
    tool = at.tool
    traits = tool.traits(at.arguments)
    directory, confinement = tool.working_directory(at.arguments), tool.confinement(at.arguments)
    at.declaration = traits if traits is tool.declaration else traits.at_least(at.declared)
    at.directory, at.confinement = directory, confinement


# --- what is wrong, in words ---------------------------------------------------------------------------------------


def _not_found(name: str, offered: tuple[str, ...]) -> ToolError:
    near = difflib.get_close_matches(name, offered, n=1)
    hint = f"Did you mean {near[0]!r}? " if near else ""
    tools = ", ".join(offered[:20]) if offered else "none"
    return ToolError(
        kind="tool_not_found",
        message=f"Tool '{name[:200]}' not found",
        recovery_hint=f"{hint}The tools of this turn are: {tools}.",
    )


def _refused_by_provider(call: Call, offered: tuple[str, ...]) -> ToolError:
    tools = ", ".join(offered[:20]) if offered else "none"
    return ToolError(
        kind="invalid_arguments",
        message=f"the call of {call.part.name[:200]} was not made: {call.part.refused}",
        recovery_hint=f"Call a tool with one JSON object that fits its schema. The tools of this turn are: {tools}.",
        retryable=True,
    )


def _no_object(call: Call) -> ToolError:
    return ToolError(
        kind="invalid_arguments",
        message=f"the arguments of {call.part.name} are not a JSON object: {(call.part.raw_arguments or '')[:200]!r}",
        recovery_hint="Call the tool again with one JSON object that fits its schema.",
        retryable=True,
    )


def _invalid(name: str, violations: list[argument_validation.Violation]) -> ToolError:
    """Errors in words a model can act on; the first field stands out."""
    missing = [violation.missing for violation in violations if violation.missing]
    only_missing = len(missing) == len(violations)
    details: dict[str, Any] = {"errors": [f"{violation.path}: {violation.message}" for violation in violations]}
    if violations[0].path:
        details["field"] = violations[0].path
    if missing:
        details["missing_parameters"] = missing
    return ToolError(
        kind="missing_required_parameters" if only_missing else "invalid_parameters",
        message=f"the arguments of {name} do not fit its schema: "
        + "; ".join(f"{violation.path or 'arguments'}: {violation.message}" for violation in violations[:3]),
        details=details,
        recovery_hint="Correct these fields and call the tool again.",
        retryable=True,
    )
