"""An agent: a name, a model, instructions and tools, held together and never changed.

Everything is checked when the agent is made, so that what can be wrong with it is wrong before anything runs.
"""

import inspect
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, overload

from typing_extensions import TypeVar, Unpack

from wakeful.contracts.errors import InvalidConfig, NotBuiltYet, inside
from wakeful.contracts.model_settings import owner_of
from wakeful.contracts.setting_names import EXTRAS
from wakeful.contracts.tools import ToolDeclaration
from wakeful.contracts.values import JsonValue
from wakeful.contracts.workflows import AGENT_CALL
from wakeful.decisions.injected_fields import check_collisions
from wakeful.decisions.tool_choice import choosable
from wakeful.engine import agent_checks, agent_data
from wakeful.engine.agent_checks import ModelChoice, NamedFolder
from wakeful.engine.agent_file import read_agent_file, write_agent_file
from wakeful.engine.agent_options import OPTIONS, AgentKeywords, AgentOptions, checked_options
from wakeful.engine.output_type import OutputType
from wakeful.tools import parameters
from wakeful.tools.call_runner import CallHandle
from wakeful.tools.context import RunContext
from wakeful.tools.local.source import LocalTools, TaskTools
from wakeful.tools.source import ToolSource
from wakeful.tools.tool import DeclaredTool, Tool

Deps_contra = TypeVar("Deps_contra", contravariant=True, default=None)
Out_co = TypeVar("Out_co", covariant=True, default=str)
Needed = TypeVar("Needed")
Answer = TypeVar("Answer")
Init = TypeVar("Init", bound=Callable[..., None])

_SAME = ("name", "model", "instructions", "deps_type", "output_type", "deps", *OPTIONS)
"""The fields that `changed` copies; tools and their sources are copied, too."""
NAME = r"^[A-Za-z][A-Za-z0-9_.-]{0,127}$"
TASK = {
    "type": "object",
    "properties": {
        "input": {"type": "string", "description": "The task, in full: it sees nothing of this conversation."}
    },
    "required": ["input"],
    "additionalProperties": False,
}
"""The arguments of a call of an agent."""


class AgentChanges(AgentKeywords, total=False):
    """The keywords of `changed`."""

    name: str
    model: ModelChoice
    instructions: str | Callable[[RunContext[Any]], str | Awaitable[str]]
    tools: Sequence[Tool[Any] | ToolSource]
    deps_type: Any
    output_type: Any
    deps: Callable[[Mapping[str, JsonValue]], Any] | None


def _with_keywords(init: Init) -> Init:
    """Tells `help` and editors that work on live objects each option by name."""
    named = inspect.signature(init)
    *own, rest = named.parameters.values()
    options = [
        inspect.Parameter(name, rest.KEYWORD_ONLY, default=OPTIONS[name].default, annotation=kind)
        for name, kind in AgentKeywords.__annotations__.items()
    ]
    vars(init)["__signature__"] = named.replace(parameters=[*own, *options, rest])
    return init


