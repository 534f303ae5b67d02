"""Usage: what the agents' requests to models took, in tokens. One row a stream."""

from typing import NamedTuple, Protocol

from wakeful.contracts.models import AgentTokenUsageSummary, TokenUsage
from wakeful.ports.tables import Table
from wakeful.ports.threads import Threads

TOKEN_FIELDS = tuple(TokenUsage.model_fields)


class UsageRow(NamedTuple):
    """What an agent has used in all."""

    agent_id: str
    rounds: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    total_tokens: int = 0
    cached_input_tokens: int = 0
    cache_write_tokens: int = 0
    reasoning_tokens: int = 0
    audio_tokens: int = 0
    last_turn: dict[str, int] | None = None
    """Of the newest completed turn that reported tokens: those that are not 0."""

    @property
    def total(self) -> TokenUsage:
        return TokenUsage(**{name: getattr(self, name) for name in TOKEN_FIELDS})

    @property
    def last(self) -> TokenUsage | None:
        return None if self.last_turn is None else TokenUsage(**self.last_turn)


USAGE = Table("usage", UsageRow, key=("agent_id",))


class UsageOfName(NamedTuple):
    """What the agents of one name used, added up over all their streams."""

    total: TokenUsage
    rounds: int
    reporting: int
    """Streams in which a turn completed with token data."""
    last_turn: TokenUsage | None
    """Of the newest such turn in its stream, when there is one such stream; with several, their logs know."""


class Usage(Threads, Protocol):
    """Reads what was used."""

    async def usage(self, agent_id: str) -> AgentTokenUsageSummary:
        row = await self.get_row(USAGE, agent_id) or UsageRow(agent_id)
        return AgentTokenUsageSummary(total=row.total, total_model_rounds=row.rounds, last_turn=row.last)

    async def usage_of_name(self, agent_name: str) -> UsageOfName:
        """Of every stream in which an agent of that name has a thread."""
        found = [await self.get_row(USAGE, agent_id) for agent_id in await self.agents_of_name(agent_name)]
        rows = [row for row in found if row is not None]
        reported = [row.last for row in rows if row.last is not None]
        total = sum((row.total for row in rows), TokenUsage())
        rounds = sum(row.rounds for row in rows)
        return UsageOfName(total, rounds, len(reported), reported[0] if len(reported) == 1 else None)
