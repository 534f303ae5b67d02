"""Runs to be killed: each is a whole program, which resumes when it is run again and checks what it finds at the end.

Tools write what they do to the ledger, a file outside the store; the model writes what it was asked to another. At the
end of each run, the first as well as any later one, the log is held against both.
"""

import asyncio
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from wakeful import Agent, DidNotHappen, Happened, RunContext, RunResult, cancel, resume_all, run, run_sync, tool
from wakeful import stream as streamed
from wakeful.contracts.errors import ModelFailure
from wakeful.contracts.events import (
    AssistantRecorded,
    ModelCompleted,
    ModelFailed,
    ModelRequested,
    Terminal,
    ToolFailed,
    ToolResult,
    ToolStarted,
    TurnInterruptIgnored,
    TurnInterruptRequested,
)
from wakeful.contracts.models import FailureKind, Stage
from wakeful.contracts.probes import ProbeAnswer
from wakeful.engine.state_loader import fold
from wakeful.ports import ModelRequest, Store
from wakeful.providers.scripted import ScriptedModel
from wakeful.service.queries.replay import replay_turn
from wakeful.testing import Ledger

LARGE = "0123456789" * 20_000
HANGS = 30.0


class Answer(BaseModel):
    order: str
    cents: int


# --- the model ------------------------------------------------------------------------------------------------------


class Asked:
    """What the model was asked, in a file outside the store: one line a request, with the round it belongs to."""

    def __init__(self, ledger: Ledger) -> None:
        self._path = ledger.path.with_name("asked")

    def note(self, request: ModelRequest) -> None:
        with self._path.open("ab", buffering=0) as file:
            file.write(f"{request.turn_id} {request.answered + 1}\n".encode())

    def rounds(self, turn_id: str) -> Counter[int]:
        lines = self._path.read_text().splitlines() if self._path.exists() else []
        return Counter(int(line.split()[1]) for line in lines if line.split()[0] == turn_id)


TROUBLES: tuple[FailureKind, ...] = ("rate_limited", "server_error", "stream_interrupted")


def in_bad_weather(scenario: Callable[[Store, Ledger], Any], store: Store, ledger: Ledger) -> Any:
    """The same program at a provider that is busy, away, or breaks off: the first attempt of each round is lost."""
    _weather(ledger).touch()
    return scenario(store, ledger)


def _weather(ledger: Ledger) -> Path:
    return ledger.path.with_name("weather")


def model(ledger: Ledger, steps: list[Any], on_ask: Callable[[ModelRequest], Any] | None = None) -> ScriptedModel:
    """A scripted model that is an effect like any other: noted in the world, and a place to die in."""
    asked = Asked(ledger)

    async def answer(request: ModelRequest) -> Any:
        asked.note(request)
        ledger.here()
        if request.attempt == 1 and _weather(ledger).exists():
            kind = TROUBLES[request.answered % len(TROUBLES)]
            stage: Stage = "body" if kind == "stream_interrupted" else "headers"
            raise ModelFailure(f"the weather: {kind}", kind=kind, stage=stage, retry_after=0)
        if on_ask is not None:
            await on_ask(request)
        return steps[min(request.answered, len(steps) - 1)]

    return ScriptedModel(answer)


def calls(*named: str | tuple[str, dict[str, Any]]) -> dict[str, Any]:
    asked = [(each, {}) if isinstance(each, str) else each for each in named]
    return {"calls": [{"name": name, "arguments": arguments} for name, arguments in asked]}


# --- the tools ------------------------------------------------------------------------------------------------------


@tool(effect="pure")
def look_up(ctx: RunContext[Ledger], order: str = "A17") -> int:
    ctx.deps.record("look_up", ctx.idempotency_key)
    return 4200


@tool(effect="pure")
async def convert(ctx: RunContext[Ledger]) -> str:
    await asyncio.sleep(0.002)
    ctx.deps.here()
    return "46.20 USD"


@tool(effect="keyed")
def refund(ctx: RunContext[Ledger]) -> str:
    ctx.deps.here()
    ctx.deps.once("refund", ctx.idempotency_key)
    ctx.deps.here()
    return "refunded"


