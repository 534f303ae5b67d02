"""What a bundle says about the agent in it: its slug, its configuration, where it is from, and what a conflict means.

A bundle brings words: instructions, a model, the names of tools. What an agent may touch on this machine (a workspace,
a sandbox, a policy) and what it may spend is the host's to say, so a bundle that says it is refused.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from wakeful.contracts.errors import InvalidValue
from wakeful.engine.agent_data import SAMPLING
from wakeful.engine.agent_options import OPTIONS
from wakeful.hosts.packages.package_run import (
    CONFLICTS,
    MISSING_AGENT_SLUG,
    REGISTER_FAILED,
    SOURCE_TYPE,
    SPEC_INVALID,
    OnConflict,
)

ABOUT = ("agent_slug", "name", "label", "description", "metadata")
"""What stands beside an agent's configuration in a bundle."""
BROUGHT = (
    "model",
    "instructions",
    "tools",
    *SAMPLING,
    *(name for name, each in OPTIONS.items() if each.brought),
)
"""What a bundle may say of an agent's configuration."""


class BundledAgent(NamedTuple):
    """The agent of a bundle, before anybody checked whether it can be made."""

    slug: str
    config: dict[str, Any]
    metadata: dict[str, Any]


def conflict_rule(given: Mapping[str, Any], spec: Mapping[str, Any]) -> OnConflict:
    """Of the input, else of the spec, else `upgrade`. Raises InvalidValue for any other word."""
    for said in (given.get("on_conflict"), spec.get("on_conflict")):
        if said is None or said == "":
            continue
        for known in CONFLICTS:
            if said == known:
                return known
        raise InvalidValue(SPEC_INVALID, "on_conflict", f"{said!r} is none of {', '.join(CONFLICTS)}")
    return "upgrade"


def bundled_agent(bundle: Mapping[str, Any], spec: Mapping[str, Any], given: Mapping[str, Any]) -> BundledAgent:
    """Raises InvalidValue with the code of what is wrong."""
    agent = bundle["agent"]
    named = (
        given.get("slug"),
        spec.get("slug"),
        agent.get("agent_slug"),
        bundle.get("package_slug"),
        bundle.get("bundle_slug"),
    )
    slug = next((each.strip() for each in named if isinstance(each, str) and each.strip()), None)
    if slug is None:
        raise InvalidValue(
            MISSING_AGENT_SLUG, "agent.agent_slug", "nothing names the agent: slug, agent_slug, package_slug, ..."
        )
    for field in agent:
        if field not in ABOUT and field not in BROUGHT:
            raise InvalidValue(
                REGISTER_FAILED,
                f"agent.{field}",
                "a bundle cannot say this",
                "the host decides what an agent may use and spend",
            )
    config = {"name": slug, **{field: agent[field] for field in BROUGHT if field in agent}}
    own = agent.get("metadata") or {}
    if not isinstance(own, Mapping):
        raise InvalidValue(REGISTER_FAILED, "agent.metadata", f"is an object, not a {type(own).__name__}")
    about = {field: agent[field] for field in ("name", "label", "description") if isinstance(agent.get(field), str)}
    return BundledAgent(slug, config, {**own, **about, **_origin(bundle, slug)})


def _origin(bundle: Mapping[str, Any], slug: str) -> dict[str, str]:
    return {
        "source_type": _first(bundle, ("source_type",), SOURCE_TYPE),
        "source_package": _first(bundle, ("source_package", "package_slug", "bundle_slug"), slug),
        "source_version": _first(bundle, ("source_version", "package_version", "bundle_version", "version"), ""),
    }


def _first(bundle: Mapping[str, Any], names: tuple[str, ...], otherwise: str) -> str:
    found = (str(bundle[name]) for name in names if isinstance(bundle.get(name), str | int) and bundle[name] != "")
    return next(found, otherwise)
