"""Chat messages, from what a client sends to what it gets: where they go, and what they leave in the store."""

import asyncio
import inspect
import json
import logging
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import pytest

from kit.hosts.chat_server import BUILDING, EDITOR, Client, Server, designing, place, played
from kit.runs.engine_runs import Died, Dying, calls, check_ends, kinds, of_kind
from kit.runs.level_scripts import subtask
from wakeful import Agent, Budget, TextFiles, tool
from wakeful.contracts.budgets import INTERACTIVE
from wakeful.contracts.errors import InvalidConfig, InvalidRequest, InvalidValue, NotEntitled, WorkflowNotFound
from wakeful.contracts.events import (
    MessageAdmitted,
    ModelRequested,
    Terminal,
    ToolFailed,
    ToolResult,
    TurnStarted,
    WorkflowStarted,
)
from wakeful.contracts.workflows import WorkflowGraph
from wakeful.hosts.chat import ChatMessage, run_chat_agent
from wakeful.ports import ModelRequest
from wakeful.providers.scripted import ScriptedModel
from wakeful.service.commands.interruption import cancel_turn
from wakeful.service.queries.history import messages
from wakeful.service.queries.views import wire_messages
from wakeful.store.memory import Memory, MemoryStore
from wakeful.store.sqlite import SqliteStore
from wakeful.views.cost import CostSummary
from wakeful.views.wire_messages import (
    Chunk,
    PlanningPhase,
    PlanningStatus,
    PlanningUpdate,
    TaskEvent,
    TaskUpdate,
    TurnTerminal,
    WorkTitle,
)

GOOD = json.dumps(
    {"name": "weigh it", "nodes": [{"id": "w", "kind": "tool", "ref": "weigh", "inputs": {"order": "A"}}]}
)
WRONG = json.dumps({"name": "weigh it", "nodes": [{"id": "w", "kind": "tool", "ref": "wiegh"}]})
ROUTE_1 = {"workflow_target": "workflow"}


@tool(effect="pure", permission_class="safe")
def weigh(order: str) -> int:
    """What an order weighs."""
    if order == "none":
        raise ValueError("no such order")
    return 7


@tool(effect="pure", permission_class="safe")
def tell(words: str) -> str:
    """Say it."""
    return f"said {words}"


WEIGHING = WorkflowGraph.model_validate(
    {
        "name": "weighing",
        "inputs": {"prompt": {"type": "string"}, "loud": {"type": "boolean", "default": False}},
        "required_inputs": ["prompt"],
        "nodes": [
            {"id": "w", "kind": "tool", "ref": "weigh", "title": "Weigh the order"},
            {"id": "t", "kind": "tool", "ref": "tell"},
        ],
        "edges": [
            {"source": "$input", "source_output": "prompt", "target": "w", "target_input": "order"},
            {"source": "w", "target": "t", "target_input": "words"},
        ],
    }
)


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteStore]:
    opened = await SqliteStore.open(place(tmp_path))
    yield opened
    await opened.close()


def shop(**options: Any) -> Agent[Any, Any]:
    return Agent("shop", "scripted:demo", tools=[weigh, tell], **options)


async def test_a_message_is_answered_from_what_was_said_before_and_kept_with_what_was_done(store: SqliteStore) -> None:
    client = Client(Server(store, shop(), played(calls(("weigh", {"order": "A"})), "It weighs 7.")))
    await client.say("How heavy is A?")
    client.sent.clear()
    second = await client.say("And again?", request_seq=2)
    assert client.types() == ["tool_call_update", "tool_call_update", "chunk", "cost_summary", "turn_terminal"]
    first = of_kind(second, ModelRequested)[0]
    assert first.items == 5, "question, call, result, answer, and this question"
    (admitted,) = of_kind(second, MessageAdmitted)
    assert (admitted.principal, admitted.context) == ("ann", {"request_seq": 2})
    shown = await messages(store, "t1", "shop", 100, None, keys=frozenset())
    assert [one.role for one in shown] == ["user", "assistant", "user", "assistant"]
    assert shown[-1].execution_tree == second.execution_tree
    assert [node.name for node in second.execution_tree.nodes] == ["weigh"]


