"""The rows of turns and agents. Written from `rows.Changes`, read as they are, rebuilt from the log."""

import json
from collections.abc import Mapping, Sequence
from decimal import Decimal
from functools import lru_cache
from typing import Any

from pydantic_core import from_json

from wakeful.contracts.models import AgentTokenUsageSummary, TokenUsage
from wakeful.ports import ThreadRow, TurnFilter, TurnRow, UsageOfName
from wakeful.store.rows import Book, Changes, summary
from wakeful.store.sqlite.connection import Statements
from wakeful.store.sqlite.streams import SHIFT
from wakeful.views.cost import CallGroup, PriceListUsed, TurnCost

_TOKENS = tuple(TokenUsage.model_fields)
_TURN = """
    SELECT t.turn_id, a.agent_id, t.agent_name, t.thread_id, t.state, t.first_seq, t.last_seq, t.window_from,
           t.turn_index, t.key, t.fingerprint, t.prompt_preview, t.waiting_for, t.created_at, t.ended_at
    FROM turns t JOIN agents a ON a.id = t.agent
"""
_COSTS = f"""
    {_TURN.replace("FROM turns", ", c.first_at, c.last_at, c.costs FROM turns")}
    LEFT JOIN turn_costs c ON c.turn = t.agent << {SHIFT} | t.first_seq
"""
_PUT_COST = "INSERT OR REPLACE INTO turn_costs VALUES (?, ?, ?, ?)"
_AGE = "t.created_at, t.agent, t.first_seq"
_NEWEST_FIRST = "ORDER BY t.created_at DESC, t.agent DESC, t.first_seq DESC"
_PUT_TURN = """
    INSERT INTO turns (turn_id, agent, agent_name, thread_id, state, first_seq, last_seq, window_from, turn_index, key,
                       fingerprint, prompt_preview, waiting_for, created_at, ended_at, heard, id, epoch)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT (turn_id) DO UPDATE SET
        agent_name = excluded.agent_name, state = excluded.state, first_seq = excluded.first_seq,
        last_seq = excluded.last_seq, window_from = excluded.window_from, turn_index = excluded.turn_index,
        waiting_for = excluded.waiting_for, ended_at = excluded.ended_at
"""
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
# From stream to stream along the index: as many steps as the name has streams, not turns.
_USAGE_OF_NAME = f"""
    WITH RECURSIVE streams (id) AS (
        SELECT min(agent) FROM turns WHERE agent_name = ?
        UNION ALL
        SELECT (SELECT min(agent) FROM turns WHERE agent_name = ? AND agent > streams.id)
        FROM streams WHERE streams.id IS NOT NULL
    )
    SELECT coalesce(sum(a.rounds), 0), count(a.last_turn), max(a.last_turn),
           {", ".join(f"coalesce(sum(a.{name}), 0)" for name in _TOKENS)}
    FROM streams CROSS JOIN agents a ON a.id = streams.id
"""
# Two indexes fit it equally well, for all that SQLite knows; one of them has every turn that ended.
_OPEN_IN_THREAD = _TURN.replace("turns t", "turns t INDEXED BY turns_open_in_thread")
_ONE_AGENT = "t.agent = (SELECT id FROM agents WHERE agent_id = ?)"
_NEVER = (1 << 63) - 1


