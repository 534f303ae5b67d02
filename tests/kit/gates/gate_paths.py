"""Every way on which a tool is reached, for what has to hold on all of them: the same call, tried on one after another.

`Way(...).go()` goes a way once. What the owner says about the call is said in the words of that way's host.
"""

from pathlib import Path
from typing import Any

from kit.hosts.loop_host import SEARCH, Host, calling, search
from kit.mcp_peers.asking import Odd
from kit.runs.asked_runs import REFUND, World
from kit.runs.engine_runs import calls, facts_of
from kit.runs.level_scripts import LevelModel, job, parallel, subtask
from kit.runs.long_runs import PLAN
from wakeful import Agent, Approve, HookVerdict, hook, run, tool
from wakeful.bootstrap.engines import new_engine
from wakeful.contracts.envelope import StoredFact
from wakeful.contracts.events import PermissionEvaluated, RuntimeToolRequested, ToolFailed, ToolStarted
from wakeful.contracts.policies import GatePolicy, Rule, ToolPolicy
from wakeful.contracts.tools import PermissionClass
from wakeful.contracts.workflows import WorkflowGraph
from wakeful.engine.run_request import RunRequest
from wakeful.engine.workflow_parts import workflow_registry
from wakeful.hosts import mediate_turn
from wakeful.hosts.chat.turns import run_chat_agent
from wakeful.ports import ModelRequest
from wakeful.providers.scripted import ScriptedModel
from wakeful.service.queries.replay import replay_turn
from wakeful.service.workflows.runs import run_workflow
from wakeful.store.memory import MemoryStore
from wakeful.testing import scripted as _scripted

SAFE: frozenset[PermissionClass] = frozenset({"safe", "subagent"})
RISKY: frozenset[PermissionClass] = frozenset({"external_write", "execute"})
CHILDREN = {
    "run_subtask": subtask("dig"),
    "spawn_self": ("spawn_self", {"task": "dig"}),
    "spawn_parallel": parallel(job("dig")),
}
LOOPS = ("conversation loop", "one mediated turn")
PATHS = (
    *("root", "planner", *CHILDREN, "grandchild", "agent as a tool", "workflow node", "a tool's own code", "command"),
    *("client tool", "MCP tool", "chat", *LOOPS),
)
CALLS: dict[str, tuple[str, dict[str, Any]]] = {
    "client tool": ("client/pick_file", {"folder": "/home"}),
    "MCP tool": ("mcp.odd/pays", {"text": "hello"}),
    "command": ("wakeful/exec_command", {"cmd": "touch reached", "login": False}),
    **dict.fromkeys(LOOPS, ("ability/search", {"q": "x"})),
}
"""What is called on a way; on all others, a refund."""


def scripted(steps: Any) -> ScriptedModel:
    """A run that waits for somebody does not come to the end of its script."""
    return _scripted(steps, leftover="ignore")


async def yes(approval: Any) -> Approve:
    return Approve()


@hook("permission_request")
def lets_everything_through(call: Any) -> HookVerdict:
    return HookVerdict("allow")


@tool(external=True, timeout=0.2)
def pick_file(folder: str) -> str:
    """Let the person pick a file. No client is there: the request is all there is to see."""
    raise AssertionError("a signature is not called")


def boss(way: str, world: World, **options: Any) -> Agent[Any, str]:
    """Hands the refund to a child, in this way."""
    script = {"go": [calls(CHILDREN[way]), "done"], "dig": [calls(REFUND), "dug"]}
    given: dict[str, Any] = {"subtasks": True, "allow_parallel_subagents": True, **options}
    return Agent("boss", LevelModel(script), tools=[world.tool()], **given)


