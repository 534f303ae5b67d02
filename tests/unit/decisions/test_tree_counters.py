"""What a state counts is what is there, after every fact: whoever pauses, asks, folds, interrupts or kills the turn.

`decide` looks at counters and not at every call of every level. One that drifts is a turn that waits for ever, or one
that runs more at a time than it may.
"""

import asyncio
import os
from dataclasses import replace
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kit.runs.tree_simulation import DIGEST, Simulation
from kit.runs.trees import Node, ProcessEnd, check_tree, nodes
from wakeful.contracts.budgets import Limits
from wakeful.contracts.content import Text
from wakeful.contracts.controls import CompactionPolicy
from wakeful.contracts.conversation import UserItem
from wakeful.contracts.envelope import Fact
from wakeful.contracts.events import (
    ActionResolved,
    CompactionCompleted,
    TurnInterjected,
    TurnInterruptRequested,
    TurnPauseLifted,
    TurnPauseRequested,
    TurnStarted,
    TurnSuspended,
    UnknownResolved,
)
from wakeful.contracts.tools import ToolError
from wakeful.decisions.compaction import context_tokens
from wakeful.decisions.levels import Call, Level
from wakeful.decisions.state import TurnState
from wakeful.engine.prepare.tools import gate_policy
from wakeful.gate.call_at_gate import CallRecord
from wakeful.gate.outcomes import failed

TREES = int(os.environ.get("WAKEFUL_TREES", "1")) * 200
ENDINGS: tuple[ProcessEnd, ...] = ("text", "text", "unavailable", "no_key", "refused", "never")
FREE = Limits(depth=3, width=4, max_steps=6, result_bytes=50_000, subtasks=50)


def may_step(level: Level) -> bool:
    if level.phase == "acting":
        return level.round.untaken > 0 or level.round.calls_off or level.stop_error is not None
    return level.phase in ("ready", "lost", "closing", "answered")


def drifts(state: TurnState) -> list[str]:
    """Where what is counted is not what is there."""
    levels: list[Level] = [state, *state.tree.levels.values()]
    calls = [call for level in levels for call in level.round.batch]
    rested = state.rest.phase_before if state.phase == "suspended" else state.phase
    asking = sum(level.phase == "asking" for level in levels[1:]) + (rested == "asking")
    running = [call for call in calls if call.running]
    held = [level.round.request for level in levels if level.round.request is not None]
    found = {
        "in_flight": (state.tree.in_flight, asking + sum(not call.children for call in running)),
        "waiting": (sorted(state.tree.waiting), sorted(call.call_id for call in calls if call.is_waiting)),
        "calls": (sorted(state.tree.calls), sorted(call.call_id for call in calls)),
        "away": (set(state.tree.away), {level.id for level in levels if level.phase == "waiting"}),
        "able": (set(state.tree.able), {level.id for level in levels if may_step(level)}),
        "same levels": (all(state.tree.able[each] is state.level(each) for each in state.tree.able), True),
        "held_input": (state.ledger.held_input, sum(asked.held_input for asked in held)),
        "held_output": (state.ledger.held_output, sum(asked.held_output for asked in held)),
        "held_usd": (state.ledger.held_usd, sum(asked.held_usd for asked in held)),
        "held_unpriced": (state.ledger.held_unpriced, sum(asked.held_unpriced for asked in held)),
    }
    for level in levels:
        there = [
            call for call in level.round.batch if call.answer is None and not call.taken_up and not call.open_before
        ]
        found[f"untaken of {level.id}"] = (level.round.untaken, len(there))
        found[f"running of {level.id}"] = (level.round.running, sum(call.running for call in level.round.batch))
    return [
        f"{name}: {counted} is counted, {there} is there"
        for name, (counted, there) in found.items()
        if counted != there
    ]


