"""Deciding a turn again: what was decided comes out the same, and what was tampered with does not."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import pytest
from pydantic import BaseModel

from wakeful import Agent, Budget, cancel, resume, run, stream, tool
from wakeful.contracts.envelope import Fact, StoredFact
from wakeful.contracts.errors import ToolMissing
from wakeful.contracts.events import (
    AnswerRejected,
    AnyEvent,
    ContextResolved,
    LimitChanged,
    ModelFailed,
    ModelRequested,
    PermissionEvaluated,
    ToolDispatched,
    ToolFailed,
    ToolStarted,
    TurnCompleted,
    TurnFailed,
    TurnInterruptApplied,
    TurnInterruptRequested,
    TurnResumed,
    TurnStarted,
    TurnSuspended,
    WarningIssued,
)
from wakeful.decisions.turn import RULES
from wakeful.ports import TurnRow
from wakeful.service.queries.replay import ReplayReport, replay_facts
from wakeful.store.memory import MemoryStore
from wakeful.testing import scripted


@tool(effect="pure")
def add(a: int, b: int) -> int:
    return a + b


@tool
def pay(cents: int) -> str:
    return f"paid {cents}"


class Sum(BaseModel):
    total: int


ADD = {"name": "add", "arguments": {"a": 1, "b": 2}}
PAY = {"name": "pay", "arguments": {"cents": 5}}


class Stored(NamedTuple):
    """A run's facts, and what else a replay needs."""

    store: MemoryStore
    row: TurnRow
    facts: list[StoredFact]

    async def replay(self, facts: Sequence[StoredFact] | None = None) -> ReplayReport:
        return await replay_facts(self.store, self.row, list(self.facts if facts is None else facts))

    def changed(
        self, kind: type[AnyEvent], nth: int = 0, *, step: int | None = None, **fields: Any
    ) -> list[StoredFact]:
        """A copy of the facts in which one event says something else."""
        at = [index for index, entry in enumerate(self.facts) if isinstance(entry.fact.event, kind)][nth]
        entry = self.facts[at]
        event = entry.fact.event.model_copy(update=fields)
        fact = replace(entry.fact, event=event, step=step if step is not None else entry.fact.step)
        return [*self.facts[:at], StoredFact(entry.agent_id, entry.seq, fact), *self.facts[at + 1 :]]


async def stored(steps: Sequence[object], *, budget: Budget | None = None, **options: Any) -> Stored:
    """Run an agent to its end."""
    store = MemoryStore()
    agent: Agent[None, Any] = Agent("sums", scripted(steps), tools=[add, pay], **options)
    await run(agent, "go", store=store, budget=budget)
    return await read(store)


async def read(store: MemoryStore) -> Stored:
    (row,) = await store.turns()
    return Stored(store, row, await store.read(row.agent_id))


RUNS: dict[str, tuple[list[object], dict[str, Any]]] = {
    "an answer": (["hello"], {}),
    "calls side by side and alone": ([{"calls": [ADD, ADD, PAY, ADD, PAY]}, "done"], {}),
    "refused calls": (
        [
            {"calls": [{"name": "ad"}, {"name": "add", "arguments": {"a": "x"}}, {"name": "pay", "arguments": "no"}]},
            "done",
        ],
        {},
    ),
    "a lost provider": ([{"fail": {"kind": "contract_error"}}], {}),
    "a fallback": ([{"fail": {"kind": "auth_error"}}], {"fallbacks": [scripted(["instead"], name="second")]}),
    "an answer that fits": (["no", '{"total": 3}'], {"output_type": Sum}),
    "an answer that never fits": (["no", "no", "no"], {"output_type": Sum}),
    "too many rounds": ([{"calls": [ADD]}, {"calls": [ADD]}], {"max_steps": 1}),
    "too many requests": ([{"calls": [ADD]}, {"calls": [ADD]}], {"budget": Budget(model_calls=1)}),
    "out of time": ([{"text": "late", "delay": 5}], {"budget": Budget(seconds=0.02)}),
}


@pytest.mark.parametrize("name", RUNS)
async def test_every_decision_of_a_run_comes_out_the_same(name: str) -> None:
    steps, options = RUNS[name]
    model = scripted(steps, leftover="ignore")
    store = MemoryStore()
    await run(Agent("sums", model, tools=[add, pay], **options), "go", store=store)
    report = await (await read(store)).replay()
    assert report.divergence is None
    assert report.checked["model.requested"] >= 1
    assert report.checked.keys() & {"turn.completed", "turn.failed"}


