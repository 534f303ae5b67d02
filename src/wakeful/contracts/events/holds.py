"""Facts about the runtime as a whole: everything was paused or stopped, or a provider lets nobody in.

They stand in a stream of their own, which belongs to no agent.
"""

from typing import ClassVar

from wakeful.contracts.events.agents import AgentControl
from wakeful.contracts.events.base import THREAD, Need, RuntimeFact
from wakeful.contracts.models import FailureKind

RUNTIME_STREAM = "runtime-control"


class RuntimeControlChanged(RuntimeFact):
    """Every agent was paused or stopped, or let run again. What was said of single agents stays."""

    kind: ClassVar[str] = "runtime.control_changed"

    control: AgentControl
    changed_by: str
    reason: str = ""


class ProviderParked(RuntimeFact):
    """A provider refused a key, or its quota is used up. Its agents wait until a probe of it goes through."""

    kind: ClassVar[str] = "provider.parked"
    needs: ClassVar[tuple[Need, ...]] = THREAD

    provider: str
    model_ref: str
    """The model that a probe asks."""
    agent_id: str
    """The agent that found out, and whose model is asked."""
    failure_kind: FailureKind
    message: str = ""
    probes: int = 0
    """How often it was asked since, in vain."""
    probes_at: int
    """Unix microseconds of the next probe."""


class ProviderUnparked(RuntimeFact):
    """A provider answers again, or somebody said so."""

    kind: ClassVar[str] = "provider.unparked"
    needs: ClassVar[tuple[Need, ...]] = THREAD

    provider: str
    by: str