@tool(effect="keyed")
async def notify(ctx: RunContext[Ledger]) -> str:
    ctx.deps.once("notify", ctx.idempotency_key)
    await asyncio.sleep(0)
    return "told"


@tool(effect="irreversible")
async def send_letter(ctx: RunContext[Ledger]) -> str:
    ctx.deps.here()
    ctx.deps.record("send_letter", ctx.idempotency_key)
    await asyncio.sleep(0.001)
    ctx.deps.here()
    return "sent"


@tool
def shred(ctx: RunContext[Ledger]) -> str:
    ctx.deps.record("shred", ctx.idempotency_key)
    return "gone"


@tool(effect="probeable")
async def book(ctx: RunContext[Ledger]) -> str:
    ctx.deps.once("book", ctx.idempotency_key)
    ctx.deps.here()
    return "booked"


@book.probe
def is_booked(ctx: RunContext[Ledger]) -> ProbeAnswer:
    done = any(entry.key == ctx.idempotency_key for entry in ctx.deps.entries())
    return Happened("booked") if done else DidNotHappen()


@tool(effect="irreversible", timeout=0.03)
async def slow_letter(ctx: RunContext[Ledger]) -> str:
    ctx.deps.record("slow_letter", ctx.idempotency_key)
    await asyncio.sleep(HANGS)
    return "sent"


@tool(effect="keyed", timeout=0.03)
async def slow_refund(ctx: RunContext[Ledger]) -> str:
    ctx.deps.once("slow_refund", ctx.idempotency_key)
    if ctx.attempt == 1:
        await asyncio.sleep(HANGS)
    return "refunded"


@tool(effect="pure", timeout=0.03)
async def slow_look(ctx: RunContext[Ledger]) -> str:
    await asyncio.sleep(HANGS)
    return "seen"


@tool(effect="pure")
def whole_file(ctx: RunContext[Ledger]) -> str:
    return LARGE


@tool(effect="irreversible")
async def print_out(ctx: RunContext[Ledger], text: str) -> str:
    assert text == LARGE, f"{len(text)} characters"
    ctx.deps.record("print_out", ctx.idempotency_key)
    return "printed"


TOOLS = [
    *(look_up, convert, refund, notify, send_letter, shred, book),
    *(slow_letter, slow_refund, slow_look, whole_file, print_out),
]


def agent(ledger: Ledger, steps: list[Any], **options: Any) -> Agent[Ledger, Any]:
    return Agent("support", model(ledger, steps, options.pop("on_ask", None)), tools=TOOLS, deps_type=Ledger, **options)


# --- what must be so at the end ------------------------------------------------------------------------------------


async def check(store: Store, ledger: Ledger, *results: RunResult[Any]) -> None:
    """The log as somebody finds it who comes when the run is over."""
    assert await store.verify() == [], "the chain is broken"
    unknown = {(row.turn_id, row.call_id) for row in await store.unknown()}
    logs = [await store.read(row.agent_id, turn_id=row.turn_id) for row in await store.turns()]
    lost = any(isinstance(entry.fact.event, ModelFailed) for facts in logs for entry in facts)
    assert lost or not _weather(ledger).exists(), "bad weather leaves its traces"
    for row in await store.turns():
        facts = await store.read(row.agent_id, turn_id=row.turn_id)
        events = [entry.fact.event for entry in facts]
        assert sum(isinstance(event, Terminal) for event in events) == 1, "a turn has one end"
        # A request to stop that came after the end is answered there: that it was ignored is all that may follow.
        last = [event for event in events if not isinstance(event, TurnInterruptRequested | TurnInterruptIgnored)][-1]
        assert isinstance(last, Terminal), f"nothing follows the end, but {last.kind} does"
        asked = [part.call_id for event in events if isinstance(event, AssistantRecorded) for part in event.item.calls]
        ended = [entry.fact.call_id for entry in facts if isinstance(entry.fact.event, ToolResult | ToolFailed)]
        assert sorted(asked) == sorted(map(str, ended)), f"{asked} were asked for and {ended} ended"
        begun = [entry.fact.call_id for entry in facts if isinstance(entry.fact.event, ToolStarted)]
        assert len(begun) == len(set(begun)), "a call is taken up once"
        _check_model(facts, Asked(ledger).rounds(row.turn_id))
        open_calls = {
            (row.turn_id, entry.fact.call_id or "")
            for entry in facts
            if isinstance(entry.fact.event, ToolFailed) and entry.fact.event.effects == "unknown"
        }
        assert open_calls == {name for name in unknown if name[0] == row.turn_id}, "an unknown outcome is hidden"
        await _check_fold(store, row)
        replayed = await replay_turn(store, row)
        assert replayed.identical, f"a decision comes out differently: {replayed.divergence}"
    for result in results:
        assert {(result.turn_id, call.call_id) for call in result.unknown} == {
            name for name in unknown if name[0] == result.turn_id
        }, "the result hides an unknown outcome"