Tamper = Callable[[Stored], list[StoredFact]]
CALLS: list[object] = [{"calls": [ADD, PAY, ADD]}, "done"]
TAMPERED: dict[str, tuple[list[object], dict[str, Any], Tamper, str]] = {
    "the attempt": (CALLS, {}, lambda run: run.changed(ModelRequested, attempt=2), "model.requested"),
    "the candidate": (CALLS, {}, lambda run: run.changed(ModelRequested, candidate=1), "model.requested"),
    "the step": (CALLS, {}, lambda run: run.changed(ModelRequested, 1, step=3), "model.requested"),
    "the model": (CALLS, {}, lambda run: run.changed(ModelRequested, model_ref="other:one"), "model.requested"),
    "what the model was shown": (CALLS, {}, lambda run: run.changed(ModelRequested, 1, items=2), "model.requested"),
    "the wait": (CALLS, {}, lambda run: run.changed(ModelRequested, backoff_ms=100), "model.requested"),
    "the scheduling": (CALLS, {}, lambda run: run.changed(ToolStarted, 1, scheduling="parallel"), "tool.started"),
    "the effect": (CALLS, {}, lambda run: run.changed(ToolStarted, 1, effect="pure"), "tool.started"),
    "the key": (CALLS, {}, lambda run: run.changed(ToolStarted, 1, idempotency_key="wk-0"), "tool.started"),
    "the verdict": (CALLS, {}, lambda run: run.changed(PermissionEvaluated, decision="deny"), "permission.evaluated"),
    "a verdict that is missing": (CALLS, {}, lambda run: without(run, PermissionEvaluated), "tool.started"),
    "the refusal": (
        [{"calls": [{"name": "ad"}]}, "done"],
        {},
        lambda run: run.changed(ToolFailed, message="it was not wanted"),
        "tool.failed",
    ),
    "the figures": (CALLS, {}, lambda run: run.changed(TurnCompleted, tool_calls=2), "turn.completed"),
    "the reason": (
        [{"fail": {"kind": "contract_error"}}],
        {},
        lambda run: run.changed(TurnFailed, stop_reason="max_steps"),
        "turn.failed",
    ),
    "the status": (
        [{"fail": {"kind": "contract_error"}}],
        {},
        lambda run: run.changed(TurnFailed, status="cancelled"),
        "turn.failed",
    ),
    "what followed from a lost attempt": (
        [{"fail": {"kind": "contract_error"}}],
        {},
        lambda run: run.changed(ModelFailed, disposition="fallback"),
        "model.failed",
    ),
    "the limit": (
        [{"calls": [ADD]}, "done"],
        {"max_steps": 1},
        lambda run: run.changed(LimitChanged, limit=2),
        "limit.changed",
    ),
    "the name of the limit": (
        [{"calls": [ADD]}, "done"],
        {"max_steps": 1},
        lambda run: run.changed(LimitChanged, limit_name="wall_clock", limit=1800.0, observed=1801.0),
        "limit.changed",
    ),
    "the patience": (
        ["no", '{"total": 3}'],
        {"output_type": Sum},
        lambda run: run.changed(AnswerRejected, final=True),
        "answer.rejected",
    ),
    "a call that nobody made": (
        CALLS,
        {},
        lambda run: call_of(run, ToolStarted, "call_9_9"),
        "tool.started",
    ),
}


def without(run: Stored, kind: type[AnyEvent]) -> list[StoredFact]:
    gone = next(entry for entry in run.facts if isinstance(entry.fact.event, kind))
    return [entry for entry in run.facts if entry is not gone]


def call_of(run: Stored, kind: type[AnyEvent], call_id: str) -> list[StoredFact]:
    return [
        StoredFact(entry.agent_id, entry.seq, replace(entry.fact, call_id=call_id))
        if isinstance(entry.fact.event, kind)
        else entry
        for entry in run.facts
    ]


