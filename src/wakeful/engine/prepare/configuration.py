"""An agent, its tools and its instructions as the configuration that a turn, or a part of one, is held to."""

from typing import Any

from wakeful.contracts.agents import TurnConfig
from wakeful.contracts.model_settings import ModelSettings, owner_of, provider_of
from wakeful.contracts.setting_names import ABOUT_MODELS
from wakeful.decisions.tool_choice import choosable
from wakeful.engine.agent import Agent
from wakeful.engine.agent_options import stored_options
from wakeful.engine.prepare.tools import Belt
from wakeful.ports import Model


def config_of(agent: Agent[Any, Any], belt: Belt, instructions: str) -> TurnConfig:
    """What holds where this agent works; instructions that are made by a function have been."""
    return TurnConfig(
        agent_name=agent.name,
        model_ref=_ref(agent.model),
        model_owner=_owner(agent.model),
        instructions=instructions,
        tools=belt.offered,
        policy=belt.policy,
        settings=_sent(f"Agent {agent.name!r}", agent.settings, belt),
        require=agent.settings.require or (),
        accept_gap=agent.settings.accept_gap or (),
        output_schema=agent.output_schema,
        **stored_options(agent),
    )


def _sent(who: str, settings: ModelSettings, belt: Belt) -> dict[str, Any]:
    """What is for the model, with the names of tools in full. Raises UnknownTool for one that is not offered."""
    sent = {name: value for name, value in settings.written().items() if name not in ("stream", *ABOUT_MODELS)}
    choice = choosable(who, settings.tool_choice, [tool.name for tool in belt.offered])
    return {**sent, "tool_choice": list(choice)} if isinstance(choice, tuple) else sent


def window_of(model: Model) -> int | None:
    """How much the model can be shown, where it says so."""
    profile = getattr(model, "profile", None)
    found = getattr(profile, "context_window", None) if profile is not None else getattr(model, "context_window", None)
    return found if isinstance(found, int) else None


def _owner(choice: str | Model) -> str | None:
    owner = owner_of(choice)
    return owner if owner != provider_of(_ref(choice)) else None


def _ref(choice: str | Model) -> str:
    return choice if isinstance(choice, str) else choice.ref
