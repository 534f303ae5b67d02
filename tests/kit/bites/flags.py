"""The flags of the catalogue and the values of its policy: what each of them does to a call."""

import asyncio
from contextlib import suppress
from pathlib import Path
from typing import Any, get_args

from kit.bites import Bites
from kit.bites.declared import OPEN, Declared, side_by_side
from kit.runs.asked_runs import REFUND, World, agent
from kit.runs.engine_runs import Died, Dying, of_kind
from kit.runs.level_scripts import LevelModel
from wakeful import Agent, cancel, hook, run, tool
from wakeful.bootstrap.engines import new_engine
from wakeful.contracts.events import HookFailed, SandboxApplied, ToolFailed, ToolResult, ToolStarted
from wakeful.contracts.policies import GatePolicy, Rule
from wakeful.contracts.tool_catalog import CatalogEntry, CatalogOwner
from wakeful.contracts.tools import Confinement, RuntimeOwner
from wakeful.decisions.policy.permissions import default_policy
from wakeful.engine.run_request import MessageOrigin, RunRequest
from wakeful.service.commands.turns import run_turn
from wakeful.service.queries.tool_inventory import tool_inventory
from wakeful.store.memory import Memory, MemoryStore
from wakeful.tools.source import Offer, ToolSource, WithheldTool

FLAGS = Bites()
LIBRARY = default_policy("library", allowed_mcp_servers=["s"])


async def entry(*tools: Any, policy: GatePolicy | None = None) -> CatalogEntry:
    """The first tool, as the catalogue shows it."""
    found = await tool_inventory(new_engine(MemoryStore()), agent=agent(tools, policy=policy))
    return found.catalog.entries[0]


# --- capabilities: a rule can name each of them, and some say more of a tool -----------------------------------------

PLAIN = (["it"], True, "safe")
SAYS: dict[str, tuple[list[str], bool, str]] = {
    **dict.fromkeys(("write", "shell"), ([], False, "external_write")),
    **dict.fromkeys(("network", "browser"), ([], True, "network")),
    **dict.fromkeys(("read", "filesystem", "artifact", "custom:gpu"), ([], True, "safe")),
}
"""What a tool without a class, which only reads, is with a flag: refused by a rule, alone or not, of which class."""


def _flagged(flag: str) -> None:
    @FLAGS.of(f"capabilities.{flag}", ((), PLAIN), ((flag,), SAYS[flag]))
    async def _said(value: tuple[str, ...], folder: Path) -> Any:
        it = Declared(effect="pure", capabilities=value)
        rule = Rule(match="*", decision="deny", capabilities=(flag,))
        await run(agent([it], ("it",), policy=OPEN.model_copy(update={"rules": (rule,)})), "go")
        beside = await side_by_side(effect="pure", capabilities=value)
        shown = await entry(it)
        assert set(value) <= set(shown.capabilities) and shown.is_concurrency_safe is beside
        return it.ran, beside, it.declaration.permission


for _flag in SAYS:
    _flagged(_flag)


# --- the four flags --------------------------------------------------------------------------------------------------


@FLAGS.of("is_read_only", (True, (True, "completed")), (False, (False, "approval_required")))
async def _reads(value: bool, folder: Path) -> Any:
    """What acts needs a person where a turn comes from outside; what reads does not."""
    it = Declared(effect="pure", changes_state=not value)
    policy = GatePolicy(tools=OPEN.tools, rules=())
    request = RunRequest(agent([it], ("it",), policy=policy), "go", origin=MessageOrigin(authority="external_evidence"))
    return (await entry(it)).is_read_only, (await run_turn(new_engine(MemoryStore()), request)).status


@FLAGS.of("is_concurrency_safe", (True, (True, True)), (False, (False, False)))
async def _beside(value: bool, folder: Path) -> Any:
    fields: dict[str, Any] = {"effect": "pure", "parallel_safe": value}
    return (await entry(Declared(**fields))).is_concurrency_safe, await side_by_side(**fields)


@FLAGS.of("is_destructive", (False, (False, 2, [])), (True, (True, 1, ["unknown"])))
async def _destroys(value: bool, folder: Path) -> Any:
    """Cut off in the middle, what destroys is not begun again, and somebody has to find out."""
    world = World()
    made = world.tool(effect="irreversible" if value else "keyed")
    for place in range(1, 40):
        memory = Memory()
        world.done.clear()
        with suppress(Died):
            await run(agent([made], ("refund",)), "go", store=Dying(memory, before=place), key="k")
        if world.done:
            break
    result = await run(agent([made], ("refund",)), "go", store=MemoryStore(memory), key="k")
    effects = [event.effects for event in of_kind(result, ToolFailed)]
    return (await entry(made)).is_destructive, len(world.done), effects