@pytest.mark.spec("LOOP-RUN-01")
async def test_one_entry_point_serves_every_message_that_is_for_the_chat(store: SqliteStore) -> None:
    inputs = {
        *("thread_id", "user_id", "provider", "model", "chat_context", "registry", "content", "collections"),
        *("memory_enabled", "request_seq", "send_message"),
    }
    parameters = inspect.signature(run_chat_agent).parameters
    assert inputs <= set(parameters)
    assert {name for name in inputs if parameters[name].default is inspect.Parameter.empty} == inputs
    server = await Server(store, shop(), played("Hello.")).with_registry()
    for fields in (
        {"request_seq": 0},
        {"chat_context": {"kind": "thread"}},
        {"chat_context": EDITOR},
        {"workflow_id": "wf_1"},
        {"media_generation": {"mode": "chat"}},
        {"agent_mode": True, "tools": ["secret"], "user_id": "bob"},
    ):
        client = Client(server)
        done = await client.say(**fields)
        assert (done.output, client.types()) == ("Hello.", ["chunk", "cost_summary", "turn_terminal"])
        (started,) = of_kind(done, TurnStarted)
        # Where a turn came from is seen by the budget and by who is named: only this way gives these.
        assert (started.limits, started.principal, started.context) == (INTERACTIVE, "ann", {"request_seq": 0})


async def test_a_message_that_cannot_be_read_is_refused_and_nothing_is_stored(store: SqliteStore) -> None:
    client = Client(Server(store, shop(), played("Hello.")))
    refused: list[tuple[dict[str, Any], str]] = [
        ({"media_generation": {"mode": "image"}}, "unsupported_route"),
        ({"chat_context": {"kind": "sidebar"}}, "invalid_chat_context"),
        ({"chat_context": {"kind": "editor"}}, "invalid_chat_context"),
        ({**ROUTE_1}, "invalid_workflow_target"),
        ({"content": 7}, "invalid_message: content"),
        ({"thread_id": None}, "invalid_message: thread_id"),
        ({"model": None}, "invalid_message: model"),
    ]
    for fields, words in refused:
        with pytest.raises(InvalidValue, match=words):
            await client.say(**{"content": "hi", **fields})
    assert (await store.turns(), client.sent) == ([], [])


@pytest.mark.spec("LOOP-ACC-13")
async def test_without_a_context_it_is_a_thread_and_agent_mode_changes_nothing(store: SqliteStore) -> None:
    server = await Server(store, shop(), played(calls(("weigh", {"order": "A"})), "It weighs 7.")).with_registry()
    seen = []
    ways: list[dict[str, Any]] = [{"chat_context": {"kind": "thread"}}, {}, {"agent_mode": True}]
    for number, fields in enumerate(ways):
        client = Client(server, {"name": "ui_paste", "description": "Pastes.", "parameters": {}})
        done = await client.say("How heavy is A?", thread_id=f"t{number}", **fields)
        seen.append((await server.offered(done), kinds(done.facts()), client.types(), done.output))
    assert seen[0] == seen[1] == seen[2]
    editing = await Client(server).say("How heavy is A?", chat_context=EDITOR)
    assert await server.offered(editing) != seen[0][0], "a context that is told apart"


# --- saved workflows --------------------------------------------------------------------------------------------------


async def saved(server: Server) -> str:
    await server.with_registry()
    assert server.registry is not None
    return await server.registry.save(WEIGHING)


