"""What the caller wrote, as a request: overrides applied, later parameters refused."""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeAlias, TypedDict

from wakeful.contracts.budgets import Budget
from wakeful.contracts.content import Prompt
from wakeful.contracts.errors import InvalidConfig
from wakeful.contracts.model_settings import ModelSettings, checked_settings
from wakeful.contracts.retries import Retry
from wakeful.contracts.tools import Principal
from wakeful.contracts.values import JsonValue
from wakeful.service import Agent, Ask, Hook, ModelChoice, Tool, ToolSource, any_named, checked_hooks
from wakeful.surfaces.library.run_checks import StorePlace, check_values

if TYPE_CHECKING:
    from wakeful.contracts.approvals import Approval, Decided
    from wakeful.service import RunContext, RunRequest

Word: TypeAlias = "bool | Decided | None"
"""What an approver may say: yes, no, a decision, or None for somebody else to decide later."""
Approver: TypeAlias = "Callable[[Approval], Word | Awaitable[Word]] | None"
Instructions: TypeAlias = "str | Callable[[RunContext[Any]], str | Awaitable[str]] | None"
History: TypeAlias = "Iterable[object] | None"
"""Messages as wakeful, OpenAI or Anthropic write them."""
NO_CONTEXT: Mapping[str, JsonValue] = MappingProxyType({})


class RunOptions(TypedDict, total=False):
    """The keywords `run`, `run_sync` and `stream` share, for type checkers; `run` says their defaults."""

    context: Mapping[str, JsonValue]
    principal: Principal | None
    store: StorePlace
    thread: str | None
    key: str | None
    supersede: bool
    history: History
    budget: Budget | None
    approver: Approver
    model: "ModelChoice | None"
    instructions: Instructions
    tools: Sequence[Tool[Any] | ToolSource] | None
    settings: ModelSettings | Mapping[str, Any] | None
    hooks: Sequence[Hook | Ask]
    retry: Retry | None


def request_of(
    agent: Agent[Any, Any],
    prompt: Prompt,
    *,
    deps: Any = None,
    context: Mapping[str, JsonValue] = NO_CONTEXT,
    principal: Principal | None = None,
    thread: str | None = None,
    key: str | None = None,
    supersede: bool = False,
    history: History = None,
    budget: Budget | None = None,
    approver: Approver = None,
    model: "ModelChoice | None" = None,
    instructions: Instructions = None,
    tools: Sequence[Tool[Any] | ToolSource] | None = None,
    settings: ModelSettings | Mapping[str, Any] | None = None,
    hooks: Sequence[Hook | Ask] = (),
    retry: Retry | None = None,
) -> "RunRequest":
    """A request, or an error that says what is not there yet."""
    if not isinstance(agent, Agent):
        raise InvalidConfig(f"run({agent!r}, ...)", "the first argument is the agent: Agent(name, model, ...)")
    check_values(budget, principal, approver)
    if supersede and thread is None:
        raise InvalidConfig("run(supersede=True) without a thread", "name the thread whose turn is to be stopped first")
    from wakeful.service import MessageOrigin, RunRequest

    return RunRequest(
        _with(agent, model, instructions, tools, settings, retry),
        prompt,
        deps=deps,
        context=context,
        principal=principal,
        thread=thread,
        key=key,
        supersede=supersede,
        history=history,
        budget=budget,
        approver=approver,
        hooks=checked_hooks("run(): hooks", hooks),
        origin=MessageOrigin(model_from="user" if model is not None else "agent_config"),
    )


def _with(
    agent: Agent[Any, Any],
    model: "ModelChoice | None",
    instructions: Instructions,
    tools: Sequence[Tool[Any] | ToolSource] | None,
    settings: ModelSettings | Mapping[str, Any] | None,
    retry: Retry | None,
) -> Agent[Any, Any]:
    """The agent with this run's overrides."""
    if retry is not None:
        agent = agent.changed(retry=retry)
    if model is None and instructions is None and tools is None and settings is None:
        return agent
    if model is not None:
        agent = agent.changed(model=model, fallbacks=())
    changes: dict[str, Any] = {"settings": agent.settings.updated(checked_settings("run()", settings))}
    if instructions is not None:
        changes["instructions"] = instructions
    if tools is not None:
        # Whatever is still there of what needs a person goes on needing one.
        needed = [name for name in agent.hitl_tools if _is_among(name, tools) or _is_built_in(name, agent)]
        changes |= {"tools": tools, "hitl_tools": needed}
    return agent.changed(**changes)


def patient(agents: Iterable[Agent[Any, Any]], retry: Retry | None) -> list[Agent[Any, Any]]:
    """The agents with the patience of a call."""
    return list(agents) if retry is None else [agent.changed(retry=retry) for agent in agents]


def _is_among(pattern: str, tools: Sequence[Any]) -> bool:
    return any(isinstance(each, ToolSource) or any_named((pattern,), each.name) for each in tools)


def _is_built_in(pattern: str, agent: Agent[Any, Any]) -> bool:
    """A tool of the agent's workspace is there whatever tools are given."""
    if agent.workspace is None or agent.profile in (None, "chat"):
        return False
    from wakeful.service import PROFILES

    return any(any_named((pattern,), name) for name in PROFILES[agent.profile])
