"""The rows: turns, unknown outcomes, usage. Written from `rows.Changes`, read as they are, rebuilt from the log."""

import json
from typing import Any

from wakeful.contracts.models import AgentTokenUsageSummary, TokenUsage
from wakeful.ports import ActionRow, RuleRow, TurnRow, UnknownRow
from wakeful.store.rows import Book, Changes, summary
from wakeful.store.sqlite.connection import Statements

_TOKENS = tuple(TokenUsage.model_fields)
_TURN = """
    SELECT t.turn_id, a.agent_id, t.agent_name, t.thread_id, t.state, t.first_seq, t.last_seq, t.window_from,
           t.turn_index, t.key, t.fingerprint, t.prompt_preview, t.waiting_for, t.created_at, t.ended_at
    FROM turns t JOIN agents a ON a.id = t.agent
"""
_PUT_TURN = """
    INSERT INTO turns (turn_id, agent, agent_name, thread_id, state, first_seq, last_seq, window_from, turn_index, key,
                       fingerprint, prompt_preview, waiting_for, created_at, ended_at, heard, id, epoch)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT (turn_id) DO UPDATE SET
        agent_name = excluded.agent_name, state = excluded.state, first_seq = excluded.first_seq,
        last_seq = excluded.last_seq, window_from = excluded.window_from, turn_index = excluded.turn_index,
        waiting_for = excluded.waiting_for, ended_at = excluded.ended_at
"""
_PUT_UNKNOWN = "INSERT OR REPLACE INTO unknown VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
_GET_UNKNOWN = """
    SELECT u.call_id, a.agent_id, u.turn_id, u.thread_id, u.step, u.tool_name, u.safe_args, u.reason, u.since
    FROM unknown u JOIN agents a ON a.id = u.agent ORDER BY u.since, u.agent, u.seq
"""
_ACTION = """
    SELECT c.action_id, c.kind, a.agent_id, c.agent_name, c.turn_id, c.thread_id, c.step, c.call_id, c.tool_name,
           c.status, c.requested_at, c.expires_at, c.decided_at, c.decided_by, c.required_seq, c.resolved_seq
    FROM actions c JOIN agents a ON a.id = c.agent
"""
_PUT_ACTION = "INSERT OR REPLACE INTO actions VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
_RULE = """
    SELECT r.rule_id, a.agent_id, r.agent_name, r.rule, r.added_at, r.added_by, r.revoked_at, r.revoked_by
    FROM rules r JOIN agents a ON a.id = r.agent
"""
_PUT_RULE = "INSERT OR REPLACE INTO rules VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
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


