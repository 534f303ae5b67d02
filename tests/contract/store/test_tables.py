"""Every declared table on every backend: what is read is what its rules made, live, rebuilt and by pages."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import apsw
import pytest

from contract.store.conftest import BACKENDS, Backend
from kit.runs.action_facts import asked, decided
from kit.runs.store_facts import AGENT, claimed
from kit.runs.table_facts import OTHER, OTHER_TURN, tell, told
from wakeful.contracts.errors import EventRefused
from wakeful.ports import Match, RowQuery, Store, Table
from wakeful.ports.approvals import ACTIONS, PENDING_ACTIONS
from wakeful.store.memory import MemoryStore
from wakeful.store.sqlite import SqliteStore
from wakeful.store.sqlite.migrations import shipped
from wakeful.store.sqlite.schema import create
from wakeful.store.sqlite.tables import query_sql
from wakeful.store.table_changes import TableChanges, needs_of
from wakeful.store.tables import RULES_OF_EVENT, TABLES
from wakeful.store.tables.row_rules import LogEntry
from wakeful.store.tables.turns import SAID

QUERIES = [(table, query) for table in TABLES for query in table.queries]


async def everything(store: Store, table: Table[Any]) -> list[Any]:
    return await store.find_rows(table, [Match({})], order=table.key)


async def listed(store: Store, table: Table[Any], query: RowQuery) -> dict[tuple[Any, ...], list[Any]]:
    """The query, for every group of values that its `equal` fields have, and for one that nobody has."""
    groups = {table.values_of(row, query.equal) for row in await everything(store, table)}
    nobody = tuple("nobody" for _ in query.equal)
    return {group: await store.list_rows(table, query, *group) for group in (*sorted(groups), nobody)}


async def all_rows(store: Store) -> dict[str, Any]:
    found: dict[str, Any] = {table.name: await everything(store, table) for table in TABLES}
    for table, query in QUERIES:
        found[f"{table.name} {query}"] = await listed(store, table, query)
    return found


def test_the_story_has_every_event_that_a_table_is_about() -> None:
    only_said = {event for event, rules in RULES_OF_EVENT.items() if [rule for _, rule in rules] == [SAID]}
    assert set(RULES_OF_EVENT) - only_said - told() == set(), "add these facts to kit/runs/table_facts.py"


async def test_live_rows_equal_rebuilt_rows(store: Store, backend: Backend) -> None:
    await tell(store)
    live = await all_rows(store)
    assert [table.name for table in TABLES if len(live[table.name]) < 2] == [], "the story leaves two rows in each"
    await store.rebuild_views()
    assert await all_rows(store) == live
    again = await backend.open()
    assert await all_rows(again) == live
    await again.close()


async def test_every_backend_has_the_same_rows(tmp_path: Path) -> None:
    stories = []
    for make in BACKENDS.values():
        store = await make(tmp_path).open()
        await tell(store)
        stories.append(await all_rows(store))
        await store.close()
    assert all(story == stories[0] for story in stories)


async def test_a_row_is_found_by_its_key(store: Store) -> None:
    await tell(store)
    for table in TABLES:
        rows = await everything(store, table)
        assert [await store.get_row(table, *table.key_of(row)) for row in rows] == rows
        assert await store.get_row(table, *("nobody" for _ in table.key)) is None


async def test_a_query_shows_the_rows_it_is_about_in_its_order(store: Store) -> None:
    await tell(store)
    agents = await store.agents()
    for table, query in QUERIES:

        def place(row: Any, table: Table[Any] = table, order: tuple[str, ...] = query.order) -> list[Any]:
            values = zip(order, table.values_of(row, order), strict=True)
            return [agents.index(value) if name == "agent_id" else value for name, value in values]

        for group, rows in (await listed(store, table, query)).items():
            where = query.where
            expected = [
                row
                for row in await everything(store, table)
                if table.values_of(row, query.equal) == group
                and (where is None or where.holds(table.values_of(row, (where.field,))[0]))
            ]
            assert rows == sorted(expected, key=place), (table.name, query)
            assert len({tuple(place(row)) for row in rows}) == len(rows), "its order is a total one"


@pytest.mark.parametrize("backwards", [False, True])
async def test_the_pages_of_a_query_are_the_whole_of_it(store: Store, backwards: bool) -> None:
    await tell(store)
    for table, query in QUERIES:
        for group, rows in (await listed(store, table, query)).items():
            found: list[Any] = []
            after: tuple[Any, ...] = ()
            while page := await store.list_rows(table, query, *group, after=after, limit=1, backwards=backwards):
                found += page
                after = table.values_of(page[-1], query.order)
            assert found == (rows[::-1] if backwards else rows), (table.name, query)


async def test_an_index_that_was_read_by_before_its_rows_came_shows_the_same_as_one_that_was_not() -> None:
    early, late = MemoryStore(), MemoryStore()
    for table, query in QUERIES:  # an index is made when somebody first reads by it, and kept from then on
        assert await early.list_rows(table, query, *("nobody" for _ in query.equal)) == []
    await tell(early)
    await tell(late)
    assert await all_rows(early) == await all_rows(late)
    await early.close()
    await late.close()


async def test_rows_of_one_key_follow_from_one_agents_log(store: Store) -> None:
    second = await tell(store)
    before = await all_rows(store)
    with pytest.raises(EventRefused, match=f"appr_1 in actions belongs to agent {AGENT}"):
        await store.append(second, [asked(turn=OTHER_TURN)])
    with pytest.raises(EventRefused, match="nobody asked"):
        await store.admit(OTHER, [replace(decided(), turn_id=OTHER_TURN)])
    assert await all_rows(store) == before


def test_a_rule_reads_only_what_it_named_beforehand() -> None:
    facts = [asked()]
    assert needs_of(facts, AGENT)
    with pytest.raises(KeyError):
        TableChanges(AGENT, {}).take_in(LogEntry(AGENT, "calc", 1, facts[0]))


# --- SQLite ------------------------------------------------------------------------------------------------------


def normal(sql: str) -> str:
    """Without comments and without what only looks different."""
    return re.sub(r"\s*([(),])\s*", r"\1", " ".join(re.sub(r"--.*", "", sql).replace('"', "").split()))


def made_by_migrations() -> dict[str, str]:
    connection = apsw.Connection(":memory:")
    for step in shipped():
        connection.execute(step.sql)
    return dict(connection.execute("SELECT name, sql FROM sqlite_schema WHERE sql IS NOT NULL").fetchall())


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_migrations_make_what_is_declared(table: Table[Any]) -> None:
    made = made_by_migrations()
    declared = create(table)
    names = [table.name, *(index.name for index in table.indexes)]
    text = ";\n".join(declared)
    for name, sql in zip(names, declared, strict=True):
        assert normal(made.get(name, "")) == normal(sql), f"write this into a new migration:\n\n{text};"
    others = [name for name, sql in made.items() if f" ON {table.name} (" in sql and name not in names]
    assert others == [], "indexes that nobody declares"


def plan(connection: apsw.Connection, table: Table[Any], query: RowQuery) -> list[str]:
    # A page of the whole table by its key begins at a place in it; the first page of all is the table itself.
    sql = query_sql(table, query, after=int(query.served_by == "key" and not query.equal))
    found = connection.execute(f"EXPLAIN QUERY PLAN {sql}", (None,) * sql.count("?"), can_cache=False)
    return [detail for *_, detail in found if re.match(r"(SCAN|SEARCH) t\b", detail)]


def serves(query: RowQuery, steps: list[str]) -> bool:
    using = "PRIMARY KEY" if query.served_by == "key" else f"INDEX {query.served_by} "
    found = all(using in f"{step} " for step in steps)
    return found and all(step.startswith("SEARCH") for step in steps) if query.equal else found


async def test_every_query_is_served_as_it_says_and_every_index_serves_one(tmp_path: Path) -> None:
    store = await SqliteStore.open(tmp_path / "runs.db")
    await tell(store)
    for table, query in QUERIES:
        if query.served_by:
            assert serves(query, plan(store._connection, table, query)), (table.name, query)
        else:
            assert query.few, f"a query of {table.name} reads the whole table: say why that is nothing"
    served = {query.served_by for _, query in QUERIES}
    assert [index.name for table in TABLES for index in table.indexes if index.name not in served] == []
    await store.close()


async def test_inversion_a_query_without_its_index_is_found(tmp_path: Path) -> None:
    store = await SqliteStore.open(tmp_path / "runs.db")
    store._connection.execute("DROP INDEX actions_pending")
    with pytest.raises(apsw.SQLError, match="no such index: actions_pending"):
        plan(store._connection, ACTIONS, PENDING_ACTIONS)
    unserved = PENDING_ACTIONS._replace(served_by="")
    assert not serves(PENDING_ACTIONS, plan(store._connection, ACTIONS, unserved))
    await store.close()


async def test_inversion_rows_that_are_not_rebuilt_are_found(store: Store, backend: Any) -> None:
    """The comparison would see a row that only the live store has."""
    claim = await claimed(store)
    before = await all_rows(store)
    await store.append(claim, [asked()])
    assert await all_rows(store) != before
