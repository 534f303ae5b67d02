"""A conversation that is deleted: through the store, a runtime, HTTP and a terminal; what stays, what goes, and who may
not delete what.
"""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from crash.forked import run_forked
from kit.surfaces.served_home import served
from wakeful import Agent, Approve, Runtime, open_store, resume, run, tool
from wakeful.bootstrap.stores import opened_store
from wakeful.contracts.events import ThreadDeleted
from wakeful.contracts.retention import DAY_US, Retention
from wakeful.errors import InvalidRequest, NotEntitled, StoreDamaged, ThreadNotFound, TurnDeleted
from wakeful.ports import ModelRequest
from wakeful.runtime.retention import RetentionPass
from wakeful.service.serving.options import ServeOptions
from wakeful.system import SystemClock
from wakeful.testing import FixedClock, scripted
from wakeful.testing.crash_rows import find_misfits

LONG = "a secret line of a log\n" * 8_000


@tool(effect="pure")
def look(order: str) -> str:
    """Look an order up."""
    return f"{order}\n{LONG}"


@tool(effect="irreversible", approval=True)
def refund(order: str) -> str:
    """Give the money back."""
    return f"refunded {order}"


class Shop:
    """An agent whose model notes what it is shown."""

    def __init__(self) -> None:
        self.shown: list[list[str]] = []

    def __call__(self, request: ModelRequest) -> object:
        self.shown.append([str(item.text) for item in request.history])
        said = str(request.history[-1].text)
        if request.answered == 0 and ("look" in said or "refund" in said):
            name = "look" if "look" in said else "refund"
            return {"calls": [{"name": name, "arguments": {"order": said}}]}
        return "the secret answer"

    @property
    def agent(self) -> Agent[None, str]:
        return Agent("shop", scripted(self), tools=[look, refund])


async def deleting(path: Path, thread: str) -> None:
    """What another process does."""
    async with open_store(path) as store:
        await store.delete_thread(thread)


async def test_a_deleted_thread_is_in_no_list_and_its_name_begins_an_empty_conversation(tmp_path: Path) -> None:
    path, shop = tmp_path / "runs.db", Shop()
    old = await run(shop.agent, "my secret", store=path, thread="mia", key="k1")
    await run(shop.agent, "what else?", store=path, thread="tom")
    async with open_store(path) as store:
        gone = await store.delete_thread("mia", by="ann", reason="she asked")
        assert (gone.thread, gone.agent, gone.turns) == ("mia", "shop", 1)
        assert await store.delete_thread("mia", by="bob") == gone, "a second time nothing is changed"
        assert [each.thread for each in await store.threads()] == ["tom"]
        assert await store.messages("mia") == []
        record = await store.turn(old.turn_id)
        assert (record.prompt, record.deleted_at) == ("", gone.deleted_at)
        for view in (store.tree, store.context, store.prompt, store.tools, store.latency, store.replay):
            with pytest.raises(TurnDeleted, match="its thread 'mia' was deleted"):
                await view(old.turn_id)  # type: ignore[operator]
    async with opened_store(path) as log:
        (fact,) = [each.fact.event for each in await log.read("shop") if isinstance(each.fact.event, ThreadDeleted)]
        assert (fact.deleted_by, fact.reason, fact.turns) == ("ann", "she asked", 1)
    with pytest.raises(TurnDeleted):
        await run(shop.agent, "my secret", store=path, thread="mia", key="k1")
    shop.shown.clear()
    await run(shop.agent, "hello", store=path, thread="mia")
    assert shop.shown == [["hello"]]
    async with open_store(path) as store:
        assert [(each.thread, each.turns) for each in await store.threads()] == [("mia", 1), ("tom", 1)]


async def test_a_process_that_had_the_thread_in_memory_begins_it_anew(tmp_path: Path) -> None:
    path, shop = tmp_path / "runs.db", Shop()
    for _ in range(2):
        await run(shop.agent, "my secret", store=path, thread="mia")
    assert shop.shown[-1] == ["my secret", "the secret answer", "my secret"]
    done = run_forked(deleting, path, "mia")
    assert done.returncode == 0, done.said
    await run(shop.agent, "hello", store=path, thread="mia")
    assert shop.shown[-1] == ["hello"]


async def test_what_is_open_is_named_with_what_ends_it(tmp_path: Path) -> None:
    path, shop = tmp_path / "runs.db", Shop()
    waiting = await run(shop.agent, "refund it", store=path, thread="mia")
    async with open_store(path) as store:
        (approval,) = await store.approvals()
        with pytest.raises(InvalidRequest) as refused:
            await store.delete_thread("mia")
        assert waiting.turn_id in str(refused.value) and approval.approval_id in str(refused.value)
        assert "wakeful cancel TURN" in refused.value.hint and "wakeful reject ID" in refused.value.hint
        await store.decide(approval.approval_id, Approve(), by="ann")
    await resume(path, waiting.turn_id, [shop.agent])
    async with open_store(path) as store:
        await store.delete_thread("mia")
        (kept,) = await store.approvals(decided=True)
        assert (kept.approval_id, kept.status) == (approval.approval_id, "approved")
        await store.compact()
        assert (await store.approval(approval.approval_id)).decided_by == "app:ann"
        assert (await store.cost()).total.calls == 2