class Views:
    """Reads and writes rows; decides nothing."""

    def __init__(self, sql: Statements) -> None:
        self._sql = sql

    def turn(self, turn_id: str) -> TurnRow | None:
        return self._one(f"{_TURN} WHERE t.turn_id = ?", turn_id)

    def turn_of_key(self, key: str) -> TurnRow | None:
        return self._one(f"{_TURN} WHERE t.key = ?", key)

    def turns(self, open_only: bool, limit: int | None) -> list[TurnRow]:
        which = "WHERE t.ended_at IS NULL" if open_only else ""
        found = self._sql.all(f"{_TURN} {which} {_NEWEST_FIRST} LIMIT ?", (-1 if limit is None else limit,))
        return [_turn_row(row) for row in found]

    def find_turns(self, which: TurnFilter, limit: int, before: str | None) -> list[TurnRow]:
        tests: list[str] = []
        values: list[Any] = []
        for test, value in (
            ("t.state = ?", which.state),
            ("t.agent_name = ?", which.agent_name),
            ("t.thread_id = ?", which.thread_id),
            ("t.turn_id >= ?", which.prefix),
            ("t.turn_id < ? || char(1114111)", which.prefix),
            (f"({_AGE}) < (SELECT {_AGE} FROM turns t WHERE t.turn_id = ?)", before),
        ):
            if value is not None:
                tests.append(test)
                values.append(value)
        chosen = f"WHERE {' AND '.join(tests)}" if tests else ""
        found = self._sql.all(f"{_TURN} {chosen} {_NEWEST_FIRST} LIMIT ?", (*values, limit))
        return [_turn_row(row) for row in found]

    def threads(self, agent_name: str | None, limit: int) -> list[ThreadRow]:
        # With one max(), SQLite takes the other columns from the row that has it.
        columns = _TURN.replace("FROM turns", ", count(*), max(t.first_seq) FROM turns")
        which, values = ("", ()) if agent_name is None else ("WHERE t.agent_name = ?", (agent_name,))
        sql = f"{columns} {which} GROUP BY t.thread_id, t.agent {_NEWEST_FIRST} LIMIT ?"
        return [ThreadRow(_turn_row(row[:15]), row[15]) for row in self._sql.all(sql, (*values, limit))]

    def count_turns(self) -> int:
        ((count,),) = self._sql.all("SELECT count(*) FROM turns")
        return int(count)

    def turns_of_agent(self, agent_id: str, limit: int, before: int | None) -> list[TurnRow]:
        sql = f"{_TURN} WHERE {_ONE_AGENT} AND t.first_seq < ? ORDER BY t.first_seq DESC LIMIT ?"
        found = self._sql.all(sql, (agent_id, _NEVER if before is None else before, limit))
        return [_turn_row(row) for row in found]

    def ended_turns(self, agent_name: str, limit: int, before: TurnRow | None) -> list[TurnRow]:
        which = "t.agent_name = ? AND t.ended_at IS NOT NULL AND t.ended_at <= ? AND (t.ended_at < ? OR t.turn_id < ?)"
        sql = f"{_TURN} WHERE {which} ORDER BY t.ended_at DESC, t.turn_id DESC LIMIT ?"
        end = _NEVER if before is None or before.ended_at is None else before.ended_at
        found = self._sql.all(sql, (agent_name, end, end, before.turn_id if before is not None else "", limit))
        return [_turn_row(row) for row in found]

    def turn_costs(self, since: int | None) -> list[tuple[TurnRow, TurnCost | None]]:
        begun, given = ("", ()) if since is None else ("WHERE t.ended_at >= ? OR t.ended_at IS NULL", (since,))
        found = self._sql.all(f"{_COSTS} {begun} ORDER BY t.created_at, t.agent, t.first_seq", given)
        return [(_turn_row(row[:15]), _cost(row[15:])) for row in found]

    def agent_names(self) -> list[str]:
        """One step from name to name along the index: as many as there are agents, not turns."""
        names: list[str] = []
        sql = "SELECT agent_name FROM turns WHERE agent_name > ? ORDER BY agent_name LIMIT 1"
        found = self._sql.one("SELECT min(agent_name) FROM turns")
        while found is not None and found[0] is not None:
            names.append(found[0])
            found = self._sql.one(sql, found)
        return names

    def turns_of_thread(
        self,
        agent_id: str,
        thread_id: str,
        *,
        open_only: bool = False,
        last: int | None = None,
        before: int | None = None,
    ) -> list[TurnRow]:
        turns, which = (_OPEN_IN_THREAD, "AND t.ended_at IS NULL") if open_only else (_TURN, "")
        sql = f"""
            {turns} WHERE {_ONE_AGENT} AND t.thread_id = ? {which} AND t.first_seq < ?
            ORDER BY t.first_seq DESC LIMIT ?
        """
        found = self._sql.all(
            sql, (agent_id, thread_id, _NEVER if before is None else before, -1 if last is None else last)
        )
        return [_turn_row(row) for row in reversed(found)]

    def turns_reaching_past(self, agent_id: str, thread_id: str, after: int) -> list[TurnRow]:
        """The turns of a thread that may have something after an event, oldest first: open ones may, whatever
        their rows say."""
        if not after:
            return self.turns_of_thread(agent_id, thread_id)
        # Open ones first: one that ends meanwhile is found by its last event.
        rows = {row.turn_id: row for row in self.turns_of_thread(agent_id, thread_id, open_only=True)}
        sql = f"{_TURN} WHERE {_ONE_AGENT} AND t.thread_id = ? AND t.last_seq > ?"
        rows |= {row[0]: _turn_row(row) for row in self._sql.all(sql, (agent_id, thread_id, after))}
        return sorted(rows.values(), key=lambda row: row.first_seq)

    def agents_of_thread(self, thread_id: str, limit: int) -> list[str]:
        """From agent to agent along the index."""
        found: list[str] = []
        sql = """
            SELECT a.id, a.agent_id FROM agents a
            WHERE a.id = (SELECT min(agent) FROM turns WHERE thread_id = ? AND agent > ?)
        """
        number = 0
        while len(found) < limit and (row := self._sql.one(sql, (thread_id, number))) is not None:
            number, agent_id = row
            found.append(agent_id)
        return found

    def usage(self, agent_id: str) -> AgentTokenUsageSummary:
        found = self._sql.one(_GET_USAGE, (agent_id,))
        if found is None:
            return AgentTokenUsageSummary()
        rounds, last_turn, *tokens = found
        last = None if last_turn is None else TokenUsage.model_validate_json(last_turn)
        return summary(TokenUsage(**dict(zip(_TOKENS, tokens, strict=True))), rounds, last)

    def usage_of_name(self, agent_name: str) -> UsageOfName:
        ((rounds, reporting, newest, *tokens),) = self._sql.all(_USAGE_OF_NAME, (agent_name, agent_name))
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
        for turn_id, row in made.turns.items():
            execute(_PUT_TURN, _turn_values(agent, row, made.heard.get(turn_id, 0)))
        for turn_id, last in made.last_seq.items():
            if turn_id not in made.turns:
                execute("UPDATE turns SET last_seq = ?, heard = ? WHERE turn_id = ?", (last, last, turn_id))
        for turn_id, cost in made.costs.items():
            execute(_PUT_COST, _cost_values(agent, made.turns[turn_id].first_seq, cost))
        if made.last_turn is not None:
            execute("UPDATE agents SET last_turn = ? WHERE id = ?", (_json(made.last_turn), agent))
        if made.agent_name is not None:
            execute("UPDATE agents SET name = ? WHERE id = ?", (made.agent_name, agent))

    def rewrite(self, books: Mapping[int, Book]) -> None:
        """Replace all rows by those of the books. Turns keep their numbers and epochs: those are no views."""
        execute = self._sql.do
        numbers = self._sql.all("SELECT turn_id, id, epoch FROM turns")
        kept: dict[str, tuple[int | None, int]] = {turn_id: (number, epoch) for turn_id, number, epoch in numbers}
        for view in ("turns", "turn_costs"):
            execute(f"DELETE FROM {view}")
        # Rows that had gone missing come last: they get new numbers, which must not be one that is given back.
        turns = [(agent, book, row) for agent, book in books.items() for row in book.turns.values()]
        for agent, book, row in sorted(turns, key=lambda turn: turn[2].turn_id not in kept):
            number, epoch = kept.get(row.turn_id, (None, 0))
            execute(_PUT_TURN, _turn_values(agent, row, book.heard.get(row.turn_id, 0), number, epoch))
        for agent, book in books.items():
            self._rewrite(agent, book)

    def _rewrite(self, agent: int, book: Book) -> None:
        execute = self._sql.do
        for turn_id, cost in book.costs.items():
            execute(_PUT_COST, _cost_values(agent, book.turns[turn_id].first_seq, cost))
        last = None if book.last_turn is None else _json(book.last_turn)
        execute(_SET_USAGE, (book.agent_name, last, book.rounds, *_token_values(book.total), agent))

    def _one(self, sql: str, value: str) -> TurnRow | None:
        found = self._sql.one(sql, (value,))
        return None if found is None else _turn_row(found)


