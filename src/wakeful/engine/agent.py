"""An agent: a name, a model, instructions and tools, held together and never changed.

Everything is checked when the agent is made, so that what can be wrong with it is wrong before anything runs.
"""

import inspect
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from functools import cached_property
from os import PathLike
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypedDict, overload

from typing_extensions import TypeVar, Unpack

from wakeful.contracts.approvals import DEFAULT_EXPIRY_SECONDS
from wakeful.contracts.budgets import Budget, SpendWindow
from wakeful.contracts.controls import (
    CONTROLS,
    AgentControls,
    CompactionPolicy,
    checked_compaction,
    checked_flag,
    is_model_reference,
)
from wakeful.contracts.errors import InvalidConfig, NotBuiltYet
from wakeful.contracts.model_settings import ModelSettings, checked_settings, owner_of
from wakeful.contracts.policies import GatePolicy, ToolPolicy
from wakeful.contracts.setting_names import EXTRAS
from wakeful.contracts.tools import ToolDeclaration
from wakeful.contracts.values import JsonValue
from wakeful.decisions.injected_fields import check_collisions
from wakeful.decisions.tool_choice import choosable
from wakeful.engine import agent_checks, agent_data
from wakeful.engine.agent_tool import AgentTool
from wakeful.engine.output_type import OutputType
from wakeful.sandbox.settings import SandboxSettings
from wakeful.tools import parameters
from wakeful.tools.context import RunContext
from wakeful.tools.function import Tool
from wakeful.tools.local.names import Profile
from wakeful.tools.local.source import LocalTools
from wakeful.tools.source import ToolSource

if TYPE_CHECKING:
    from wakeful.ports import Collection, Model

Deps_contra = TypeVar("Deps_contra", contravariant=True, default=None)
Out_co = TypeVar("Out_co", covariant=True, default=str)
Needed = TypeVar("Needed")
Answer = TypeVar("Answer")
ModelChoice: TypeAlias = "str | Model"
"""`provider:model`, or a model object."""

_SAME = (
    "name",
    "model",
    "instructions",
    "deps_type",
    "output_type",
    "deps",
    "settings",
    "fallbacks",
    "budget",
    "spend_windows",
    "hooks",
    "skills",
    "profile",
    "workspace",
    "sandbox",
    "policy",
    "approval_expiry",
    "max_steps",
    "subtasks",
    "collections",
    "compaction",
    *CONTROLS,
)
"""What `changed` takes over; tools and their sources besides."""
_NAME = re.compile(r"^[A-Za-z][A-Za-z0-9_.-]{0,127}$")


class AgentOptions(TypedDict, total=False):
    """The keywords every spelling of `Agent(...)` shares, for type checkers; `__init__` says their defaults."""

    settings: ModelSettings | Mapping[str, Any] | None
    fallbacks: Sequence[ModelChoice]
    budget: Budget | None
    spend_windows: Sequence[SpendWindow]
    hooks: Sequence[Any]
    skills: "Sequence[str | PathLike[str]]"
    profile: Profile | None
    workspace: "str | PathLike[str] | None"
    sandbox: "SandboxSettings | Mapping[str, Any] | None"
    policy: "ToolPolicy | GatePolicy | None"
    approval_expiry: float
    max_steps: int | None
    planning_enabled: bool
    planning_model: str | None
    planning_instructions: str
    budget_awareness: str | None
    hitl_tools: Sequence[str]
    emit_mcp_progress: bool
    injected_tool_args: Mapping[str, str]
    allow_parallel_subagents: bool
    max_parallel_subagents: int
    subtasks: bool
    collections: "Sequence[str | Collection]"
    compaction: "CompactionPolicy | Mapping[str, Any] | None"


