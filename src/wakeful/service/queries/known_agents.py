"""Whether a store has heard of an agent: a misspelt name is no agent that has nothing."""

from wakeful.contracts.errors import AgentNotFound
from wakeful.ports import Store


async def check_known(store: Store, agent: str) -> None:
    """Raises AgentNotFound for an agent that the store has nothing of."""
    if not await store.read(agent, limit=1):
        known = ", ".join([*await store.agents()][:20]) or "none"
        raise AgentNotFound(f"the store has no agent {agent!r}", f"It has: {known}.")