@pytest.mark.parametrize("name", TAMPERED)
async def test_a_decision_that_was_tampered_with_does_not_come_out(name: str) -> None:
    steps, options, tamper, kind = TAMPERED[name]
    store = MemoryStore()
    await run(Agent("sums", scripted(steps, leftover="ignore"), tools=[add, pay], **options), "go", store=store)
    honest = await read(store)
    assert (await honest.replay()).divergence is None
    report = await honest.replay(tamper(honest))
    assert report.divergence is not None
    assert report.divergence.kind == kind
    assert report.divergence.recorded != report.divergence.recomputed


async def test_the_first_difference_is_told_with_its_event_and_both_sides() -> None:
    honest = await stored(CALLS)
    report = await honest.replay(honest.changed(ModelRequested, 1, attempt=7))
    assert report.divergence is not None
    at = next(entry for entry in honest.facts if isinstance(entry.fact.event, ModelRequested) and entry.fact.step == 2)
    assert report.divergence.event_id == at.event_id
    assert report.divergence.recorded == "ask model 0 in step 2, attempt 7, on 5 items"
    assert report.divergence.recomputed == "ask model 0 in step 2, attempt 1, on 5 items"
    assert report.to_dict()["identical"] is False


# --- what outsiders write ------------------------------------------------------------------------------------------


async def cancelled_run() -> Stored:
    """A turn that somebody stops while a tool runs."""
    begun = asyncio.Event()

    @tool(effect="pure")
    async def forever() -> str:
        begun.set()
        await asyncio.sleep(60)
        return "never"

    store = MemoryStore()
    agent = Agent("sums", scripted([{"calls": [{"name": "forever"}, PAY]}], leftover="ignore"), tools=[forever, pay])
    async with stream(agent, "go", store=store) as running:
        await begun.wait()
        assert running.turn_id is not None
        await cancel(store, running.turn_id)
        assert (await running.result()).status == "cancelled"
    return await read(store)


async def test_a_stop_and_the_calls_it_skips_come_out_the_same() -> None:
    report = await (await cancelled_run()).replay()
    assert report.divergence is None
    assert report.checked["turn.interrupt.applied"] == 1
    assert report.checked["tool.failed"] == 1, "the skipped one; the other was told to stop, which is no decision"


@pytest.mark.parametrize(
    "fields", [{"skipped_tool_call_ids": ()}, {"cancelled_tool_call_ids": ()}, {"interrupt_id": "int_other"}]
)
async def test_a_stop_that_was_applied_to_other_calls_is_noticed(fields: dict[str, Any]) -> None:
    run = await cancelled_run()
    report = await run.replay(run.changed(TurnInterruptApplied, **fields))
    assert report.divergence is not None
    assert report.divergence.kind == "turn.interrupt.applied"


async def test_what_an_outsider_wrote_before_the_owner_saw_it_explains_both_ways() -> None:
    """The request to stop is in the log before calls that the owner took up without knowing of it."""
    run = await cancelled_run()
    asked = next(entry for entry in run.facts if isinstance(entry.fact.event, TurnInterruptRequested))
    started = next(index for index, entry in enumerate(run.facts) if isinstance(entry.fact.event, PermissionEvaluated))
    rest = [entry for entry in run.facts if entry is not asked]
    report = await run.replay([*rest[:started], asked, *rest[started:]])
    assert report.divergence is None


async def test_a_turn_may_not_end_as_if_it_had_not_seen_the_request_to_stop() -> None:
    run = await stored(["hello"])
    end = len(run.facts) - 1
    ours = run.facts[end]
    request = Fact(
        TurnInterruptRequested(interrupt_id="int_1", requested_by="operator"),
        ours.fact.at,
        ours.fact.thread_id,
        ours.fact.turn_id,
    )
    report = await run.replay([*run.facts[:end], StoredFact(ours.agent_id, ours.seq, request), ours])
    assert report.divergence is not None
    assert report.divergence.recorded == "end completed (natural)"


# --- recovery ------------------------------------------------------------------------------------------------------


async def interrupted(effect: str) -> tuple[MemoryStore, str]:
    """A turn whose process went away while a tool ran."""
    begun = asyncio.Event()

    @tool(effect=effect, name="act")  # type: ignore[arg-type]
    async def hang() -> str:
        begun.set()
        await asyncio.sleep(60)
        return "never"

    store = MemoryStore()
    steps = [{"calls": [{"name": "act"}]}, "done"]
    task = asyncio.create_task(run(Agent("sums", scripted(steps, leftover="ignore"), tools=[hang]), "go", store=store))
    await begun.wait()
    task.cancel()
    await asyncio.wait({task})
    return store, (await store.turns())[0].turn_id


