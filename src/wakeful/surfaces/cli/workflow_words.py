"""The end of a workflow in the words of a terminal: its outputs on stdout, its nodes on stderr."""

from wakeful.contracts.workflows import WorkflowRunResult
from wakeful.service import as_text
from wakeful.surfaces.cli.problems import note
from wakeful.surfaces.cli.shown_values import counted, json_text, one_line, out, plain


def tell_outputs(result: WorkflowRunResult) -> None:
    """One output as it is, several as JSON."""
    if len(result.outputs) == 1:
        out(plain(as_text(next(iter(result.outputs.values())))))
    elif result.outputs:
        out(json_text(result.outputs, indent=2))
    else:
        out(f"{counted(len(result.nodes), 'node')} succeeded")
    for name, error in result.lost_outputs.items():
        note(f"output {name} is missing: {error.message}")


def tell_nodes(result: WorkflowRunResult | None) -> None:
    """A line for each node that ended."""
    for node in result.nodes if result is not None else ():
        why = f": {one_line(node.error.message, 200)}" if node.error is not None else ""
        note(f"{node.id} {node.status}{why}")
