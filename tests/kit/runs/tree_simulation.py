"""A turn without an engine: decisions and fold are real, every answer and every result is made up, no task runs.

What is under way is read off the state. One piece of it after another comes to an end, in an order drawn by lot, and
time passes as it likes. Thousands of trees can be played like this, killed, folded anew and gone on with.
"""

from contextlib import AbstractContextManager, nullcontext
from decimal import Decimal
from random import Random
from typing import Any, cast

from kit.runs.trees import MOST_OUTPUT, Node, planted, said, tree_agent
from wakeful.contracts.agents import TurnConfig
from wakeful.contracts.budgets import Limits
from wakeful.contracts.content import BlobRef, Text
from wakeful.contracts.conversation import AssistantItem, CallPart, UserItem
from wakeful.contracts.envelope import Fact, StoredFact
from wakeful.contracts.errors import ModelFailure
from wakeful.contracts.events import (
    AnyEvent,
    AssistantRecorded,
    CostRecorded,
    MessageAdmitted,
    ModelCompleted,
    ModelFailed,
    TurnInterruptRequested,
    TurnPatienceEnded,
    TurnStarted,
)
from wakeful.contracts.events.models import CallAsked
from wakeful.contracts.models import TokenUsage
from wakeful.contracts.tools import ToolError
from wakeful.decisions.evolve.facts import evolve
from wakeful.decisions.levels import Call, Level, PlannerRole, SummaryRole, as_child
from wakeful.decisions.replay.turn_replay import Divergence, Replay
from wakeful.decisions.retries import dispose
from wakeful.decisions.secret_values import NO_SECRETS
from wakeful.decisions.state import TurnState
from wakeful.decisions.step import Step
from wakeful.decisions.turn import decide
from wakeful.engine.prepare.tools import gate_policy
from wakeful.engine.recovery import recovered
from wakeful.engine.starts import Start
from wakeful.engine.steps import Steps
from wakeful.engine.turn_facts import KnownFacts
from wakeful.engine.turn_work import ModelTerms, TurnCode, TurnPlace, TurnWork
from wakeful.gate.call_at_gate import CallRecord
from wakeful.gate.outcomes import failed
from wakeful.gate.result_shape import at_once
from wakeful.gate.turn_gate import GateParts
from wakeful.gate.turn_policy import TurnPolicy
from wakeful.ports import Claim, Store, TurnRow
from wakeful.providers.pricing import ListPricing
from wakeful.service.queries.replay import _StoredGate
from wakeful.tools.runtime_tools import runtime_tools

TURN, THREAD, AGENT = "turn_1", "thread_1", "agent_1"
DIGEST = "sha256:" + "0" * 64
INPUT, PER_TOKEN_IN, PER_TOKEN_OUT = 10, Decimal("0.000001"), Decimal("0.00001")


class _Clock:
    def __init__(self, now: int = 1_000_000_000_000_000) -> None:
        self.at = now
        self.tick = 0
        """How far it moves whenever it is read."""

    def now(self) -> int:
        self.at += self.tick
        return self.at

    def monotonic(self) -> float:
        return self.at / 1_000_000

    def skipped(self) -> int:
        return 0

    def follow(self) -> AbstractContextManager[None]:
        return nullcontext()

    async def sleep(self, seconds: float) -> None:
        raise AssertionError("nobody sleeps here")