class Agent(Generic[Deps_contra, Out_co]):
    """What runs. `Agent[Shop, Answer]` needs a Shop as deps and answers with an Answer.

    With `deps=` (a function from the stored context to the deps) nothing has to be supplied: `Agent[None, ...]`.
    """

    name: str
    model: ModelChoice
    instructions: str | Callable[[RunContext[Any]], str | Awaitable[str]]
    tools: tuple[Tool[Any], ...]
    deps_type: Any
    output_type: Any
    deps: Callable[[Mapping[str, JsonValue]], Any] | None
    settings: ModelSettings
    fallbacks: tuple[ModelChoice, ...]
    budget: Budget | None
    """What one run may use."""
    spend_windows: tuple[SpendWindow, ...]
    """What all its runs together may spend in an hour, a day, a month."""
    sources: tuple[ToolSource, ...]
    """Where further tools come from when a turn is taken up."""
    hooks: tuple[Any, ...]
    skills: tuple[str, ...]
    """Folders in which skills are looked for besides the usual ones."""
    profile: Profile | None
    workspace: Path | None
    sandbox: SandboxSettings
    """What commands are held to."""
    policy: GatePolicy | None
    approval_expiry: float
    """Seconds until nobody having decided is a decision."""
    max_steps: int | None
    """Rounds of one level; None: as many as the budget's profile says."""
    subtasks: bool
    """It may split its work: `run_subtask`, `spawn_self` and notes of the turn."""
    collections: "tuple[str | Collection, ...]"
    """Sets of texts that it may search, by name."""
    compaction: CompactionPolicy
    controls: AgentControls
    """The nine fields below, as they were checked."""
    planning_enabled: bool
    planning_model: str | None
    planning_instructions: str
    budget_awareness: str | None
    hitl_tools: tuple[str, ...]
    emit_mcp_progress: bool
    injected_tool_args: Mapping[str, str]
    allow_parallel_subagents: bool
    max_parallel_subagents: int

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
        **options: Unpack[AgentOptions],
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
        **options: Unpack[AgentOptions],
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
        **options: Unpack[AgentOptions],
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
        **options: Unpack[AgentOptions],
    ) -> None: ...
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
        settings: ModelSettings | Mapping[str, Any] | None = None,
        fallbacks: Sequence[ModelChoice] = (),
        budget: Budget | None = None,
        spend_windows: Sequence[SpendWindow] = (),
        hooks: Sequence[Any] = (),
        skills: "Sequence[str | PathLike[str]]" = (),
        profile: Profile | None = None,
        workspace: "str | PathLike[str] | None" = None,
        sandbox: SandboxSettings | Mapping[str, Any] | None = None,
        policy: ToolPolicy | GatePolicy | None = None,
        approval_expiry: float = DEFAULT_EXPIRY_SECONDS,
        max_steps: int | None = None,
        planning_enabled: bool = False,
        planning_model: str | None = None,
        planning_instructions: str = "",
        budget_awareness: str | None = None,
        hitl_tools: Sequence[str] = (),
        emit_mcp_progress: bool = True,
        injected_tool_args: Mapping[str, str] = MappingProxyType({}),
        allow_parallel_subagents: bool = False,
        max_parallel_subagents: int = 3,
        subtasks: bool = False,
        collections: "Sequence[str | Collection]" = (),
        compaction: CompactionPolicy | Mapping[str, Any] | None = None,
        **unknown: Any,
    ) -> None:
        for field in unknown:
            raise agent_data.UnknownField(field, "Agent()", agent_data.ARGUMENTS)
        if not _is_name(name):
            raise InvalidConfig(
                f"{name!r} cannot be an agent's name", "use letters, digits, _ . and -, a letter first, 128 at most"
            )
        who = f"Agent {name!r}"
        if not isinstance(instructions, str) and not callable(instructions):
            raise InvalidConfig(f"{who}: instructions are a string or a function, not {instructions!r}")
        if deps is not None and not callable(deps):
            raise InvalidConfig(
                f"{who}: deps= takes a function that makes them from the run's context, not {deps!r}",
                "give the deps themselves to run(..., deps=...)",
            )
        if budget is not None and not isinstance(budget, Budget):
            raise InvalidConfig(f"{who}: budget={budget!r} is not a Budget", "write Budget(model_calls=8, seconds=60)")
        if max_steps is not None and not _is_positive(max_steps):
            raise InvalidConfig(f"{who}: max_steps={max_steps!r}", "give a whole number, at least 1, or None")
        own, sources = _tools(who, tools)
        root = agent_checks.checked_workspace(who, workspace)
        chosen = agent_checks.checked_profile(who, profile, root)
        held = agent_checks.checked_sandbox(who, sandbox)
        if root is not None and chosen != "chat":
            sources = (LocalTools(root, chosen, held), *sources)
        controls = AgentControls(
            who,
            planning_enabled=planning_enabled,
            planning_model=planning_model,
            planning_instructions=planning_instructions,
            budget_awareness=budget_awareness,
            hitl_tools=hitl_tools,
            emit_mcp_progress=emit_mcp_progress,
            injected_tool_args=injected_tool_args,
            allow_parallel_subagents=allow_parallel_subagents,
            max_parallel_subagents=max_parallel_subagents,
        )
        splits = checked_flag(f"{who}: subtasks", subtasks)
        given = agent_checks.tools_of_the_runtime(
            subtasks=splits, allow_parallel_subagents=controls.allow_parallel_subagents
        )
        agent_checks.check_hitl(who, controls.hitl_tools, own, given, has_sources=bool(sources))
        chosen_settings = checked_settings(who, settings)
        if not sources:  # what a source has is known when a turn is taken up, and checked then
            choosable(who, chosen_settings.tool_choice, [*(tool.name for tool in own), *given])
        fields: dict[str, Any] = {
            **dict(controls),
            "controls": controls,
            "name": name,
            "model": _model(who, "model", model),
            "instructions": instructions,
            "tools": own,
            "sources": sources,
            "deps_type": deps_type,
            "output_type": output_type,
            "deps": deps,
            "settings": chosen_settings,
            "fallbacks": tuple(_model(who, "fallbacks", choice) for choice in _listed(who, "fallbacks", fallbacks)),
            "budget": budget,
            "spend_windows": agent_checks.checked_windows(who, spend_windows),
            "hooks": agent_checks.checked_hooks(who, hooks),
            "skills": agent_checks.checked_skills(who, skills),
            "profile": chosen,
            "workspace": root,
            "sandbox": held,
            "policy": agent_checks.checked_policy(who, policy),
            "approval_expiry": agent_checks.checked_expiry(who, approval_expiry),
            "max_steps": max_steps,
            "subtasks": splits,
            "collections": agent_checks.checked_collections(who, collections),
            "compaction": checked_compaction(who, compaction),
            "_output": OutputType(output_type),
        }
        self.__dict__.update(fields)
        check_collisions(who, self.injected_tool_args, self.declarations)
        # Both are asked for here so that a type no model can be told about is refused now and not in a run.
        _ = self.declarations, self.output_schema

    if not TYPE_CHECKING:  # for a type checker these would allow every attribute

        def __setattr__(self, name: str, value: Any) -> None:
            raise AttributeError(f"an Agent does not change: make another one with {name}={value!r}")

        def __delattr__(self, name: str) -> None:
            raise AttributeError(f"an Agent does not change: {name} cannot be deleted")

    def __repr__(self) -> str:
        model = self.model if isinstance(self.model, str) else self.model.ref
        return f"Agent({self.name!r}, {model!r}, tools={[tool.name for tool in self.tools]})"

    @cached_property
    def declarations(self) -> tuple[ToolDeclaration, ...]:
        """What the model is told about each tool, in the order they were given."""
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
        """The sources that were given as tools, without the one that follows from the workspace."""
        return tuple(source for source in self.sources if not isinstance(source, LocalTools))

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

    def changed(self, **changes: Any) -> "Agent[Any, Any]":
        """Another agent: this one with some of its arguments given anew."""
        make: Any = Agent
        same = {name: getattr(self, name) for name in _SAME if name not in changes}
        same.setdefault("tools", (*self.tools, *self.given_sources))
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
        return agent_data.to_dict(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], tools: Iterable[Tool[Any]] = ()) -> "Agent[Any, str]":
        """An agent from its configuration. The tools it names are taken from `tools`; nothing is imported."""
        return Agent(**agent_data.arguments(data, tuple(tools)))

    def to_file(self, path: str | Path) -> None:
        """Write the configuration: YAML, or JSON when the name ends in .json."""
        agent_data.write(Path(path), self.to_dict())

    @classmethod
    def from_file(cls, path: str | Path, tools: Iterable[Tool[Any]] = ()) -> "Agent[Any, str]":
        """An agent from a JSON or YAML file."""
        return cls.from_dict(agent_data.read(Path(path)), tools)


