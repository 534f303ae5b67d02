"""Whether a store has heard of an agent: a misspelt name is no agent that has nothing."""

from difflib import get_close_matches

from wakeful.contracts.errors import AgentNotFound
from wakeful.ports import Store


async def names_like(store: Store, agent: str) -> str:
    """A hint for a name that no agent has: those of agents of a runtime and of single runs that are like it, else those
    there are."""
    living = [row.agent_id for row in await store.runtime_agents() if row.visibility == "public"]
    known = sorted({*living, *await store.agent_names()})
    if near := get_close_matches(agent, known, n=3, cutoff=0.6):
        return f"did you mean {' or '.join(near)}?"
    return f"there are: {', '.join(known[:20])}" if known else "nothing has been run here yet"


async def check_known(store: Store, agent: str) -> None:
    """Raises AgentNotFound for an agent that the store has nothing of."""
    if not await store.read(agent, limit=1):
        known = ", ".join([*await store.agents()][:20]) or "none"
        raise AgentNotFound(f"the store has no agent {agent!r}", f"It has: {known}.")
