"""The agents of a simulated world: what their models do about the words they are woken with, what their tools change.

Models cost ten cents a request. Commands are virtual: they are tasks like any others, and end when the world says so.
"""

import asyncio
import random
from collections import deque
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Literal, TypeAlias

from wakeful import Agent, Retry, RunContext, Runtime, SpendWindow, tool
from wakeful.contracts.errors import ModelFailure
from wakeful.contracts.models import FailureKind, ModelGlimpse, Reply, Stage, TokenUsage
from wakeful.contracts.retries import LONGEST_PATIENCE
from wakeful.contracts.tasks import CommandSpec, SupervisedEnd
from wakeful.ports import ModelRequest
from wakeful.ports.tasks import TaskOrder
from wakeful.providers.prices import IN_CODE, ListedPrice, Price
from wakeful.providers.scripted import ScriptedModel

AGENTS = ("ada", "bob", "cleo")
WORKER = "cleo"
"""The one with work items."""
PARENT = "ada"
"""The one that spawns others."""
SPENDER = "bob"
"""The one whose money is limited; it spawns others, too."""
HOURLY = Decimal("0.65")
WORDS = (
    "hello",
    "please act",
    "please wait",
    "please sleep",
    "please plan",
    "please start",
    "please spawn",
)


Fault: TypeAlias = Literal["", "repeats", "understates", "refuses"]
"""Broken on purpose. repeats: a keyed tool makes its effect again. understates: a model costs more than it says.
refuses: the provider takes no request, which no weather explains."""
TROUBLES: tuple[FailureKind, ...] = ("rate_limited", "stream_interrupted")
AWAY: FailureKind = "server_error"
QUICK_ATTEMPTS = 3


@dataclass
class Sky:
    """The weather of the provider that all agents of a world share, on the world's clock.

    A quick attempt may follow at once; after the last one the provider says when it will be there again.
    """

    passed: Callable[[], float]
    """Seconds that went by, whatever the clock of the wall was set to."""
    away_until: float = 0
    troubles: deque[FailureKind] = field(default_factory=deque)
    """For the next requests, one each."""

    def failure(self, attempt: int) -> ModelFailure | None:
        """What befalls a request."""
        left = self.away_until - self.passed()
        if left <= 0 and not self.troubles:
            return None
        kind = AWAY if left > 0 else self.troubles.popleft()
        wait = left if left > 0 and attempt >= QUICK_ATTEMPTS else 0.0
        stage: Stage = "body" if kind == "stream_interrupted" else "headers"
        return ModelFailure(f"the weather: {kind}", kind=kind, stage=stage, retry_after=wait)


class PaidModel(ScriptedModel):
    """Costs ten cents a request, and at most twenty."""

    price = ListedPrice(Price(Decimal(0), Decimal(1_000)), IN_CODE)
    most = 200

    def __init__(self, script: Callable[[ModelRequest], object], deeds: "Deeds") -> None:
        super().__init__(script)
        self._deeds = deeds

    def most_output(self, settings: Any) -> int:
        return self.most

    async def respond(self, request: ModelRequest) -> AsyncIterator[ModelGlimpse | Reply]:
        if self._deeds.fault == "refuses":
            raise ModelFailure("no", kind="contract_error", stage="headers")
        failure = self._deeds.sky.failure(request.attempt)
        if failure is not None:
            raise failure
        used = TokenUsage(input_tokens=10, output_tokens=100, total_tokens=110)
        async for said in super().respond(request):
            yield said.model_copy(update={"usage": used}) if isinstance(said, Reply) else said


class VirtualCommand:
    """A command without a process."""

    identity = (0, 0, "")

    def __init__(self) -> None:
        self.ended: asyncio.Future[SupervisedEnd | None] = asyncio.get_running_loop().create_future()

    def come_to_an_end(self, end: SupervisedEnd | None) -> None:
        if not self.ended.done():
            self.ended.set_result(end)

    async def wait(self) -> SupervisedEnd | None:
        return await asyncio.shield(self.ended)

    async def promote(self, folder: str) -> None: ...

    async def stop(self, grace: float) -> None:
        self.come_to_an_end(SupervisedEnd(exit_status=-15, stop_requested=True))

    async def send_input(self, data: bytes) -> int:
        return len(data)

    async def close_input(self) -> None: ...

    async def end(self) -> None: ...