@pytest.mark.spec("LOOP-WF-06")
async def test_a_saved_workflow_runs_against_a_prompt_and_the_chat_agent_has_no_part_in_it(store: SqliteStore) -> None:
    server = Server(store, shop(), played("The chat agent speaks."))
    client = Client(server)
    done = await client.say("A", workflow_id=await saved(server), **ROUTE_1)
    assert done.completed
    assert [(event.tool_name, event.item.text) for event in of_kind(done, ToolResult)] == [
        ("weigh", "7"),
        ("tell", "said 7"),
    ]
    assert server.asked == [], "no model was asked"
    assert server.registry is not None
    (kept,) = await server.registry.list()
    assert (kept.revision, kept.graph.nodes) == (1, WEIGHING.nodes), "and it is what it was"
    # The thread goes on as a chat afterwards.
    after = await client.say("Thanks")
    assert after.output == "The chat agent speaks."


@pytest.mark.spec("LOOP-WF-16")
async def test_a_route_1_message_names_a_workflow_and_its_inputs_or_nothing_runs(store: SqliteStore) -> None:
    server = Server(store, shop(), played("Hello."))
    workflow_id = await saved(server)
    client = Client(server)
    with pytest.raises(WorkflowNotFound, match="wf_none") as missing:
        await client.say("A", workflow_id="wf_none", **ROUTE_1)
    assert missing.value.code == "workflow_not_found"
    wrong: list[tuple[str, dict[str, Any], str]] = [
        ("", {}, "prompt"),
        ("A", {"loud": "yes"}, "loud"),
        ("A", {"volume": 3}, "volume"),
    ]
    for content, inputs, named in wrong:
        with pytest.raises(InvalidValue, match=f"invalid_workflow_input: {named}"):
            await client.say(content, workflow_id=workflow_id, workflow_inputs=inputs, **ROUTE_1)
    assert (await store.turns(), client.sent) == ([], []), "nothing ran"
    right: list[dict[str, Any]] = [{}, {"workflow_inputs": {}}, {"workflow_inputs": {"loud": True}}]
    for fields in right:
        done = await client.say("A", workflow_id=workflow_id, **ROUTE_1, **fields)
        assert of_kind(done, ToolResult)[0].item.text == "7", "the text is the input prompt"
    told = await client.say("none", workflow_id=workflow_id, workflow_inputs={"prompt": "A"}, **ROUTE_1)
    assert told.completed, "what is given by name is not the text"


async def test_a_thread_of_somebody_else_runs_no_workflow_either(store: SqliteStore) -> None:
    server = Server(store, shop(), played("Hello."))
    workflow_id = await saved(server)
    await Client(server).say("mine")
    with pytest.raises(NotEntitled):
        await Client(server).say("A", by="bob", workflow_id=workflow_id, **ROUTE_1)
    server.registry = None
    with pytest.raises(WorkflowNotFound, match="no registry"):
        await Client(server).say("A", workflow_id=workflow_id, **ROUTE_1)
    assert len(await store.turns()) == 1


# --- the editor -------------------------------------------------------------------------------------------------------


@pytest.mark.spec("LOOP-WF-03", "LOOP-WF-04", "LOOP-WF-05")
async def test_an_objective_becomes_a_saved_graph_told_as_it_is_planned_and_the_editor_is_left_alone(
    store: SqliteStore,
) -> None:
    paste = {"name": "ui_paste", "description": "Pastes.", "parameters": {}}
    server = await Server(store, shop(), designing(WRONG, GOOD, then=BUILDING)).with_registry()
    client = Client(server, paste)
    done = await client.say("Build it.", chat_context=EDITOR)
    assert done.output == "There it is."
    # Its input is an objective; the planner was asked, and what comes back is a reference.
    offered = {declared.name: declared for declared in server.asked[0].tools}
    schema = offered["build_workflow"].input_schema
    assert (schema["required"], schema["properties"]["objective"]["type"]) == (["objective"], "string")
    drawing = [request for request in server.asked if "You design a workflow" in request.instructions]
    assert len(drawing) == 2 and "Weigh order A." in next(iter(drawing[0].history)).text
    (made,) = of_kind(done, ToolResult)
    reference = json.loads(made.item.text)
    assert server.registry is not None
    assert (await server.registry.get(reference["workflow_id"])).graph.nodes[0].ref == "weigh"
    # Streamed between the start and the end of the call, like any other message of a tool.
    at = [one.type for one in client.sent]
    start, end = (place for place, kind in enumerate(at) if kind == "tool_call_update")
    told = [one for one in client.sent if isinstance(one, PlanningUpdate | TaskUpdate)]
    assert told and all(start < client.sent.index(one) < end for one in told)
    assert {"planning_update", "task_update"} <= set(at)
    replayed = (await wire_messages(store, done.turn_id)).messages
    assert [one for one in replayed if isinstance(one, PlanningUpdate | TaskUpdate)] == told, (
        "and from the log the same"
    )
    # Nobody asked the editor anything; the model may, afterwards.
    assert client.frames == []
    assert "client/ui_paste" in offered