def _turn_row(row: tuple[Any, ...]) -> TurnRow:
    return TurnRow._make((*row[:12], tuple(json.loads(row[12])), *row[13:]))


def _cost_values(agent: int, first_seq: int, cost: TurnCost) -> tuple[Any, ...]:
    groups = [
        (
            group.model_ref,
            group.depth,
            None if group.price_list is None else (group.price_list.name, group.price_list.date),
            *(group.calls, group.unpriced, group.unreported),
            _token_values(group.used),
            str(group.cost),
        )
        for group in cost.groups
    ]
    return (agent << SHIFT | first_seq, cost.first_at, cost.last_at, json.dumps(groups, separators=(",", ":")))


def _cost(row: tuple[Any, ...]) -> TurnCost | None:
    first_at, last_at, groups = row
    return None if groups is None else TurnCost(first_at, last_at, tuple(_group(*each) for each in from_json(groups)))


def _group(
    model_ref: str, depth: int, listed: tuple[str, str | None] | None, calls: int, unpriced: int, unreported: int,
    tokens: Sequence[int], cost: str,
) -> CallGroup:  # fmt: skip
    prices = None if listed is None else _price_list(*listed)
    used = TokenUsage(**dict(zip(_TOKENS, tokens, strict=True)))
    return CallGroup(model_ref, depth, prices, calls, unpriced, unreported, used, Decimal(cost))


@lru_cache(maxsize=64)
def _price_list(name: str, date: str | None) -> PriceListUsed:
    return PriceListUsed(name=name, date=date)


def _turn_values(agent: int, row: TurnRow, heard: int, number: int | None = None, epoch: int = 0) -> tuple[Any, ...]:
    return (
        row.turn_id,
        agent,
        row.agent_name,
        row.thread_id,
        row.state,
        row.first_seq,
        row.last_seq,
        row.window_from,
        row.turn_index,
        row.key,
        row.fingerprint,
        row.prompt_preview,
        json.dumps(row.waiting_for),
        row.created_at,
        row.ended_at,
        heard,
        number,
        epoch,
    )


def _token_values(tokens: TokenUsage) -> tuple[int, ...]:
    return tuple(getattr(tokens, name) for name in _TOKENS)


def _json(tokens: TokenUsage) -> str:
    return tokens.model_dump_json(exclude_defaults=True)
