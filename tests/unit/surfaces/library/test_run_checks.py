"""Options that could have no effect are refused before anything runs, with the line to add."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import pytest
from typing_extensions import TypedDict

from kit.runs.engine_runs import calls
from wakeful import (
    Agent,
    RunContext,
    SpendWindow,
    cancel,
    cancel_request,
    interject,
    interrupt,
    pause,
    pending_requests,
    resume,
    resume_all,
    run,
    run_sync,
    run_workflow,
    stream,
    submit_result,
    timeout_request,
    tool,
)
from wakeful.contracts.errors import InvalidConfig, InvalidRequest, StoreProblem, WrongDeps
from wakeful.store.memory import MemoryStore
from wakeful.testing import scripted


@tool(effect="pure")
def look() -> str:
    """Look."""
    return "seen"


@tool(approval=True)
def pay() -> str:
    """Pay."""
    return "paid"


@tool(approval=lambda call: True)
def perhaps() -> str:
    """Pay, if somebody says so."""
    return "paid"


def clerk(*tools: Any, **options: Any) -> Agent[Any, str]:
    return Agent("clerk", scripted([calls(tools[0].name), "done"], leftover="ignore"), tools=list(tools), **options)


@pytest.mark.parametrize(
    ("agent", "options", "words", "line"),
    [
        (clerk(look), {"key": "ticket-1"}, "key='ticket-1'", 'add store="runs.db"'),
        (clerk(look), {"thread": "ada"}, "thread='ada'", 'add store="runs.db"'),
        (clerk(pay), {}, "the tool 'pay' needs approval", "approver=..."),
        (clerk(look, hitl_tools=["look"]), {}, "hitl_tools=['look']", "approver=..."),
        (clerk(look), {"tools": [pay]}, "the tool 'pay' needs approval", "approver=..."),
        (clerk(clerk(pay).as_tool()), {}, "the tool 'pay' of agent 'clerk' needs approval", "approver=..."),
        (
            clerk(clerk(look, hitl_tools=["look"]).as_tool()),
            {},
            "hitl_tools=['look'] of agent 'clerk'",
            "approver=...",
        ),
        (clerk(look, spend_windows=[SpendWindow("day", 2)]), {}, "spend_windows of agent 'clerk'", "budget=Budget("),
    ],
)
async def test_what_needs_a_store_is_refused_without_one(
    agent: Agent[Any, str], options: dict[str, Any], words: str, line: str
) -> None:
    for begin in (run, stream):
        with pytest.raises(InvalidRequest) as refused:
            await begin(agent, "go", **options)
        assert words in refused.value.message and line in refused.value.hint
    for nowhere in (None, ":memory:"):
        with pytest.raises(InvalidRequest):
            run_sync(agent, "go", store=nowhere, **options)
    assert (await run(agent, "go", store=MemoryStore(), **options)).status in ("completed", "approval_required")


async def test_tools_that_this_run_leaves_out_need_nobody() -> None:
    assert (await run(clerk(pay), "go", tools=[look], model=scripted(["done"]))).output == "done"


async def test_a_workflow_without_a_store_is_held_to_the_same() -> None:
    graph = {
        "name": "ask",
        "nodes": [{"id": "may_i", "kind": "approval"}],
        "edges": [],
    }
    for options, words in (({"key": "k"}, "key='k'"), ({"thread": "t"}, "thread='t'"), ({}, "the node 'may_i'")):
        with pytest.raises(InvalidRequest, match=words):
            await run_workflow(clerk(look), graph, **options)


async def test_with_somebody_to_decide_no_store_is_needed() -> None:
    async def yes(approval: Any) -> bool:
        return True

    assert (await run(clerk(pay), "go", approver=yes)).output == "done"


async def test_a_run_in_memory_on_which_only_the_gate_asks_says_what_would_have_helped() -> None:
    result = await run(clerk(perhaps), "go")
    assert result.status == "approval_required"
    assert 'add store="runs.db"' in result.message and "approver=..." in result.message
    async with stream(clerk(perhaps), "go") as watched:
        assert 'add store="runs.db"' in (await watched.result()).message
    assert "add store" not in (await run(clerk(perhaps), "go", store=MemoryStore())).message


async def test_a_run_in_memory_that_waits_for_a_client_says_what_would_have_helped() -> None:
    @tool(effect="pure", external=True)
    def show() -> str:
        """Show."""
        return ""

    result = await run(clerk(show), "go")
    assert result.status == "runtime_tool_pending" and 'add store="runs.db"' in result.message


READERS: list[Any] = [
    lambda store: resume(store, "turn_1", agents=[clerk(look)]),
    lambda store: resume_all(store, agents=[clerk(look)]),
    lambda store: cancel(store, "turn_1"),
    lambda store: pause(store, "turn_1"),
    lambda store: interrupt(store, turn_id="turn_1"),
    lambda store: interject(store, "turn_1", "hello"),
    pending_requests,
    lambda store: submit_result(store, "request-1", "done"),
    lambda store: timeout_request(store, "request-1"),
    lambda store: cancel_request(store, "request-1"),
]


@pytest.mark.parametrize("reads", READERS)
async def test_what_looks_for_earlier_turns_needs_a_store_that_is_there(reads: Any, tmp_path: Path) -> None:
    for nowhere in (None, ":memory:"):
        with pytest.raises(InvalidRequest, match="no store was named"):
            await reads(nowhere)
    with pytest.raises(StoreProblem, match="there is no store"):
        await reads(tmp_path / "rnus.db")
    assert list(tmp_path.iterdir()) == [], "nothing is made of a misspelt path"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"budget": {"usd": 1}}, "is not a Budget"),
        ({"principal": "ann"}, "is not a Principal"),
        ({"approver": "yes"}, "run[(]approver="),
        ({"approver": lambda: True}, "run[(]approver="),
    ],
)
async def test_values_that_the_run_could_not_use_are_refused(options: dict[str, Any], words: str) -> None:
    for begin in (run, stream):
        with pytest.raises(InvalidConfig, match=words):
            await begin(clerk(look), "go", **options)


async def test_a_misspelt_store_path_makes_no_folders(tmp_path: Path) -> None:
    with pytest.raises(StoreProblem, match="there is no folder") as refused:
        await run(clerk(look), "go", store=tmp_path / "dta" / "runs.db")
    assert refused.value.hint == f"mkdir -p {tmp_path / 'dta'}" and list(tmp_path.iterdir()) == []


@dataclass
class Shop:
    name: str


class Bigger(Shop):
    """One of its own."""


class Config(TypedDict):
    name: str


class Named(Protocol):
    @property
    def name(self) -> str: ...


def keeper(deps_type: Any) -> Agent[Any, str]:
    @tool(effect="pure")
    def look(ctx: RunContext[Any]) -> str:
        """Look."""
        return "seen"

    return Agent("keeper", scripted([calls("look"), "done"], leftover="ignore"), tools=[look], deps_type=deps_type)


@pytest.mark.parametrize(
    ("deps_type", "wrong", "right"),
    [
        (Shop, {"name": "A"}, Shop("A")),
        (Shop, Shop, Bigger("A")),
        (dict[str, int], [1], {"a": 1}),
        (Config, Shop("A"), {"name": "A"}),
    ],
)
async def test_deps_of_another_type_are_noticed_before_the_run(deps_type: Any, wrong: Any, right: Any) -> None:
    store = MemoryStore()
    with pytest.raises(WrongDeps, match="agent 'keeper' needs deps of type"):
        await run(keeper(deps_type), "go", deps=wrong, store=store)
    assert await store.turns() == []
    assert (await run(keeper(deps_type), "go", deps=right, store=store)).output == "done"


async def test_deps_of_which_nothing_can_be_said_are_taken() -> None:
    assert (await run(keeper(Named), "go", deps=Shop("A"))).output == "done"


@tool(effect="pure")
def shelf(ctx: RunContext[Shop]) -> str:
    """Look at the shelf."""
    return ctx.deps.name


def greeting(ctx: RunContext[Shop]) -> str:
    return f"You work for {ctx.deps.name}."


@pytest.mark.parametrize(
    ("agent", "words"),
    [
        (clerk(shelf), "agent 'clerk' needs deps of type Shop for 'shelf'"),
        (clerk(look, instructions=greeting), "agent 'clerk' needs deps of type Shop for 'instructions'"),
        (Agent("head", scripted(["done"]), tools=[clerk(shelf).as_tool()]), "agent 'clerk' needs deps of type Shop"),
    ],
)
async def test_what_a_tool_or_the_instructions_read_says_the_type_of_deps_too(agent: Any, words: str) -> None:
    store = MemoryStore()
    with pytest.raises(WrongDeps, match=words):
        await run(agent, "go", deps="a shop", store=store)
    assert await store.turns() == []
    assert (await run(agent, "go", deps=Bigger("A"), store=store)).output == "done"
