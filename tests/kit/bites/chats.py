"""What a chat is told, field by field: messages, the client's tools and its answers, the runtime's own tools."""

import asyncio
import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from kit.bites import Bites
from kit.hosts.chat_server import BUILDING, EDITOR, Client, Server, designing, played
from kit.runs.engine_runs import calls, of_kind
from kit.runs.level_scripts import SCHEMA, LevelModel, children, finish, subtask, told
from wakeful import Agent, RunContext, RunResult, TextFiles, run, tool
from wakeful.contracts.errors import InvalidValue
from wakeful.contracts.events import ToolFailed, ToolResult
from wakeful.contracts.workflows import WorkflowGraph
from wakeful.ports import ModelRequest
from wakeful.store.memory import MemoryStore

MESSAGES = Bites()
"""What a client sends to be answered."""
CLIENTS = Bites()
"""What it declares as its own tools, and what it answers."""
CALLS = Bites()
"""What a model gives to the tools that the runtime answers."""


@tool(effect="pure", permission_class="safe")
def weigh(order: str) -> str:
    """What an order weighs."""
    return f"{order} weighs 7"


WEIGHING = WorkflowGraph.model_validate(
    {
        "name": "weighing",
        "inputs": {"order": {"type": "string", "default": "A"}},
        "nodes": [{"id": "w", "kind": "tool", "ref": "weigh"}],
        "edges": [{"source": "$input", "source_output": "order", "target": "w", "target_input": "order"}],
        "outputs": {"weight": {"node": "w"}},
    }
)
DRAFT = json.dumps({"name": "drawn", "nodes": [{"id": "w", "kind": "tool", "ref": "weigh", "inputs": {"order": "A"}}]})


async def chat(reply: Any = None, *tools: Any, **options: Any) -> Client:
    """A connection to a server with a registry."""
    desk = Agent("desk", "scripted:demo", tools=[weigh, *tools], **options)
    return Client(await Server(MemoryStore(), desk, reply or played("hello")).with_registry())


async def sent(client: Client, **fields: Any) -> str:
    """How a message ends: with what a tool said or the answer, or with the word for what is wrong with it."""
    try:
        result = await client.say(**fields)
        return str(next((event.item.text for event in of_kind(result, ToolResult)), result.output))
    except InvalidValue as refused:
        return refused.code


# --- messages --------------------------------------------------------------------------------------------------------


@MESSAGES.of("thread_id", ("t1", 3), ("t2", 1))
async def _thread(value: str, folder: Path) -> Any:
    client = await chat()
    await client.say("one")
    await client.say("two", thread_id=value)
    return len(list(client.server.asked[-1].history))


@MESSAGES.of("content", ("one", "one"), ("two", "two"))
async def _content(value: str, folder: Path) -> Any:
    client = await chat(lambda request: list(request.history)[-1].text)
    return (await client.say(value)).output


async def resolved(**fields: Any) -> str:
    client = await chat()
    server, chosen = client.server, list[Any]()

    def resolve(choice: Any) -> Any:
        chosen.append(choice)
        return server.model

    server.engine = replace(server.engine, resolve_model=resolve)
    await client.say(**fields)
    return str(chosen[0])


@MESSAGES.of("provider", ("one", "one:played"), ("two", "two:played"))
async def _provider(value: str, folder: Path) -> Any:
    return await resolved(provider=value)


@MESSAGES.of("model", ("one", "scripted:one"), ("two", "scripted:two"))
async def _model(value: str, folder: Path) -> Any:
    return await resolved(model=value)


@MESSAGES.of("collections", ([], False), (["handbook"], True))
async def _collections(value: list[str], folder: Path) -> Any:
    (folder / "a.md").write_text("To weigh an order, take the bowline off.\n")
    client = await chat(collections=[TextFiles("handbook", folder)])
    await client.say("weigh an order", collections=value)
    return any("bowline" in item.text for item in client.server.asked[0].history)


@MESSAGES.of("memory_enabled", (False, 0), (True, 2))
async def _memory(value: bool, folder: Path) -> Any:
    client = await chat(memory=True)
    await client.say("weigh an order", memory_enabled=value)
    return sum(tool.name.startswith("memory_") for tool in client.server.asked[0].tools)


@MESSAGES.of("request_seq", (1, "1"), (7, "7"))
async def _seq(value: int, folder: Path) -> Any:
    @tool(effect="pure", permission_class="safe")
    def which(ctx: RunContext[None]) -> str:
        return str(ctx.context["request_seq"])

    result = await (await chat(played(calls("which"), "done"), which)).say(request_seq=value)
    return result.calls("which")[0].result


