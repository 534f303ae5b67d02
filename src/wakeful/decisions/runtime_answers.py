"""The tools that the runtime answers itself: no code stands behind them, their declarations are all there is.

The explicit list of the loop. A call of one of these passes the same gate as any other; then, where another tool would
be run, the loop does what is asked: makes a child, ends a level, reads and writes notes of the turn.
"""

from typing import Any, Final

from wakeful.contracts.tools import PermissionClass, ToolDeclaration
from wakeful.decisions.answer_shapes import as_object
from wakeful.decisions.waking.wait_tools import WAIT_TOOLS, is_wait_tool

RUN_SUBTASK: Final = "run_subtask"
FINISH: Final = "finish_subtask"
SPAWN_SELF: Final = "spawn_self"
SPAWN_PARALLEL: Final = "spawn_parallel"
SCRATCH_LIST, SCRATCH_READ, SCRATCH_WRITE = "scratch_list", "scratch_read", "scratch_write"
DELEGATING: Final = frozenset({RUN_SUBTASK, SPAWN_SELF, SPAWN_PARALLEL})
SCRATCH: Final = frozenset({SCRATCH_LIST, SCRATCH_READ, SCRATCH_WRITE})
SPAWN_AGENT: Final = "spawn_agent"
ANSWERED_HERE: Final = DELEGATING | SCRATCH | WAIT_TOOLS | {FINISH, SPAWN_AGENT}
"""The list."""


def is_answered_here(declaration: ToolDeclaration) -> bool:
    """Is a call of it answered by the loop? A program may have a tool of its own called `sleep`."""
    name = declaration.name
    if name == SPAWN_AGENT:
        return declaration.runtime_owner == "subagent"
    return is_wait_tool(declaration) if name in WAIT_TOOLS else name in ANSWERED_HERE


_SCHEMA = {
    "type": "object",
    "description": "JSON Schema that the result has to fit. Leave it out for a result in words.",
}
_NAMES = {
    "type": "array",
    "items": {"type": "string"},
    "description": "The only tools it may have, by name. Leave it out for all of yours.",
}
_CHILD: dict[str, Any] = {
    "task": {"type": "string", "description": "What it is to do: it sees this, and nothing of the conversation."},
    "additional_context": {"type": "string", "description": "What it has to know for that."},
    "tool_names": _NAMES,
    "output_schema": _SCHEMA,
}


def _declared(
    name: str,
    description: str,
    properties: dict[str, Any],
    required: list[str],
    permission: PermissionClass = "subagent",
) -> ToolDeclaration:
    schema = {"type": "object", "properties": properties, "required": required, "additionalProperties": False}
    return ToolDeclaration(
        name=name,
        description=description,
        input_schema=schema,
        effect="pure",
        permission_class=permission,
        runtime_owner="subagent",
        interrupt_behavior="cancel",
    )


SUBTASK_TOOL = _declared(
    RUN_SUBTASK,
    "Hand one self-contained piece of work to a subtask and get its result. Several calls in one reply run side by "
    "side; they cannot see each other's results.",
    {
        "title": {"type": "string", "minLength": 1, "description": "A short label, for people."},
        "instructions": {
            "type": "string",
            "minLength": 1,
            "description": "What it is to do: it sees this, and nothing of the conversation.",
        },
        "tools": _NAMES,
        "output_schema": _SCHEMA,
    },
    ["title", "instructions"],
)
SPAWN_SELF_TOOL = _declared(
    SPAWN_SELF, "Have a copy of yourself carry out one task, with a conversation of its own.", _CHILD, ["task"]
)
SCRATCH_TOOLS = (
    _declared(SCRATCH_LIST, "The keys of the notes of this piece of work.", {}, [], "knowledge"),
    _declared(
        SCRATCH_READ,
        "Read a note of this piece of work. Results of subtasks are under task:<id>.",
        {"key": {"type": "string"}},
        ["key"],
        "knowledge",
    ),
    _declared(
        SCRATCH_WRITE,
        "Write a note that you, your subtasks and whoever split this work off can read later in this piece of work.",
        {"key": {"type": "string", "minLength": 1, "maxLength": 200}, "value": {}},
        ["key", "value"],
        "knowledge",
    ),
)


def parallel_declaration(most: int) -> ToolDeclaration:
    """`spawn_parallel`, for an agent that allows so many jobs in one call."""
    job = {**_CHILD, "system_prompt": {"type": "string", "description": "How this one is to see itself."}}
    jobs = {
        "type": "array",
        "minItems": 1,
        "items": {"type": "object", "properties": job, "required": ["task"], "additionalProperties": False},
        "description": f"At most {most}.",
    }
    return _declared(
        SPAWN_PARALLEL,
        f"Have up to {most} copies of yourself carry out independent tasks side by side; one result each, in order.",
        {"jobs": jobs},
        ["jobs"],
    )


def finish_declaration(schema: dict[str, Any]) -> ToolDeclaration:
    """`finish_subtask`, for a child whose result has to fit this schema; one that is no object is its `result`."""
    return ToolDeclaration(
        name=FINISH,
        description="End this task with its result.",
        input_schema=as_object(schema),
        effect="pure",
        permission_class="subagent",
        runtime_owner="subagent",
        interrupt_behavior="cancel",
    )