class Steered(Simulation):
    """A turn that people speak to, pause, allow things, and that folds its conversations."""

    result = "a long story " * 40

    def __init__(
        self, root: Node, limits: Limits, luck: Random, *, asks: bool, window: int | None, planned: bool
    ) -> None:
        super().__init__(root, limits, luck, planned=planned)
        agent = self.agent.changed(hitl_tools=["look", "pay"] if asks else [])
        self.config = self.config.changed(
            policy=gate_policy(agent),
            context_window=window,
            compaction=CompactionPolicy(threshold=0.5),
        )
        self.configs[DIGEST] = self.state.config = self.work.config = self.config
        self.asked = 0
        self._with_ids()

    def _with_ids(self) -> None:
        def new(prefix: str) -> str:
            self.asked += 1
            return f"{prefix}_{self.asked}"

        self.work.gate.new_id = new

    def input_of(self, level: Level) -> int:
        return context_tokens(level)

    def _record(self, facts: list[Fact]) -> None:
        super()._record(facts)
        assert not (drift := drifts(self.state)), (drift, facts[-1])

    def cut_off(self, upto: int) -> None:
        super().cut_off(upto)
        self._with_ids()

    def steered(self, stop_after: int | None = None) -> None:
        for number in range(3_000):
            self._decided()
            if self.state.phase == "ended":
                return
            if number == stop_after:
                self._outside(TurnInterruptRequested(interrupt_id="i", requested_by="ada"))
            elif self.state.phase == "suspended":
                self._supplied()
            elif self.state.tree.away and self.luck.random() < 0.3:
                self.wait_over()
            elif self.luck.random() < 0.1:
                self._spoken()
            else:
                waiting = list(self.state.tree.waiting.values())
                under_way = self._under_way()
                assert waiting or under_way, f"nothing is under way and nothing is decided: {self.state.phase}"
                if waiting and (not under_way or self.luck.random() < 0.2):
                    self._allowed()
                else:
                    self.clock.at += self.luck.choice((0, 1_000, 1_000_000))
                    self._write(self._end_of(self.luck.choice(under_way)))
        raise AssertionError("it does not end")

    def _outside(self, event: object) -> None:
        self._write([self.work.fact(event)])  # type: ignore[arg-type]
        if self.state.phase == "suspended":
            self.cut_off(len(self.facts))

    def _spoken(self) -> None:
        kind = self.luck.randrange(3)
        if kind == 0:
            self._outside(TurnPauseRequested(requested_by="ada"))
        elif kind == 1 and self.state.rest.is_paused:
            self._outside(TurnPauseLifted(requested_by="ada"))
        else:
            words = UserItem(parts=(Text("be quick"),))
            self._outside(TurnInterjected(message_id=f"m{len(self.facts)}", item=words, said_by="ada"))

    def _supplied(self) -> None:
        """Somebody takes the turn up again, with what it rests on."""
        suspended = self.state.rest.suspended_for
        assert isinstance(suspended, TurnSuspended)
        if self.luck.random() < 0.3:
            words = UserItem(parts=(Text("are you there"),))
            self._write([self.work.fact(TurnInterjected(message_id=f"m{len(self.facts)}", item=words, said_by="ada"))])
        if suspended.reason == "provider":
            self.asked_again()
            return
        if suspended.reason == "paused":
            self._write([self.work.fact(TurnPauseLifted(requested_by="ada"))])
        elif suspended.next_try is not None and self.luck.random() < 0.5:
            self.clock.at = max(self.clock.at, suspended.next_try)
        else:
            self._allowed()
        self.cut_off(len(self.facts))

    def _allowed(self) -> None:
        call = self.luck.choice(list(self.state.tree.waiting.values()))
        assert call.pending is not None
        yes = self.luck.random() < 0.7
        event = ActionResolved(
            action_id=call.pending.action_id,
            tool_name=call.part.name,
            status="approved" if yes else "rejected",
            decision="approve" if yes else "reject",
            resolver="ada",
        )
        fact = self.work.fact(event, call.step, call.call_id)
        fact.action_id = event.action_id
        self._write([fact])


@settings(max_examples=TREES, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    nodes(3, endings=ENDINGS),
    st.randoms(use_true_random=False),
    st.booleans(),
    st.sampled_from([None, 700, 2_000]),
    st.booleans(),
    st.none() | st.integers(0, 30),
    st.booleans(),
    st.sampled_from([1, 2, 4]),
)
def test_counters_hold_whatever_happens_to_a_tree(
    root: Node,
    luck: Random,
    asks: bool,
    window: int | None,
    planned: bool,
    stop_after: int | None,
    cut: bool,
    width: int,
) -> None:
    async def play() -> None:
        limits = FREE.model_copy(update={"width": width})
        played = Steered(root, limits, luck, asks=asks, window=window, planned=planned)
        played.steered(stop_after)
        check_tree(played.facts, played.state, limits)
        assert played.replayed() is None
        if cut:
            played.cut_off(luck.choice(played.commits[:-1]))
            played.steered()
            check_tree(played.facts, played.state, limits)
            assert played.replayed() is None

    asyncio.run(play())


async def test_the_trees_above_fold_their_conversations() -> None:
    child = Node([[("look",)], [("look",)], [("look",)], [("look",)]])
    root = Node([[("run", child)], [("look",)], [("look",)]])
    played = Steered(root, FREE, Random(1), asks=False, window=700, planned=False)
    played.steered()
    folded = [entry.fact.level for entry in played.facts if isinstance(entry.fact.event, CompactionCompleted)]
    assert folded, "no conversation was folded"
    assert any(level is not None for level in folded)