class Simulation:
    """One turn, played."""

    result = "fine"
    """What tools give back."""

    def __init__(
        self,
        root: Node,
        limits: Limits,
        luck: Random,
        *,
        priced: bool = True,
        planned: bool = False,
        tick: int = 0,
    ) -> None:
        """`tick`: microseconds that pass whenever the clock is read, so that facts of one commit differ in time."""
        self.nodes, self.luck, self.priced = planted(root), luck, priced
        agent = tree_agent(root, priced=priced)
        tools = {each.name: each for each in agent.tools} | {
            each.name: each
            for each in runtime_tools(subtasks=True, parallel=agent.max_parallel_subagents, work_items=False)
        }
        self.config = TurnConfig(
            agent_name="tree",
            model_ref=agent.model.ref,  # type: ignore[union-attr]
            tools=tuple(each.declaration for each in tools.values()),
            policy=gate_policy(agent),
            subtasks=True,
            allow_parallel_subagents=True,
            max_parallel_subagents=agent.max_parallel_subagents,
            planning_enabled=planned,
        )
        self.configs = {DIGEST: self.config}
        self.agent, self.tools, self.clock = agent, tools, _Clock()
        self.clock.tick = tick
        self.facts: list[StoredFact] = []
        self.commits: list[int] = []
        self.call_ids = 0
        self._take_up(TurnState(configs=self.configs))
        task = UserItem(parts=(Text("go"),))
        ref = BlobRef(digest=DIGEST, size=1, media_type="application/json")
        started = TurnStarted(
            turn_index=1,
            message_ids=("m",),
            agent_name="tree",
            config_ref=ref,
            model_ref=self.config.model_ref,
            limits=limits,
        )
        self._write([self.work.fact(MessageAdmitted(message_id="m", item=task)), self.work.fact(started)])

    def _take_up(self, state: TurnState) -> None:
        """A process takes the turn up, the first or another one."""
        row = TurnRow(TURN, AGENT, "tree", THREAD, "running", 1, 1, 1, 1, None, "", "", (), 0, None)
        self.work = TurnWork(
            place=TurnPlace(
                cast(Store, None),
                Claim(AGENT, THREAD, TURN, "me", 1, 1, len(self.facts)),
                row,
                KnownFacts(AGENT, self.facts, self._read, []),
                set(),
                state,
            ),
            config=self.config,
            clock=self.clock,
            terms=ModelTerms(lambda: 1.0, ListPricing()),
            code=TurnCode([self.agent.model], self.tools),  # type: ignore[list-item]
        )
        work = self.work
        policy = TurnPolicy(lambda: work.state, lambda: self.config, b"")
        work.gate = GateParts(policy, turn_id=TURN)
        self.steps = Steps(work, self._no_outcome)

    @staticmethod
    def _no_outcome(facts: list[Fact]) -> None:
        raise AssertionError("nothing runs here")

    @property
    def state(self) -> TurnState:
        return self.work.state

    def play(self, stop_after: int | None = None) -> None:
        """To the end, or until somebody stops it after so many outcomes. Raises when it would wait for ever."""
        for number in range(5_000):
            self._decided()
            if self.state.phase == "ended":
                return
            if number == stop_after:
                self._write([self.work.fact(TurnInterruptRequested(interrupt_id="i", requested_by="ada"))])
                continue
            if self.state.phase == "suspended":
                self.asked_again()
                continue
            if self.state.tree.away and self.luck.random() < 0.3:
                self.wait_over()
                continue
            under_way = self._under_way()
            assert under_way, f"nothing is under way and nothing is decided: {self.state.phase}"
            self.clock.at += self.luck.choice((0, 1_000, 1_000_000))
            self._write(self._end_of(self.luck.choice(under_way)))
        raise AssertionError("it does not end")

    def asked_again(self) -> None:
        """A turn that rests for a provider is taken up: when it is due, or before, or to be given up."""
        suspended = self.state.rest.suspended_for
        assert suspended is not None and suspended.next_try is not None
        if self.luck.random() < 0.05:
            self._write([self.work.fact(TurnPatienceEnded(seconds=120))])
        elif self.luck.random() < 0.7:
            self.clock.at = max(self.clock.at, suspended.next_try)
        self.cut_off(len(self.facts))

    def wait_over(self) -> None:
        """The time of a level comes while others work."""
        due = min(level.round.wait.next_try for level in self.state.tree.away.values() if level.round.wait is not None)
        self.clock.at = max(self.clock.at, due)
        self._write(self.steps.waits_over(due))

    def cut_off(self, upto: int) -> None:
        """The process died after so many facts; another one folds them and settles what was open."""
        self.facts = self.facts[:upto]
        self.commits = [each for each in self.commits if each <= upto]
        state = TurnState(configs=self.configs)
        for entry in self.facts:
            evolve(state, entry.fact)
        self._take_up(state)
        self.clock.at += 1_000_000
        settling = recovered(self.work, self.steps)
        try:
            settling.send(None)
        except StopIteration as settled:
            self._write(settled.value)
        else:
            raise AssertionError("settling waits for something")

    def replayed(self) -> Divergence | None:
        replay = Replay(TurnState(configs=self.configs), _StoredGate(TURN, b""))
        for entry in self.facts:
            replay.feed(entry)
        return replay.divergence

    # --- what the runner does -----------------------------------------------------------------------------------------

    def _decided(self) -> None:
        """What the runner does in one pass, in one commit."""
        written: list[Fact] = []
        starts: list[Start] = []
        while steps := self.next_steps():
            before, stop = len(written), self.state.stop
            for step in steps:
                for fact in self.steps.begin(step, starts, len(written)):
                    evolve(self.state, fact)
                    written.append(fact)
                if self.state.stop is not stop:
                    break
            if len(written) == before:
                break
        if written:
            self._record(written)

    def next_steps(self) -> list[Step]:
        return decide(self.state)

    async def _read(self) -> list[StoredFact]:
        return self.facts

    def _write(self, facts: list[Fact]) -> None:
        for fact in facts:
            evolve(self.state, fact)
        self._record(facts)

    def _record(self, facts: list[Fact]) -> None:
        first = len(self.facts) + 1
        self.facts.extend(StoredFact(AGENT, first + index, fact) for index, fact in enumerate(facts))
        self.work.place.known.add_own(facts, first)
        self.commits.append(len(self.facts))

    # --- the world ----------------------------------------------------------------------------------------------------

    def _under_way(self) -> list[Level | Call]:
        levels: list[Level] = [self.state, *self.state.tree.levels.values()]
        asking: list[Level | Call] = [level for level in levels if level.phase == "asking"]
        running = [call for level in levels for call in level.round.open_calls() if call.running and not call.children]
        return [*asking, *running]

    def _end_of(self, what: Level | Call) -> list[Fact]:
        stopped = self.state.stop is not None and self.state.stop.applied
        if isinstance(what, Level):
            step = what.round.request.step if what.round.request is not None else None
            return [self.work.fact(event, step, None, what) for event in self._answer(what, stopped=stopped)]
        record = CallRecord(what, self.work.now())
        event: AnyEvent
        if stopped or what.part.name == "fails":
            error = ToolError(kind="cancelled" if stopped else "failed", message="no")
            status, category = ("cancelled", "canceled") if stopped else ("failed", "execution_failed")
            event = failed(
                record,
                error,
                now=self.work.now(),
                status=cast(Any, status),
                category=cast(Any, category),
                effects="none",
            )
        else:
            event = at_once(record, self.result, self.work.now(), NO_SECRETS)
        return [self.work.fact(event, what.step, what.call_id, what.level)]

    def input_of(self, level: Level) -> int:
        """What the provider says the prompt took."""
        return INPUT

    def _answer(self, level: Level, *, stopped: bool) -> list[AnyEvent]:
        asked = level.round.request
        assert asked is not None
        if stopped:
            return [self._lost(level, ModelFailure("stopped", kind="cancelled", stage="body"))]
        name = child.started.task.text if (child := as_child(level)) is not None else "0"
        plan: dict[str, Any] = {"text": "1. Do it."}
        says = (
            plan
            if isinstance(level.role, PlannerRole | SummaryRole)
            else said(self.nodes, name, level.model_usage.answers)
        )
        may_come_back = "fail" in says and self.nodes[name].ending in ("unavailable", "no_key")
        is_back = may_come_back and self.luck.random() < 0.3
        if "fail" in says and not is_back:
            why = says["fail"][0]
            failure = ModelFailure(why["message"], kind=why["kind"], stage="headers", status=why["status"])
            return [self._lost(level, failure)]
        if self.luck.random() < 0.05:  # a line that breaks in the middle of the answer
            return [self._lost(level, ModelFailure("cut", kind="stream_interrupted", stage="body"))]
        usage = TokenUsage(input_tokens=self.input_of(level), output_tokens=self.luck.randint(0, MOST_OUTPUT))
        parts: list[Any] = [Text(says["text"])] if "text" in says else []
        if is_back:
            payload = {"name": "finish_subtask", "arguments": {"n": 1}}
            says = {"calls": [payload]} if self.nodes[name].schema else {}
            parts = [] if says else [Text(f"done {name}")]
        for call in says.get("calls", ()):
            self.call_ids += 1
            parts.append(CallPart(call_id=f"c{self.call_ids}", name=call["name"], arguments=call["arguments"]))
        item = AssistantItem(parts=tuple(parts), provider="scripted")
        asks = tuple(CallAsked(call_id=part.call_id, name=part.name) for part in item.calls)
        known = self.luck.random() < 0.9  # some providers do not say what it took
        events: list[AnyEvent] = [
            ModelCompleted(
                model_ref=asked.model_ref,
                attempt=asked.attempt,
                stop_reason="end",
                token_usage=usage if known else None,
                context_build_ms=0.0,
                provider_round_ms=0.0,
                provider_started_at="",
                provider_completed_at="",
            )
        ]
        if known and self.priced:
            amount = INPUT * PER_TOKEN_IN + (usage.output_tokens or 0) * PER_TOKEN_OUT
            events.append(CostRecorded(model_ref=asked.model_ref, amount=f"{amount:f}", price_list="own"))
        return [*events, AssistantRecorded(item=item, calls=asks)]

    def _lost(self, level: Level, failure: ModelFailure) -> ModelFailed:
        after, asked = 0, level.round.request
        assert asked is not None
        return ModelFailed(
            model_ref=asked.model_ref,
            candidate=asked.candidate,
            attempt=asked.attempt,
            failure_kind=failure.kind,
            stage=failure.stage,
            disposition=dispose(
                failure.kind,
                retryable=None,
                attempt=asked.attempt,
                retry_after_ms=after,
                more_candidates=False,
                has_waited=level.round.wait is not None,
            ),
            message=failure.message,
            status=failure.status,
            retry_after_ms=after,
        )
