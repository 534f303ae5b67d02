"""What a client is told, over turns of every kind: each field of each message has more than one value among them."""

import json
import time
from dataclasses import replace
from typing import Any, get_args

from kit.bites.chats import ADD, DRAFT, WEIGHING, weigh
from kit.hosts.chat_server import BUILDING, EDITOR, Client, Server, designing, played
from kit.runs.engine_runs import calls
from kit.runs.level_scripts import LevelModel, subtask
from wakeful import Agent, Budget, tool
from wakeful.contracts.values import Value
from wakeful.providers.prices import LOCAL
from wakeful.store.memory import MemoryStore
from wakeful.testing import FixedClock
from wakeful.views.chat_messages import ClientToolCall
from wakeful.views.cost import CostLine
from wakeful.views.tree import ExecutionTreeNode
from wakeful.views.wire_messages import WireMessage

KINDS: tuple[type[Value], ...] = (
    *get_args(get_args(WireMessage)[0]),
    CostLine,
    ExecutionTreeNode,
    ClientToolCall,
)
"""Everything that goes to a client, or that it reads when it comes back."""
ALWAYS = {
    "CostSummary.currency": "USD",
    "CostLine.cut_off": "0",
    "PlanningUpdate.parent_id": None,
    "PlanningUpdate.depth": 0,
    "TaskUpdate.parent_id": None,
    "TaskUpdate.depth": 0,
}
"""Prices are in dollars, and no request is cut off; a workflow is built and run at the root, and by no child."""


@tool(effect="pure", permission_class="safe")
def fail() -> str:
    """Fails."""
    raise ValueError("no such order")


def used(**tokens: int) -> dict[str, Any]:
    return {"usage": {"input_tokens": 9, "output_tokens": 5, **tokens}}


class Unpriced(LevelModel):
    """A model of somebody's own, with no price, that does not say what it used."""

    ref = "mine:m"


class Told(list[Value]):
    """Turns of a server, and all that was told about them."""

    async def turn(self, reply: Any, model: Any = None, thread: str = "t1", run: Any = None, **fields: Any) -> None:
        options, patience = fields.pop("options", {}), fields.pop("patience", 30.0)
        clock = FixedClock()

        @tool(effect="pure", permission_class="safe")
        def dawdle() -> str:
            """Takes three seconds by the clock of the turn, and enough of its own for its duration to be seen."""
            clock.advance(3)
            time.sleep(0.005)
            return "late"

        desk = Agent("desk", "scripted:demo", tools=[weigh, fail, dawdle], **options)
        server = Server(MemoryStore(), desk, reply)
        server.engine = replace(server.engine, clock=clock)
        await server.with_registry()
        if model is not None:
            server.model = model
        client = Client(server, ADD, {**ADD, "name": "ui_move"}, run=run)
        client.bridge.timeout = patience
        if fields.get("workflow_target"):
            assert server.registry is not None
            fields["workflow_id"] = await server.registry.save(WEIGHING)
        result = await client.say(thread_id=thread, **fields)
        self.extend([*client.sent, *client.frames, *result.execution_tree.nodes, result.cost_summary.total])

    def values(self, kind: type[Value], field: str) -> set[str]:
        """Every value the field has, as JSON."""
        return {json.dumps(one.model_dump(mode="json")[field], sort_keys=True) for one in self if type(one) is kind}


async def everything() -> Told:
    """One turn of each kind."""
    told = Told()
    await told.turn(played({"text": "hello", **used(cached_input_tokens=3, cache_write_tokens=2, reasoning_tokens=4)}))
    lost = {"fail": [{"kind": "overloaded", "message": "busy", "retry_after": 0.0}]}
    await told.turn(
        played(calls(("weigh", {"order": "A"}), "fail", "dawdle"), calls("fail"), {"text": "two words", **lost}),
        thread="t2",
    )
    digging = {"Hello": [calls(subtask("dig")), "done"], "dig": [calls(("weigh", {"order": "B"})), "dug"]}
    below = LevelModel(digging, priced=True, most=20, spends=5)
    await told.turn(played("x"), below, options={"subtasks": True})
    priced = LevelModel({"Hello": ["done"]}, priced=True, most=20, spends=5)
    await told.turn(played("x"), priced, options={"budget": Budget(usd="90")})
    local = LevelModel({"Hello": ["done"]})
    local.price = LOCAL
    await told.turn(played("x"), local)
    await told.turn(played("x"), Unpriced({"Hello": ["done"]}))
    await told.turn(played(calls("fail"), "x"), options={"budget": Budget(model_calls=1, final_answer_reserve=False)})
    await told.turn(played(calls("fail")), thread="t2", options={"budget": Budget(tool_calls=0)})
    await told.turn(played({"fail": [{"kind": "auth_error", "message": "no key", "status": 401}]}))
    wrong = json.dumps({"name": "drawn", "nodes": [{"id": "w", "kind": "tool", "ref": "wiegh"}]})
    await told.turn(designing(wrong, DRAFT, then=BUILDING), chat_context=EDITOR)
    later = played(calls("fail"), calls(("build_workflow", {"objective": "Weigh it."})), "done")
    await told.turn(designing(wrong, then=later), thread="t2", chat_context=EDITOR)
    await told.turn(played("x"), workflow_target="workflow")
    await told.turn(played("x"), thread="t2", workflow_target="workflow", workflow_inputs={"order": "C"})
    ui = [("client/ui_add", {"x": 1}), ("client/ui_move", {"x": 2})]
    answers: dict[str, Any] = {"run": lambda frame: {"ok": True, "result": "added"}, "chat_context": EDITOR}
    await told.turn(played(calls(ui[0]), "done"), **answers)
    nested = LevelModel({"Hello": [calls(subtask("dig")), "done"], "dig": [calls(ui[1]), "dug"]})
    await told.turn(played("x"), nested, thread="t2", options={"subtasks": True}, patience=20.0, **answers)
    return told
