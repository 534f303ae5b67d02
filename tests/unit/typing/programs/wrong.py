"""Each line marked `# wrong` is refused by both checkers; nothing else is."""

from dataclasses import dataclass

from wakeful import Agent, Approve, CompactionPolicy, ModelSettings, RunContext, open_store, run, run_sync, stream, tool
from wakeful.events import StatusEvent


@dataclass
class Shop:
    prices: dict[str, int]


@dataclass
class Bank:
    balance: int


@dataclass
class Answer:
    cents: int


@tool(effect="pure")
def look_up(ctx: RunContext[Shop], order: str) -> int:
    return ctx.deps.prices[order]


@tool(effect="pure")
def balance(ctx: RunContext[Bank]) -> int:
    return ctx.deps.balance


def make_bank(context: object) -> Bank:
    return Bank(1)


support = Agent("support", "scripted:demo", tools=[look_up], deps_type=Shop, output_type=Answer)

# missing deps
run_sync(support, "x")  # wrong
run_sync(support, "x", deps=None)  # wrong

# wrong deps
run_sync(support, "x", deps=Bank(1))  # wrong

# a tool whose deps do not fit
Agent("mixed", "scripted:demo", tools=[balance], deps_type=Shop)  # wrong
Agent("made", "scripted:demo", tools=[look_up], deps=make_bank)  # wrong

# output read as another type
number: int = run_sync(support, "x", deps=Shop({})).output  # wrong

# a tool is called with what its function takes
look_up(RunContext(Shop({})), 17)  # wrong
look_up(RunContext(Bank(1)), "A17")  # wrong
look_up("A17")  # wrong

# a context does not change
RunContext(Shop({})).deps = Shop({})  # wrong


# no such option, no such effect
tool(make_bank, effekt="pure")  # wrong
tool(make_bank, effect="harmless")  # wrong
Agent("support", "scripted:demo", tolls=[])  # wrong
Agent("support", "scripted:demo", subtasks="yes")  # wrong
Agent("support", "scripted:demo", hooks=["refuse"])  # wrong
support.changed(modle="scripted:demo")  # wrong
support.changed(max_steps="many")  # wrong
CompactionPolicy(treshold=0.5)  # wrong

# no such setting, no such value
ModelSettings(temprature=0.2)  # wrong
ModelSettings(thinking="hard")  # wrong


async def main() -> None:
    await run(support, "x")  # wrong
    await run(support, "x", deps=Bank(1))  # wrong
    text: str = (await run(support, "x", deps=Shop({}))).output  # wrong
    assert text
    async with stream(support, "x", deps=Shop({})) as s:
        number: int = (await s.result()).output  # wrong
        assert number
        async for event in s:
            if isinstance(event, StatusEvent):
                assert event.preview  # wrong


# who decides is said, and how: one of the decisions
store = open_store("runs.db")
store.decide("act_1", Approve())  # wrong
store.decide("act_1", True, by="ann")  # wrong
store.turns(state="paused")  # wrong
assert store.turns().approvals  # wrong


async def watch() -> None:
    async with open_store("runs.db") as opened:
        for event in opened.events("turn"):  # wrong
            assert event
        rows: list[str] = await opened.turns()  # wrong
        assert rows