@MESSAGES.of("supersede", (False, "completed"), (True, "cancelled"))
async def _supersede(value: bool, folder: Path) -> Any:
    begun, free = asyncio.Event(), asyncio.Event()

    @tool(effect="pure", permission_class="safe")
    async def wait() -> str:
        begun.set()
        await free.wait()
        return "there"

    client = await chat(played(calls("wait"), "done"), wait)
    first = asyncio.create_task(client.say("slow"))
    await begun.wait()
    second = asyncio.create_task(client.say("never mind", supersede=value))
    if value:
        await asyncio.wait({first}, timeout=30)  # it ends although nothing lets its tool go on
    free.set()
    await second
    return (await first).status


async def to_workflow(**fields: Any) -> str:
    client = await chat()
    assert client.server.registry is not None
    await client.server.registry.save(WEIGHING)
    (saved,) = await client.server.registry.list()
    named = {name: saved.workflow_id if value == "saved" else value for name, value in fields.items()}
    return await sent(client, **named)


@MESSAGES.of("workflow_target", (None, "hello"), ("workflow", "A weighs 7"))
async def _target(value: str | None, folder: Path) -> Any:
    return await to_workflow(workflow_target=value, workflow_id="saved")


@MESSAGES.of("workflow_id", ("saved", "A weighs 7"), (None, "invalid_workflow_target"))
async def _workflow_id(value: str | None, folder: Path) -> Any:
    return await to_workflow(workflow_target="workflow", workflow_id=value)


@MESSAGES.of("workflow_inputs", ({}, "A weighs 7"), ({"order": "B"}, "B weighs 7"))
async def _inputs(value: dict[str, Any], folder: Path) -> Any:
    return await to_workflow(workflow_target="workflow", workflow_id="saved", workflow_inputs=value)


@MESSAGES.of("media_generation.mode", ("chat", "hello"), ("image", "unsupported_route"))
async def _media(value: str, folder: Path) -> Any:
    return await sent(await chat(), media_generation={"mode": value})


@MESSAGES.of("chat_context.kind", ("thread", (False, "hello")), ("editor", (True, "hello")))
async def _kind(value: str, folder: Path) -> Any:
    client = await chat()
    said = await sent(client, chat_context={"kind": value, "workflow_id": "wf_open"})
    return "build_workflow" in [each.name for each in client.server.asked[0].tools], said


@MESSAGES.of("chat_context.workflow_id", ("open", 2), ("other", 1))
async def _edited(value: str, folder: Path) -> Any:
    """What is built is a revision of what the editor shows, or something new."""
    client = await chat(designing(DRAFT, then=BUILDING))
    registry = client.server.registry
    assert registry is not None
    opened = await registry.save(WorkflowGraph.model_validate({**json.loads(DRAFT), "description": "older"}))
    shown = opened if value == "open" else "wf_other"
    result = await client.say(chat_context={"kind": "editor", "workflow_id": shown})
    (made,) = [event for event in of_kind(result, ToolResult) if event.tool_name == "build_workflow"]
    return json.loads(made.item.text)["revision"]


# --- a client's own tools --------------------------------------------------------------------------------------------

ADD: dict[str, Any] = {
    "name": "ui_add",
    "description": "Adds a node.",
    "parameters": {"type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x"]},
}


async def editing(*steps: Any, manifest: Mapping[str, Any] = ADD, run: Any = None) -> tuple[Client, RunResult[Any]]:
    """A turn in an editor whose client has one tool."""
    server = (await chat(played(*steps, "done"))).server
    client = Client(server, dict(manifest), run=run or (lambda frame: {"ok": True, "result": "added"}))
    return client, await client.say(chat_context=EDITOR)


def proxies(client: Client) -> list[Any]:
    return [each for each in client.server.asked[0].tools if each.name.startswith("client/")]


@CLIENTS.of("manifest.name", ("ui_add", ["client/ui_add"]), ("add", []))
async def _tool_name(value: str, folder: Path) -> Any:
    return [each.name for each in proxies((await editing(manifest={**ADD, "name": value}))[0])]


@CLIENTS.of("manifest.description", ("Adds.", ["Adds."]), ("", []))
async def _tool_words(value: str, folder: Path) -> Any:
    return [each.description for each in proxies((await editing(manifest={**ADD, "description": value}))[0])]


@CLIENTS.of("manifest.parameters", ({}, 1), (ADD["parameters"], 0))
async def _tool_schema(value: dict[str, Any], folder: Path) -> Any:
    client, _ = await editing(calls(("client/ui_add", {"y": 1})), manifest={**ADD, "parameters": value})
    return len(client.frames)


async def answered(**answer: Any) -> RunResult[Any]:
    _, result = await editing(calls(("client/ui_add", {"x": 1})), run=lambda frame: {"ok": True, **answer})
    return result


