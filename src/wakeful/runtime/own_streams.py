"""Streams of the runtime itself, beside those of agents: a stream is begun with its first facts."""

from collections.abc import Sequence

from wakeful.contracts.envelope import Fact
from wakeful.contracts.events import SessionStarted
from wakeful.ports import Store


async def append_to_stream(store: Store, stream: str, facts: Sequence[Fact]) -> None:
    """Append facts to a stream that belongs to no agent."""
    given = [*facts]
    if not await store.head(stream):
        given.insert(0, Fact(SessionStarted(agent_name=stream, temporary=True), given[0].at))
    await store.admit(stream, given)