def _is_name(value: object) -> bool:
    return isinstance(value, str) and _NAME.match(value) is not None


def _is_positive(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1


def _model(who: str, field: str, choice: Any) -> Any:
    if isinstance(choice, str):
        if not is_model_reference(choice):
            raise InvalidConfig(
                f"{who}: {field}={choice!r} does not name a provider", "write provider:model, such as scripted:demo"
            )
        return choice
    if not callable(getattr(choice, "respond", None)):
        raise InvalidConfig(f"{who}: {field}={choice!r} is not a model", "give provider:model or a model object")
    return choice


def _listed(who: str, field: str, values: Any) -> tuple[Any, ...]:
    if isinstance(values, str | bytes) or not isinstance(values, Iterable):
        raise InvalidConfig(f"{who}: {field}={values!r}", f"give a list: {field}=[...]")
    return tuple(values)


def _tools(who: str, tools: Any) -> tuple[tuple[Tool[Any], ...], tuple[ToolSource, ...]]:
    """What was given as tools: tools, and where tools come from."""
    listed = _listed(who, "tools", tools)
    sources = tuple(each for each in listed if isinstance(each, ToolSource))
    own = tuple(each for each in listed if not isinstance(each, ToolSource))
    seen: set[str] = set()
    for tool in own:
        if not isinstance(tool, Tool):
            called = getattr(tool, "__name__", None) or repr(tool)
            raise InvalidConfig(
                f"{who}: {called} in tools= is not a tool",
                f'decorate it with @tool(effect=...), or give tool({called}, effect="pure")'
                if callable(tool)
                else "give tools made by @tool(...)",
            )
        if tool.name in seen:
            raise InvalidConfig(
                f"{who}: two tools are called {tool.name!r}", "give one of them another name: @tool(name=...)"
            )
        if tool.declaration.effect == "probeable" and not tool.has_probe:
            raise InvalidConfig(
                f'{who}: {tool.name} says effect="probeable" and has no probe', f"add one with @{tool.name}.probe"
            )
        seen.add(tool.name)
    return own, sources


def _reads_deps(instructions: Callable[..., Any]) -> bool:
    given = list(inspect.signature(instructions).parameters.values())
    scope = getattr(parameters.function_of(instructions), "__globals__", {})
    return bool(given) and bool(parameters.context_deps(given[0], scope, {}))


def _deps_of(instructions: Callable[..., Any]) -> Any:
    if not _reads_deps(instructions):
        return None
    scope = getattr(parameters.function_of(instructions), "__globals__", {})
    return parameters.deps_type_of(next(iter(inspect.signature(instructions).parameters.values())), scope, {})