@CLIENTS.of("result.ok", (True, ["succeeded"]), (False, ["failed"]))
async def _ok(value: bool, folder: Path) -> Any:
    result = await answered(ok=value)
    return [event.status for kind in (ToolResult, ToolFailed) for event in of_kind(result, kind)]


@CLIENTS.of("result.result", ("one", ['{"value":"one"}']), ("two", ['{"value":"two"}']))
async def _result(value: str, folder: Path) -> Any:
    return [event.item.text for event in of_kind(await answered(result=value), ToolResult)]


@CLIENTS.of("result.error", ("no canvas", True), ("", False))
async def _error(value: str, folder: Path) -> Any:
    (failed,) = of_kind(await answered(ok=False, error=value), ToolFailed)
    return "no canvas" in failed.message


@CLIENTS.of("result.request_id", (True, True), (False, False))
async def _request(right: bool, folder: Path) -> Any:
    """An answer to nobody's question counts for nothing."""
    server = (await chat(played(calls(("client/ui_add", {"x": 1})), "done"))).server
    client = Client(server, ADD)
    turn = asyncio.create_task(client.say(chat_context=EDITOR))
    await client.called.wait()
    request_id = client.frames[0].request_id
    answer = {"type": "client_tool_result", "ok": True, "result": "x"}
    counted = await client.bridge.take({**answer, "request_id": request_id if right else "other"})
    if not right:
        assert await client.bridge.take({**answer, "request_id": request_id})
    await turn
    return counted


# --- tools that the runtime answers ----------------------------------------------------------------------------------


async def split(*asked: Any, **below: Any) -> tuple[RunResult[Any], LevelModel]:
    model = LevelModel({"go": [*(calls(each) for each in asked), "done"], "dig": ["dug"], **below})
    return await run(Agent("desk", model, tools=[weigh], subtasks=True), "go", store=MemoryStore()), model


@CALLS.of("run_subtask.title", ("Dig here", "Dig here"), ("Dig there", "Dig there"))
async def _title(value: str, folder: Path) -> Any:
    result, _ = await split(("run_subtask", {"title": value, "instructions": "dig"}))
    return children(result)[0].title


@CALLS.of("run_subtask.instructions", ("dig", "dug"), ("fish", "fished"))
async def _instructions(value: str, folder: Path) -> Any:
    result, _ = await split(subtask(value), fish=["fished"])
    return result.calls("run_subtask")[0].result


@CALLS.of("run_subtask.tools", (["weigh"], True), ([], False))
async def _tools(value: list[str], folder: Path) -> Any:
    _, model = await split(subtask("dig", tools=value))
    return "weigh" in model.of("dig")[0].tools


@CALLS.of("run_subtask.output_schema", (None, "dug"), (SCHEMA, '{"n": 1}'))
async def _output(value: Any, folder: Path) -> Any:
    def ends(shown: Any) -> Any:
        return calls(finish(n=1)) if "finish_subtask" in shown.tools else "dug"

    result, _ = await split(subtask("dig", **({"output_schema": value} if value else {})), dig=[ends])
    text = str(result.calls("run_subtask")[0].result)
    return text if value is None else json.dumps(json.loads(text)) if text.startswith("{") else text


@CALLS.of("scratch_read.key", ("a", "1"), ("b", "2"))
async def _note_read(value: str, folder: Path) -> Any:
    written = [("scratch_write", {"key": name, "value": number}) for name, number in (("a", "1"), ("b", "2"))]
    result, _ = await split(*written, ("scratch_read", {"key": value}))
    return result.calls("scratch_read")[0].result


@CALLS.of("scratch_write.key", ("a", ["a"]), ("b", ["b"]))
async def _note_key(value: str, folder: Path) -> Any:
    result, _ = await split(("scratch_write", {"key": value, "value": 1}), ("scratch_list", {}))
    return told(result, "scratch_list")[0]["keys"]


@CALLS.of("scratch_write.value", ("1", "1"), ("2", "2"))
async def _note_value(value: str, folder: Path) -> Any:
    result, _ = await split(("scratch_write", {"key": "a", "value": value}), ("scratch_read", {"key": "a"}))
    return result.calls("scratch_read")[0].result


@CALLS.of("build_workflow.objective", ("Weigh A.", True), ("Weigh B.", False))
async def _objective(value: str, folder: Path) -> Any:
    seen: list[str] = []

    def drawing(request: ModelRequest) -> Any:
        if "You design a workflow" in request.instructions:
            seen.append("".join(item.text for item in request.history))
            return DRAFT
        return played(calls(("build_workflow", {"objective": value})), "done")(request)

    await (await chat(drawing)).say(chat_context=EDITOR)
    return "Weigh A." in seen[0]
