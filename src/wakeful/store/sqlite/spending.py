"""Spend windows and what is held in them: written from `store.spending`, which decides; read as they are."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from wakeful.contracts.spending import SpendRow, WindowKey
from wakeful.store.spending import Hold, HoldKey, Move, Spending, in_order
from wakeful.store.sqlite.connection import Statements

_COLUMNS = "turns, spend_limit, limited_at, spent, held, granted, noticed"
_PUT = "INSERT OR REPLACE INTO spending VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
_ONE = f"SELECT {_COLUMNS} FROM spending WHERE scope = ? AND period = ? AND began = ?"
_PUT_HOLD = "INSERT OR REPLACE INTO holds VALUES (?, ?, ?, ?, ?, ?, ?)"
_HOLD = "SELECT windows, held, provisional, priced FROM holds WHERE turn_id = ? AND level = ?"


class Windows:
    """Reads and writes rows; decides nothing."""

    def __init__(self, sql: Statements) -> None:
        self._sql = sql

    def one(self, key: WindowKey) -> Move | None:
        found = self._sql.one(_ONE, key)
        return None if found is None else _move(found)

    def after(self, at: int, scopes: Sequence[str] | None) -> list[SpendRow]:
        rows = self._sql.all(f"SELECT scope, period, began, {_COLUMNS} FROM spending WHERE turns > ?", (at,))
        kept = [row for row in rows if scopes is None or row[0] in scopes]
        return in_order(_move(row[3:]).row(WindowKey(*row[:3])) for row in kept)

    def hold(self, key: HoldKey) -> Hold | None:
        found = self._sql.one(_HOLD, key)
        return None if found is None else _hold(found)

    def holds_of(self, turn_id: str) -> dict[HoldKey, Hold]:
        sql = "SELECT level, windows, held, provisional, priced FROM holds WHERE turn_id = ?"
        return {(turn_id, level): _hold(rest) for level, *rest in self._sql.all(sql, (turn_id,))}

    def write(self, agent: int, made: Spending) -> None:
        """Everything an append changes."""
        for key, move in made.windows.items():
            before = self.one(key)
            self._put(key, move if before is None else before | move)
        for place, hold in made.holds.items():
            if hold is None:
                self._sql.do("DELETE FROM holds WHERE turn_id = ? AND level = ?", place)
            else:
                self._put_hold(agent, place, hold)

    def rewrite(self, windows: Mapping[WindowKey, Move], holds: Mapping[int, Mapping[HoldKey, Hold]]) -> None:
        """Replace all rows by these."""
        self._sql.do("DELETE FROM spending", ())
        self._sql.do("DELETE FROM holds", ())
        for key, move in windows.items():
            self._put(key, move)
        for agent, held in holds.items():
            for place, hold in held.items():
                self._put_hold(agent, place, hold)

    def _put(self, key: WindowKey, move: Move) -> None:
        self._sql.do(_PUT, (*key, *move))

    def _put_hold(self, agent: int, place: HoldKey, hold: Hold) -> None:
        self._sql.do(_PUT_HOLD, (*place, agent, json.dumps(hold.windows), *hold[1:]))


def _move(row: Sequence[Any]) -> Move:
    turns, limit, limited_at, spent, held, granted, noticed = row
    return Move(turns, limit, limited_at, spent, held, granted, bool(noticed))


def _hold(row: Sequence[Any]) -> Hold:
    keys = tuple(WindowKey(*key) for key in json.loads(row[0]))
    return Hold(keys, row[1], row[2], bool(row[3]))
