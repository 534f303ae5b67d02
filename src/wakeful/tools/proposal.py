"""A call as approval predicates and hooks see it: named, with its arguments, before anything happens."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from wakeful.contracts.authority import Authority
from wakeful.contracts.tools import Confinement, Principal


@dataclass(frozen=True, slots=True)
class ProposedCall:
    """What a model wants to do."""

    tool: str
    arguments: Mapping[str, Any]
    call_id: str = ""
    turn_id: str = ""
    agent: str = ""
    thread: str = ""
    context: Mapping[str, Any] = field(default_factory=dict)
    """What the caller passed to the run."""
    principal: Principal | None = None
    working_directory: str | None = None
    derived_from: Authority = "operator_instruction"
    """The lowest authority in the chain of causes behind the turn."""
    confinement: Confinement | None = None
    """What would hold a command; None: nothing has to."""
