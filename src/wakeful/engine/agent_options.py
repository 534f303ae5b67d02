"""What can be said of an agent beside its name, its model, its instructions and its tools: every option, declared once.

A field of `AgentOptions` says what an agent holds, who checks what it is given, and how a file and a stored turn have
it. The constructor, `changed`, files and their schema, the reference and the rebuilding of a turn's agent walk these
fields. A new option is a field, its type among the keywords above it, and the code that uses it.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from os import PathLike
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, Final, TypedDict, TypeVar, cast

from pydantic import Field

from wakeful.contracts.agent_file import BudgetSection, CompactionSection, ModelName, RetrySection
from wakeful.contracts.agents import TurnConfig
from wakeful.contracts.approvals import DEFAULT_EXPIRY_SECONDS
from wakeful.contracts.budgets import Budget, SpendWindow
from wakeful.contracts.children import SpawnPreset
from wakeful.contracts.controls import (
    AWARENESS,
    MAX_PARALLEL_SUBAGENTS,
    CompactionPolicy,
    checked_awareness,
    checked_compaction,
    checked_flag,
    checked_injected_args,
    checked_names,
    checked_parallel,
    checked_reference,
    checked_text,
)
from wakeful.contracts.errors import ForTheCaller
from wakeful.contracts.model_settings import ModelSettings, checked_settings
from wakeful.contracts.notices import NotifyTarget
from wakeful.contracts.policies import GatePolicy, ToolPolicy
from wakeful.contracts.retries import Retry, checked_retry
from wakeful.contracts.triggers import TriggerEntry
from wakeful.contracts.waking import WakeEntry
from wakeful.engine import agent_checks
from wakeful.engine.agent_checks import ModelChoice
from wakeful.engine.option_forms import (
    collection_names,
    model_names,
    no_code,
    policy_read,
    policy_written,
    stored_collections,
    stored_models,
    texts_read,
)
from wakeful.sandbox.settings import SandboxSettings
from wakeful.tools.hooks import Ask, Hook
from wakeful.tools.local.names import Profile

if TYPE_CHECKING:
    from wakeful.ports import Collection

Held = TypeVar("Held")
AS_HELD: Final = object()
"""In a file it has the type that the agent holds."""
IN_NO_FILE: Final = object()


def _same(value: Any) -> Any:
    return value


class Option:
    """One option of an agent."""

    name: str

    def __init__(
        self,
        check: Callable[[str, Any], Any],
        default: object,
        *,
        names_itself: bool,
        file: Any,
        write: Callable[[Any], Any],
        read: Callable[[str, Any], Any] | None,
        always: bool,
        store: Callable[[Any], Any] | None,
        brought: bool,
    ) -> None:
        self.default = default
        """What a program would give to have what it has without."""
        self.file = file
        """Its type in a file."""
        self.write = write
        """What a file has for what an agent holds. Raises CannotTravel."""
        self.read = read
        """What the agent is given for what a file has; None: that itself."""
        self.always = always
        """It is written down also where it is the default."""
        self.store = store
        """What a turn's configuration has for it; None: a turn has it in another form, or has no use for it."""
        self.brought = brought
        """A bundle of somebody else's may say it: nothing of this machine, its owner's rules or money is in it."""
        self._check = check
        self._names_itself = names_itself

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, agent: object | None, owner: type) -> "Option":
        if agent is None:
            return self
        raise AttributeError(f"an agent without {self.name}")  # what an agent holds stands in its own __dict__

    def checked(self, who: str, given: Any) -> Any:
        """What an agent holds. Raises InvalidConfig with the agent, the option and the value."""
        try:
            return self._check(who if self._names_itself else f"{who}: {self.name}", given)
        except ForTheCaller as problem:
            problem.within(self.name)
            raise

    @property
    def is_written(self) -> bool:
        return self.file is not IN_NO_FILE


def option(
    check: Callable[[str, Any], Held],
    default: object,
    *,
    names_itself: bool = False,
    file: Any = AS_HELD,
    write: Callable[[Any], Any] = _same,
    read: Callable[[str, Any], Any] | None = None,
    always: bool = False,
    store: Callable[[Any], Any] | None = _same,
    brought: bool = False,
) -> Held:
    """A field of `AgentOptions`. `check` gets the agent and the field in words, unless it `names_itself`."""
    made = Option(
        check,
        default,
        names_itself=names_itself,
        file=file,
        write=write,
        read=read,
        always=always,
        store=store,
        brought=brought,
    )
    return cast(Held, made)


