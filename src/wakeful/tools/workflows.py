"""`build_workflow` as a model is told about it. The runtime answers it: a planner level makes the graph.

It is offered in an editor that has a registry, and nowhere else. It changes what is saved and never what is shown: that
is left to the client's own tools.
"""

from wakeful.contracts.tools import ToolDeclaration

BUILD_WORKFLOW = ToolDeclaration(
    name="build_workflow",
    description=(
        "Build a workflow from an objective, or a changed version of one: a graph of tools, agents and approvals that "
        "runs later. Say all that it has to do; name the workflow if it exists. Gives a reference to what was saved; "
        "the editor itself is not changed."
    ),
    input_schema={
        "type": "object",
        "properties": {
            "objective": {"type": "string", "minLength": 1, "description": "What the workflow has to do, in full."}
        },
        "required": ["objective"],
        "additionalProperties": False,
    },
    # Saved under the call's own key: a repeat finds what was saved.
    effect="keyed",
    permission_class="editor_mutate",
    parallel_safe=False,
    child_safe=False,
    categories=("workflow",),
    runtime_owner="workflow",
    interrupt_behavior="cancel",
)
