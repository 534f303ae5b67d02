"""Where a turn's tools look at agents. A runtime gives it; a run of the library has none."""

from typing import Any, NamedTuple, Protocol


class AgentAnswer(NamedTuple):
    """An agent as a model is shown it."""

    shown: dict[str, Any]
    """As JSON."""
    untrusted: str
    """Why what its children tell is nobody's instruction; blank: nothing untrusted is behind it."""


class AgentBoard(Protocol):
    """The agents that an agent may look at: itself, and those that it made."""

    async def get(self, turn_id: str, agent_id: str | None) -> AgentAnswer | None:
        """How an agent stands; without a name the turn's own. None: there is none that it may look at."""
        ...
