"""Where a turn's tools look at agents. A runtime gives it; a run of the library has none."""

from typing import Any, Protocol


class AgentBoard(Protocol):
    """The agents that an agent may look at: itself, and those that it made."""

    async def get(self, turn_id: str, agent_id: str | None) -> dict[str, Any] | None:
        """How an agent stands, as JSON; without a name the turn's own. None: there is none that it may look at."""
        ...
