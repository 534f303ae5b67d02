"""What goes into a node and what comes out of a run: values fetched along dotted paths.

A path that leads nowhere is an error of the node that wanted it, never an empty value.
"""

import json
from collections.abc import Mapping
from typing import Any

from wakeful.contracts.workflows import INPUT, NodeError, WorkflowGraph, WorkflowNode
from wakeful.decisions.workflows.schemas import kind_of, misfit, parameters, types

PROMPT = "prompt"
"""The input that takes the text of a message."""


class UnresolvedInput(ValueError):
    """A path led nowhere; the node that needs the value cannot run."""

    def __init__(self, source: str, path: str, reason: str) -> None:
        self.error = NodeError(kind="unresolved_input", message=f"{source} has nothing at {path!r}: {reason}")
        super().__init__(self.error.message)


def value_at(source: str, value: Any, path: str) -> Any:
    """What is at `result.a.0.b` of a node's result. A text that is JSON is read where a path goes below it.

    Raises Unresolved.
    """
    for step in path.split(".")[1:]:
        if isinstance(value, str):
            try:
                value = json.loads(value)
            except (ValueError, RecursionError):
                raise UnresolvedInput(source, path, f"{step!r} was looked up in a text") from None
        if isinstance(value, dict) and step in value:
            value = value[step]
        elif isinstance(value, list) and step.isdecimal() and int(step) < len(value):
            value = value[int(step)]
        else:
            there = f"{kind_of(value)} of {len(value)}" if isinstance(value, list | dict) else kind_of(value)
            raise UnresolvedInput(source, path, f"there is no {step!r} in that {there}")
    return value


def complete_inputs(graph: WorkflowGraph, given: Mapping[str, Any], text: str | None = None) -> dict[str, Any]:
    """The inputs of a run, with the message's text as `prompt` and with defaults. Ask `wrong_inputs` first."""
    inputs = dict(given)
    if text is not None and PROMPT in graph.inputs:
        inputs.setdefault(PROMPT, text)
    for name, schema in graph.inputs.items():
        if name not in inputs and isinstance(schema, Mapping) and "default" in schema:
            inputs[name] = schema["default"]
    return inputs


def wrong_inputs(graph: WorkflowGraph, given: Mapping[str, Any], text: str | None = None) -> dict[str, str]:
    """Why these inputs are not the workflow's: input to reason, empty when they are."""
    inputs = complete_inputs(graph, given, text)
    wrong = {
        name: f"the workflow has no such input; it has: {', '.join(graph.inputs) or 'none'}"
        for name in inputs
        if name not in graph.inputs
    }
    for name in graph.required_inputs:
        if name not in inputs:
            wrong[name] = "is required"
    for name, value in inputs.items():
        reason = misfit(value, graph.inputs[name], {}) if name in graph.inputs else None
        if reason is not None:
            wrong[name] = reason
    return wrong


def given_to(node: WorkflowNode, graph: WorkflowGraph, inputs: Mapping[str, Any]) -> dict[str, Any]:
    """What a node is known to get before anything ran: its literals, and inputs of the workflow."""
    arguments = dict(node.inputs)
    for edge in graph.edges:
        if edge.target == node.id and edge.source == INPUT and edge.source_output in inputs:
            arguments[edge.target_input] = inputs[edge.source_output]
    return arguments


def arguments_of(
    node: WorkflowNode, graph: WorkflowGraph, inputs: Mapping[str, Any], results: Mapping[str, Any]
) -> dict[str, Any]:
    """The arguments of a node's call, given what the nodes before it gave. Raises Unresolved."""
    arguments = given_to(node, graph, inputs)
    for edge in graph.edges:
        if edge.target == node.id and edge.source != INPUT:
            arguments[edge.target_input] = value_at(edge.source, results[edge.source], edge.source_output)
    if node.kind == "agent":
        return {**arguments, "input": as_text(arguments.get("input"))}
    if node.kind == "approval":
        return _question(arguments)
    return arguments


def fitted(arguments: Mapping[str, Any], schema: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments as a tool takes them: a text is read as JSON where the parameter can be no text.

    What a tool gives is text by the time it is a result, and `42` may have been a number.
    """
    takes = parameters(schema)
    return {name: _read(value, takes.named.get(name, {}), takes.root) for name, value in arguments.items()}


def _read(value: Any, schema: Any, root: Mapping[str, Any]) -> Any:
    if not isinstance(value, str) or "string" in types(schema, root):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return value  # the gate says what is wrong with it


def outputs_of(graph: WorkflowGraph, results: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, NodeError]]:
    """What a run gives back under each name, of the nodes that succeeded; and the names whose path led nowhere."""
    found: dict[str, Any] = {}
    lost: dict[str, NodeError] = {}
    for name, output in graph.outputs.items():
        if output.node in results:
            try:
                found[name] = value_at(output.node, results[output.node], output.path)
            except UnresolvedInput as unresolved:
                lost[name] = unresolved.error
    return found, lost


def as_text(value: Any) -> str:
    """A text as it is, anything else as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=2)


def _question(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """What a person is asked: the question, and below it what they have to see."""
    question = as_text(arguments.get("question", ""))
    if "show" in arguments:
        question = f"{question}\n\n{as_text(arguments['show'])}"
    choices = arguments.get("choices")
    return {"question": question, "choices": choices} if choices is not None else {"question": question}