def _check_model(facts: list[Any], asked: Counter[int]) -> None:
    """Every request had its intent first, and what was answered is never asked again."""
    intents: Counter[int] = Counter()
    answered = 0
    for entry in facts:
        event = entry.fact.event
        if isinstance(event, ModelRequested):
            intents[answered + 1] += 1
        elif isinstance(event, ModelCompleted):
            answered += 1
    for number, times in asked.items():
        assert times <= intents[number], f"round {number}: {times} requests and {intents[number]} intents"
        assert number <= answered or intents[number], f"round {number} was asked for without an intent"


async def _check_fold(store: Store, row: Any) -> None:
    recorded = await store.read(row.agent_id, after=row.window_from - 1, thread_id=row.thread_id)
    once, again = await fold(store, row, recorded), await fold(store, row, recorded)
    assert once.state == again.state, "the same facts fold to another state"
    assert once.state.phase == "ended" and not once.state.round.open_calls() and not once.state.round.running


# --- the runs --------------------------------------------------------------------------------------------------------


def plain(store: Store, ledger: Ledger) -> None:
    support = agent(ledger, [calls("look_up"), calls("shred"), calls("refund"), "done"])
    result = run_sync(support, "Order A17 arrived broken.", deps=ledger, store=store, key="k")
    assert result.output == "done"
    asyncio.run(check(store, ledger, result))


async def parallel(store: Store, ledger: Ledger) -> None:
    steps = [
        calls("look_up", "convert", "refund", "convert", "send_letter", "look_up"),
        calls("notify", "send_letter", "no_such_tool", ("look_up", {"order": 5})),
        "done",
    ]
    result = await run(agent(ledger, steps), "all of it", deps=ledger, store=store, key="k")
    assert result.output == "done"
    await check(store, ledger, result)


async def model_failure(store: Store, ledger: Ledger) -> None:
    lost = [{"kind": "overloaded", "retry_after": 0.001}, {"kind": "stream_interrupted", "retry_after": 0.001}]
    steps = [
        {**calls("refund"), "fail": lost[:1]},
        {**calls("send_letter"), "fail": lost},
        {"text": "done", "fail": lost},
    ]
    result = await run(agent(ledger, steps), "try", deps=ledger, store=store, key="k")
    assert result.output == "done"
    await check(store, ledger, result)


async def structured(store: Store, ledger: Ledger) -> None:
    steps = [calls("send_letter"), "not JSON at all", '{"order": "A17"}', '{"order": "A17", "cents": 4200}']
    result = await run(agent(ledger, steps, output_type=Answer), "how much?", deps=ledger, store=store, key="k")
    assert result.output == Answer(order="A17", cents=4200)
    await check(store, ledger, result)


async def stream(store: Store, ledger: Ledger) -> None:
    steps = [{**calls("refund", "send_letter"), "text": "I will see to it."}, "It is all done now."]
    async with streamed(agent(ledger, steps), "please", deps=ledger, store=store, key="k") as events:
        kinds = [event.type async for event in events]
        result = await events.result()
    assert kinds[0] == "status" and kinds[-1] == "status"
    assert result.output == "It is all done now."
    await check(store, ledger, result)


async def timeout(store: Store, ledger: Ledger) -> None:
    steps = [calls("slow_look", "slow_look"), calls("slow_letter"), calls("slow_refund"), "done"]
    result = await run(agent(ledger, steps), "be quick", deps=ledger, store=store, key="k")
    assert result.output == "done"
    assert [call.tool for call in result.unknown][:1] == ["slow_letter"]
    await check(store, ledger, result)


