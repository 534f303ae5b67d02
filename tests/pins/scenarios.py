"""Twenty-two runs through the library with the scripted model, whose events are pinned.

Each is a function of a store that is open. What runs side by side is put in order by waiting for what the log says.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from pydantic import BaseModel

from kit.runs.engine_runs import calls
from kit.runs.level_scripts import SCHEMA, LevelModel, finish, job, parallel, subtask
from wakeful import (
    Agent,
    Approve,
    Budget,
    Edit,
    OutcomeUnknown,
    Reject,
    RunResult,
    ToolRetry,
    cancel,
    interject,
    pending_requests,
    resume,
    run,
    run_workflow,
    submit_result,
    tool,
)
from wakeful.bootstrap.engines import new_engine
from wakeful.contracts.approvals import Decided
from wakeful.ports import ModelRequest, Store
from wakeful.service.commands.approvals import decide
from wakeful.testing import scripted

Results = Sequence[RunResult[Any]]
Scenario = Callable[[Store], Awaitable[Results]]
SCENARIOS: dict[str, Scenario] = {}
USAGE = {"input_tokens": 12, "output_tokens": 7, "total_tokens": 19}


def scenario(play: Scenario) -> Scenario:
    SCENARIOS[play.__name__] = play
    return play


# --- what the agents have ---------------------------------------------------------------------------------------------


@tool(effect="pure")
async def look_up(order: str, password: str = "") -> int:
    """Price of an order in cents."""
    return {"A17": 4200, "B2": 999}[order]


@tool(effect="keyed")
async def refund(order: str, cents: int) -> str:
    """Give the money back."""
    return f"refunded {cents}"


@tool(effect="keyed", approval=True)
async def pay(order: str, cents: int) -> str:
    """Pay somebody."""
    return f"paid {cents}"


@tool(effect="irreversible")
async def write_letter(order: str) -> str:
    """Send a letter."""
    raise OutcomeUnknown("the post office did not answer")


@tool(effect="pure")
async def choose(colour: str) -> str:
    """Choose a colour."""
    if colour != "red":
        raise ToolRetry(f"{colour} is sold out: choose red")
    return "chosen"


@tool(effect="pure")
async def read_page(number: str) -> str:
    """Read a page."""
    return f"page {number}: " + "lorem " * 200


@tool(external=True, effect="pure", timeout=3600)
def pick_file(folder: str) -> str:
    """Let the person pick a file."""
    raise AssertionError("a client runs it")


LOOK = ("look_up", {"order": "A17"})
PAY = ("pay", {"order": "A17", "cents": 4200})


def clerk(*steps: Any, **options: Any) -> Agent[None, Any]:
    """An agent whose model says these."""
    tools, leftover = options.pop("tools", [look_up, refund]), options.pop("leftover", "fail")
    model = scripted(list(steps), name="clerk", leftover=leftover)
    return Agent("clerk", model, "Serve the shop.", tools=tools, **options)


async def until(store: Store, kind: str, call_id: str | None = None) -> None:
    """Until the log of the only agent there is holds an event of this kind."""
    (agent_id,) = await store.agents()
    watch = store.watch(agent_id)
    try:
        while not any(
            entry.fact.event.kind == kind and call_id in (None, entry.fact.call_id)
            for entry in await store.read(agent_id)
        ):
            await watch.wait(timeout=0.05)
    finally:
        watch.close()


# --- one level --------------------------------------------------------------------------------------------------------


@scenario
async def plain_answer(store: Store) -> Results:
    return [await run(clerk({"text": "Good morning.", "usage": USAGE}), "hello", store=store)]


@scenario
async def one_tool(store: Store) -> Results:
    steps = [
        {"text": "I look.", **calls(("look_up", {"order": "A17", "password": "hunter2"})), "usage": USAGE},
        {"text": "It costs 42.00.", "usage": USAGE},
    ]
    return [await run(clerk(*steps), "What is A17?", store=store, context={"customer": "c-1"})]


@scenario
async def parallel_tools(store: Store) -> Results:
    @tool(effect="pure")
    async def wait_for_the_other() -> str:
        """Come second."""
        await until(store, "tool.result", "call_1_1")
        return "second"

    steps = [calls(LOOK, "wait_for_the_other"), "Both are there."]
    return [await run(clerk(*steps, tools=[look_up, wait_for_the_other]), "both", store=store)]


@scenario
async def failing_tool(store: Store) -> Results:
    steps = [calls(("look_up", {"order": "Z0"}), ("look_up", {"wrong": 1}), ("look_up", "{"), "nowhere"), "Sorry."]
    return [await run(clerk(*steps), "What is Z0?", store=store)]


@scenario
async def retried(store: Store) -> Results:
    """The model asks again after a refusal of its provider, and a tool asks the model to try differently."""
    lost = {"kind": "overloaded", "message": "busy", "status": 529}
    steps = [
        {**calls(("choose", {"colour": "blue"})), "fail": lost},
        calls(("choose", {"colour": "red"})),
        "Red it is.",
    ]
    return [await run(clerk(*steps, tools=[choose]), "Choose.", store=store)]


async def decided(store: Store, word: Decided) -> Results:
    """Wait for a person, who decides from another process, and go on."""
    agent = clerk(calls(PAY, LOOK), "Done.", tools=[pay, look_up])
    rested = await run(agent, "Pay A17.", store=store)
    await decide(new_engine(store), rested.approvals[0].id, word, by="ada")
    return [rested, await resume(store, rested.turn_id, [agent])]


@scenario
async def approval_approved(store: Store) -> Results:
    return await decided(store, Approve("seen"))


@scenario
async def approval_rejected(store: Store) -> Results:
    return await decided(store, Reject("too much"))


@scenario
async def approval_edited(store: Store) -> Results:
    agent = clerk(calls(PAY), "Done.", tools=[pay])
    return [await run(agent, "Pay A17.", store=store, approver=lambda _: Edit({"order": "A17", "cents": 1}))]


@scenario
async def unknown_outcome(store: Store) -> Results:
    agent = clerk(calls(("write_letter", {"order": "B2"})), "Somebody has to ask there.", tools=[write_letter])
    return [await run(agent, "Write.", store=store)]


@scenario
async def budget_stop(store: Store) -> Results:
    steps = [calls(LOOK), calls(("look_up", {"order": "B2"})), "This is what I know."]
    reserved = await run(clerk(*steps), "all", store=store, budget=Budget(model_calls=3))
    again = clerk(*steps, leftover="ignore")
    return [reserved, await run(again, "all", store=store, budget=Budget(tool_calls=1, model_calls=2))]


@scenario
async def money_stop(store: Store) -> Results:
    model = LevelModel({"spend": [calls(LOOK), calls(LOOK), "It is 42.00."]}, priced=True, most=3, spends=2)
    agent = Agent("clerk", model, "Serve.", tools=[look_up])
    return [await run(agent, "spend", store=store, budget=Budget(usd=5))]


@scenario
async def structured_output_rejected_once(store: Store) -> Results:
    class Answer(BaseModel):
        order: str
        cents: int

    steps = ['{"order": "A17"}', '{"order": "A17", "cents": 4200}']
    return [await run(clerk(*steps, output_type=Answer), "What is A17?", store=store)]


@scenario
async def fallback_model(store: Store) -> Results:
    first = scripted([{"fail": {"kind": "auth_error", "message": "no", "status": 401}}], name="first")
    agent = Agent("clerk", first, "Serve.", fallbacks=[scripted(["I am the second."], name="second")])
    return [await run(agent, "hello", store=store)]


class Held:
    """An agent whose only tool waits until it is let go on."""

    def __init__(self, *steps: Any) -> None:
        self.begun, self.go_on = asyncio.Event(), asyncio.Event()

        @tool(effect="pure")
        async def wait() -> str:
            """Wait."""
            self.begun.set()
            await self.go_on.wait()
            return "waited"

        self.agent = Agent("clerk", scripted([calls("wait"), *steps], name="clerk", leftover="ignore"), tools=[wait])

    async def start(self, store: Store) -> str:
        self.run = asyncio.ensure_future(run(self.agent, "wait", store=store))
        await self.begun.wait()
        (row,) = await store.turns()
        await until(store, "tool.started")
        return row.turn_id


@scenario
async def cancelled(store: Store) -> Results:
    held = Held("never said")
    assert await cancel(store, await held.start(store))
    return [await held.run]


@scenario
async def interjected(store: Store) -> Results:
    held = Held("I have heard.")
    await interject(store, await held.start(store), "Be quick.")
    held.go_on.set()
    return [await held.run]


@scenario
async def client_tool(store: Store) -> Results:
    agent = clerk(calls(("client/pick_file", {"folder": "docs"})), "You picked it.", tools=[pick_file])
    rested = await run(agent, "Pick one.", store=store)
    (request,) = await pending_requests(store, rested.turn_id)
    await submit_result(store, request.request_id, {"file": "a.txt"})
    return [rested, await resume(store, rested.turn_id, [agent])]


@scenario
async def thread_of_two_turns(store: Store) -> Results:
    first = await run(clerk(calls(LOOK), "42.00."), "What is A17?", store=store, thread="ada")
    return [first, await run(clerk("As I said: 42.00."), "Again?", store=store, thread="ada")]


# --- levels, phases and graphs ----------------------------------------------------------------------------------------


@scenario
async def one_subtask(store: Store) -> Results:
    script = {
        "go": [calls(subtask("prices", output_schema=SCHEMA)), "42.00."],
        "prices": [calls(LOOK), calls(finish(n=42))],
    }
    agent = Agent("clerk", LevelModel(script), "Serve.", tools=[look_up], subtasks=True)
    return [await run(agent, "go", store=store)]


@scenario
async def parallel_subagents(store: Store) -> Results:
    async def second(_: Any) -> str:
        await until(store, "subagent.completed")
        return "two"

    script = {"go": [calls(parallel(job("one"), job("two"))), "Both."], "one": ["one"], "two": [second]}
    agent = Agent("clerk", LevelModel(script), "Serve.", subtasks=True, allow_parallel_subagents=True)
    return [await run(agent, "go", store=store)]


@scenario
async def compaction(store: Store) -> Results:
    def answer(request: ModelRequest) -> Any:
        if request.level and "~compaction:" in request.level:
            return "The pages say lorem."
        if request.answered < 9:
            return calls(("read_page", {"number": str(request.answered)}))
        return "I have read it all."

    agent = Agent("clerk", scripted(answer, name="clerk", context_window=4_000), "Read.", tools=[read_page])
    return [await run(agent, "Read all of it.", store=store)]


@scenario
async def planning(store: Store) -> Results:
    def answer(request: ModelRequest) -> Any:
        if request.level == "~plan":
            return "1. look A17 up\n2. tell the user"
        return calls(LOOK) if request.answered < 1 else "42.00."

    agent = Agent("clerk", scripted(answer, name="clerk"), "Serve.", tools=[look_up], planning_enabled=True)
    return [await run(agent, "What is A17?", store=store)]


GRAPH: dict[str, Any] = {
    "name": "price letter",
    "inputs": {"order": {"type": "string"}},
    "required_inputs": ["order"],
    "nodes": [{"id": "price", "kind": "tool", "ref": "look_up"}, {"id": "letter", "kind": "agent", "ref": "writer"}],
    "edges": [
        {"source": "$input", "source_output": "order", "target": "price", "target_input": "order"},
        {"source": "price", "target": "letter", "target_input": "input"},
    ],
    "outputs": {"letter": {"node": "letter"}},
}


@scenario
async def workflow(store: Store) -> Results:
    desk = Agent("clerk", scripted(["nobody asks"], name="clerk", leftover="ignore"), tools=[look_up])
    writer = Agent("writer", scripted(["Dear Ada."], name="writer"))
    return [(await run_workflow(desk, GRAPH, {"order": "A17"}, agents=[writer], store=store)).run]
