"""A call against the most its principal may do. A ceiling takes away and never grants."""

from wakeful.contracts.principals import CapabilityCeiling
from wakeful.contracts.verdicts import Verdict

CAPABILITY_DENIED = "capability_denied"


def ceiling_verdict(ceiling: CapabilityCeiling | None, tool: str, capability: str) -> Verdict | None:
    """Why a call is above the ceiling, or None. A blank capability requires nothing."""
    wanted = capability.strip()
    if ceiling is None or not wanted or ceiling.permits(wanted):
        return None
    return Verdict(
        "deny",
        "host_policy",
        f"{tool} needs the capability {capability!r}, which the principal's ceiling does not permit",
        layer="ceiling",
        error_type=CAPABILITY_DENIED,
    )
