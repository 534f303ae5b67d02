"""An agent, its tools and its instructions as the configuration that a turn, or a part of one, is held to.

It follows from the agent, its belt and its prompt, and an agent never changes: the last one is kept with the agent,
also as the bytes under whose digest it is stored.
"""

import hashlib
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

from wakeful.contracts.agents import TurnConfig
from wakeful.contracts.model_settings import ModelSettings, owner_of, provider_of
from wakeful.contracts.policies import GatePolicy
from wakeful.contracts.setting_names import ABOUT_MODELS
from wakeful.contracts.skills import SkillEntry
from wakeful.contracts.tools import ToolDeclaration
from wakeful.decisions.prompt import AssembledPrompt
from wakeful.decisions.tool_choice import choosable
from wakeful.engine.agent import Agent
from wakeful.engine.agent_options import stored_options
from wakeful.engine.prepare.tools import Belt
from wakeful.ports import Model


class StoredConfig(NamedTuple):
    """A configuration, and how it stands in the store."""

    config: TurnConfig
    encoded: bytes
    digest: str


class _Kept(NamedTuple):
    offered: tuple[ToolDeclaration, ...]
    policy: GatePolicy
    prompt: AssembledPrompt
    skills: tuple[SkillEntry, ...]
    config: TurnConfig


_kept: "WeakKeyDictionary[Agent[Any, Any], _Kept]" = WeakKeyDictionary()
_stored: "WeakKeyDictionary[Agent[Any, Any], tuple[TurnConfig, StoredConfig]]" = WeakKeyDictionary()
"""Of each agent what was worked out last, and what it rests on."""


def turn_config(
    agent: Agent[Any, Any], belt: Belt, prompt: AssembledPrompt, skills: tuple[SkillEntry, ...]
) -> TurnConfig:
    """What holds for a turn of this agent. The same object as before when nothing of it changed."""
    known = _kept.get(agent)
    rests_on = belt.offered, belt.policy, prompt, skills
    if known is None or known[:4] != rests_on:
        config = config_of(agent, belt, prompt.text, prompt_blocks=prompt.blocks, skills=skills)
        known = _kept[agent] = _Kept(*rests_on, config)
    return known.config


def stored_config(agent: Agent[Any, Any], config: TurnConfig, window: int | None) -> StoredConfig:
    """The configuration with the window of the model that is asked, ready to be stored."""
    known = _stored.get(agent)
    if known is None or known[0] is not config or known[1].config.context_window != window:
        whole = config if config.context_window == window else config.changed(context_window=window)
        encoded = whole.model_dump_json().encode()
        stored = StoredConfig(whole, encoded, "sha256:" + hashlib.sha256(encoded).hexdigest())
        known = _stored[agent] = config, stored
    return known[1]


def config_of(agent: Agent[Any, Any], belt: Belt, instructions: str, **more: Any) -> TurnConfig:
    """What holds where this agent works; instructions that are made by a function have been. `more`: further fields."""
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
        **more,
    )


def _sent(who: str, settings: ModelSettings, belt: Belt) -> dict[str, Any]:
    """What is for the model, with the names of tools in full. Raises UnknownTool for one that is not offered."""
    sent = {name: value for name, value in settings.written().items() if name not in ("stream", *ABOUT_MODELS)}
    choice = choosable(who, settings.tool_choice, [tool.name for tool in belt.offered])
    return {**sent, "tool_choice": list(choice)} if isinstance(choice, tuple) else sent


def _owner(choice: str | Model) -> str | None:
    owner = owner_of(choice)
    return owner if owner != provider_of(_ref(choice)) else None


def _ref(choice: str | Model) -> str:
    return choice if isinstance(choice, str) else choice.ref
