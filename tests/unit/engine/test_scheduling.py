"""Reads together, a writer alone: seen from the facts of the run."""

import asyncio
from itertools import pairwise
from typing import Any

import pytest

from kit.runs.asked_runs import again, agent, asked, check_replay, say
from kit.runs.engine_runs import of_kind
from wakeful import Approve, RunContext, Tool, run, tool
from wakeful.contracts.events import ToolFailed, ToolResult, ToolStarted
from wakeful.contracts.tools import ToolDeclaration
from wakeful.store.memory import MemoryStore
from wakeful.tools.call_runner import CallHandle, begin

SLOW = 0.05


def slow(name: str, **options: Any) -> Any:
    async def work() -> str:
        await asyncio.sleep(SLOW)
        return name

    return tool(work, **{"name": name, "effect": "pure", **options})


READS = [slow("read1"), slow("read2"), slow("read3")]
WRITES = [slow("write", effect="irreversible"), slow("keyed", effect="keyed")]


async def spans(*named: str) -> list[tuple[str, int, int]]:
    """When each call of a batch began and ended, by its events, in the order of beginnings."""
    store = MemoryStore()
    result = await run(agent([*READS, *WRITES], named), "go", store=store)
    assert result.output == "done"
    await check_replay(store, result)
    at = {}
    for entry in result.facts():
        event = entry.fact.event
        if isinstance(event, ToolStarted):
            at[entry.fact.call_id] = [event.tool_name, entry.fact.at, 0]
        elif isinstance(event, ToolResult | ToolFailed):
            at[entry.fact.call_id][2] = entry.fact.at
    return sorted(((name, begun, ended) for name, begun, ended in at.values()), key=lambda span: span[1])


def overlap(one: tuple[str, int, int], two: tuple[str, int, int]) -> bool:
    return one[1] < two[2] and two[1] < one[2]


@pytest.mark.spec("STD-CONC-02", "STD-CONC-05", "STD-CONC-06")
async def test_two_reads_together_then_the_write_then_the_read() -> None:
    first, second, write, last = await spans("read1", "read2", "write", "read3")
    assert [each[0] for each in (first, second, write, last)] == ["read1", "read2", "write", "read3"]
    assert overlap(first, second), "consecutive reads run together"
    assert not any(overlap(write, other) for other in (first, second, last)), "the writer is alone"
    assert max(first[2], second[2]) <= write[1] and write[2] <= last[1], "it waits, and is waited for"


@pytest.mark.spec("STD-CONC-03")
@pytest.mark.parametrize("writer", ["write", "keyed"])
async def test_writers_run_one_after_another(writer: str) -> None:
    found = await spans(writer, writer, "write")
    assert all(before[2] <= after[1] for before, after in pairwise(found))


@pytest.mark.spec("STD-CONC-01")
async def test_the_flags_that_are_declared_are_the_ones_that_schedule() -> None:
    """The same slow function: what it is declared as decides whether it runs together with another."""
    for options, together in (
        ({"effect": "pure"}, True),
        ({"effect": "keyed"}, False),
        ({"effect": "keyed", "changes_state": False}, True),
        ({"effect": "irreversible"}, False),
    ):
        store = MemoryStore()
        result = await run(agent([slow("a", **options), slow("b", **options)], ("a", "b")), "go", store=store)
        began = {entry.fact.call_id: entry.seq for entry in result.facts() if isinstance(entry.fact.event, ToolStarted)}
        ended = {entry.fact.call_id: entry.seq for entry in result.facts() if isinstance(entry.fact.event, ToolResult)}
        assert (began["call_1_2"] < ended["call_1_1"]) == together, options
        for started in of_kind(result, ToolStarted):
            assert started.scheduling == ("parallel" if together else "serial")
            assert started.is_concurrency_safe == together
            assert started.is_read_only == together
            assert started.is_destructive == (options["effect"] == "irreversible")


class Query(Tool[object]):
    """Declared as a read. It says for itself, by its arguments, what one call is."""

    def __init__(self, declared: ToolDeclaration, changes: dict[str, Any]) -> None:
        self._declared = declared
        self._changes = changes
        self.at_once = 0
        self.beside_a_write: list[int] = []

    @property
    def declaration(self) -> ToolDeclaration:
        return self._declared

    @property
    def name(self) -> str:
        return self._declared.name

    @property
    def needs_deps(self) -> bool:
        return False

    def traits(self, arguments: dict[str, Any]) -> ToolDeclaration:
        return self._declared.model_copy(update=self._changes) if arguments.get("write") else self._declared

    def start(self, ctx: RunContext[object], arguments: dict[str, Any]) -> CallHandle:
        return begin(self._work, True, (), {"write": bool(arguments.get("write"))})

    async def _work(self, write: bool) -> str:
        self.at_once += 1
        for _ in range(5):
            await asyncio.sleep(SLOW / 5)
            if write:
                self.beside_a_write.append(self.at_once - 1)
        self.at_once -= 1
        return "done"


WRITING = {"effect": "irreversible", "parallel_safe": False}
SCHEMA = {"type": "object", "properties": {"write": {"type": "boolean"}}}


@pytest.mark.spec("STD-CONC-04")
@pytest.mark.parametrize("place", [0, 1, 2, 3])
async def test_a_call_that_its_arguments_make_a_writer_runs_alone_and_says_so(place: int) -> None:
    batch = [("query", {"write": index == place}) for index in range(4)]
    query = Query(ToolDeclaration(name="query", input_schema=SCHEMA, effect="pure"), WRITING)
    store = MemoryStore()
    result = await run(agent([query], tuple(batch)), "go", store=store)
    assert result.output == "done"
    await check_replay(store, result)
    assert query.beside_a_write and set(query.beside_a_write) == {0}
    flags = {
        entry.fact.call_id: (event.is_read_only, event.is_concurrency_safe, event.is_destructive)
        for entry in result.facts()
        if isinstance(event := entry.fact.event, ToolStarted)
    }
    strict, plain = (False, False, True), (True, True, False)
    assert flags == {f"call_1_{index + 1}": strict if index == place else plain for index in range(4)}
    # The inversion: without a word about the call, the same four run together.
    silent = Query(query.declaration, {})
    await run(agent([silent], tuple(batch)), "go", store=MemoryStore())
    assert max(silent.beside_a_write) > 0


async def test_no_call_is_looser_than_what_its_tool_declares() -> None:
    declared = ToolDeclaration(name="query", input_schema=SCHEMA, effect="irreversible", locks=("db",))
    query = Query(declared, {"effect": "pure", "changes_state": False, "parallel_safe": True, "locks": ()})
    result = await run(agent([query], (("query", {"write": True}), ("query", {"write": True}))), "go")
    assert set(query.beside_a_write) == {0}
    for started in of_kind(result, ToolStarted):
        assert (started.is_read_only, started.is_concurrency_safe, started.effect) == (False, False, "irreversible")


async def test_a_serial_call_that_waits_for_a_person_holds_nobody_up_and_runs_alone_afterwards() -> None:
    store = MemoryStore()
    support = agent([*READS, slow("write", effect="irreversible", approval=True)], ("write", "read1", "read2"))
    first = await asked(support, store)
    assert [event.tool_name for event in of_kind(first, ToolResult)] in (["read1", "read2"], ["read2", "read1"])
    await say(store, first.approvals[0], Approve())
    assert (await again(support, store)).output == "done"