class Agent(AgentOptions, Generic[Deps_contra, Out_co]):
    """A model with instructions and tools. `Agent[Shop, Answer]` needs a Shop as deps and answers with an Answer.

    With `deps=` (a function from the stored context to the deps) nothing has to be supplied: `Agent[None, ...]`.
    """

    name: str
    model: ModelChoice
    instructions: str | Callable[[RunContext[Any]], str | Awaitable[str]]
    tools: tuple[Tool[Any], ...]
    sources: tuple[ToolSource, ...]
    """Where further tools come from when a turn is taken up."""
    deps_type: Any
    output_type: Any
    deps: Callable[[Mapping[str, JsonValue]], Any] | None

    @overload
    def __init__(
        self: "Agent[None, str]",
        name: str,
        model: ModelChoice,
        instructions: str | Callable[[RunContext[Needed]], str | Awaitable[str]] = "",
        tools: Sequence[Tool[Needed] | ToolSource] = (),
        *,
        deps: Callable[[Mapping[str, JsonValue]], Needed],
        deps_type: type[Needed] | None = None,
        **options: Unpack[AgentKeywords],
    ) -> None: ...
    @overload
    def __init__(
        self: "Agent[None, Answer]",
        name: str,
        model: ModelChoice,
        instructions: str | Callable[[RunContext[Needed]], str | Awaitable[str]] = "",
        tools: Sequence[Tool[Needed] | ToolSource] = (),
        *,
        deps: Callable[[Mapping[str, JsonValue]], Needed],
        deps_type: type[Needed] | None = None,
        output_type: type[Answer],
        **options: Unpack[AgentKeywords],
    ) -> None: ...
    @overload
    def __init__(
        self: "Agent[Deps_contra, str]",
        name: str,
        model: ModelChoice,
        instructions: str | Callable[[RunContext[Deps_contra]], str | Awaitable[str]] = "",
        tools: Sequence[Tool[Deps_contra] | ToolSource] = (),
        *,
        deps: None = None,
        deps_type: type[Deps_contra] | None = None,
        **options: Unpack[AgentKeywords],
    ) -> None: ...
    @overload
    def __init__(
        self: "Agent[Deps_contra, Answer]",
        name: str,
        model: ModelChoice,
        instructions: str | Callable[[RunContext[Deps_contra]], str | Awaitable[str]] = "",
        tools: Sequence[Tool[Deps_contra] | ToolSource] = (),
        *,
        deps: None = None,
        deps_type: type[Deps_contra] | None = None,
        output_type: type[Answer],
        **options: Unpack[AgentKeywords],
    ) -> None: ...
    @_with_keywords
    def __init__(
        self,
        name: str,
        model: ModelChoice,
        instructions: Any = "",
        tools: Sequence[Tool[Any] | ToolSource] = (),
        *,
        deps_type: Any = None,
        output_type: Any = str,
        deps: Any = None,
        **unknown: Any,
    ) -> None:
        for field in unknown:
            if field not in OPTIONS:
                raise agent_data.UnknownField(field, "Agent()", agent_data.ARGUMENTS)
        if not _is_name(name):
            raise InvalidConfig(
                f"{name!r} cannot be an agent's name", "use letters, digits, _ . and -, a letter first, 128 at most"
            ).within("name")
        who = f"Agent {name!r}"
        if not isinstance(instructions, str) and not callable(instructions):
            raise InvalidConfig(f"{who}: instructions are a string or a function, not {instructions!r}")
        if deps is not None and not callable(deps):
            raise InvalidConfig(
                f"{who}: deps= takes a function that makes them from the run's context, not {deps!r}",
                "give the deps themselves to run(..., deps=...)",
            )
        own, sources = agent_checks.checked_tools(who, tools)
        options = checked_options(who, unknown)
        options["profile"] = agent_checks.fitting_profile(who, options["profile"], options["workspace"])
        agent_checks.check_wake_checks(who, options["wake"], options["profile"])
        with inside("model"):
            named = agent_checks.checked_model(f"{who}: model", model)
        self.__dict__.update(
            options,
            name=name,
            model=named,
            instructions=instructions,
            tools=own,
            deps_type=deps_type,
            output_type=output_type,
            deps=deps,
            _output=OutputType(output_type),
        )
        if self.workspace is not None and self.profile is not None and self.profile != "chat":
            sources = (LocalTools(self.workspace, self.profile, self.sandbox), *sources)
        elif self.spawn is not None:
            sources = (TaskTools(), *sources)
        if self.mcp:
            from wakeful.engine.named_servers import NamedServer  # an agent without servers must not pay for it

            sources = (*sources, *(NamedServer(server, self.workspace) for server in self.mcp))
        self.__dict__["sources"] = sources
        self._check_names(who)

    def _check_names(self, who: str) -> None:
        """Tools that an option names have to be there; of a source they are known, and checked, when a turn begins."""
        given = agent_checks.tools_of_the_runtime(
            subtasks=self.subtasks,
            allow_parallel_subagents=self.allow_parallel_subagents,
            work_items=self.work_items,
            memory=self.memory,
            spawn=self.spawn,
        )
        agent_checks.check_hitl(who, self.hitl_tools, self.tools, given, has_sources=bool(self.sources))
        if not self.sources:
            with inside("settings", "tool_choice"):
                choosable(who, self.settings.tool_choice, [*(tool.name for tool in self.tools), *given])
        with inside("injected_tool_args"):
            check_collisions(who, self.injected_tool_args, self.declarations)
        # Both are asked for here so that a type no model can be told about is refused now and not in a run.
        _ = self.declarations, self.output_schema

    if not TYPE_CHECKING:  # for a type checker these would allow every attribute

        def __setattr__(self, name: str, value: Any) -> None:
            raise AttributeError(f"an Agent is immutable: make another one with {name}={value!r}")

        def __delattr__(self, name: str) -> None:
            raise AttributeError(f"an Agent is immutable: {name} cannot be deleted")

    def __repr__(self) -> str:
        model = self.model if isinstance(self.model, str) else self.model.ref
        return f"Agent({self.name!r}, {model!r}, tools={[tool.name for tool in self.tools]})"

    @cached_property
    def declarations(self) -> tuple[ToolDeclaration, ...]:
        """The declarations of the tools, as the model gets them, in the order of `tools`."""
        return tuple(tool.declaration for tool in self.tools)

    @cached_property
    def needs_deps(self) -> bool:
        """Does a tool, or do the instructions, read deps; or did the agent say that it has some?"""
        return self.deps_type not in (None, type(None)) or self.needs_deps_for is not None

    @cached_property
    def needs_deps_for(self) -> str | None:
        """The first thing that reads deps: a tool's name, or `instructions`."""
        for tool in self.tools:
            if tool.needs_deps:
                return tool.name
        return "instructions" if callable(self.instructions) and _reads_deps(self.instructions) else None

    @cached_property
    def deps_types(self) -> tuple[tuple[str, Any], ...]:
        """The types of deps that are known to be read, each with who reads it: the agent, a tool, the instructions."""
        told = _deps_of(self.instructions) if callable(self.instructions) else None
        readers = [("", self.deps_type), *((tool.name, tool.deps_type) for tool in self.tools), ("instructions", told)]
        return tuple((who, wanted) for who, wanted in readers if wanted is not None)

    @property
    def given_sources(self) -> tuple[ToolSource, ...]:
        """The sources that were given as tools, without those that follow from the workspace, `spawn` and `mcp`."""
        named = {f"mcp.{server}" for server in self.mcp}
        return tuple(
            source
            for source in self.sources
            if not isinstance(source, LocalTools | TaskTools) and source.name not in named
        )

    def tool(self, name: str) -> Tool[Any] | None:
        """The tool of that name; the last part of a name is enough where only one tool has it."""
        return agent_data.find_tool(name, self.tools)

    @property
    def output_schema(self) -> dict[str, Any] | None:
        """The JSON Schema of the answer; None when any text will do."""
        schema: dict[str, Any] | None = self.__dict__["_output"].schema
        return schema

    def parse_output(self, text: str) -> Out_co:
        """The model's text as an answer. Raises AnswerRejected (a ValueError) in words for the model."""
        answer: Out_co = self.__dict__["_output"].parse(text)
        return answer

    def changed(self, **changes: Unpack[AgentChanges]) -> "Agent[Any, Any]":
        """Another agent: this one with some of its arguments given anew."""
        make: Any = Agent
        same = {name: getattr(self, name) for name in _SAME if name not in changes}
        same.setdefault("tools", (*self.tools, *self.given_sources))
        if same.get("workspace") is not None:
            same["workspace"] = NamedFolder(self.workspace)  # it was looked at when this agent was made
        if "model" in changes and owner_of(changes["model"]) != owner_of(self.model):
            same["settings"] = self.settings.without(*EXTRAS)  # they were written for the other server
        another: Agent[Any, Any] = make(**{**same, **changes})
        return another

    def as_tool(self, name: str | None = None, description: str | None = None) -> Tool[Deps_contra]:
        """This agent as another agent's tool, `agent/NAME`: it works as a child of the turn that calls it.

        It keeps its own model, instructions, tools, policy and hooks, and shares the turn's budget and deps.
        """
        if self.planning_enabled:
            raise NotBuiltYet(
                f"planning_enabled in an agent that is a tool ({self.name!r})",
                "only the root of a turn plans: give planning_enabled to the agent that calls this one",
            )
        return AgentTool(self, name, description)

    # --- as data -------------------------------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """The configuration as JSON data; tools by name. Raises InvalidConfig, naming what cannot travel."""
        if not isinstance(self.instructions, str):
            raise agent_data.cannot_travel(self.name, "instructions", "they are a function")
        if not isinstance(self.model, str):
            hint = "name it: model='provider:model'"
            raise agent_data.cannot_travel(self.name, "model", "it is a live object", hint)
        if self.deps is not None:
            raise agent_data.cannot_travel(self.name, "deps", "it is a function")
        if self.deps_type is not None and self.needs_deps_for is None:
            # Where a tool reads deps the tool itself says so, wherever it is found again.
            raise agent_data.cannot_travel(self.name, "deps_type", "it is a class and no tool asks for it")
        if self.output_type is not str:
            raise agent_data.cannot_travel(self.name, "output_type", "it is a class")
        for source in self.given_sources:
            raise agent_data.cannot_travel(self.name, "tools", f"{source.name} is a live source of tools")
        return agent_data.written(self.name, self.model, self.instructions, self.tools, self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], tools: Iterable[Tool[Any]] = ()) -> "Agent[Any, str]":
        """An agent from its configuration. The tools it names are taken from `tools`; nothing is imported."""
        return Agent(**agent_data.arguments(data, tuple(tools)))

    def to_file(self, path: str | Path) -> None:
        """Write the configuration: YAML, or JSON when the name ends in .json."""
        write_agent_file(Path(path), self.to_dict())

    @classmethod
    def from_file(cls, path: str | Path, tools: Iterable[Tool[Any]] = ()) -> "Agent[Any, str]":
        """An agent from a JSON or YAML file."""
        return cls.from_dict(read_agent_file(Path(path)).data, tools)