class AgentKeywords(TypedDict, total=False):
    """What a program may give, for type checkers: the keywords that every spelling of `Agent(...)` shares."""

    settings: ModelSettings | Mapping[str, Any] | None
    fallbacks: Sequence[ModelChoice]
    budget: Budget | None
    spend_windows: Sequence[SpendWindow]
    hooks: Sequence[Hook | Ask]
    skills: "Sequence[str | PathLike[str]]"
    profile: Profile | None
    workspace: "str | PathLike[str] | None"
    sandbox: SandboxSettings | Mapping[str, Any] | None
    policy: ToolPolicy | GatePolicy | None
    approval_expiry: float
    max_steps: int | None
    planning_enabled: bool
    planning_model: str | None
    planning_instructions: str
    budget_awareness: str | None
    wake: "Sequence[WakeEntry | TriggerEntry | Mapping[str, Any]]"
    notify: "NotifyTarget | Mapping[str, Any] | None"
    hitl_tools: Sequence[str]
    mcp: Sequence[str]
    emit_mcp_progress: bool
    injected_tool_args: Mapping[str, str]
    allow_parallel_subagents: bool
    max_parallel_subagents: int
    subtasks: bool
    work_items: bool
    memory: bool
    spawn: SpawnPreset | bool | None
    collections: "Sequence[str | Collection]"
    compaction: CompactionPolicy | Mapping[str, Any] | None
    retry: Retry | Mapping[str, Any] | None


class AgentOptions:
    """What an agent holds of its options, in the order in which a file has them."""

    max_steps: int | None = option(
        agent_checks.checked_steps,
        None,
        file=Annotated[int, Field(ge=1)] | None,
        always=True,
        store=None,  # the turn's limits have it
        brought=True,
    )
    """Rounds of one level; null: as many as the budget's profile says."""
    settings: ModelSettings = option(
        checked_settings,
        None,
        names_itself=True,
        file=ModelSettings | None,
        write=ModelSettings.written,
        store=None,  # what is sent, and what was said about which models may be asked, stand apart there
        brought=True,
    )
    """Settings for the model; `temperature` and `max_tokens` may stand here or at the top."""
    fallbacks: tuple[ModelChoice, ...] = option(
        agent_checks.checked_fallbacks,
        (),
        file=tuple[str, ...] | None,
        write=model_names,
        read=texts_read,
        store=stored_models,
        brought=True,
    )
    """Models that are asked, in this order, when the one before does not answer."""
    budget: Budget | None = option(
        agent_checks.checked_budget,
        None,
        file=BudgetSection | None,
        write=lambda budget: budget and budget.model_dump(mode="json", exclude_defaults=True),
        store=None,  # the turn's limits have it
    )
    """Limits of one run. In a file it also has the spending limits of all runs together (`per_day` and the like)."""
    retry: Retry = option(
        checked_retry,
        None,
        file=RetrySection | None,
        write=lambda retry: retry.model_dump(mode="json", exclude_defaults=True),
        store=None,  # it is the caller's patience, not the turn's
    )
    """How long `run` waits while no model answers: `patience` in seconds."""
    spend_windows: tuple[SpendWindow, ...] = option(
        agent_checks.checked_windows,
        (),
        file=IN_NO_FILE,  # a file has them in `budget`
        write=lambda windows: {f"per_{window.period}": {"usd": window.usd} for window in windows},
    )
    """What all its runs together may spend in an hour, a day, a month."""
    profile: Profile | None = option(agent_checks.checked_profile, None)
    """Which built-in tools there are; all but `chat` need a workspace."""
    workspace: Path | None = option(
        agent_checks.checked_workspace,
        None,
        file=str | None,
        write=lambda root: root and str(root),
        store=lambda root: root and str(root),
    )
    """The folder that file tools and commands work in."""
    sandbox: SandboxSettings = option(
        agent_checks.checked_sandbox,
        None,
        file=dict[str, Any] | None,
        write=SandboxSettings.as_dict,
        store=SandboxSettings.as_dict,
    )
    """How commands are confined: `network: full` grants the network, `confinement: required` refuses to run bare."""
    policy: GatePolicy | None = option(
        agent_checks.checked_policy,
        None,
        write=policy_written,
        read=policy_read,
        store=None,  # the turn's is this one with the owner's and the standing answers
    )
    """Permission rules: which tools are allowed, denied or need approval."""
    approval_expiry: float = option(
        agent_checks.checked_expiry, DEFAULT_EXPIRY_SECONDS, file=Annotated[float, Field(gt=0)]
    )
    """Seconds until nobody having decided is a decision."""
    skills: tuple[str, ...] = option(
        agent_checks.checked_skills,
        (),
        write=list,
        store=None,  # the turn has the catalogue of what was found there
    )
    """Folders in which skills are looked for besides the usual ones."""
    subtasks: bool = option(checked_flag, False, brought=True)
    """It may split its work into children, and keep notes that they share."""
    work_items: bool = option(checked_flag, False, brought=True)
    """It keeps objectives that outlast a turn as work items. A run needs a thread for that."""
    memory: bool = option(checked_flag, False, brought=True)
    """It remembers over its turns: working memory, and entries that it can search. A run needs a thread for that."""
    spawn: SpawnPreset | None = option(
        agent_checks.checked_spawn, None, file=bool | SpawnPreset | None, write=lambda preset: preset or False
    )
    """It may make child agents in a runtime: true, or `private_child`. `public_named`: public agents, too."""
    collections: "tuple[str | Collection, ...]" = option(
        agent_checks.checked_collections,
        (),
        file=tuple[str, ...],
        write=collection_names,
        store=stored_collections,
    )
    """Sets of texts that it may search, by name."""
    compaction: CompactionPolicy = option(
        checked_compaction,
        None,
        names_itself=True,
        file=CompactionSection | None,
        write=lambda policy: policy.model_dump(mode="json", exclude_defaults=True),
        brought=True,
    )
    """When a conversation that grows too long for its model is folded into a summary."""
    wake: tuple[WakeEntry | TriggerEntry, ...] = option(
        agent_checks.checked_wake,
        (),
        write=lambda entries: [entry.model_dump(mode="json", exclude_defaults=True) for entry in entries],
        store=None,  # a runtime makes timers and triggers of it, which have their own facts
    )
    """When a runtime wakes it: cron lines with a time zone, triggers, and what it is told then."""
    notify: NotifyTarget | None = option(
        agent_checks.checked_notify,
        None,
        write=lambda target: target and target.model_dump(mode="json", exclude_defaults=True),
        store=None,  # a runtime looks it up when there is something to tell
    )
    """Where a runtime sends notices about it, and which."""
    planning_enabled: bool = option(checked_flag, False, always=True, brought=True)
    """A planner looks at the task before the agent begins."""
    planning_model: str | None = option(checked_reference, None, file=ModelName | None, always=True, brought=True)
    """`provider:model`; null: the agent's own model."""
    planning_instructions: str = option(checked_text, "", always=True, brought=True)
    """Empty: the built-in words."""
    budget_awareness: str | None = option(
        checked_awareness, None, file=Annotated[str, Field(pattern=AWARENESS)] | None, always=True, brought=True
    )
    """`per-message`, or `limit:<n>` with n from 0 to 100."""
    hitl_tools: tuple[str, ...] = option(
        checked_names,
        (),
        write=list,
        always=True,
        store=None,  # the turn's policy has them
        brought=True,
    )
    """Tools that never run without a person."""
    mcp: tuple[str, ...] = option(checked_names, (), write=list, read=texts_read)
    """MCP servers whose tools it has, by their names in the owner's `mcp.json`."""
    emit_mcp_progress: bool = option(checked_flag, True, always=True, brought=True)
    """Show the progress that MCP servers report for their calls."""
    injected_tool_args: Mapping[str, str] = option(
        checked_injected_args, MappingProxyType({}), write=dict, store=dict, always=True, brought=True
    )
    """Fields that every tool is shown with: name to description. The model fills them, no tool gets them."""
    allow_parallel_subagents: bool = option(checked_flag, False, always=True, brought=True)
    """One call may start several children at once."""
    max_parallel_subagents: int = option(
        checked_parallel, 3, file=Annotated[int, Field(ge=1, le=MAX_PARALLEL_SUBAGENTS)], always=True, brought=True
    )
    """Children that one call may start."""
    hooks: tuple[Hook, ...] = option(agent_checks.checked_hooks, (), file=IN_NO_FILE, write=no_code, store=None)
    """Code that is asked about every call."""


