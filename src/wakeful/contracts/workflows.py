"""Workflows as values: a small graph of tools, agents and approvals, what it may be made of, what a run of it came to.

A graph names things and holds no code. It is read as it was written; whether it holds together is asked of
`decisions/workflows`, never assumed because it could be read.
"""

from typing import Annotated, Any, Literal, TypeAlias

from pydantic import ConfigDict, Field

from wakeful.contracts.jsonable import JsonAny, JsonDict
from wakeful.contracts.values import Value

MAX_NODES = 64
MAX_EDGES = 256
MAX_GRAPH_BYTES = 1_000_000
"""A graph as JSON. Its literals are arguments: what is larger belongs into a file that a node reads."""
INPUT = "$input"
"""The source of an edge that brings an input of the workflow."""
RESULT = "result"
"""What a node gives: the beginning of every path into it."""
APPROVAL_REF = "wakeful/ask_person"
"""The one thing an approval can refer to; a graph may leave it out."""

AGENT_CALL = "agent/"
"""Before an agent's name in the name of the call that runs it: a tool may have the same one."""

EDITOR_TOOLS: frozenset[str] = frozenset({"build_workflow"})
"""Offered only where a workflow editor is open."""

NodeKind: TypeAlias = Literal["tool", "agent", "approval"]
NodeStatus: TypeAlias = Literal["succeeded", "failed", "skipped", "cancelled"]
RunStatus: TypeAlias = Literal["succeeded", "failed", "cancelled"]
NodeId: TypeAlias = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,63}$")]
GraphCode: TypeAlias = Literal[
    "duplicate_node_id",
    "unknown_ref",
    "unknown_node",
    "unknown_input",
    "duplicate_target_input",
    "missing_required_input",
    "type_mismatch",
    "cycle",
    "unknown_output",
    "too_large",
    "invalid_graph",
]
"""What can be wrong with a graph; `invalid_graph`: it is none at all."""

NODE_INPUTS: dict[NodeKind, dict[str, Any]] = {
    "agent": {
        "type": "object",
        "properties": {
            "input": {"description": "What the agent is asked. What is no text is given to it as JSON."},
            "instructions": {"type": "string", "description": "What holds for this node besides the agent's own."},
        },
        "required": ["input"],
        "additionalProperties": False,
    },
    "approval": {
        "type": "object",
        "properties": {
            "question": {"type": "string", "description": "What a person has to decide, in full."},
            "choices": {"type": "array", "items": {"type": "string"}, "description": "The possible answers, if few."},
            "show": {"description": "What the person has to see for it; shown below the question."},
        },
        "required": ["question"],
        "additionalProperties": False,
    },
}
"""The parameters of the nodes that are no tools."""


class WorkflowNode(Value):
    """One thing to do."""

    id: NodeId
    kind: NodeKind
    ref: str = ""
    """A registered tool's name, or an agent's."""
    title: str = ""
    inputs: JsonDict = {}
    """Literal values by parameter name."""


class WorkflowEdge(Value):
    """One value that goes from a node, or from outside, into a parameter of another."""

    source: str
    """A node's id, or `$input`."""
    source_output: str = RESULT
    """`result`, or a dotted path below it; of `$input`, the input's name."""
    target: str
    target_input: str


class WorkflowOutput(Value):
    """What a run gives back under one name."""

    node: str
    path: str = RESULT


class WorkflowGraph(Value):
    """The graph in its JSON form, `schema` and `version` first."""

    model_config = ConfigDict(validate_by_alias=True, validate_by_name=True, serialize_by_alias=True)

    schema_name: Literal["wakeful.workflow"] = Field(default="wakeful.workflow", alias="schema")
    version: Literal[1] = 1
    id: str | None = None
    """Set when it is saved."""
    name: str = Field(min_length=1, max_length=128)
    description: str = ""
    inputs: JsonDict = {}
    """JSON Schema properties of the workflow's own inputs."""
    required_inputs: tuple[str, ...] = ()
    nodes: tuple[WorkflowNode, ...]
    edges: tuple[WorkflowEdge, ...] = ()
    outputs: dict[str, WorkflowOutput] = {}

    def node(self, node_id: str) -> WorkflowNode:
        """The node of that id. Raises KeyError."""
        for node in self.nodes:
            if node.id == node_id:
                return node
        raise KeyError(node_id)

    def as_json(self) -> dict[str, Any]:
        """As it stands in a file."""
        return self.model_dump(mode="json", exclude_none=True)


class WorkflowRun(Value):
    """What one run is about: its own copy of the graph, and its inputs, complete."""

    graph: WorkflowGraph
    inputs: JsonDict = {}
    revision: int | None = None
    """Of the saved workflow the graph is; None: it was not saved."""


class NodeType(Value):
    """What a node may refer to."""

    kind: NodeKind
    ref: str
    description: str = ""
    input_schema: JsonDict
    output_schema: JsonDict | None = None
    """None: nobody says what its result looks like."""


class GraphProblem(Value):
    """One thing that is wrong with a graph, and where."""

    code: GraphCode
    path: str
    """As one would write it in code: `edges[2].target_input`; empty for the graph as a whole."""
    message: str
    nodes: tuple[str, ...] = ()
    """Of a cycle: its nodes, in its direction."""

    def __str__(self) -> str:
        return f"{self.code} at {self.path}: {self.message}" if self.path else f"{self.code}: {self.message}"


class SavedWorkflow(Value):
    """A revision that is kept."""

    workflow_id: str
    revision: int
    name: str
    graph: WorkflowGraph
    created_at: int
    """Microseconds since the epoch."""

    @property
    def reference(self) -> "WorkflowReference":
        return WorkflowReference(
            workflow_id=self.workflow_id,
            revision=self.revision,
            name=self.name,
            node_count=len(self.graph.nodes),
            edge_count=len(self.graph.edges),
        )


class WorkflowReference(Value):
    """What `build_workflow` gives back: the graph itself is read by it."""

    workflow_id: str
    revision: int
    name: str
    node_count: int
    edge_count: int


class NodeError(Value):
    """Why a node did not succeed."""

    kind: str
    """Of a call, its error's; `dependency_failed`: it was skipped; `unresolved_input`: a path led nowhere."""
    message: str


class WorkflowNodeResult(Value):
    """What became of one node."""

    id: str
    status: NodeStatus
    output: JsonAny = None
    error: NodeError | None = None


class WorkflowRunResult(Value):
    """What a run came to: one entry a node, in topological order."""

    workflow_id: str | None
    revision: int | None
    status: RunStatus
    nodes: tuple[WorkflowNodeResult, ...]
    outputs: JsonDict = {}
    """Of the names whose node succeeded."""
    lost_outputs: dict[str, NodeError] = {}
    """Names whose node succeeded without what was promised under them."""