PLANNED = [
    *[("drafting", "running", None), ("drafting", "completed", None), ("validating", "running", None)],
    *[("validating", "failed", "unknown_ref at nodes[0].ref"), ("drafting", "running", "correction 1")],
    *[("drafting", "completed", None), ("validating", "running", None), ("validating", "completed", None)],
    *[("saving", "running", None), ("saving", "completed", "weigh it, revision 1")],
]


@pytest.mark.spec("LOOP-WF-15")
async def test_updates_say_what_is_planned_and_what_is_done_and_where(store: SqliteStore) -> None:
    server = await Server(store, shop(), designing(WRONG, GOOD, then=BUILDING)).with_registry()
    client = Client(server)
    built = await client.say("Build it.", chat_context=EDITOR)
    planned = [one for one in client.sent if isinstance(one, PlanningUpdate)]
    call_id = of_kind(built, ToolResult)[0].item.call_id
    for one, (phase, status, content) in zip(planned, PLANNED, strict=True):
        assert (one.phase, one.status) == (phase, status)
        assert (one.content or "").startswith(content or "") and (one.content is None) == (content is None)
        assert (one.tool_call_id, one.parent_id, one.depth) == (call_id, None, 0)
    assert set(get_args(PlanningPhase)) == {"drafting", "validating", "saving"}
    assert set(get_args(PlanningStatus)) == {"running", "completed", "failed"} == {one.status for one in planned}
    assert server.registry is not None
    weighing = await server.registry.save(WEIGHING)
    for content in ("A", "none"):
        await client.say(content, thread_id="t2", workflow_id=weighing, **ROUTE_1)
    tasks = [one for one in client.sent if isinstance(one, TaskUpdate)]
    told = [(one.task.title, one.event, one.step.id if one.step is not None else None) for one in tasks]
    assert told == [
        *[("weigh it", "task_planned", None), ("weigh it", "task_created", None)],
        *[("weighing", "task_created", None), ("weighing", "step_started", "w"), ("weighing", "step_completed", "w")],
        *[("weighing", "step_started", "t"), ("weighing", "step_completed", "t"), ("weighing", "task_completed", None)],
        *[("weighing", "task_created", None), ("weighing", "step_started", "w"), ("weighing", "step_failed", "w")],
        *[("weighing", "step_failed", "t"), ("weighing", "task_failed", None)],
    ]
    events = {
        *("task_planned", "task_created", "step_started", "step_completed", "step_failed"),
        *("task_completed", "task_failed"),
    }
    assert set(get_args(TaskEvent)) == events == {one.event for one in tasks}
    assert (tasks[0].tool_call_id, tasks[0].parent_id, tasks[0].depth) == (call_id, None, 0)
    assert tasks[3].step == WorkTitle(id="w", title="Weigh the order")
    assert (tasks[3].task.id, tasks[3].tool_call_id, tasks[3].parent_id, tasks[3].depth) == (weighing, "w", None, 0)


