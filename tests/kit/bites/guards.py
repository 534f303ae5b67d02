"""Safety checks that are no setting: what a check stops, and the same with what it stops on taken away."""

import asyncio
import json
from pathlib import Path
from typing import Any

from kit.bites import Bites
from kit.bites.chats import ADD, chat
from kit.bites.declared import OPEN, Declared
from kit.hosts.chat_server import EDITOR, Client, played
from kit.runs.asked_runs import REFUND, World, agent, asked, say
from kit.runs.engine_runs import calls, of_kind
from kit.runs.level_scripts import SCHEMA, LevelModel, children, finish, job, note, parallel, subtask, told
from wakeful import Agent, Approve, Reject, run
from wakeful.bootstrap.engines import new_engine
from wakeful.contracts.errors import InvalidConfig, NotEntitled
from wakeful.contracts.events import ToolFailed
from wakeful.engine.run_request import RunRequest
from wakeful.service.commands.approvals import decide
from wakeful.service.commands.turns import run_turn
from wakeful.store.memory import MemoryStore
from wakeful.testing import FixedClock, scripted

GUARDS = Bites()
"""Check to a value under which it stops something, and one under which the very same is done."""


async def split(script: dict[str, Any], *tools: Any, **options: Any) -> Any:
    given: dict[str, Any] = {"subtasks": True, "allow_parallel_subagents": True, **options}
    return await run(Agent("boss", LevelModel(script), tools=list(tools), **given), "go", store=MemoryStore())


# --- children --------------------------------------------------------------------------------------------------------


@GUARDS.of("subset rule: safe for children", (False, (0, [])), (True, (1, ["refund"])))
async def _child_safe(value: bool, folder: Path) -> Any:
    world = World()
    script = {"go": [calls(parallel(job("dig", tool_names=["refund"]))), "done"], "dig": [calls(REFUND), "dug"]}
    result = await split(script, world.tool(child_safe=value))
    return len(children(result)), world.names


@GUARDS.of("subset rule: the parent's own tools", (False, (0, [])), (True, (1, ["refund"])))
async def _parents(has_it: bool, folder: Path) -> Any:
    world = World()
    script = {"go": [calls(subtask("dig", tools=["refund"])), "done"], "dig": [calls(REFUND), "dug"]}
    result = await split(script, *([world.tool()] if has_it else []))
    return len(children(result)), world.names


@GUARDS.of("subset rule: nothing beyond the list", (["look"], []), (["look", "refund"], ["refund"]))
async def _listed(value: list[str], folder: Path) -> Any:
    world = World()
    script = {"go": [calls(subtask("dig", tools=value)), "done"], "dig": [calls(REFUND), "dug"]}
    await split(script, world.tool(), world.reading())
    return world.names


@GUARDS.of("sibling isolation: notes", ("together", False), ("one after the other", True))
async def _notes(value: str, folder: Path) -> Any:
    """The second child looks for what the first one wrote, once that is written."""
    written = asyncio.Event()

    def over(shown: Any) -> str:
        written.set()
        return "written"

    async def look(shown: Any) -> Any:
        await written.wait()
        return calls("scratch_list")

    both = [subtask("writes"), subtask("reads")]
    rounds = [calls(*both)] if value == "together" else [calls(each) for each in both]
    script = {
        "go": [*rounds, "done"],
        "writes": [calls(note("found", "gold")), over],
        "reads": [look, lambda shown: shown.texts[-1]],
    }
    result = await split(script)
    return "found" in json.loads(str(result.calls("run_subtask")[-1].result))["keys"]


@GUARDS.of("notes of the runtime alone", ("task:x", 1), ("x", 0))
async def _reserved(value: str, folder: Path) -> Any:
    return len(of_kind(await split({"go": [calls(note(value, 1)), "done"]}), ToolFailed))


@GUARDS.of("a result that fits its schema", ("x", "schema_not_satisfied"), (1, None))
async def _fits(value: Any, folder: Path) -> Any:
    script = {"go": [calls(subtask("fit", output_schema=SCHEMA)), "done"], "fit": [calls(finish(n=value))]}
    return told(await split(script))[0].get("error")