async def recovered(effect: str, **options: Any) -> Stored:
    @tool(effect=effect, name="act")  # type: ignore[arg-type]
    async def act() -> str:
        return "done at last"

    store, turn_id = await interrupted(effect)
    script = scripted([{"calls": [{"name": "act"}]}, "done"], leftover="ignore")
    agent: Agent[None, Any] = Agent("sums", script, tools=[act], **options)
    assert (await resume(store, turn_id, [agent])).completed
    return await read(store)


@pytest.mark.parametrize("effect", ["pure", "keyed", "irreversible"])
async def test_what_a_recovery_settles_comes_out_the_same(effect: str) -> None:
    report = await (await recovered(effect)).replay()
    assert report.divergence is None
    assert report.checked["turn.resumed"] == 1
    settled = "tool.failed" if effect == "irreversible" else "tool.dispatched"
    assert report.checked[settled] == 1


@pytest.mark.parametrize(
    ("options", "between"),
    [
        ({"wake": [{"cron": "0 7 * * *", "say": "Look."}]}, WarningIssued),
        ({"instructions": "Add up."}, ContextResolved),
    ],
)
async def test_what_the_code_says_that_goes_on_with_a_turn_stands_beside_what_it_settles(
    options: dict[str, Any], between: type[AnyEvent]
) -> None:
    run = await recovered("pure", **options)
    kinds = [type(entry.fact.event) for entry in run.facts]
    assert between in kinds[kinds.index(TurnResumed) : kinds.index(ToolDispatched)]
    report = await run.replay()
    assert report.identical, report.divergence


async def test_a_recovery_that_settled_otherwise_is_noticed() -> None:
    run = await recovered("pure")
    for tampered in (
        run.changed(ToolDispatched, attempt=3),
        without(run, ToolDispatched),
        run.changed(TurnResumed, cause="supplied"),
    ):
        report = await run.replay(tampered)
        assert report.divergence is not None
    # An intent that says irreversible must not be repeated.
    intent = await run.replay(run.changed(ToolStarted, effect="irreversible"))
    assert intent.divergence is not None


async def test_a_turn_that_waits_for_a_tool_waits_for_one_that_is_open() -> None:
    store, turn_id = await interrupted("keyed")
    with pytest.raises(ToolMissing):
        await resume(store, turn_id, [Agent("sums", "scripted:demo")])
    run = await read(store)
    assert (await run.replay()).divergence is None
    other = await run.replay(run.changed(TurnSuspended, waiting_for=("other",)))
    assert other.divergence is not None
    assert other.divergence.kind == "turn.suspended"


async def test_a_fact_that_cannot_be_folded_is_a_difference_and_no_crash() -> None:
    run = await stored(CALLS)
    broken = await run.replay([entry for entry in run.facts if not isinstance(entry.fact.event, TurnStarted)])
    assert broken.divergence is not None


async def test_a_turn_that_other_rules_decided_is_said_to_be_and_is_no_fault() -> None:
    """The log of a turn that another version decided: what it did is not what this one would do."""
    run = await stored(CALLS)
    asked = [place for place, entry in enumerate(run.facts) if isinstance(entry.fact.event, ModelRequested)][-1]
    before = Stored(run.store, run.row, run.changed(TurnStarted, rules=RULES - 1))
    honest = await before.replay()
    assert (honest.identical, honest.rules, honest.rules_now) == (True, RULES - 1, RULES)
    report = await before.replay(before.changed(ModelRequested, -1, step=9))
    assert (report.divergence, report.identical) == (None, False)
    assert report.outdated is not None and report.outdated.event_id == run.facts[asked].event_id
    assert (await run.replay(run.changed(ModelRequested, -1, step=9))).divergence == report.outdated, "of its own rules"


async def test_a_turn_is_held_to_the_rules_of_whoever_took_it_up() -> None:
    run = await recovered("pure")
    before = Stored(run.store, run.row, run.changed(TurnStarted, rules=RULES - 1))
    assert (await before.replay()).rules == RULES
    report = await before.replay(before.changed(ToolDispatched, attempt=3))
    assert report.divergence is not None and report.outdated is None