@pytest.mark.spec("LOOP-WF-02", "LOOP-ACC-11")
async def test_workflows_are_built_in_an_editor_with_a_registry_and_left_out_with_a_warning_without_one(
    store: SqliteStore, caplog: pytest.LogCaptureFixture
) -> None:
    server = Server(store, shop(), designing(GOOD, then=BUILDING))
    with caplog.at_level(logging.WARNING, "wakeful"):
        without = await Client(server).say("Build it.", thread_id="t1", chat_context=EDITOR)
    assert [record.message for record in caplog.records if "build_workflow" in record.message]
    assert "build_workflow" not in await server.offered(without)
    assert without.output == "There it is.", "the turn goes on"
    assert [event.tool_error.kind for event in of_kind(without, ToolFailed)] == ["tool_not_found"]
    caplog.clear()
    await server.with_registry()
    outside = await Client(server).say("Build it.", thread_id="t2")
    assert "build_workflow" not in await server.offered(outside)
    assert [event.tool_error.kind for event in of_kind(outside, ToolFailed)] == ["tool_not_found"]
    assert caplog.records == []
    inside = await Client(server).say("Build it.", thread_id="t3", chat_context=EDITOR)
    assert "build_workflow" in await server.offered(inside)
    (made,) = of_kind(inside, ToolResult)
    assert server.registry is not None
    (kept,) = await server.registry.list()
    assert json.loads(made.item.text) == kept.reference.model_dump(mode="json"), "what the planner came to"


async def test_what_is_built_while_a_workflow_is_open_is_a_revision_of_it(store: SqliteStore) -> None:
    server = await Server(store, shop(), designing(GOOD, then=BUILDING)).with_registry()
    assert server.registry is not None
    graph = WorkflowGraph.model_validate(json.loads(GOOD))
    opened = await server.registry.save(graph)
    await Client(server).say("Build it.", chat_context={"kind": "editor", "workflow_id": opened})
    assert [(each.workflow_id, each.revision) for each in await server.registry.list()] == [(opened, 2)]


# --- ends -------------------------------------------------------------------------------------------------------------


@pytest.mark.spec("LOOP-COST-02", "LOOP-COST-06")
async def test_one_cost_summary_stands_right_before_the_end_however_the_turn_ends(store: SqliteStore) -> None:
    reply = played(calls(("weigh", {"order": "A"})), "It weighs 7.")
    stopping: list[str] = []

    @tool(effect="pure", permission_class="safe")
    async def stop() -> str:
        """Somebody stops the turn while this runs."""
        (row,) = [row for row in await store.turns(open_only=True) if row.thread_id == "cancelled"]
        stopping.append(row.turn_id)
        await cancel_turn(server.engine, row.turn_id)
        return "stopped"

    def broken(request: Any) -> object:
        return {"fail": {"kind": "bad_request", "message": "no"}}

    agents = {
        "natural": (shop(), reply),
        "tool_calls": (shop(budget=Budget(profile="interactive", tool_calls=0)), reply),
        "provider_error": (shop(), broken),
        "cancelled": (Agent("shop", "scripted:demo", tools=[stop]), played(calls("stop"), "never said")),
    }
    for reason, (agent, played_reply) in agents.items():
        server = Server(store, agent, played_reply)
        client = Client(server)
        await client.say("How heavy is A?", thread_id=reason)
        ends = [one for one in client.sent if isinstance(one, TurnTerminal)]
        costs = [one for one in client.sent if isinstance(one, CostSummary)]
        assert [one.stop_reason for one in ends] == [reason]
        assert len(costs) == 1
        assert client.sent[-2:] == [costs[0], ends[0]]
    assert stopping


async def test_killed_anywhere_the_thread_has_one_end_for_the_message_and_the_client_gets_it() -> None:
    reply = played(calls(("weigh", {"order": "A"})), "It weighs 7.")
    at = 0
    while True:
        at += 1
        memory = Memory()
        dying = Dying(memory, after=at)
        try:
            await Client(Server(dying, shop(), reply)).say("How heavy is A?")
            break
        except Died:
            await dying.close()
        store = MemoryStore(memory)
        server = Server(store, shop(), reply)
        again = await Client(server).say("Are you there?", request_seq=2)
        assert again.completed
        for row in await store.turns():
            facts = await store.read(row.agent_id, turn_id=row.turn_id)
            check_ends(facts)
            assert sum(isinstance(entry.fact.event, Terminal) for entry in facts) == 1
            replayed = (await wire_messages(store, row.turn_id)).messages
            assert [one.type for one in replayed][-2:] == ["cost_summary", "turn_terminal"]
            assert "".join(one.content for one in replayed if isinstance(one, Chunk)) == "It weighs 7."
        await store.close()
    assert at > 3