async def cancelled(store: Store, ledger: Ledger) -> None:
    async def stop(request: ModelRequest) -> None:
        if request.answered == 2:
            await cancel(store, request.turn_id)
            await asyncio.sleep(HANGS)

    steps = [calls("refund"), calls("send_letter", "look_up"), "never said"]
    result = await run(agent(ledger, steps, on_ask=stop), "go", deps=ledger, store=store, key="k")
    assert result.status == "cancelled"
    await check(store, ledger, result)


async def cancelled_in_a_tool(store: Store, ledger: Ledger) -> None:
    @tool(effect="irreversible")
    async def blow_up(ctx: RunContext[Ledger]) -> str:
        ctx.deps.record("blow_up", ctx.idempotency_key)
        await cancel(store, ctx.turn_id)
        await asyncio.sleep(HANGS)
        return "gone"

    async def stop(request: ModelRequest) -> None:
        if request.answered == 1:  # only reached when the tool was cut off before it could cancel
            await cancel(store, request.turn_id)
            await asyncio.sleep(HANGS)

    steps = [calls("blow_up", "send_letter", "look_up"), "never said"]
    support = Agent("support", model(ledger, steps, stop), tools=[blow_up, send_letter, look_up], deps_type=Ledger)
    result = await run(support, "go", deps=ledger, store=store, key="k")
    assert result.status == "cancelled"
    assert "send_letter" not in {entry.tool for entry in ledger.entries()} or result.unknown
    await check(store, ledger, result)


async def thread(store: Store, ledger: Ledger) -> None:
    first = await run(agent(ledger, [calls("refund"), "one"]), "1", deps=ledger, store=store, thread="t", key="k1")
    second = await run(agent(ledger, [calls("shred"), "two"]), "2", deps=ledger, store=store, thread="t", key="k2")
    assert (first.output, second.output) == ("one", "two")
    assert [item.role for item in second.history()] == ["user", "assistant", "tool", "assistant"] * 2
    await check(store, ledger, first, second)


async def large(store: Store, ledger: Ledger) -> None:
    steps = [calls("whole_file"), calls(("print_out", {"text": LARGE})), "done"]
    earlier = [{"role": "user", "content": LARGE}, {"role": "assistant", "content": "I have read it."}]
    result = await run(agent(ledger, steps), ["Print this.", LARGE], deps=ledger, store=store, key="k", history=earlier)
    assert result.output == "done"
    assert result.history()[0].text[:10] == LARGE[:10]
    await check(store, ledger, result)


async def probed(store: Store, ledger: Ledger) -> None:
    result = await run(agent(ledger, [calls("book", "book"), "done"]), "a room", deps=ledger, store=store, key="k")
    assert result.output == "done"
    # A probe can tell. It is not asked about a call that has killed the process three times.
    assert all("so it is not tried again" in call.reason for call in result.unknown)
    await check(store, ledger, result)


async def side_by_side(store: Store, ledger: Ledger) -> None:
    runs = [
        run(agent(ledger, [calls("refund"), calls("send_letter"), "done"]), "go", deps=ledger, store=store, key=f"k{n}")
        for n in range(2)
    ]
    results = await asyncio.gather(*runs)
    assert [result.output for result in results] == ["done"] * 2
    await check(store, ledger, *results)


async def taken_up_by_another(store: Store, ledger: Ledger) -> None:
    """What a first program began, a second one finishes that knows nothing but the store."""
    support = agent(ledger, [calls("refund"), calls("send_letter"), "done"], deps=lambda context: ledger)
    if not await store.turns():
        await run(support, "go", deps=ledger, store=store, context={"customer": "C1"})
    else:
        await resume_all(store, [support])
    await check(store, ledger)
    (row,) = await store.turns()
    assert row.state == "completed"


ALL = [
    *(plain, parallel, model_failure, structured, stream, timeout, cancelled, cancelled_in_a_tool),
    *(thread, large, probed, side_by_side, taken_up_by_another),
]
