"""Whether a store has heard of an agent: a misspelt name is no agent that has nothing."""

from collections.abc import Sequence
from difflib import get_close_matches

from wakeful.contracts.errors import AgentNotFound
from wakeful.ports import Store
from wakeful.ports.runtime_agents import RuntimeAgentRow

NAMED = 20
"""Names that a hint lists at most."""
COMPARED = 1_000
"""Names that a misspelt one is compared with; of more, those that begin as it does: a mistake takes no others' time."""


def near_names(name: str, known: Sequence[str]) -> list[str]:
    """Those that are like it, the nearest first."""
    alike = known if len(known) <= COMPARED else [each for each in known if each[:2] == name[:2]]
    return get_close_matches(name, alike[:COMPARED], n=3, cutoff=0.6)


def agents_hint(name: str, rows: Sequence[RuntimeAgentRow]) -> str:
    """For a name that no agent of a runtime has: agents whose names are like it, and which there are."""
    known = [each.agent_id for each in rows if each.visibility == "public" and each.archived_at is None]
    near = near_names(name, known)
    meant = [f"Did you mean {' or '.join(near)}?"] if near else []
    if not known:
        return "It has: none."
    if set(known) <= set(near):
        return meant[0]
    more = f" and {len(known) - NAMED:,} more" if len(known) > NAMED else ""
    return " ".join([*meant, f"It has: {', '.join(known[:NAMED])}{more}."])


async def names_like(store: Store, agent: str) -> str:
    """A hint for a name that no agent has: those of agents of a runtime and of single runs that are like it, else those
    there are."""
    living = [row.agent_id for row in await store.runtime_agents() if row.visibility == "public"]
    known = sorted({*living, *await store.agent_names()})
    if near := near_names(agent, known):
        return f"did you mean {' or '.join(near)}?"
    return f"there are: {', '.join(known[:NAMED])}" if known else "nothing has been run here yet"


async def check_known(store: Store, agent: str) -> None:
    """Raises AgentNotFound for an agent that the store has nothing of."""
    if not await store.read(agent, limit=1):
        raise AgentNotFound(f"the store has no agent {agent!r}", agents_hint(agent, await store.runtime_agents()))