# --- turns ------------------------------------------------------------------------------------------------------------


async def test_no_field_of_a_message_is_without_effect(store: SqliteStore) -> None:
    server = Server(store, shop(), played("Hello."))
    chosen: list[str] = []

    def resolve(choice: Any) -> Any:
        chosen.append(choice)
        return server.model

    server.engine = replace(server.engine, resolve_model=resolve)
    client = Client(server)
    done = await client.say("Good day", thread_id="t7", provider="anthropic", model="opus", request_seq=4)
    assert set(chosen) == {"anthropic:opus"}
    (admitted,) = of_kind(done, MessageAdmitted)
    assert (admitted.item.text, admitted.context, admitted.collections) == ("Good day", {"request_seq": 4}, ())
    assert {one.thread_id for one in client.sent} == {"t7"}
    with pytest.raises(InvalidConfig, match="handbook"):
        await client.say(collections=["handbook"])
    with pytest.raises(InvalidRequest, match="keeps no memory"):
        await client.say(memory_enabled=True)
    shown = {"thread_id", "content", "provider", "model", "collections", "memory_enabled", "request_seq"}
    elsewhere = {"supersede", "workflow_inputs"}
    assert set(ChatMessage.model_fields) == shown | elsewhere


async def test_a_message_that_supersedes_has_the_workflow_before_it_stopped(store: SqliteStore) -> None:
    begun = asyncio.Event()

    @tool(effect="pure", permission_class="safe")
    async def hang() -> str:
        """Never ends."""
        begun.set()
        await asyncio.Event().wait()
        return "never"

    server = Server(store, Agent("shop", "scripted:demo", tools=[hang]), played("Hello."))
    await server.with_registry()
    assert server.registry is not None
    endless = {"name": "endless", "nodes": [{"id": "h", "kind": "tool", "ref": "hang"}]}
    workflow_id = await server.registry.save(WorkflowGraph.model_validate(endless))
    first = Client(server)
    running = asyncio.create_task(first.say("go", workflow_id=workflow_id, **ROUTE_1))
    await begun.wait()
    second = await Client(server).say("never mind", supersede=True)
    stopped = await running
    assert (stopped.status, second.output) == ("cancelled", "Hello.")
    assert stopped.facts()[-1].seq < second.facts()[1].seq, "it ended before the newer one began"
    assert isinstance(first.sent[-1], TurnTerminal)


async def test_each_turn_has_notes_and_a_budget_of_its_own_and_what_is_found_for_it(
    store: SqliteStore, tmp_path: Path
) -> None:
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "weights.md").write_text("Order A weighs seven kilos.")
    steps = [calls(("scratch_write", {"key": "order", "value": "A"})), calls("scratch_list"), "Done."]
    looking = [calls("scratch_list"), "Done."]
    agent = Agent(
        "shop",
        "scripted:demo",
        instructions="You weigh orders.",
        tools=[weigh],
        subtasks=True,
        collections=[TextFiles("handbook", docs)],
        budget=Budget(profile="interactive", tool_calls=2),
    )
    server = Server(store, agent, played(*steps))
    first = await Client(server).say("What does order A weigh?", collections=["handbook"])
    assert first.output == "Done.", "two calls, as many as there may be"
    shown = server.asked[0]
    assert "You weigh orders." in shown.instructions
    assert {"weigh", "run_subtask", "scratch_list"} <= {declared.name for declared in shown.tools}
    assert "seven kilos" in "".join(item.text for item in shown.history)
    server.model = ScriptedModel(played(*looking))
    second = await Client(server).say("And now?")
    assert second.completed, "what the first one used is not held against the second"
    (listed,) = of_kind(second, ToolResult)
    assert json.loads(listed.item.text) == {"keys": []}, "notes are of one turn"
    # In the order of the log: what it rests on, then what is found for it, then the first question to the model.
    order = [kind for kind in kinds(first.facts()) if kind in ("turn.started", "context.retrieved", "model.requested")]
    assert order[:3] == ["turn.started", "context.retrieved", "model.requested"]
    shown = await messages(store, "t1", "shop", 100, None, keys=frozenset())
    assert [one.execution_tree for one in shown if one.role == "assistant"] == [
        first.execution_tree,
        second.execution_tree,
    ]


