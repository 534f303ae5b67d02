"""An agent from what its turn wrote down, with code that the caller supplies.

The store names an agent's model, instructions, settings and tools, and never imports any of them. What only a program
can give (a tool's function, a model object, an output type) has to be supplied, or the turn stays as it is.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, cast

from wakeful.contracts.agents import TurnConfig
from wakeful.contracts.errors import AgentMissing, KeyMissing, ToolMissing, WakefulError
from wakeful.contracts.model_settings import ModelSettings, checked_settings
from wakeful.contracts.policies import GatePolicy
from wakeful.contracts.workflows import AGENT_CALL
from wakeful.decisions.prompt import own_instructions
from wakeful.decisions.waking.wait_tools import is_wait_tool
from wakeful.decisions.workflows.children import agent_names
from wakeful.engine.agent import Agent
from wakeful.engine.agent_checks import tools_of_the_runtime
from wakeful.engine.agent_data import find_tool
from wakeful.engine.agent_options import rebuilt_options
from wakeful.engine.run_request import Engine
from wakeful.engine.state_loader import fold
from wakeful.ports import Store, TurnRow
from wakeful.tools.client import ClientTool
from wakeful.tools.local.names import Profile
from wakeful.tools.person import ask_person
from wakeful.tools.tool import Tool
from wakeful.tools.web_search import WebSearch

NOT_RUN = "nothing was run; "
AGENT = "AGENT"
RUN_IT = NOT_RUN + "start what runs the agent, and it goes on: wakeful daemon start, or your program"


class ToolsNotSupplied(ToolMissing):
    """Tools that a turn was begun with and for which no code was given; `names` are theirs."""

    def __init__(self, who: str, names: Sequence[str]) -> None:
        super().__init__(
            f"{who} uses {', '.join(names)}, and the code was not supplied",
            NOT_RUN + "name it with --tools module:name",
        )
        self.names = tuple(names)


class NeverBegan(AgentMissing):
    """A turn that wrote down nothing of its agent."""


async def rebuilt_agent(
    engine: Engine,
    row: TurnRow,
    tools: Sequence[Tool[Any]],
    model: str | None = None,
    *,
    workspace: Path | None = None,
    profile: str | None = None,
) -> Agent[Any, Any]:
    """The agent of a turn. Raises ToolMissing or AgentMissing, naming what only the caller can supply."""
    who = f"turn {row.turn_id} of agent {row.agent_name!r}"
    recorded = await engine.store.read(row.agent_id, after=row.window_from - 1, thread_id=row.thread_id)
    config = (await fold(engine.store, row, recorded)).state.config
    if config is None:
        if model is None:
            raise NeverBegan(
                f"{who} was admitted and never began, so how it is configured was not stored",
                NOT_RUN + "give it again: --agent FILE, --tools module:AGENT, or --model provider:model",
            )
        return Agent(row.agent_name, model, tools=tools, workspace=workspace, profile=cast(Profile | None, profile))
    if _is_of_runtime(config):
        raise AgentMissing(f"{who} was begun by a runtime, with tools that only a runtime has", RUN_IT)
    if config.output_schema is not None:
        raise AgentMissing(
            f"{who} has to answer with a type that only your program knows",
            NOT_RUN + "resume it from your program, or name the agent with --tools module:AGENT",
        )
    options = rebuilt_options(config)
    options |= {
        "settings": config.model_settings.updated(_about_models(config)),
        "policy": _policy(config),
        "profile": profile or config.profile,
        "workspace": workspace or config.workspace,
    }
    if model is not None:
        options["fallbacks"] = ()
    chosen = model or _reference(engine, who, config)
    return Agent(row.agent_name, chosen, own_instructions(config), _tools(who, config, tools), **options)


def _about_models(config: TurnConfig) -> ModelSettings:
    """What was said about which models may be asked stands apart from what is sent to them."""
    said = {"require": list(config.require), "accept_gap": list(config.accept_gap)}
    return checked_settings("the turn", {name: value for name, value in said.items() if value})


def _policy(config: TurnConfig) -> GatePolicy | None:
    """What the owner said when the turn began. Standing answers are read from the store each time, not from here."""
    if config.policy == GatePolicy():
        return None  # written before turns wrote their policy down
    own = tuple(rule for rule in config.policy.rules if rule.origin != "always")
    return config.policy.model_copy(update={"rules": own})


async def code_needed(store: Store, row: TurnRow, resolve_model: Callable[[str], object]) -> list[str] | None:
    """What whoever resumes a turn has to bring the code of: some tools, or the whole agent (`AGENT`).

    None: only a runtime goes on with it.
    """
    recorded = await store.read(row.agent_id, after=row.window_from - 1, thread_id=row.thread_id)
    config = (await fold(store, row, recorded)).state.config
    if config is None:
        return []
    whole = config.output_schema is not None or not _are_made_from_names(config, resolve_model)
    if _is_of_runtime(config):
        return None
    return [AGENT] if whole else _wanted(config)


def _is_of_runtime(config: TurnConfig) -> bool:
    """Was the turn offered what a runtime alone carries out?"""
    return any(map(is_wait_tool, config.tools))


def _are_made_from_names(config: TurnConfig, resolve_model: Callable[[str], object]) -> bool:
    """Can its models be had without the program? A key that is missing is another matter."""
    for ref in (config.model_ref, *config.fallbacks):
        try:
            resolve_model(ref)
        except KeyMissing:
            continue
        except WakefulError:
            return False
    return True


def _reference(engine: Engine, who: str, config: TurnConfig) -> str:
    refs = (config.model_ref, *config.fallbacks)
    for ref in refs:
        try:
            engine.resolve_model(ref)
        except WakefulError as error:
            if isinstance(error, KeyMissing) and len(refs) > 1:
                continue  # it is left out with that reason, unless none has its key: then preparing says so
            raise AgentMissing(
                f"{who} was begun with the model {ref!r}, which cannot be made from its name here: {error.message}",
                NOT_RUN + "resume it from your program, or pass --model",
            ) from error
    return config.model_ref


def _tools(who: str, config: TurnConfig, supplied: Sequence[Tool[Any]]) -> list[Tool[Any]]:
    found = {name: find_tool(name, supplied) for name in _wanted(config)}
    missing = [name for name, tool in found.items() if tool is None]
    if missing:
        raise ToolsNotSupplied(who, missing)
    # Nobody's code is needed for what is answered elsewhere: its declaration is all there is to it.
    asks: list[Tool[Any]] = [ask_person] if config.tool(ask_person.name) is not None else []
    asks += [
        find_tool(declared.name, supplied) or ClientTool(declared)
        for declared in config.tools
        if declared.answered_by == "client"
    ]
    asks += [WebSearch(declared.server) for declared in config.tools if declared.server is not None]
    return [*asks, *(tool for tool in found.values() if tool is not None)]


def _wanted(config: TurnConfig) -> list[str]:
    given = tools_of_the_runtime(
        subtasks=config.subtasks,
        allow_parallel_subagents=config.allow_parallel_subagents,
        work_items=bool(rebuilt_options(config).get("work_items")),
        memory=bool(rebuilt_options(config).get("memory")),
    )
    agents = agent_names(config.workflow.graph) if config.workflow is not None else ()
    built_in = {*_built_in(config.profile), ask_person.name, *given, *(AGENT_CALL + name for name in agents)}
    servers = tuple(f"mcp.{name}/" for name in rebuilt_options(config).get("mcp", ()))
    return [
        declared.name
        for declared in config.tools
        if declared.name not in built_in
        and declared.answered_by != "client"
        and declared.server is None
        and not declared.name.startswith(servers)
    ]


def _built_in(profile: str) -> frozenset[str]:
    """What comes with the workspace: nobody has to supply it."""
    if profile == "chat":
        return frozenset()
    from wakeful.tools.local.profiles import PROFILES  # an agent without a workspace has no use for them

    return frozenset(PROFILES[cast(Profile, profile)])
