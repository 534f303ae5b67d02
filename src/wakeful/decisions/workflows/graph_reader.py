"""A graph from text: what is no graph is told by its path, in the words of the same problems as the rest."""

import json
from typing import Any

from pydantic import ValidationError

from wakeful.contracts.jsonable import NotJson
from wakeful.contracts.validation import path_of
from wakeful.contracts.workflows import MAX_GRAPH_BYTES, GraphProblem, WorkflowGraph

MAX_PROBLEMS = 20
"""How much is told at once about a text that is no graph."""


def read_graph(text: str) -> WorkflowGraph | tuple[GraphProblem, ...]:
    """The graph in a text, or what keeps it from being one. It is not validated by that."""
    # Four bytes are the most that a character takes, and an escaped one takes more than it stands for.
    if len(text) > 8 * MAX_GRAPH_BYTES:
        words = f"the text has {len(text)} characters; a workflow has {MAX_GRAPH_BYTES} bytes at most"
        return (GraphProblem(code="too_large", path="", message=words),)
    try:
        data = json.loads(text)
    except ValueError as error:
        return (GraphProblem(code="invalid_graph", path="", message=f"not JSON: {error}"),)
    except RecursionError:
        return (GraphProblem(code="invalid_graph", path="", message="nested too deeply"),)
    return graph_of(data)


def graph_of(data: Any) -> WorkflowGraph | tuple[GraphProblem, ...]:
    """The graph that JSON data are, or what keeps them from being one."""
    if not isinstance(data, dict):
        words = f"a workflow is an object, not a {type(data).__name__}"
        return (GraphProblem(code="invalid_graph", path="", message=words),)
    try:
        return WorkflowGraph.model_validate(data)
    except ValidationError as error:
        found = error.errors(include_url=False, include_input=False)[:MAX_PROBLEMS]
        return tuple(
            GraphProblem(
                code="invalid_graph", path=path_of(each["loc"]), message=each["msg"].removeprefix("Value error, ")
            )
            for each in found
        )
    except (NotJson, RecursionError) as error:
        return (GraphProblem(code="invalid_graph", path="", message=str(error) or "nested too deeply"),)
