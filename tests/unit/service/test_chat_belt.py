"""The tools of a chat turn: registered on the server, allowed by the policy, unlocked by the context; and no other."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from kit.hosts.chat_server import EDITOR, Client, Server, place, played
from kit.runs.engine_runs import Died, Dying, calls, of_kind
from wakeful import Agent, run, tool
from wakeful.contracts.events import ToolFailed, ToolResult
from wakeful.contracts.policies import GatePolicy, ToolPolicy
from wakeful.contracts.tools import ToolDeclaration
from wakeful.decisions.policy.permissions import default_policy
from wakeful.service.commands.turns import resume_turn
from wakeful.store.memory import Memory, MemoryStore
from wakeful.store.sqlite import SqliteStore
from wakeful.tools.client import ClientTool
from wakeful.tools.source import Offer, ToolSource

PASTE = {"name": "ui_paste", "description": "Pastes.", "parameters": {}}
EDITORS = {"build_workflow", "client/ui_paste"}


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteStore]:
    opened = await SqliteStore.open(place(tmp_path))
    yield opened
    await opened.close()


@tool(effect="pure", permission_class="safe")
def search(words: str) -> str:
    """Find pages."""
    return f"found {words}"


@tool(effect="pure", permission_class="secrets")
def read_vault() -> str:
    """A secret."""
    return "hunter2"


@tool(effect="pure", permission_class="knowledge")
def memory_list() -> str:
    """What was remembered."""
    return "nothing"


class Remote(ToolSource):
    """Tools as an MCP server gives them."""

    def __init__(self, name: str) -> None:
        self._name = name

    @property
    def name(self) -> str:
        return f"mcp.{self._name}"

    async def offer(self) -> Offer:
        declared = ToolDeclaration(
            name=f"{self.name}/issues", input_schema={}, effect="pure", permission_class="network"
        )
        return Offer((_Remote(declared),), ())


class _Remote(ClientTool):
    """A declaration is all that a belt looks at."""

    def __init__(self, declaration: ToolDeclaration) -> None:
        self._declaration = declaration.model_copy(update={"runtime_owner": "mcp_server"})


async def belt(server: Server, **fields: Any) -> set[str]:
    result = await Client(server, PASTE).say("Hello", **fields)
    assert result.completed
    return await server.offered(result)


def without_class(policy: ToolPolicy, kind: str) -> ToolPolicy:
    """The same policy with less."""
    return policy.model_copy(update={"classes": policy.classes - {kind}, "ask": policy.ask - {kind}})


def serving(store: SqliteStore, agent: Agent[Any, Any]) -> Server:
    return Server(store, agent, played("Hello."))


@pytest.mark.spec("LOOP-BELT-01")
async def test_the_belt_of_a_turn_is_what_is_registered_and_allowed_and_unlocked(store: SqliteStore) -> None:
    server = await serving(store, Agent("helper", "scripted:demo", tools=[search, read_vault])).with_registry()
    assert await belt(server, chat_context=EDITOR) == {"search", *EDITORS}
    # Each of the three alone takes tools away. What the context unlocks:
    assert await belt(server) == {"search"}
    # what the policy allows:
    editor = default_policy("editor")
    closed = GatePolicy(tools=without_class(editor, "editor_mutate"))
    server.agent = server.agent.changed(policy=closed)
    assert await belt(server, chat_context=EDITOR) == {"search"}
    server.agent = server.agent.changed(policy=GatePolicy(tools=default_policy("editor", secrets=True)))
    assert await belt(server, chat_context=EDITOR) == {"search", "read_vault", *EDITORS}
    # and what is registered:
    server.agent = server.agent.changed(tools=(read_vault,))
    assert await belt(server, chat_context=EDITOR) == {"read_vault", *EDITORS}
    # Nothing a client wishes for is added.
    assert await belt(server, tools=["search"], chat_context={**EDITOR, "tools": ["search"]}) == {
        "read_vault",
        *EDITORS,
    }


@pytest.mark.spec("LOOP-BELT-03")
async def test_the_candidates_are_each_filtered_by_their_class(store: SqliteStore, tmp_path: Path) -> None:
    root = tmp_path / "shop"
    root.mkdir()
    policy = default_policy("editor", profile="coding", workspace_root=str(root), allowed_mcp_servers=["github"])
    sources = [Remote("github"), Remote("gitlab")]
    agent = Agent(
        "helper",
        "scripted:demo",
        tools=[search, *sources],
        workspace=root,
        subtasks=True,
        policy=GatePolicy(tools=policy),
    )
    server = await serving(store, agent).with_registry()
    everywhere = {
        *("run_subtask", "scratch_list", "scratch_read", "scratch_write"),
        *("wakeful/read_file", "wakeful/write_file", "mcp.github/issues"),
    }
    names = await belt(server)
    assert everywhere <= names
    assert not names & {"mcp.gitlab/issues", *EDITORS}, "a server that nobody named, and no editor"
    inside = await belt(server, chat_context=EDITOR)
    assert inside - names == EDITORS
    # Whatever the candidate is: without its class it is not there.
    for kind, gone in (
        ("subagent", {"run_subtask"}),
        ("network", {"mcp.github/issues"}),
        ("workspace_write", {"wakeful/read_file", "wakeful/write_file"}),
        ("editor_mutate", EDITORS),
    ):
        less = GatePolicy(tools=without_class(policy, kind))
        server.agent = agent.changed(policy=less)
        assert not await belt(server, chat_context=EDITOR) & gone, kind


@pytest.mark.spec("LOOP-ACC-12")
async def test_the_policy_filters_per_context_and_no_path_leads_out_of_the_workspace(
    store: SqliteStore, tmp_path: Path
) -> None:
    root = tmp_path / "shop"
    root.mkdir()
    outside = tmp_path / "outside.txt"
    outside.write_text("not yours")
    (root / "inside.txt").write_text("yours")
    steps = [
        calls(("wakeful/read_file", {"path": "inside.txt"})),
        calls(("wakeful/read_file", {"path": str(outside)})),
        calls(("wakeful/write_file", {"path": "../outside.txt", "content": "changed"})),
        "Done.",
    ]
    agent = Agent("helper", "scripted:demo", tools=[search], workspace=root)
    server = await Server(store, agent, played(*steps)).with_registry()
    client = Client(server, PASTE)
    done = await client.say("Read it.")
    thread = await server.offered(done)
    (read,) = of_kind(done, ToolResult)
    assert "yours" in read.item.text
    refused = of_kind(done, ToolFailed)
    assert [event.tool_name for event in refused] == ["wakeful/read_file", "wakeful/write_file"]
    assert all("not yours" not in event.item.text for event in refused)
    assert outside.read_text() == "not yours"
    editor = await server.offered(await Client(server, PASTE).say("Read it.", thread_id="t2", chat_context=EDITOR))
    assert editor - thread == EDITORS and thread <= editor


async def test_long_term_memory_that_is_off_takes_its_tools_away(store: SqliteStore) -> None:
    server = serving(store, Agent("helper", "scripted:demo", tools=[search, memory_list]))
    assert await belt(server) == {"search"}


async def test_a_tool_that_needs_a_person_needs_one_where_it_is_and_is_missed_nowhere_else(store: SqliteStore) -> None:
    agent = Agent("helper", "scripted:demo", tools=[search, memory_list], hitl_tools=["memory_list", "search"])
    server = Server(store, agent, played(calls(("search", {"words": "cats"})), "Done."))
    waiting = await Client(server).say("Cats?")
    assert (waiting.status, [each.tool for each in waiting.approvals]) == ("approval_required", ["search"])
    server.agent = Agent("helper", "scripted:demo", tools=[search, memory_list])
    assert (await Client(server).say("Cats?", thread_id="t2")).completed, "the inversion"


class Outbox:
    """A tool that reaches outside, and notes that it did."""

    def __init__(self) -> None:
        self.sent: list[str] = []

        @tool(effect="irreversible", permission_class="external_write")
        def send(words: str) -> str:
            """Send it."""
            self.sent.append(words)
            return "sent"

        self.agent = Agent("helper", "scripted:demo", tools=[send])


async def test_whoever_takes_a_chat_turn_up_again_holds_it_to_the_policy_of_where_it_was_said() -> None:
    reply = played(calls(("send", {"words": "hello"})), "Done.")
    at = 0
    while True:
        at += 1
        memory, outbox = Memory(), Outbox()
        dying = Dying(memory, after=at)
        try:
            await Client(Server(dying, outbox.agent, reply)).say("Send it.")
            break
        except Died:
            await dying.close()
        server = Server(MemoryStore(memory), outbox.agent, reply)
        rows = await server.store.turns()
        for row in rows:
            taken_up = await resume_turn(server.engine, row.turn_id, [outbox.agent.changed(model=server.model)])
            # In a program of one's own the tool needs nobody's leave; in a thread it does, also after a crash.
            assert [each.tool for each in taken_up.approvals] == ["send"]
        assert outbox.sent == []
    assert at > 2
    library = Outbox()
    here = await run(library.agent.changed(model=Server(MemoryStore(), library.agent, reply).model), "Send it.")
    assert (here.completed, library.sent) == (True, ["hello"]), "the inversion"