@pytest.mark.parametrize("counter", ["in_flight", "untaken", "running"])
async def test_a_counter_that_drifts_is_seen(counter: str) -> None:
    played = Steered(Node([[("look",)]]), FREE, Random(1), asks=False, window=None, planned=False)
    assert not drifts(played.state)
    setattr(played.state.tree if counter == "in_flight" else played.state.round, counter, 1)
    assert drifts(played.state)


async def test_a_word_to_a_turn_that_was_paused_before_its_end_is_answered() -> None:
    played = Steered(Node(), FREE, Random(1), asks=False, window=None, planned=False)
    played._decided()
    played._write([played.work.fact(TurnPauseRequested(requested_by="ada"))])
    played._write(played._end_of(played.state))
    assert played.state.phase == "answered"
    played._decided()
    assert played.state.phase == "suspended"
    words = UserItem(parts=(Text("one more thing"),))
    played._write([played.work.fact(TurnInterjected(message_id="m2", item=words, said_by="ada"))])
    played._write([played.work.fact(TurnPauseLifted(requested_by="ada"))])
    played.cut_off(len(played.facts))
    played.play()
    assert [item.text for item in played.state.conversation.items] == ["go", "done 0", "one more thing", "done 0"]
    assert played.replayed() is None


async def test_an_outcome_that_becomes_known_while_a_summary_is_written_is_replayed_the_same() -> None:
    played = Steered(Node([[("look",)]] * 5), FREE, Random(3), asks=False, window=1_400, planned=False)
    unknown = ""
    while not unknown or played.state.phase != "apart":
        played._decided()
        (what,) = played._under_way()
        if isinstance(what, Call) and not unknown:
            unknown = what.call_id
            record, error = CallRecord(what, played.work.now()), ToolError(kind="unknown", message="gone")
            event = failed(
                *(record, error),
                now=played.work.now(),
                status="interrupted",
                category="execution_failed",
                effects="unknown",
            )
            played._write([played.work.fact(event, what.step, what.call_id, what.level)])
        else:
            played._write(played._end_of(what))
            played._decided()
    known = UnknownResolved(call_id=unknown, tool_name="look", happened=True, source="operator")
    played._write([played.work.fact(known, 1)])
    played.play()
    (folded, *_) = [e.fact.event for e in played.facts if isinstance(e.fact.event, CompactionCompleted)]
    assert folded.preserved_incident_refs == (), "it was known when the summary was settled"
    assert played.replayed() is None


async def test_a_turn_of_a_single_round_ends_with_it_whether_a_word_comes_before_the_reply_or_after() -> None:
    for early in (True, False):
        played = Steered(Node(), FREE, Random(1), asks=False, window=None, planned=False)
        place, started = next(
            (place, entry) for place, entry in enumerate(played.facts) if isinstance(entry.fact.event, TurnStarted)
        )
        single = started.fact.event.model_copy(update={"stop_rule": "single"})
        played.facts[place] = started._replace(fact=replace(started.fact, event=single))
        played.state.terms.stop_rule = "single"
        played._decided()
        word = TurnInterjected(message_id="m2", item=UserItem(parts=(Text("wait"),)), said_by="ada")
        if early:
            played._write([played.work.fact(word)])
        played._write(played._end_of(played.state))
        if not early:
            played._write([played.work.fact(word)])
        played.play()
        assert [item.text for item in played.state.conversation.items] == ["go", "done 0", "wait"], (
            "the next turn reads it"
        )
        assert played.replayed() is None


def _two_children_of_which_one_waits(width: int) -> Steered:
    """A person's word on the first child's call is in the log before the second child's call is known."""
    children = [Node([[("look",)]]), Node([[("look",), ("look",)]])]
    limits = FREE.model_copy(update={"width": width})
    played = Steered(Node([[("many", children)]]), limits, Random(2), asks=True, window=None, planned=False)
    while not played.state.tree.waiting:
        played._decided()
        if not played.state.tree.waiting:
            played._write(played._end_of(played._under_way()[0]))
    played._allowed()
    played._write(played._end_of(played._under_way()[0]))
    return played


async def test_a_word_that_comes_while_every_place_is_taken_is_replayed_the_same() -> None:
    played = _two_children_of_which_one_waits(1)
    played.steered()
    assert played.replayed() is None


async def test_a_replay_sees_more_under_way_than_there_are_places_for_whatever_was_said_meanwhile() -> None:
    played = _two_children_of_which_one_waits(2)
    played.steered()
    assert played.replayed() is None
    started = next(entry.fact for entry in played.facts if isinstance(entry.fact.event, TurnStarted))
    narrow = FREE.model_copy(update={"width": 1})
    assert isinstance(started.event, TurnStarted)
    started.event = started.event.model_copy(update={"limits": narrow})
    assert played.replayed() is not None
