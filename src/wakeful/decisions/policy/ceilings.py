"""The most a principal may do. A ceiling takes away and never grants; one that cannot be read permits nothing."""

from collections.abc import Iterable, Mapping
from typing import Any

from pydantic import ValidationError

from wakeful.contracts.policies import CapabilityCeiling
from wakeful.contracts.principals import ExecutionPrincipal
from wakeful.contracts.verdicts import Verdict
from wakeful.decisions.policy.patterns import text_test

AUTONOMOUS_SOURCES: frozenset[str] = frozenset({"system", "runtime", "agent_token"})
CAPABILITY_DENIED = "capability_denied"
NOTHING = CapabilityCeiling(allowed=())
FOR_AUTONOMOUS = CapabilityCeiling(
    denied=tuple(
        pattern
        for word in (
            *("create", "edit", "publish", "delete", "write", "upload"),
            *("settings", "options", "install", "enable", "activate", "manage", "admin", "user"),
        )
        for pattern in (f"{word}*", f"*_{word}*", f"*.{word}*", f"*/{word}*", f"*:{word}*", f"*-{word}*")
    )
)
"""For a run with no human behind it whose host said nothing: reading, and no write-type capability."""


def is_autonomous(principal: ExecutionPrincipal, also: Iterable[str] = ()) -> bool:
    """Does nobody sit behind the run? A host may name further sources, and take none away."""
    return principal.auth_source in AUTONOMOUS_SOURCES or principal.auth_source in set(also)


def ceiling_of(principal: ExecutionPrincipal | None, also_autonomous: Iterable[str] = ()) -> CapabilityCeiling | None:
    """The ceiling a principal is held to; None: no ceiling. The host's own is used as it is."""
    if principal is None:
        return None
    if principal.capability_ceiling is not None:
        return read_ceiling(principal.capability_ceiling)
    return FOR_AUTONOMOUS if is_autonomous(principal, also_autonomous) else None


def read_ceiling(raw: Mapping[str, Any]) -> CapabilityCeiling:
    """`{allowed?: [...], denied?: [...]}`; anything else permits nothing."""
    try:
        return CapabilityCeiling.model_validate(dict(raw))
    except ValidationError:
        return NOTHING


def permits(ceiling: CapabilityCeiling | None, capability: str) -> bool:
    """Blank means that nothing is required."""
    wanted = capability.strip()
    if ceiling is None or not wanted:
        return True
    if any(text_test(pattern)(wanted) for pattern in ceiling.denied):
        return False
    return ceiling.allowed is None or any(text_test(pattern)(wanted) for pattern in ceiling.allowed)


def ceiling_verdict(ceiling: CapabilityCeiling | None, tool: str, capability: str) -> Verdict | None:
    """Why a call is above the ceiling, or None."""
    if permits(ceiling, capability):
        return None
    return Verdict(
        "deny",
        "host_policy",
        f"{tool} needs the capability {capability!r}, which the principal's ceiling does not permit",
        layer="ceiling",
        error_type=CAPABILITY_DENIED,
    )