async def test_main_a_name_that_is_not_there_and_one_of_two_agents_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    for name in ("shop", "desk"):
        await run(Agent(name, scripted(["hi"])), "hello", store=path, thread="ticket-981")
    async with open_store(path) as store:
        with pytest.raises(InvalidRequest, match="the thread in which an agent lives"):
            await store.delete_thread("main")
        with pytest.raises(ThreadNotFound) as wrong:
            await store.delete_thread("ticket-918")
        assert wrong.value.hint == "Did you mean ticket-981?"
        with pytest.raises(InvalidRequest, match="2 agents have a thread 'ticket-981'"):
            await store.delete_thread("ticket-981")
        with pytest.raises(ThreadNotFound, match="agent 'till' has no thread"):
            await store.delete_thread("ticket-981", "till")
        assert (await store.delete_thread("ticket-981", "desk")).agent == "desk"
        assert [each.agent for each in await store.threads()] == ["shop"]


async def test_a_tool_of_an_agent_may_not_delete_a_thread(tmp_path: Path) -> None:
    path, said = tmp_path / "runs.db", list[str]()

    @tool(effect="pure")
    async def forget() -> str:
        """Forget."""
        async with open_store(path) as store:
            try:
                await store.delete_thread("mia")
            except NotEntitled as refused:
                said.append(str(refused))
        return "tried"

    await run(Agent("shop", scripted(["hi"])), "hello", store=path, thread="mia")
    await run(Agent("shop", scripted([{"calls": [{"name": "forget"}]}, "done"]), tools=[forget]), "go", store=path)
    assert len(said) == 1 and "may not decide about threads" in said[0]


async def test_retention_takes_what_was_said_at_once_with_its_blobs_and_leaves_briefs_and_rows(tmp_path: Path) -> None:
    path, shop = tmp_path / "wakeful.db", Shop()
    async with Runtime(tmp_path, agents=[shop.agent]) as rt:
        for thread in ("mia", "tom"):
            await rt.answer(await rt.send("shop", f"look, my secret of {thread}", thread=thread))
        of_tom, of_mia = await artifacts(path)
        old = (await rt.delete_thread("mia")).turns
        assert old == 1
        report = await rt.compact()
        assert (report.turns, report.events > 5) == (1, True)
        assert (await rt.compact()).is_empty
    async with opened_store(path) as log:
        assert await find_misfits(log) == []
        assert await log.verify() == []
        await log.rebuild_views()
        assert await find_misfits(log) == []
        facts = [entry.fact for entry in await log.read("shop") if entry.fact.thread_id == "mia"]
        texts = [(fact.event.kind, str(fact.event)) for fact in facts]
        told = [kind for kind, text in texts if "secret" in text]
        assert told == ["assistant.recorded"], "a brief has its words there"
        assert [brief.thread_id for brief in await log.briefs("shop")] == ["tom", "mia"]
        assert len(await log.turn_costs()) == 2
        clock = FixedClock(SystemClock().now() + 2 * DAY_US)
        assert (await RetentionPass(log, clock, Retention()).run()).blobs > 0
        assert LONG in (await log.get_blob(of_tom)).decode()
        with pytest.raises(StoreDamaged, match="there is no blob"):
            await log.get_blob(of_mia)
    async with open_store(path) as store:
        assert [message.content for message in await store.messages("tom")] == ["the secret answer"]
        turn = next(each for each in await store.turns() if each.deleted_at is not None)
        kinds = {event.type async for event in store.events(turn.turn_id)}
        assert "event.expired" in kinds and "message.admitted" not in kinds
        assert [line.text async for line in _lines(store)] != []
        assert [entry async for entry in store.feed()] != []
        assert await store.replayed("shop") != []


async def artifacts(path: Path) -> list[str]:
    async with open_store(path) as store:
        return [each.artifact_id for turn in await store.turns() for each in await store.artifacts(turn.turn_id)]


async def _lines(store: Any) -> Any:
    for line in await store.transcript("shop"):
        assert line.thread_id == "tom"
        yield line


def test_the_store_without_async_has_it_too(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    asyncio.run(_one(path))
    store = open_store(path)
    assert store.delete_thread("mia").turns == 1
    assert store.threads() == []


async def _one(path: Path) -> None:
    await run(Shop().agent, "hello", store=path, thread="mia")


def test_over_http_it_is_deleted_in_the_name_of_the_caller(tmp_path: Path) -> None:
    with served(tmp_path, ServeOptions(port=0, tools=("kit.surfaces.verb_agents:agents",))) as home:
        client = home.client
        sent = client.post("/agents/clerk/messages", {"text": "hello", "thread": "mia"})
        assert sent.status == 200, sent
        client.get(f"/messages/{sent.body['message_id']}/answer?seconds=60")
        done = client.ask("DELETE", "/agents/clerk/threads/mia?reason=asked")
        assert (done.status, done.body["thread"], done.body["turns"]) == (200, "mia", 1)
        assert client.ask("DELETE", "/agents/clerk/threads/mia").body == done.body
        assert client.get("/threads").body == []
        assert client.ask("DELETE", "/agents/clerk/threads/main").status == 422
        missing = client.ask("DELETE", "/agents/clerk/threads/tom")
        assert (missing.status, missing.body["error"]["code"]) == (404, "thread_not_found")
        (turn,) = client.get("/turns").body
        gone = client.get(f"/turns/{turn['turn_id']}/tree")
        assert (gone.status, gone.body["error"]["code"]) == (410, "turn_deleted")
    asyncio.run(_check_who(tmp_path / "wakeful.db"))


async def _check_who(path: Path) -> None:
    async with opened_store(path) as log:
        (fact,) = [each.fact.event for each in await log.read("clerk") if isinstance(each.fact.event, ThreadDeleted)]
    assert (fact.deleted_by, fact.reason) == ("local:0", "asked")