class AgentTool(DeclaredTool):
    """An agent as a tool of another, made by `Agent.as_tool()`. A call of it is a child that works in the same turn.

    The child is the agent itself, with its own model, instructions, tools, policy and hooks; of the turn it has the
    budget and the deps, and the caller's policy holds for it besides its own. It sees its task and nothing of the
    conversation. The loop takes its calls: there is nothing to start.
    """

    def __init__(self, agent: Agent[Any, Any], name: str | None, description: str | None) -> None:
        self.agent = agent
        self._declaration = ToolDeclaration(
            name=name or AGENT_CALL + agent.name,
            description=description or f"Have the agent {agent.name} do something, and get its answer.",
            input_schema=TASK,
            effect="pure",  # as far as the call goes: what the child does has effects of its own
            permission_class="subagent",
            runtime_owner="subagent",
        )

    @property
    def needs_deps(self) -> bool:
        return self.agent.deps is None and self.agent.needs_deps

    def start(self, ctx: RunContext[Any], arguments: dict[str, Any]) -> CallHandle:
        raise AssertionError(f"{self.name} is a child of the turn and is never run by itself")


def _is_name(value: object) -> bool:
    return isinstance(value, str) and re.match(NAME, value) is not None


def _reads_deps(instructions: Callable[..., Any]) -> bool:
    given = list(inspect.signature(instructions).parameters.values())
    scope = getattr(parameters.function_of(instructions), "__globals__", {})
    return bool(given) and bool(parameters.context_deps(given[0], scope, {}))


def _deps_of(instructions: Callable[..., Any]) -> Any:
    if not _reads_deps(instructions):
        return None
    scope = getattr(parameters.function_of(instructions), "__globals__", {})
    return parameters.deps_type_of(next(iter(inspect.signature(instructions).parameters.values())), scope, {})