@FLAGS.of("interrupt_behavior", ("cancel", ("cancel", ToolFailed)), ("block", ("block", ToolResult)))
async def _interrupted(value: Any, folder: Path) -> Any:
    begun, free, store = asyncio.Event(), asyncio.Event(), MemoryStore()

    @tool(effect="pure", interrupt_behavior=value)
    async def hang() -> str:
        begun.set()
        await free.wait()
        return "finished"

    running = asyncio.create_task(run(agent([hang], ("hang",)), "go", store=store))
    await begun.wait()
    await cancel(store, (await store.turns())[0].turn_id)
    if value == "cancel":
        await asyncio.wait({running}, timeout=30)  # it ends although nothing lets it go on
    free.set()
    result = await running
    ends = [type(entry.fact.event) for entry in result.facts() if isinstance(entry.fact.event, ToolResult | ToolFailed)]
    return (await entry(hang)).interrupt_behavior, ends[0]


# --- who runs it -----------------------------------------------------------------------------------------------------


@FLAGS.of("declares_nothing", (True, (True, ["refund"])), (False, (False, [])))
async def _says_what_it_returns(value: bool, folder: Path) -> Any:
    """What it returns is taken for the owner's where it says nothing; `untrusted` makes the next act ask."""
    it, world, policy = Declared(untrusted=None if value else True), World(), GatePolicy(tools=LIBRARY)
    await run(agent([it, world.tool()], ("it",), (REFUND,), policy=policy), "go", store=MemoryStore())
    return (await entry(it, policy=policy)).declares_nothing, world.names


def _owned(owner: Any) -> None:
    shown = {"client": "hosted_connector"}.get(owner, owner)

    # A child adds what it has read itself: that somebody is one brings in nothing.
    status = "completed" if owner in ("subagent", "workflow") else "approval_required"

    @FLAGS.of(f"runtime_owner.{owner}", ("local", ("local", "completed")), (owner, (shown, status)))
    async def _vouched_for(value: Any, folder: Path) -> Any:
        """What comes from elsewhere is untrusted: an act with arguments of the model's own needs a person."""
        name = "mcp.s/it" if value == "mcp_server" else "it"
        it = Declared(name, effect="pure", parallel_safe=True, runtime_owner=value, permission_class="safe")
        mail = tool(lambda: "a letter", name="mail", effect="pure", reads_private=True)
        world, policy = World(), GatePolicy(tools=LIBRARY)
        result = await run(agent([it, mail, world.tool()], (name,), ("mail",), ("refund",), policy=policy), "go")
        return (await entry(it, policy=policy)).runtime_owner, result.status


for _owner in get_args(RuntimeOwner):
    if _owner != "local":
        _owned(_owner)
assert set(get_args(CatalogOwner)) <= set(get_args(RuntimeOwner))


# --- what policy comes to --------------------------------------------------------------------------------------------


class Down(ToolSource):
    """A source whose server is down."""

    name = "down"

    async def offer(self) -> Offer:
        return Offer((), (WithheldTool("it", "its server is down"),))


POLICIES = {
    "allowed": (True, ["it"], "completed", "allowed", []),
    "ask": (True, [], "approval_required", "ask", []),
    "denied": (False, [], "completed", "unavailable", []),
    "sandboxed": (True, ["it"], "completed", "sandboxed", ["bubblewrap"]),
    "unavailable": (False, [], "completed", "unavailable", ["its server is down"]),
}


@FLAGS.of("policy", *POLICIES.items())
async def _policy(value: str, folder: Path) -> Any:
    """Is it offered, does it run, how does the turn stand, what is on record of the call, what holds it or why not?"""
    held = Confinement(mode="bubblewrap", cwd="/") if value == "sandboxed" else None
    it = Declared(held=held, effect="pure", permission_class="execute" if held else None)
    rules = {"ask": (Rule(match="it", decision="ask"),), "denied": (Rule(match="it", decision="deny"),)}
    tools: list[Any] = [Down()] if value == "unavailable" else [it]
    policy = GatePolicy(tools=LIBRARY, rules=rules.get(value, ()))
    shown = await entry(*tools, policy=policy)
    assert shown.policy == value and shown.policy_reason
    model = LevelModel({"go": [{"calls": [{"name": "it", "arguments": {}}]}, "done"]})
    result = await run(Agent("desk", model, tools=tools, policy=policy), "go", store=MemoryStore())
    (started,) = of_kind(result, ToolStarted)
    why = [shown.policy_reason] if value == "unavailable" else []
    return (
        "it" in model.seen[0].tools,
        it.ran,
        result.status,
        started.policy,
        [event.mode for event in of_kind(result, SandboxApplied)] + why,
    )


@FLAGS.of("fail_mode", (True, (["open"], ["refund"])), (False, (["closed"], [])))
async def _fails(read_only: bool, folder: Path) -> Any:
    """A hook that fails: one that only reads lets the call go on, any other has denied it."""

    def broken(call: Any) -> Any:
        raise RuntimeError("no database")

    world = World()
    made = agent([world.tool()], ("refund",), hooks=[hook("pre_tool_use", read_only=read_only)(broken)])
    result = await run(made, "go", store=MemoryStore())
    return [event.fail_mode for event in of_kind(result, HookFailed)], world.names