class Views:
    """Reads and writes rows; decides nothing."""

    def __init__(self, sql: Statements) -> None:
        self._sql = sql

    def turn(self, turn_id: str) -> TurnRow | None:
        return self._one(f"{_TURN} WHERE t.turn_id = ?", turn_id)

    def turn_of_key(self, key: str) -> TurnRow | None:
        return self._one(f"{_TURN} WHERE t.key = ?", key)

    def turns(self, open_only: bool, limit: int | None, agent_id: str | None) -> list[TurnRow]:
        which = "t.ended_at IS NULL" if open_only else "TRUE"
        # The plus keeps the index of open turns in use: an agent has few of those, and any number that ended.
        one = "+t.agent = (SELECT id FROM agents WHERE agent_id = ?)"
        of, given = (one, (agent_id,)) if agent_id is not None else ("TRUE", ())
        order = "ORDER BY t.created_at DESC, t.agent DESC, t.first_seq DESC"
        found = self._sql.all(
            f"{_TURN} WHERE {which} AND {of} {order} LIMIT ?", (*given, -1 if limit is None else limit)
        )
        return [_turn_row(row) for row in found]

    def turns_of_thread(self, agent_id: str, thread_id: str) -> list[TurnRow]:
        sql = f"{_TURN} WHERE a.agent_id = ? AND t.thread_id = ? ORDER BY t.first_seq"
        return [_turn_row(row) for row in self._sql.all(sql, (agent_id, thread_id))]

    def unknown(self) -> list[UnknownRow]:
        return [UnknownRow._make((*row[:6], json.loads(row[6]), *row[7:])) for row in self._sql.all(_GET_UNKNOWN)]

    def action(self, action_id: str) -> ActionRow | None:
        found = self._sql.one(f"{_ACTION} WHERE c.action_id = ?", (action_id,))
        return None if found is None else ActionRow._make(found)

    def actions(self, pending_only: bool, turn_id: str | None) -> list[ActionRow]:
        which = "c.status = 'pending'" if pending_only else "TRUE"
        of, given = ("c.turn_id = ?", (turn_id,)) if turn_id is not None else ("TRUE", ())
        sql = f"{_ACTION} WHERE {which} AND {of} ORDER BY c.requested_at, a.agent_id, c.required_seq"
        return [ActionRow._make(row) for row in self._sql.all(sql, given)]

    def rule(self, rule_id: str) -> RuleRow | None:
        found = self._sql.one(f"{_RULE} WHERE r.rule_id = ?", (rule_id,))
        return None if found is None else _rule_row(found)

    def rules(self, agent_name: str | None) -> list[RuleRow]:
        of, given = ("r.agent_name = ?", (agent_name,)) if agent_name is not None else ("TRUE", ())
        return [_rule_row(row) for row in self._sql.all(f"{_RULE} WHERE {of} ORDER BY r.added_at, r.rule_id", given)]

    def usage(self, agent_id: str) -> AgentTokenUsageSummary:
        found = self._sql.one(_GET_USAGE, (agent_id,))
        if found is None:
            return AgentTokenUsageSummary()
        rounds, last_turn, *tokens = found
        last = None if last_turn is None else TokenUsage.model_validate_json(last_turn)
        return summary(TokenUsage(**dict(zip(_TOKENS, tokens, strict=True))), rounds, last)

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
        for key, opened in made.unknown.items():
            if opened is None:
                execute("DELETE FROM unknown WHERE turn_id = ? AND call_id = ?", key)
            else:
                execute(_PUT_UNKNOWN, _unknown_values(agent, *opened))
        for action in made.actions.values():
            execute(_PUT_ACTION, (*action[:2], agent, *action[3:]))
        for rule in made.rules.values():
            execute(_PUT_RULE, _rule_values(agent, rule))
        if made.last_turn is not None:
            execute("UPDATE agents SET last_turn = ? WHERE id = ?", (_json(made.last_turn), agent))
        if made.agent_name is not None:
            execute("UPDATE agents SET name = ? WHERE id = ?", (made.agent_name, agent))

    def rewrite(self, agent: int, book: Book) -> None:
        """Replace an agent's rows by those of the book. Turns keep their numbers and epochs: those are no views."""
        execute = self._sql.do
        rows = self._sql.all("SELECT turn_id, id, epoch FROM turns WHERE agent = ?", (agent,))
        kept: dict[str, tuple[int | None, int]] = {turn_id: (number, epoch) for turn_id, number, epoch in rows}
        execute("DELETE FROM turns WHERE agent = ?", (agent,))
        for view in ("unknown", "actions", "rules"):
            execute(f"DELETE FROM {view} WHERE agent = ?", (agent,))
        # Rows that had gone missing come last: they get new numbers, which must not be one that is given back.
        for row in sorted(book.turns.values(), key=lambda row: row.turn_id not in kept):
            number, epoch = kept.get(row.turn_id, (None, 0))
            execute(_PUT_TURN, _turn_values(agent, row, book.heard.get(row.turn_id, 0), number, epoch))
        for seq, unknown in book.unknown.values():
            execute(_PUT_UNKNOWN, _unknown_values(agent, seq, unknown))
        for action in book.actions.values():
            execute(_PUT_ACTION, (*action[:2], agent, *action[3:]))
        for rule in book.rules.values():
            execute(_PUT_RULE, _rule_values(agent, rule))
        last = None if book.last_turn is None else _json(book.last_turn)
        execute(_SET_USAGE, (book.agent_name, last, book.rounds, *_token_values(book.total), agent))

    def _one(self, sql: str, value: str) -> TurnRow | None:
        found = self._sql.one(sql, (value,))
        return None if found is None else _turn_row(found)


def _turn_row(row: tuple[Any, ...]) -> TurnRow:
    return TurnRow._make((*row[:12], tuple(json.loads(row[12])), *row[13:]))


def _rule_row(row: tuple[Any, ...]) -> RuleRow:
    return RuleRow._make((*row[:3], json.loads(row[3]), *row[4:]))


def _rule_values(agent: int, row: RuleRow) -> tuple[Any, ...]:
    return (row.rule_id, agent, row.agent_name, json.dumps(row.rule), *row[4:])


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


def _unknown_values(agent: int, seq: int, row: UnknownRow) -> tuple[Any, ...]:
    args = json.dumps(row.safe_args)
    return (row.turn_id, row.call_id, agent, seq, row.thread_id, row.step, row.tool_name, args, row.reason, row.since)


def _token_values(tokens: TokenUsage) -> tuple[int, ...]:
    return tuple(getattr(tokens, name) for name in _TOKENS)


def _json(tokens: TokenUsage) -> str:
    return tokens.model_dump_json(exclude_defaults=True)