@dataclass
class Deeds:
    """What the tools of a world did, and what they wait for."""

    chance: random.Random
    sky: Sky
    fault: Fault = ""
    effects: list[str] = field(default_factory=list)
    """The keys of effects, each time one was made."""
    commands: dict[str, VirtualCommand] = field(default_factory=dict)
    """By the key of the call that began it."""
    patience: asyncio.Event = field(default_factory=asyncio.Event)
    """Set: tools that take a while have come to their end."""
    is_open: asyncio.Event = field(default_factory=asyncio.Event)
    rt: Runtime | None = None
    """Set while it is open."""

    def end_commands(self, *, all_of_them: bool = False) -> None:
        """Some commands come to an end: well, badly, or nobody knows how."""
        for command in self.commands.values():
            if all_of_them or self.chance.random() < 0.5:
                ends = (SupervisedEnd(exit_status=0), SupervisedEnd(exit_status=1), None)
                command.come_to_an_end(self.chance.choice(ends))


def agents_of(deeds: Deeds) -> list[Agent[None, str]]:
    return [_agent(name, deeds) for name in AGENTS]


@tool(effect="keyed")
async def act(ctx: RunContext[Deeds]) -> str:
    """Do something, and take a while to say so."""
    deeds = ctx.deps
    if deeds.fault == "repeats" or ctx.idempotency_key not in deeds.effects:
        deeds.effects.append(ctx.idempotency_key)
    if deeds.chance.random() < 0.5:
        await deeds.patience.wait()
    return "done"


@tool(effect="keyed")
async def start(ctx: RunContext[Deeds]) -> str:
    """Begin a command that goes on without the turn."""
    deeds, key = ctx.deps, ctx.idempotency_key
    await deeds.is_open.wait()
    if key not in deeds.commands:
        assert deeds.rt is not None
        deeds.commands[key] = VirtualCommand()
        spec = CommandSpec(cmd=f"make {key}", workdir="/", yield_time_ms=1)
        order = TaskOrder(ctx.turn_id, ctx.call_id, ctx.derived_from, spec, (), "", lambda folder: None)
        tasks = deeds.rt._here.tasks
        with tasks.running(deeds.commands[key]):
            await tasks.promote(deeds.commands[key], order, _nothing_undone)
    return "begun"


def _agent(name: str, deeds: Deeds) -> Agent[None, str]:
    def answer(request: ModelRequest) -> object:
        if request.answered:
            return "ok"
        call = _call(deeds.chance, str(request.history[-1].text), works=name == WORKER)
        return "ok" if call is None else {"calls": [{"name": call[0], "arguments": call[1]}]}

    model = PaidModel(answer, deeds)
    if deeds.fault == "understates":
        model.most = 10
    return Agent(
        name,
        model,
        tools=[act, start],
        deps=lambda _: deeds,
        work_items=name == WORKER,
        spawn=name in (PARENT, SPENDER),
        spend_windows=[SpendWindow("hour", HOURLY)] if name == SPENDER else [],
        retry=Retry(patience=LONGEST_PATIENCE),  # the weather of a world ends sooner, so it fails no message
    )


async def _nothing_undone() -> list[str]:
    return []


def _call(chance: random.Random, text: str, *, works: bool) -> tuple[str, dict[str, Any]] | None:
    """What a model does about the words it is woken with."""
    if "Task task_" in text:
        return None  # a task of its own has ended
    item = next((word.rstrip(",.:") for word in text.split() if word.startswith("wi_")), None)
    if works and item is not None:
        if "Pick one" in text:
            return "pick_work_item", {"work_item_id": item}
        return None if chance.random() < 0.5 else ("complete_work_item", {"work_item_id": item})
    if "please act" in text:
        return "act", {}
    if "please start" in text:
        return "start", {}
    if works and "please plan" in text:
        return "create_work_item", {"objective": "Tidy up."}
    if not works and "please spawn" in text:
        return "spawn_agent", {"initial_message": chance.choice(WORDS)}
    if "please wait" in text:
        wake = chance.choice(("operator_input", "external", "timer"))
        return "wait_for", {"reason": "the bus", "wake": wake, "deadline_ms": chance.choice((1_000, 7_200_000))}
    if "please sleep" in text:
        return "sleep", {"reason": "tired"} | chance.choice(({}, {"duration_ms": 600_000}))
    return None
