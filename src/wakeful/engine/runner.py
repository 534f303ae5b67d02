"""The loop of one turn: decide, write down, do.

    take in what is known; settle what a crash left open
    loop:  fold the outcomes
           while there is a step to take: fold its facts, note what it starts
           append it all in one transaction; with a barrier when something not pure starts, and at rest
           start what may begin; wait for the next outcomes

State may run ahead inside a pass: nothing is done or shown before the commit. The store refuses the commit in which a
turn rests where something arrived; and the first one of a runner where something was written after the log was read and
before the runner began to listen: nobody would hear of it. Then the turn is folded again, and the same outcomes are
taken in anew.
"""

import asyncio
from collections.abc import Awaitable, Callable
from operator import attrgetter

from wakeful.contracts.envelope import Fact, StoredFact
from wakeful.contracts.errors import AlreadyDecided, RestRefused, StoreProblem, WakefulError
from wakeful.contracts.events import WarningIssued
from wakeful.decisions.evolve.facts import evolve
from wakeful.decisions.state import TurnState
from wakeful.decisions.step import (
    AskCaller,
    AskModel,
    Fold,
    ResolveNode,
    StartPlanning,
    Step,
    TakeUp,
)
from wakeful.decisions.turn import decide
from wakeful.engine.drain import DrainingTurn, StepUnderWay
from wakeful.engine.spend_windows import TurnWindows
from wakeful.engine.starts import Start
from wakeful.engine.state_loader import fold
from wakeful.engine.steps import Steps
from wakeful.engine.turn_inbox import WaitAlarm
from wakeful.engine.turn_messages import before_start
from wakeful.engine.turn_work import TurnWork
from wakeful.views.conversation_export import turn_facts

NOT_PERSISTED = "not_persisted"
"""The warning about facts that the store refused at first."""
WATCHER_DROPPED = "watcher_dropped"
"""The warning about somebody who watched and broke: what they would have glimpsed from there on is lost."""
_NEEDS_BARRIER = attrgetter("needs_barrier")
_WORK = (AskModel, TakeUp, ResolveNode, StartPlanning, Fold, AskCaller)
"""Steps that begin something. In a drain none is taken; those that only say what has come of a step are."""


