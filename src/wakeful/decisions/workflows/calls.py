"""A workflow inside a turn: its nodes are the calls of the one round that the turn has.

A call waits until everything it takes something from has ended. Then its arguments are worked out and are a fact, or it
is skipped; from there on it is a call like any other.
"""

from wakeful.contracts.conversation import AssistantItem, CallPart
from wakeful.contracts.events import WorkflowNodeResolved
from wakeful.contracts.workflows import WorkflowGraph
from wakeful.decisions.levels import Call, Level, NodeWait
from wakeful.decisions.workflows.node_inputs import arguments_of
from wakeful.decisions.workflows.progress import planned_calls

STEP = 1
"""The round of a workflow's calls."""


def begin_workflow(state: Level) -> list[Call]:
    """Every node becomes a call. What depends on nothing has its arguments at once."""
    run = state.config.workflow if state.config is not None else None
    assert run is not None
    graph, calls = run.graph, dict[str, Call]()
    for position, planned in enumerate(planned_calls(graph, run.inputs)):
        node = graph.node(planned.call_id)
        arguments = planned.given if planned.after else arguments_of(node, graph, run.inputs, {})
        part = CallPart(call_id=planned.call_id, name=planned.tool_name, arguments=arguments)
        call = Call(part, STEP, position, state)
        after = tuple(calls[before] for before in planned.after)
        call.node = NodeWait(after, len(after), unresolved=True) if after else None
        calls[planned.call_id] = call
    state.round.batch = list(calls.values())
    state.conversation.items.append(AssistantItem(parts=tuple(call.part for call in state.round.batch)))
    state.step, state.round.front, state.round.running = STEP, 0, 0
    state.round.untaken = sum(not call.open_before for call in state.round.batch)
    state.phase = "acting" if state.round.batch else "answered"
    return state.round.batch


def node_resolved(call: Call, event: WorkflowNodeResolved) -> None:
    """The call may be brought before the gate."""
    call.part = call.part.model_copy(update={"arguments": event.arguments, "arguments_ref": event.arguments_ref})
    if call.node is not None:
        call.node.unresolved = False


def let_follow(ended: Call) -> None:
    """A call has an answer: those that waited for the last of theirs may go on."""
    for call in ended.level.round.batch:
        if (node := call.node) is not None and any(before is ended for before in node.after):
            node.open_before -= 1
            if not node.open_before and not call.taken_up:
                call.level.round.untaken += 1


def workflow_words(level: Level) -> str:
    """How it went, in a line."""
    graph: WorkflowGraph | None = level.config.workflow.graph if level.config and level.config.workflow else None
    succeeded = sum(call.answer is not None and not call.answer.is_error for call in level.round.batch)
    name = graph.name if graph is not None else "workflow"
    return f"{name}: {succeeded} of {len(level.round.batch)} nodes succeeded"
