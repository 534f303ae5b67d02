"""Runs with a client in them, to be killed: asked, answered, gone on with; and asked, not answered, timed out."""

from typing import Any

from crash.scenarios import calls, check, model, send_letter
from wakeful import Agent, RunResult, pending_requests, resume, run, submit_result, timeout_request, tool
from wakeful.contracts.events import RuntimeToolRequested, RuntimeToolResolved, ToolFailed, ToolResult
from wakeful.contracts.runtime_tools import RuntimeToolRequest
from wakeful.ports import Store
from wakeful.testing import Ledger

LARGE = "0123456789" * 20_000


@tool(external=True)
def pick_file(folder: str) -> str: ...


@tool(external=True)
def paint(shape: str) -> str: ...


def support(ledger: Ledger) -> Agent[Ledger, Any]:
    steps = [
        calls(("client/pick_file", {"folder": "/home"}), "send_letter", ("client/paint", {"shape": "star"})),
        calls(("client/paint", {"shape": "moon"})),
        "done",
    ]
    return Agent("support", model(ledger, steps), tools=[pick_file, paint, send_letter], deps_type=Ledger)


def act(ledger: Ledger, request: RuntimeToolRequest) -> dict[str, Any]:
    """What a client does when it is asked: it knows requests by their names and does nothing twice."""
    ledger.here()
    ledger.once(request.tool_name, request.request_id)
    ledger.here()
    return {"did": request.parameters, "large": LARGE if "pick" in request.tool_name else ""}


async def answered(store: Store, ledger: Ledger) -> None:
    """One program that is the run and its client in turns."""
    result = await run(support(ledger), "go", deps=ledger, store=store, key="k")
    while result.status == "runtime_tool_pending":
        for request in await pending_requests(store):
            await submit_result(store, request.request_id, act(ledger, request))
        result = await run(support(ledger), "go", deps=ledger, store=store, key="k")
    assert result.output == "done"
    await check(store, ledger, result)
    await one_answer_each(store, result, painted=2)


async def unanswered(store: Store, ledger: Ledger) -> None:
    """The client did it and never said so: nobody knows, and that is what the log says."""
    result = await run(support(ledger), "go", deps=ledger, store=store, key="k")
    while result.status == "runtime_tool_pending":
        for request in await pending_requests(store):
            act(ledger, request)
            await timeout_request(store, request.request_id)
        result = await resume(store, result.turn_id, [support(ledger)], deps=ledger)
    assert result.output == "done"
    # The letter may be one more, when the process was killed while it was sent.
    assert [call.tool for call in result.unknown if call.tool != "send_letter"] == [
        *("client/pick_file", "client/paint", "client/paint")
    ]
    await check(store, ledger, result)
    await one_answer_each(store, result, painted=2)


async def forgetful(store: Store, ledger: Ledger) -> None:
    """Taken out: a client that does not know requests by their names does again what it did before it was killed."""
    result = await run(support(ledger), "go", deps=ledger, store=store, key="k")
    while result.status == "runtime_tool_pending":
        for request in await pending_requests(store):
            ledger.record(request.tool_name, request.request_id)
            await submit_result(store, request.request_id, {})
        result = await run(support(ledger), "go", deps=ledger, store=store, key="k")


async def one_answer_each(store: Store, result: RunResult[Any], *, painted: int) -> None:
    """Every request was made once, answered once, and became one outcome."""
    (row,) = await store.turns()
    facts = await store.read(row.agent_id, turn_id=row.turn_id)
    asked = [entry.fact.call_id for entry in facts if isinstance(entry.fact.event, RuntimeToolRequested)]
    said = [entry.fact.call_id for entry in facts if isinstance(entry.fact.event, RuntimeToolResolved)]
    ended = [entry.fact.call_id for entry in facts if isinstance(entry.fact.event, ToolResult | ToolFailed)]
    assert len(asked) == len(set(asked)) == painted + 1
    assert sorted(map(str, said)) == sorted(map(str, asked))
    assert all(ended.count(call) == 1 for call in asked)
    assert await store.actions(pending_only=True) == []


ALL = [answered, unanswered]