class TurnRunner:
    """Runs one turn until it rests."""

    def __init__(self, work: TurnWork, at_end: Callable[[list[Fact]], Awaitable[None]] | None = None) -> None:
        self._work = work
        self._at_end = at_end
        """Adds to the facts with which the turn ends."""
        self._inbox = work.inbox
        """Told to look when an outsider wrote something: that is fetched even when there is nothing to write."""
        self._spoken = False
        """One wrote since the last append: what it wrote is heard before anything new is decided."""
        self._is_in_step = False
        """Its first commit is made: it has seen everything that was written before it began to listen."""
        self._unwritten: list[Fact] = []
        """Outcomes that are taken in and not in the store."""
        self._answers = 0
        """How many standing answers, given and taken back, the catalogue on record knows of."""
        self.steps = Steps(work, self._inbox.post)
        self._alarm = WaitAlarm(work.clock, self._inbox.look_again)
        work.audience.on_dropped = self._dropped

    async def run(self, opening: list[Fact]) -> None:
        """Until the turn is suspended or over. Raises what the store raises; what is on disk stays true."""
        turn = DrainingTurn(self._inbox.look_again, self._under_way)
        with self._work.clock.follow(), self._work.drain.joined(turn):
            self._work.skip_said = self._work.clock.skipped()
            await self._run(opening)

    async def _run(self, opening: list[Fact]) -> None:
        state, inbox = self._work.state, self._inbox
        place = self._work.place
        outsiders = place.store.watch(place.claim.agent_id, thread_id=place.claim.thread_id, feed="outsiders")
        outsiders.call_on_commit(self._hear)
        outcomes = opening
        self._answers = _answers(state)
        self.steps.waiting.reopen(state.all_open_calls())
        self.steps.stop_again()
        timekeeper: asyncio.Task[None] | None = None
        try:
            while True:
                outcomes = await self._pass(outcomes)
                state = self._work.state
                if state.phase in ("ended", "suspended"):
                    return
                if timekeeper is None and self._is_in_step:  # its time counts from its first commit
                    timekeeper = asyncio.create_task(self._keep_time())
                if outcomes or inbox.look:
                    await asyncio.sleep(0)  # others are there, too, and a turn may never have to wait
                elif self._work.drain.is_on and not state.tree.in_flight:
                    raise asyncio.CancelledError("the process ends")  # from outside, as if it were let go of
                else:
                    self._alarm.set(self.steps.next_due())
                    outcomes = await inbox.next()
        except BaseException as error:
            # The caller stopped waiting, or the store refused: a small crash. What runs is told, and what is open is
            # settled when the turn is taken up again.
            await self._go_down(error)
            raise
        finally:
            outsiders.close()
            if timekeeper is not None:
                timekeeper.cancel()
            self._alarm.close()
            self._work.audience.on_dropped = None
            self.steps.close()

    async def _pass(self, outcomes: list[Fact]) -> list[Fact]:
        """Decide, write down, do. Returns outcomes that have to be taken in at once."""
        self._unwritten = outcomes = [*self._work.say_skip(), *self._waits_over(), *outcomes]
        await self._hear_first(outcomes)
        facts = await self._take_in(outcomes)
        starts = self.steps.repeated(outcomes) if self.steps.expects_outcomes else []
        self._decide(facts, starts)
        if not facts and not self._inbox.look:
            return []
        try:
            others = await self._write(facts, starts)
        except AlreadyDecided as faster:
            # Somebody outside was faster: what was decided there holds, and the rest is decided anew.
            self._unwritten = [
                fact for fact in outcomes if fact.action_id != faster.action_id or not fact.event.outsider
            ]
            return await self._anew(self._unwritten)
        except RestRefused:  # also: somebody else was faster with the rest of a spend window, or with a notice
            return await self._anew(outcomes)
        await self._do(facts, starts, others)
        return self._inbox.take()

    def _waits_over(self) -> list[Fact]:
        rung = self._alarm.heard()
        return self.steps.waits_over(rung) if rung else []

    async def _hear_first(self, outcomes: list[Fact]) -> None:
        """What one wrote past us is folded before outcomes are, in the order of the log."""
        work = self._work
        if not self._spoken or not outcomes:
            return
        self._spoken = False
        heard = await work.place.store.append(work.place.claim, [])
        for other in heard:
            evolve(work.state, other.fact)
        if heard:
            work.show(heard, [], work.place.claim.seen + 1)

    async def _take_in(self, outcomes: list[Fact]) -> list[Fact]:
        """Fold the outcomes. Returns them, and what they mean for spend windows."""
        if self._work.terms.windows is not None:
            return [*outcomes, *await self._with_windows(self._work.terms.windows, outcomes)]
        for fact in outcomes:
            evolve(self._work.state, fact)
        return [*outcomes]

    async def _write(self, facts: list[Fact], starts: list[Start]) -> list[StoredFact]:
        """Append it all in one transaction. Returns what others wrote, and the turn had not seen."""
        work, place = self._work, self._work.place
        self._inbox.look = self._spoken = False
        ended = work.state.phase == "ended"
        rest = ended or work.state.phase == "suspended"
        if ended and self._at_end is not None:
            await self._at_end(facts)
        seen = place.claim.seen
        try:
            others = await place.store.append(
                place.claim,
                facts,
                barrier=rest or any(map(_NEEDS_BARRIER, starts)),
                rest=rest or not self._is_in_step,
                last=ended,
            )
        except StoreProblem:
            if place.claim.seen != seen:
                self._unwritten = []  # written, and not known to be safe
            raise
        self._is_in_step = True
        self._unwritten = []
        return others

    async def _do(self, facts: list[Fact], starts: list[Start], others: list[StoredFact]) -> None:
        """What was decided is on disk: show it, and begin it."""
        work, steps, inbox, state = self._work, self.steps, self._inbox, self._work.state
        first = work.place.claim.seen - len(facts) + 1
        for other in others:
            evolve(state, other.fact)
        if others or facts:
            work.show(others, facts, first)
            if steps.calls.surroundings.unwritten:
                steps.calls.surroundings.written(facts)
            if steps.attention.unwritten:
                for requests in tuple(steps.attention.unwritten):
                    requests.written(facts)
        for start in starts:
            if start.needs_barrier:
                await work.place.store.hold(work.place.claim)
            start.begin(first + start.fact_index)
        if state.tree.to_call_off:
            steps.call_off()
        if _answers(state) != self._answers:
            self._answers = _answers(state)
            # Somebody gave a standing answer or took one back: what the turn's tools are is on record again before
            # anything follows.
            inbox.post(await work.recatalog(work) if work.recatalog is not None else [])
        # What others wrote may change what is to be done next: decide again before waiting.
        if others:
            inbox.look = bool(decide(state)) or inbox.look

    def _decide(self, facts: list[Fact], starts: list[Start]) -> None:
        """Take every step there is to take: its facts are folded and noted, and what it starts is noted."""
        state, steps = self._work.state, self.steps
        while decided := self._may_begin(decide(state)):
            before, stop, full = len(facts), state.stop, state.rest.full_window
            for step in decided:
                for fact in steps.begin(step, starts, len(facts)):
                    evolve(state, fact)
                    facts.append(fact)
                if state.stop is not stop or state.rest.full_window is not full:
                    break  # a limit that only this step could see: nothing else begins
            if len(facts) == before:
                break  # somebody was asked: the answer will be an outcome

    def _may_begin(self, decided: list[Step]) -> list[Step]:
        return [step for step in decided if not isinstance(step, _WORK)] if self._work.drain.is_on else decided

    def _under_way(self) -> list[StepUnderWay]:
        agent_id = self._work.place.claim.agent_id
        return [StepUnderWay(agent_id, *step) for step in self.steps.under_way()]

    async def _with_windows(self, windows: TurnWindows, outcomes: list[Fact]) -> list[Fact]:
        """Fold the outcomes, seeing what they mean for spend windows; returns what is to be said about those."""
        state = self._work.state
        await windows.look(
            [level.round.request for level in (state, *state.tree.levels.values()) if level.round.request is not None]
        )
        for fact in outcomes:
            level = state if fact.level is None else state.tree.levels.get(fact.level)
            windows.settle(level.round.request if level is not None else None, fact)
            evolve(state, fact)
        noticed = [self._work.fact(event) for event in windows.notices()] if outcomes else []
        for fact in noticed:
            evolve(state, fact)
        return noticed

    async def _anew(self, outcomes: list[Fact]) -> list[Fact]:
        """Nothing was written: these outcomes are taken in again, on top of what the turn had not seen.

        So is what came meanwhile: a call that left the gate must not be taken up a second time.
        """
        await self._fold_again(outcomes)
        self._inbox.look = True  # what was not seen may be all there is to do
        return [*outcomes, *self._inbox.take()]

    async def _fold_again(self, unwritten: list[Fact]) -> None:
        work = self._work
        recorded = await work.place.store.read(
            work.place.row.agent_id, after=work.place.row.window_from - 1, thread_id=work.place.row.thread_id
        )
        known = before_start(work.place.row.turn_id, recorded, await work.place.known.all(), unwritten)
        folded = await fold(work.place.store, work.place.row, known)
        # Configurations that are not in the log yet belong to the outcomes that are taken in again.
        folded.state.configs = {**folded.state.configs, **work.state.configs}
        work.place.state = folded.state
        work.place.claim.seen = max(work.place.claim.seen, folded.last_seq)
        missed = [
            entry for entry in turn_facts(recorded, work.place.row.turn_id) if entry.seq > work.place.known.last_seq
        ]
        work.place.known.add(missed)
        work.audience.tell(missed)

    async def _go_down(self, error: BaseException) -> None:
        work, steps = self._work, self.steps
        await steps.intake.leave()
        await asyncio.gather(*(requests.shut_down() for requests in steps.requests.all()))
        await steps.calls.shut_down()
        finished = self._inbox.take()
        if finished:
            finished = [*work.say_skip(), *finished]
        if isinstance(error, StoreProblem):
            await self._tell_lost(error, finished)
        elif finished:
            # Outcomes that came in while stopping are as good as any: a finished effect must not be forgotten.
            await asyncio.shield(work.place.store.append(work.place.claim, finished, barrier=True))

    async def _tell_lost(self, error: StoreProblem, finished: list[Fact]) -> None:
        """Something could not be written. If the store takes anything now, that is a fact, and so is what was lost."""
        work = self._work
        lost = [*self._unwritten, *finished]
        try:
            row = await work.place.store.turn(work.place.row.turn_id)
            if row is not None and row.state in ("admitted", "running"):
                told = work.fact(WarningIssued(code=NOT_PERSISTED, message=_unwritten_words(error, self._unwritten)))
                await asyncio.shield(work.place.store.append(work.place.claim, [*lost, told], barrier=True))
        except WakefulError as again:  # whoever waits is told by what stopped the run, and of this with it
            kinds = ", ".join(fact.event.kind for fact in lost) or "nothing else"
            error.add_note(f"lost with it: {kinds}; that could not be written down either: {again.message}")

    # --- outcomes ---------------------------------------------------------------------------------------------------

    def _dropped(self, error: Exception) -> None:
        words = f"a watcher of the turn raised {type(error).__name__} and gets no more events: {error}"
        safe = self._work.gate.keys().hide_keys(words)[:2000]
        self._inbox.post([self._work.fact(WarningIssued(code=WATCHER_DROPPED, message=safe))])

    def _hear(self) -> None:
        """Outsiders (a cancel, a person's word) write past the owner: look whenever one did."""
        self._spoken = True
        self._inbox.look_again()

    async def _keep_time(self) -> None:
        """The deadline also bounds what is under way: its fact arrives even when nothing else does."""
        work = self._work
        while (seconds := work.state.limits.seconds) is not None:
            left = seconds - work.active_seconds()
            if left <= 0:
                break
            await work.clock.sleep(left)
        state = work.state
        lets_finish = state.stop is None or (state.stop.interrupt_id is not None and not state.stop.is_overdue)
        if seconds is not None and lets_finish and state.phase not in ("ended", "suspended"):
            self._inbox.post([work.out_of_time(seconds)])


def _unwritten_words(error: StoreProblem, unwritten: list[Fact]) -> str:
    kinds = ", ".join(dict.fromkeys(fact.event.kind for fact in unwritten)) or "something"
    return f"{kinds} could not be written, and the turn was left: {error.message}"[:2000]


def _answers(state: TurnState) -> int:
    return len(state.rules.standing) + len(state.rules.revoked)  # neither ever gets fewer
