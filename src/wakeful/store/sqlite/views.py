"""The rows of agents. Written from `rows.Changes`, read as they are, rebuilt from the log."""

import json
from collections.abc import Mapping, Sequence

from wakeful.contracts.models import AgentTokenUsageSummary, TokenUsage
from wakeful.ports import UsageOfName
from wakeful.store.rows import Book, Changes, summary
from wakeful.store.sqlite.connection import Statements

_TOKENS = tuple(TokenUsage.model_fields)
_MOVE_HEAD = "UPDATE agents SET seq = ?, hash = ? WHERE id = ?"
_ADD_ROUNDS = "UPDATE agents SET seq = ?, hash = ?, rounds = rounds + ? WHERE id = ?"
_ADD_USAGE = (
    "UPDATE agents SET seq = ?, hash = ?, rounds = rounds + ?, "
    f"{', '.join(f'{n} = {n} + ?' for n in _TOKENS)} WHERE id = ?"
)
_SET_USAGE = (
    f"UPDATE agents SET name = ?, last_turn = ?, rounds = ?, {', '.join(f'{n} = ?' for n in _TOKENS)} WHERE id = ?"
)
_GET_USAGE = f"SELECT rounds, last_turn, {', '.join(_TOKENS)} FROM agents WHERE agent_id = ?"
_SUM_USAGE = f"""
    SELECT coalesce(sum(rounds), 0), count(last_turn), max(last_turn),
           {", ".join(f"coalesce(sum({name}), 0)" for name in _TOKENS)}
    FROM agents WHERE agent_id IN (SELECT value FROM json_each(?))
"""


class Views:
    """Reads and writes rows; decides nothing."""

    def __init__(self, sql: Statements) -> None:
        self._sql = sql

    def count_turns(self) -> int:
        ((count,),) = self._sql.all("SELECT count(*) FROM turns")
        return int(count)

    def usage(self, agent_id: str) -> AgentTokenUsageSummary:
        found = self._sql.one(_GET_USAGE, (agent_id,))
        if found is None:
            return AgentTokenUsageSummary()
        rounds, last_turn, *tokens = found
        last = None if last_turn is None else TokenUsage.model_validate_json(last_turn)
        return summary(TokenUsage(**dict(zip(_TOKENS, tokens, strict=True))), rounds, last)

    def usage_of(self, agent_ids: Sequence[str]) -> UsageOfName:
        ((rounds, reporting, newest, *tokens),) = self._sql.all(_SUM_USAGE, (json.dumps(agent_ids),))
        last = TokenUsage.model_validate_json(newest) if reporting == 1 else None
        return UsageOfName(TokenUsage(**dict(zip(_TOKENS, tokens, strict=True))), rounds, reporting, last)

    def write(self, agent: int, seq: int, digest: bytes, made: Changes) -> None:
        """Everything an append changes: the head of the stream, and the rows."""
        execute = self._sql.do
        if made.tokens is not None:
            execute(_ADD_USAGE, (seq, digest, made.rounds, *_token_values(made.tokens), agent))
        elif made.rounds:
            execute(_ADD_ROUNDS, (seq, digest, made.rounds, agent))
        else:
            execute(_MOVE_HEAD, (seq, digest, agent))
        if made.last_turn is not None:
            execute("UPDATE agents SET last_turn = ? WHERE id = ?", (_json(made.last_turn), agent))
        if made.agent_name is not None:
            execute("UPDATE agents SET name = ? WHERE id = ?", (made.agent_name, agent))

    def rewrite(self, books: Mapping[int, Book]) -> None:
        """Replace all rows by those of the books."""
        for agent, book in books.items():
            last = None if book.last_turn is None else _json(book.last_turn)
            self._sql.do(_SET_USAGE, (book.agent_name, last, book.rounds, *_token_values(book.total), agent))


def _token_values(tokens: TokenUsage) -> tuple[int, ...]:
    return tuple(getattr(tokens, name) for name in _TOKENS)


def _json(tokens: TokenUsage) -> str:
    return tokens.model_dump_json(exclude_defaults=True)
