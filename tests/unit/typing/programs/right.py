"""Deps given, made, inherited and not needed; answers of every kind: both checkers accept it all."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, assert_type

from pydantic import BaseModel

from wakeful import (
    Agent,
    Approval,
    Budget,
    CompactionPolicy,
    Happened,
    HookInput,
    HookVerdict,
    ModelSettings,
    Reject,
    RunContext,
    RunResult,
    ThreadRecord,
    TurnRecord,
    UnknownCall,
    open_store,
    resume,
    run,
    run_sync,
    stream,
    tool,
)
from wakeful.events import OutputEvent, RuntimeEvent, TextEvent, ToolCallEvent


@dataclass
class Shop:
    prices: dict[str, int]
    bank: Path


class BiggerShop(Shop):
    pass


class Answer(BaseModel):
    order: str
    refunded_cents: int


@tool(effect="pure")
def look_up(ctx: RunContext[Shop], order: str) -> int:
    """Price of an order in cents."""
    return ctx.deps.prices[order]


@tool(effect="keyed", timeout=30)
async def refund(ctx: RunContext[Shop], order: str, cents: int) -> str:
    """Give the customer the money back."""
    with ctx.deps.bank.open("a") as f:
        f.write(f"{ctx.idempotency_key} {order} {cents}\n")
    return f"refunded {cents}"


@tool
def today() -> str:
    """The date."""
    return "2026-11-15"


def plain(order: str) -> str:
    return order


wrapped = tool(plain, effect="pure")
shop = Shop({"A17": 4200}, Path("bank.txt"))

assert_type(look_up(RunContext(shop), "A17"), int)
assert_type(today(), str)
assert_type(wrapped("A17"), str)

support = Agent(
    name="support",
    model="scripted:demo",
    instructions="Refund broken orders, never more than was paid.",
    tools=[look_up, refund, today, wrapped],
    deps_type=Shop,
    output_type=Answer,
)
assert_type(support, Agent[Shop, Answer])

result = run_sync(
    support,
    "Order A17 arrived broken.",
    deps=shop,
    store="runs.db",
    key="ticket-981",
    budget=Budget(model_calls=8, seconds=60),
)
assert_type(result, RunResult[Answer])
cents: int = result.output.refunded_cents

bigger = run_sync(support, "again", deps=BiggerShop({}, Path("b")))
assert_type(bigger.output, Answer)


def make_shop(context: Mapping[str, object]) -> Shop:
    return shop


supplied = Agent("supplied", "scripted:demo", tools=[look_up, today], deps=make_shop, output_type=Answer)
assert_type(supplied, Agent[None, Answer])
assert_type(run_sync(supplied, "x").output, Answer)

words = Agent("words", "scripted:demo", tools=[today])
assert_type(run_sync(words, "x").output, str)
none_at_all = Agent("none", "scripted:demo")
assert_type(run_sync(none_at_all, "x").output, str)


async def main() -> None:
    answered = await run(support, "x", deps=shop)
    assert_type(answered.output, Answer)
    assert_type((await run(words, "x")).output, str)


def greet(ctx: RunContext[Shop]) -> str:
    return f"{len(ctx.deps.prices)} prices"


greeter = Agent("greeter", "scripted:demo", greet, deps_type=Shop)
assert_type(run_sync(greeter, "x", deps=shop).output, str)


def refuse(call: HookInput) -> HookVerdict | None:
    return HookVerdict.deny("no") if call.tool == "refund" else None


async def ask_first(call: HookInput) -> HookVerdict:
    return HookVerdict.ask("sure?")


# what an agent holds has one type, however it was given
held = Agent("held", "scripted:demo", workspace=".", hooks=[refuse, ask_first], compaction={"threshold": 0.5})
assert_type(held.workspace, Path | None)
assert_type(held.compaction, CompactionPolicy)
assert_type(held.subtasks, bool)
assert_type(held.changed(model="scripted:other", hooks=(), subtasks=True).hitl_tools, tuple[str, ...])
assert_type(result.turn_count, int)
assert_type(result.approvals, tuple[Approval, ...])

# settings, typed and as a dict; one text stands for a list
settings = ModelSettings(temperature=0.2, stop="END", tool_choice=["look_up"], thinking="low", cache="1h")
assert_type(Agent("set", "scripted:demo", settings=settings).settings, ModelSettings)
assert_type(run_sync(words, "x", settings={"thinking": False, "openai": {"verbosity": "low"}}).output, str)


# the store, in a program that is not async and in one that is; a handle stands where a path does
store = open_store("runs.db")
assert_type(store.turns("suspended", agent="support", limit=5), list[TurnRecord])
assert_type(store.turn("ticket-981").is_open, bool)
assert_type(store.threads()[0], ThreadRecord)
assert_type(store.approvals(), list[Approval])
assert_type(store.decide("act_1", Reject("why"), by="ann").decided_by, str | None)
assert_type(store.unknown(), list[UnknownCall])
assert_type(store.resolve("call_1", Happened({"id": 7})).reference, str)
assert_type(store.artifact("sha256:ab").text, str)
for stored in store.events("ticket-981", follow=True):
    assert_type(stored, RuntimeEvent)
assert_type(run_sync(support, "x", deps=shop, store=store).output, Answer)


async def watch() -> None:
    async with open_store("runs.db") as opened:
        assert_type(await opened.turns(), list[TurnRecord])
        async for stored in opened.events("ticket-981"):
            assert_type(stored, RuntimeEvent)
        await resume(opened, "turn_1", [support])
    async with stream(support, "x", deps=shop) as s:
        async for event in s:
            assert_type(event.path, tuple[str, ...])
            match event:
                case TextEvent() | OutputEvent():
                    assert_type(event.text, str)
                case ToolCallEvent():
                    assert_type(event.arguments, dict[str, Any] | None)
                case _:
                    pass
        assert_type((await s.result()).output, Answer)