OPTIONS: Final[Mapping[str, Option]] = MappingProxyType(
    {name: each for name, each in vars(AgentOptions).items() if isinstance(each, Option)}
)


def checked_options(who: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """What an agent holds, of every option. Raises InvalidConfig for what cannot be; the caller knows the names."""
    return {name: each.checked(who, given.get(name, each.default)) for name, each in OPTIONS.items()}


def is_default(each: Option, written: Any) -> bool:
    """Is it what a file would have for an agent of which nothing was said?"""
    return bool(written == _written_default(each))


@cache
def _written_default(each: Option) -> Any:
    return each.write(each.checked("an agent", each.default))


# --- in a turn's configuration ------------------------------------------------------------------------------------

_NAMED: Final = frozenset(TurnConfig.model_fields)


def stored_options(agent: AgentOptions) -> dict[str, Any]:
    """Fields for the configuration of a turn. What it has no field for stands in `options`, as a file would have it."""
    fields: dict[str, Any] = {}
    others: dict[str, Any] = {}
    for name, each in OPTIONS.items():
        if each.store is None:
            continue
        held = getattr(agent, name)
        if name in _NAMED:
            fields[name] = each.store(held)
        elif not is_default(each, written := each.write(held)):
            others[name] = written
    return {**fields, "options": others}


def rebuilt_options(config: TurnConfig) -> dict[str, Any]:
    """What a program would give to have the options that a turn wrote down."""
    named = {name: getattr(config, name) for name, each in OPTIONS.items() if each.store is not None and name in _NAMED}
    return {**named, **config.options}
