"""The tool `use_workspace`, as a model is shown it. What a call of it does is in `engine.prepare.workspace`.

A workspace that was given to the agent is used without a question; any other folder needs a person.
"""

from collections.abc import Awaitable, Callable
from typing import Any, Final, TypeAlias

from wakeful.contracts.tools import ToolDeclaration
from wakeful.contracts.workspaces import MAX_LABEL, USE_WORKSPACE
from wakeful.tools.call_runner import CallHandle, begin
from wakeful.tools.context import RunContext
from wakeful.tools.proposal import ProposedCall
from wakeful.tools.tool import DeclaredTool

Answer: TypeAlias = Callable[[RunContext[Any], dict[str, Any]], Awaitable[Any]]

DECLARATION: Final = ToolDeclaration(
    name=USE_WORKSPACE,
    description=(
        "Work in another workspace from the next call on: file tools and commands follow. Give exactly one of path and "
        "workspace_id; workspace_id 'agent_home' is your own folder, which is always there. mode 'isolated' works in a "
        "copy of a git repository on a branch of its own, so that nothing you do touches the main one until somebody "
        "merges it; leaving it keeps whatever is not merged. A folder that was not given to you needs an approval."
    ),
    input_schema={
        "type": "object",
        "properties": {
            "path": {"type": "string", "minLength": 1, "maxLength": 4096, "description": "A folder."},
            "workspace_id": {"type": "string", "minLength": 1, "maxLength": 200, "description": "One that you have."},
            "mode": {"enum": ["direct", "isolated"], "description": "Without it: direct."},
            "cwd": {
                "type": "string",
                "minLength": 1,
                "maxLength": 4096,
                "description": "A folder inside, where commands begin. Without it: the path, or the top.",
            },
            "isolation_label": {
                "type": "string",
                "maxLength": MAX_LABEL,
                "description": "A word for the branch of an isolated one, such as 'fix-login'.",
            },
        },
        "additionalProperties": False,
    },
    effect="keyed",
    timeout=660,
    parallel_safe=False,
    changes_state=False,  # it says where the agent works, and does nothing there
    child_safe=False,
    permission_class="knowledge",
    categories=("local",),
)


class WorkspaceTool(DeclaredTool):
    """The tool, with what carries out its calls in a turn."""

    _declaration = DECLARATION

    def __init__(self, answer: Answer, asks: Callable[[ProposedCall], bool | str]) -> None:
        self._answer = answer
        self._asks = asks

    @property
    def approval(self) -> Callable[[ProposedCall], bool | str]:
        return self._asks

    def start(self, ctx: RunContext[Any], arguments: dict[str, Any]) -> CallHandle:
        return begin(self._answer, True, (ctx, arguments), {})