@GUARDS.of("at most seven children of a call", (8, InvalidConfig), (7, 7))
async def _seven(value: int, folder: Path) -> Any:
    jobs = [job(f"c{number}") for number in range(value)]
    script = {"go": [calls(parallel(*jobs)), "done"], **{each["task"]: ["x"] for each in jobs}}
    try:
        return len(children(await split(script, max_parallel_subagents=value)))
    except InvalidConfig:
        return InvalidConfig


# --- the gate --------------------------------------------------------------------------------------------------------


@GUARDS.of("arguments that fit", ({"n": "one"}, []), ({"n": 1}, ["it"]))
async def _arguments(value: dict[str, Any], folder: Path) -> Any:
    it = Declared(input_schema=SCHEMA)
    await run(agent([it], (("it", value),), policy=OPEN), "go", store=MemoryStore())
    return it.ran


@GUARDS.of("only what is there is called", ("refunds", []), ("refund", ["refund"]))
async def _there(value: str, folder: Path) -> Any:
    world = World()
    await run(agent([world.tool()], ((value, REFUND[1]),)), "go", store=MemoryStore())
    return world.names


@GUARDS.of("approval default", ("approved", []), (Approve(), ["refund"]))
async def _a_clear_yes(value: Any, folder: Path) -> Any:
    async def approver(approval: Any) -> Any:
        return value

    world = World()
    await run(agent([world.tool()], (REFUND,), hitl_tools=["refund"]), "go", store=MemoryStore(), approver=approver)
    return world.names


@GUARDS.of("an approval in time", (61, []), (59, ["refund"]))
async def _in_time(value: float, folder: Path) -> Any:
    world, store, clock = World(), MemoryStore(), FixedClock()
    made = agent([world.tool()], (REFUND,), hitl_tools=["refund"], approval_expiry=60.0)
    around = new_engine(store, clock=clock)
    waiting = await run_turn(around, RunRequest(made, "go", key="k"))
    clock.advance(value)
    await decide(around, waiting.approvals[0].id, Approve(), by="ada")
    await run_turn(around, RunRequest(made, "go", key="k"))
    return world.names


@GUARDS.of("the first word holds", (True, []), (False, ["refund"]))
async def _decided_once(was_rejected: bool, folder: Path) -> Any:
    world, store = World(), MemoryStore()
    made = agent([world.tool()], (REFUND,), hitl_tools=["refund"])
    waiting = (await asked(made, store)).approvals[0]
    for word in ([Reject()] if was_rejected else []) + [Approve()]:
        await say(store, waiting, word)
    await run(made, "go", store=store, key="k")
    return world.names


@GUARDS.of("inside the workspace", ("in", False), (".", True))
async def _inside(value: str, folder: Path) -> Any:
    """The same file, asked for by its whole path."""
    (folder / "in").mkdir()
    (folder / "letter").write_text("dear ann")
    model = scripted([calls(("wakeful/read_file", {"path": str(folder / "letter")})), "done"])
    result = await run(Agent("desk", model, workspace=folder / value), "go")
    return "dear ann" in str(result.history())


# --- chats -----------------------------------------------------------------------------------------------------------


@GUARDS.of("a thread is its first speaker's", ("bob", NotEntitled), ("ann", "hello"))
async def _owner(value: str, folder: Path) -> Any:
    client = await chat()
    await client.say(by="ann")
    try:
        return (await client.say(by=value)).output
    except NotEntitled:
        return NotEntitled


@GUARDS.of("a client's tools in an editor alone", ({"kind": "thread"}, 0), (EDITOR, 1))
async def _editor_alone(value: dict[str, Any], folder: Path) -> Any:
    server = (await chat(played(calls(("client/ui_add", {"x": 1})), "done"))).server
    client = Client(server, ADD, run=lambda frame: {"ok": True})
    await client.say(chat_context=value)
    return len(client.frames)