class Way:
    """One way to a tool, gone once: what there is to see when it was reached."""

    def __init__(self, way: str, folder: Path) -> None:
        self.way, self.folder, self.world, self.store = way, folder, World(), MemoryStore()
        folder.mkdir(exist_ok=True)
        self.name, self.arguments = CALLS.get(way, REFUND)
        self.facts: list[StoredFact] = []
        self.status: str | None = None
        self.reached = 0

    async def go(
        self, *, shut: bool = False, denied: bool = False, later: bool = False, asks: bool = False, asked: Any = yes
    ) -> "Way":
        """`shut`: its class is off. `denied`: a rule says no. `later`: whoever comes after that says yes.

        `asks`: a person has to be asked; `asked` is that person, or nobody.
        """
        if self.way in LOOPS:
            await self._looped(shut=shut, denied=denied, later=later, asks=asks)
        else:
            await self._run(self._owner(shut, denied, later), asked, [self.name] if asks else [])
        for row in await self.store.turns():
            assert (await replay_turn(self.store, row)).identical
        return self

    def _owner(self, shut: bool, denied: bool, later: bool) -> dict[str, Any]:
        classes = SAFE if shut else SAFE | RISKY
        tools = ToolPolicy(context="library", classes=classes, allowed_mcp_servers=("odd",))
        narrowed = {name: str(value) for name, value in self.arguments.items() if isinstance(value, str)}
        deny = Rule(match=self.name, arguments=narrowed, decision="deny", reason="no money leaves")
        allow = Rule(match=self.name, decision="allow", reason="the owner, further down")
        always = Rule(match=self.name, decision="allow", origin="always", decided_by="ada")
        rules = (*((deny,) if denied else ()), *((allow, always) if later else ()))
        hooks = [lets_everything_through] if later else []
        return {"policy": GatePolicy(tools=tools, rules=rules), "hooks": hooks}

    async def _run(self, owner: dict[str, Any], asked: Any, hitl: list[str]) -> None:
        request: dict[str, Any] = {"store": self.store, "approver": asked}
        given: dict[str, Any] = {**owner, "hitl_tools": hitl}
        if self.way == "workflow node":
            await self._as_node(given, asked)
        elif self.way == "chat":
            await self._chatted(given)
        elif self.way == "MCP tool":
            odd = Odd(self.folder, "well", classes={"*": "external_write"})
            model = scripted([calls((self.name, self.arguments)), "done"])
            try:
                await run(Agent("a", model, tools=[odd.source], **given), "go", **request)
            finally:
                await odd.source.close()
            self.reached = odd.methods().count("tools/call")
        else:
            await run(self._agent(given, request), "go", **request)
        rows = await self.store.turns()
        self.facts = [entry for row in rows for entry in await facts_of(self.store, row.turn_id)]
        self.status = next((row.state for row in rows if row.state == "suspended"), "ended")
        if self.way == "client tool":
            self.reached = sum(isinstance(entry.fact.event, RuntimeToolRequested) for entry in self.facts)
        elif self.way == "command":
            self.reached = int((self.folder / "reached").exists())
        elif self.way != "MCP tool":
            self.reached = len(self.world.done)

    async def _as_node(self, given: dict[str, Any], asked: Any) -> None:
        shop = Agent("shop", ScriptedModel(["x"]), tools=[self.world.tool()], **given)
        nodes = [{"id": "pay", "kind": "tool", "ref": "refund", "inputs": REFUND[1]}]
        graph = WorkflowGraph.model_validate({"name": "g", "nodes": nodes})
        system = new_engine(self.store)
        registry = await workflow_registry(system, shop)
        await run_workflow(system, registry, graph, RunRequest(shop, "", approver=asked), {})

    async def _chatted(self, given: dict[str, Any]) -> None:
        """A chat has nobody beside it who is asked: its turn waits for whoever decides."""
        script = self.folder / "script.yaml"
        script.write_text("- calls: [{name: refund, arguments: {order: A17, cents: 4200}}]\n- done\n")
        helper = Agent("helper", "scripted:demo", tools=[self.world.tool()], **given)
        place: dict[str, Any] = {"thread_id": "t", "user_id": "ann", "chat_context": None, "registry": None}
        asked: dict[str, Any] = {"collections": [], "memory_enabled": False, "request_seq": 1, "content": "go"}
        await run_chat_agent(
            *(new_engine(self.store), helper),
            **{**place, **asked, "provider": "scripted", "model": str(script), "send_message": lambda _: None},
        )

    def _agent(self, given: dict[str, Any], request: dict[str, Any]) -> Agent[Any, str]:
        tools = [self.world.tool()]
        if self.way in CHILDREN:
            return boss(self.way, self.world, **given)
        if self.way == "grandchild":
            deep = {"go": [calls(subtask("1")), "done"], "1": [calls(subtask("2")), "one"]}
            return Agent("boss", LevelModel({**deep, "2": [calls(REFUND), "two"]}), tools=tools, subtasks=True, **given)
        if self.way == "agent as a tool":  # the caller's policy holds for it besides its own
            hitl = given.pop("hitl_tools")
            inner = Agent("inner", scripted([calls(REFUND), "inner done"]), tools=tools, hitl_tools=hitl)
            lead = scripted([calls(("agent/inner", {"input": "pay"})), "done"])
            return Agent("a", lead, tools=[inner.as_tool()], **given)
        if self.way == "client tool":
            return Agent("a", scripted([calls((self.name, self.arguments)), "done"]), tools=[pick_file], **given)
        if self.way == "command":
            model = scripted([calls((self.name, self.arguments)), "done"])
            return Agent("a", model, workspace=self.folder, **given)
        if self.way == "a tool's own code":
            inner = Agent("inner", scripted([calls(REFUND), "inner done"]), tools=tools, **given)

            @tool(effect="pure")
            async def work() -> str:
                """What a tool's code does with tools it does as anybody: it has an agent run."""
                return (await run(inner, "go", **request)).status

            return Agent("outer", scripted([calls("work"), "done"]), tools=[work], policy=given["policy"])

        def answer(asked: ModelRequest) -> Any:
            here = PLAN if self.way == "planner" else None
            return calls(REFUND) if asked.level == here and not asked.answered else "1. done"

        return Agent("a", scripted(answer), tools=tools, planning_enabled=self.way == "planner", **given)

    async def _looped(self, *, shut: bool, denied: bool, later: bool, asks: bool) -> None:
        """A host's own loop, with the host's words: a tool that is hidden, forbidden, or shown to a person first."""
        host = Host(calling(search("x")), {"content": "done"})
        policy = "forbidden" if denied else "preview" if asks else None
        declared = {**SEARCH, "action_policy": policy} if policy else SEARCH
        options: dict[str, Any] = {"tool_executor": host, "tool_declarations": {self.name: declared}, "max_turns": 3}
        if shut:
            options["context"] = {"tool_policy": {"deny": [self.name]}}
        if later:
            host.hooks.register("tool_action_policy", lambda *_: "direct")
            host.hooks.register("pre_tool_call_decision", lambda *_: {"action": "proceed"})
            options["pre_tool_mediator"] = lambda _: {"action": "proceed"}
        if self.way == "conversation loop":
            self.status = (await host.run(**options)).status
        else:
            turn = await mediate_turn([], host.turns[0], options, loop=host.loop)
            self.status = "approval_required" if turn["approval_required"] else None
        self.store, self.reached, self.facts = host.store, len(host.calls), await host.log()

    @property
    def waits(self) -> bool:
        """Is somebody being waited for?"""
        return self.status in ("suspended", "approval_required")

    def verdicts(self) -> list[str]:
        """On the call itself, not on the call that made a child."""
        named = {_call_of(entry) for entry in self.facts if _tool_of(entry) == self.name}
        judged = [entry for entry in self.facts if isinstance(entry.fact.event, PermissionEvaluated)]
        return [entry.fact.event.decision for entry in judged if _call_of(entry) in named]  # type: ignore[union-attr]


def _tool_of(entry: StoredFact) -> str | None:
    event = entry.fact.event
    return event.tool_name if isinstance(event, ToolStarted | ToolFailed) else None


def _call_of(entry: StoredFact) -> tuple[str | None, str | None]:
    return entry.fact.turn_id, entry.fact.call_id
