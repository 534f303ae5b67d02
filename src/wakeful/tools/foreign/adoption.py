"""Recognising a tool of another framework, and the tool of ours that it becomes.

The schema and the words are taken over. The effect is what the caller says, and irreversible when nothing is said: no
framework's object tells what a repeat would do. A failure arrives as a failure, whatever the framework makes of it.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any, TypeAlias

from wakeful.contracts.errors import InvalidConfig
from wakeful.contracts.tools import ToolDeclaration
from wakeful.tools.call_runner import CallHandle, begin
from wakeful.tools.context import RunContext
from wakeful.tools.options import CheckedOptions, check_content
from wakeful.tools.proposal import ProposedCall
from wakeful.tools.tool import DeclaredTool, checked_name

Call: TypeAlias = Callable[[RunContext[Any], dict[str, Any]], Awaitable[Any]]
PEERS = (
    ("langchain_core.tools", "BaseTool", "langchain"),
    ("pydantic_ai.tools", "Tool", "pydantic_ai"),
    ("agents.tool", "FunctionTool", "openai_agents"),
    ("claude_agent_sdk", "SdkMcpTool", "claude_sdk"),
)
"""The module a class comes from (or is below), its name, and who takes its objects over."""


@dataclass(frozen=True, slots=True)
class AdoptedTool:
    """What is taken over of an object."""

    name: str
    description: str
    input_schema: dict[str, Any]
    call: Call


class ForeignTool(DeclaredTool):
    """A tool of another framework."""

    def __init__(self, adopted: AdoptedTool, options: CheckedOptions) -> None:
        for lost, option in ((options.bind, "bind=..."), (options.external, "external=True")):
            if lost:
                raise InvalidConfig(
                    f"{adopted.name} is a tool of another framework, which cannot be held to {option}",
                    "give tool() the function behind it instead",
                )
        self._call = adopted.call
        self._approval, self._approval_expires = options.approval, options.approval_expires
        self._declaration = ToolDeclaration(
            name=checked_name(options.name if options.name is not None else adopted.name),
            description=options.description if options.description is not None else adopted.description,
            input_schema=adopted.input_schema,
            effect=options.effect,
            timeout=options.timeout,
            retries=options.retries,
            locks=options.locks,
            parallel_safe=not options.writes,
            reads_private=options.reads_private,
            changes_state=options.changes_state,
            leaves_machine=options.leaves_machine,
            untrusted=options.untrusted,
            content=check_content(adopted.name, adopted.input_schema, options.content),
            child_safe=options.child_safe,
            on_failure=options.on_failure,
            interrupt_behavior=options.interrupt_behavior,
            permission_class=options.permission_class,
            duplicate_policy=options.duplicate_policy,
        )

    @property
    def approval(self) -> bool | Callable[[ProposedCall], bool | str]:
        return self._approval

    @property
    def approval_expires(self) -> float | None:
        return self._approval_expires

    def start(self, ctx: RunContext[object], arguments: dict[str, Any]) -> CallHandle:
        return begin(self._call, True, (ctx, arguments), {})


def adopt(given: Any, options: CheckedOptions) -> ForeignTool | None:
    """The tool that an object of another framework becomes; None for anything else. Raises InvalidConfig."""
    for kind in type(given).__mro__:
        for module, name, ours in PEERS:
            if kind.__name__.partition("[")[0] == name and (kind.__module__ + ".").startswith(module + "."):
                taken: AdoptedTool = import_module(f"wakeful.tools.foreign.{ours}").take(given)
                if taken.input_schema.get("type") != "object":
                    raise InvalidConfig(f"{taken.name}: its schema does not describe an object", "wrap its function")
                return ForeignTool(taken, options)
    return None


def refuse(name: str, what: str) -> InvalidConfig:
    """For something the object relies on that would be lost."""
    return InvalidConfig(f"{name} has {what}, which would be lost here", "give tool() the function behind it instead")