# --- what is not part of it ------------------------------------------------------------------------------------------


@pytest.mark.spec("LOOP-OUT-03")
async def test_words_streamed_inside_a_subtask_are_for_whoever_was_there(store: SqliteStore) -> None:
    def reply(request: ModelRequest) -> object:
        if request.depth:
            return "gold" if request.answered else {"text": "I turn over every stone here.", **calls("look_around")}
        return "Found it." if request.answered else calls(subtask("dig"))

    @tool(effect="pure", permission_class="safe")
    def look_around() -> str:
        """Look."""
        return "stones"

    agent: Agent[Any, Any] = Agent("shop", "scripted:demo", tools=[look_around], subtasks=True)
    server = Server(store, agent, reply)
    client, later = Client(server), Client(server)
    done = await client.say("Dig")
    streamed = [one for one in client.sent if isinstance(one, Chunk) and one.depth == 1 and one.event_seq is None]
    assert len(streamed) > 2 and "".join(one.content for one in streamed).startswith("I turn over every stone here.")
    # A reload shows the tree: the subtask's title and what came of it, and none of its words on the way.
    (_, answer) = await messages(store, "t1", "shop", 100, None, keys=frozenset())
    assert answer.execution_tree is not None
    assert [(node.name, node.result_preview) for node in answer.execution_tree.nodes] == [
        ("run_subtask", "gold"),
        ("look_around", "stones"),
    ]
    assert "stone here" not in answer.model_dump_json()
    # Whoever comes back is told each stored reply once, and never the stream it came in.
    await later.come_back(done.turn_id)
    again = [one for one in later.sent if isinstance(one, Chunk) and one.depth == 1]
    assert [(one.content, one.done) for one in again] == [("I turn over every stone here.", True), ("gold", True)]


@pytest.mark.spec("LOOP-OUT-04")
async def test_media_are_not_made_and_a_saved_workflow_runs_on_its_own_route_alone(store: SqliteStore) -> None:
    server = Server(store, shop(subtasks=True), played("The chat agent speaks."))
    workflow_id = await saved(server)
    client = Client(server)
    for mode in ("image", "video", "audio"):
        with pytest.raises(InvalidValue, match="media are not generated") as refused:
            await client.say("a cat", media_generation={"mode": mode})
        assert refused.value.code == "unsupported_route"
    assert (server.asked, client.sent, await store.turns()) == ([], [], []), "nothing ran and nothing was stored"
    # No chat has a tool that makes media or runs what is saved, in a thread or in an editor.
    own = {"run_subtask", "spawn_self", "scratch_list", "scratch_read", "scratch_write"}
    thread = await client.say("hi", workflow_id=workflow_id)
    editor = await client.say("hi", chat_context={"kind": "editor", "workflow_id": workflow_id})
    assert await server.offered(thread) == {"weigh", "tell", *own}
    assert await server.offered(editor) == {"weigh", "tell", "build_workflow", *own}
    for chat in (thread, editor):
        assert chat.output == "The chat agent speaks." and of_kind(chat, WorkflowStarted) == []
    asked = len(server.asked)
    run = await client.say("A", workflow_id=workflow_id, **ROUTE_1)
    assert len(of_kind(run, WorkflowStarted)) == 1 and len(server.asked) == asked, "and that route asks no chat agent"
