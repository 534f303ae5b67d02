"""Providers that do not answer: one turn at a time asks such a provider again, for all agents of this process.

The first turn that finds out asks again when its own wait is over. Until it is answered, no other turn that needs the
provider is run; then all are, in the order in which they came. Nothing of this is stored: turns rest in the log, each
with a time of its own, and a runtime that is started again finds out anew. People are told once a provider has been
away for two minutes, and once more when it answers.

A turn is given up once its patience is over by the clock, and once this process has seen the provider away without a
break for a quarter of that: hours in which nothing was asked, because the machine slept or the clock was set, do not
end a turn by themselves.
"""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from wakeful.contracts.envelope import MAIN_THREAD, Fact, StoredFact, iso
from wakeful.contracts.errors import EventRefused
from wakeful.contracts.events import ModelCompleted, ModelFailed, ModelWaiting, ProviderAnswered, ProviderDisappeared
from wakeful.contracts.models import FailureKind
from wakeful.decisions.retries import WAITED_FOR
from wakeful.engine.run_request import Engine
from wakeful.ports import TurnRow
from wakeful.runtime.parked_providers import append_to_runtime, provider_of
from wakeful.runtime.scheduler import ThreadHeld

ThreadName: TypeAlias = tuple[str, str]
TOLD_AFTER: Final = 120.0
"""Seconds after which people are told that a provider is away."""
LATE: Final = 5.0
"""Seconds after its time at which a turn that was to ask does not any more: its agent was paused, say."""
LONGEST_HOLD: Final = 60.0
"""Seconds after which a thread that is held is looked at again."""
BREAK: Final = 3_600 * 1_000_000
"""Microseconds by which an attempt is later than it was to be that were no waiting: the machine slept, the clock was
set, or everything was paused."""
SEEN: Final = 0.25
"""How much of its patience a turn has from such a break on, and from the start of a runtime."""
TAIL: Final = 40
"""What a turn waits for is said among so many of its newest events."""


@dataclass(slots=True)
class Absence:
    """A provider that does not answer."""

    provider: str
    model_ref: str
    kind: FailureKind
    message: str
    since: int
    """Unix microseconds: when it first did not."""
    next_try: float
    """By the clock's growing seconds."""
    next_try_at: int
    """The same in Unix microseconds."""
    asker: ThreadName | None
    """Whose turn it is to ask."""
    lost_at: int
    """Unix microseconds: when the newest attempt was lost."""
    lost: float
    """The same by the clock's growing seconds."""
    seen_from: float
    """By the clock's growing seconds: since when attempts are lost without a break."""
    asked_by: ThreadName | None = None
    """Who asks it at this moment."""
    held: dict[ThreadName, int | None] = field(default_factory=dict)
    """Threads that need it, and until when the turn at rest there waits (Unix microseconds); None: not known yet."""
    is_told: bool = False

    @property
    def names(self) -> list[ThreadName]:
        """All threads that wait for it."""
        return [*self.held, *([self.asker] if self.asker is not None else [])]

    def lose(self, now: int, growing: float) -> None:
        """Another attempt was lost."""
        if now > self.next_try_at + BREAK:
            self.seen_from = growing
        self.lost_at, self.lost = now, growing

    def known_until(self, now: int, growing: float) -> tuple[int, float]:
        """Until when it is known to be away, in Unix microseconds, and for how many seconds it was seen so by then.
        Once it is time to ask, only the next attempt says more."""
        at, last = (now, growing) if now < self.next_try_at else (self.lost_at, self.lost)
        return at, last - self.seen_from

    @property
    def words(self) -> str:
        since, again = iso(self.since), iso(self.next_try_at)
        return f"{self.provider} does not answer since {since} ({self.message}); it is asked again at {again}"


@dataclass(slots=True)
class AbsentProviders:
    """Which providers are away, and which threads wait for them."""

    engine: Engine
    run_soon: Callable[[Iterable[ThreadName]], None]
    """Has threads run although no time makes them due."""
    give_up: Callable[[str, float], Awaitable[None]]
    """Ends a turn that has waited for so many seconds: it failed."""
    patience_of: Callable[[str], Awaitable[float]]
    """For how many seconds the turns of an agent wait."""
    _away: dict[str, Absence] = field(default_factory=dict)
    _pressed: set[ThreadName] = field(default_factory=set)
    """Threads that are to ask now, whatever the time is."""

    @property
    def problems(self) -> list[str]:
        return [each.words for each in self._away.values()]

    def words_of(self, agent_id: str) -> str:
        """For which provider an agent waits, in a sentence; blank: for none."""
        waits = [each for each in self._away.values() if any(agent_id == name for name, _ in each.names)]
        return waits[0].words if waits else ""

    def press(self, names: Iterable[ThreadName]) -> None:
        """Have these threads ask at once."""
        found = list(names)
        self._pressed.update(found)
        self.run_soon(found)

    async def may_ask(self, name: ThreadName, providers: Sequence[str] = ()) -> bool:
        """May the thread be run? True: it is to ask at once, also where its turn is not due. Without `providers`, what
        is known of the thread decides. Raises ThreadHeld where another one asks for it."""
        if name in self._pressed:
            return True
        known = [each for each in self._away.values() if name in each.held or name == each.asker]
        away = [self._away[each] for each in providers if each in self._away] if providers else known
        if not away or (providers and len(away) < len(set(providers))):
            return False  # one of its models may be asked
        if any(each.asker == name for each in away) or await self._is_moved(name):
            return False
        soonest = min(away, key=lambda each: each.next_try)
        now = self.engine.clock.monotonic()
        if soonest.asked_by is None and now > soonest.next_try + (LATE if soonest.asker is not None else 0.0):
            soonest.asker = name
            soonest.held.pop(name, None)
            return True
        soonest.held.setdefault(name, None)
        raise ThreadHeld(soonest.words, min(LONGEST_HOLD, max(1.0, soonest.next_try - now) + LATE))

    def begins(self, name: ThreadName) -> None:
        """The thread is run now."""
        self._pressed.discard(name)
        for each in self._away.values():
            if each.asker == name:
                each.asked_by = name

    def leave(self, name: ThreadName) -> None:
        """The thread is not run after all: its agent was paused, say. Whoever waits behind it asks."""
        self._pressed.discard(name)
        for each in list(self._away.values()):
            each.held.pop(name, None)
            if each.asker == name:
                self._pass_on(each)

    async def learn(self, name: ThreadName, facts: Sequence[StoredFact]) -> None:
        """What the run of a thread says of providers; `facts` are those that it wrote. Empty: no turn ran."""
        for each in self._away.values():
            if each.asked_by == name:
                each.asked_by = None
            if each.asker == name and facts:
                each.asker = None
        heard: set[str] = set()
        """Providers whose newest attempt was seen."""
        waiting = _newest_wait(facts)
        for event in (entry.fact.event for entry in reversed(facts) if self._away or waiting is not None):
            if not isinstance(event, ModelCompleted | ModelFailed) or provider_of(event.model_ref) in heard:
                continue
            heard.add(provider := provider_of(event.model_ref))
            if isinstance(event, ModelCompleted):
                await self._returned(provider, name)
            elif waiting is not None and event.failure_kind in WAITED_FOR:
                self._note(name, event, waiting)
        for each in list(self._away.values()):
            if each.asker is None:
                self._pass_on(each)
            elif self._age(each) >= TOLD_AFTER and not each.is_told:
                await self._tell(each)

    async def look(self) -> None:
        """End turns that have waited for too long; the queues behind them wait on. A turn that was to ask and is not
        there any more hands that on."""
        now, growing = self.engine.clock.now(), self.engine.clock.monotonic()
        for absence in list(self._away.values()):
            is_late = growing > absence.next_try + LATE and absence.asked_by is None
            if is_late and (absence.asker is None or await self._turn_at_rest(absence.asker) is None):
                self._pass_on(absence)
            known_until, seen = absence.known_until(now, growing)
            for name in absence.names:
                until = absence.held.get(name)
                turn, since = (None, None) if until is not None and until > known_until else await self._resting(name)
                if turn is None or since is None:
                    continue
                patience = await self.patience_of(name[0])
                until = since + round(patience * 1_000_000)
                until = max(until, known_until + round((SEEN * patience - seen) * 1_000_000))
                if until <= known_until:
                    await self.give_up(turn.turn_id, patience)
                    until = None
                if name in absence.held:
                    absence.held[name] = until

    def _note(self, name: ThreadName, lost: ModelFailed, waiting: ModelWaiting) -> None:
        provider, clock = provider_of(lost.model_ref), self.engine.clock
        now, growing = clock.now(), clock.monotonic()
        seconds = max(0.0, (waiting.next_try - now) / 1_000_000)
        next_try = growing + seconds
        known = self._away.get(provider)
        if known is None:
            self._away[provider] = Absence(
                provider,
                lost.model_ref,
                lost.failure_kind,
                lost.message,
                waiting.since,
                next_try,
                waiting.next_try,
                name,
                now,
                growing,
                growing,
            )
            return
        known.lose(now, growing)
        known.held.pop(name, None)
        if known.asker is None or next_try < known.next_try:
            if known.asker is not None:
                known.held.setdefault(known.asker, None)
            known.next_try, known.next_try_at, known.asker = next_try, waiting.next_try, name
            known.message, known.kind = lost.message, lost.failure_kind
        else:
            known.held.setdefault(name, None)

    def _pass_on(self, absence: Absence) -> None:
        """Whoever was to ask has not: the turn was cancelled, say. Another one does."""
        if not absence.held:
            self._away.pop(absence.provider, None)
            return
        absence.asker = next(iter(absence.held))
        del absence.held[absence.asker]
        self.press([absence.asker])

    async def _returned(self, provider: str, answered: ThreadName) -> None:
        absence = self._away.pop(provider, None)
        if absence is None:
            return
        waiting = [name for name in absence.names if name != answered]
        self.press(waiting)
        if absence.is_told:
            seconds = (self.engine.clock.now() - absence.since) / 1_000_000
            await self._write(ProviderAnswered(provider=absence.provider, seconds=seconds, threads=len(waiting)))

    async def _tell(self, absence: Absence) -> None:
        absence.is_told = True
        await self._write(
            ProviderDisappeared(
                provider=absence.provider,
                model_ref=absence.model_ref,
                failure_kind=absence.kind,
                message=self.engine.keys().hide(absence.message)[:500],
                since=absence.since,
                threads=len(absence.held) + 1,
            )
        )

    async def _write(self, event: Any) -> None:
        with suppress(EventRefused):
            await append_to_runtime(self.engine, Fact(event, self.engine.clock.now(), MAIN_THREAD))

    def _age(self, absence: Absence) -> float:
        return (self.engine.clock.now() - absence.since) / 1_000_000

    async def _is_moved(self, name: ThreadName) -> bool:
        """Has somebody said something to the turn at rest, so that it is due for another reason?"""
        turn = await self._turn_at_rest(name)
        if turn is None:
            return False
        wake = await self.engine.store.wake(*name, turn.turn_id)
        return wake is not None and wake.due_at is not None and wake.cause != "provider"

    async def _turn_at_rest(self, name: ThreadName) -> TurnRow | None:
        turns = await self.engine.store.turns_of_thread(*name, open_only=True)
        return next((turn for turn in turns if turn.state == "suspended"), None)

    async def _resting(self, name: ThreadName) -> tuple[TurnRow | None, int | None]:
        """The turn that waits in a thread, and since when. None: there is none, or somebody paused it."""
        turn = await self._turn_at_rest(name)
        wake = None if turn is None else await self.engine.store.wake(*name, turn.turn_id)
        if turn is None or wake is None or wake.cause != "provider":
            return None, None
        last = await self.engine.store.read(name[0], after=max(0, turn.last_seq - TAIL), turn_id=turn.turn_id)
        waits = [entry.fact.event for entry in last if isinstance(entry.fact.event, ModelWaiting)]
        return turn, waits[-1].since if waits else None


def _newest_wait(facts: Sequence[StoredFact]) -> ModelWaiting | None:
    """What a turn rests on, where that is a provider which may answer by itself."""
    events = (entry.fact.event for entry in reversed(facts))
    found = next((each for each in events if isinstance(each, ModelWaiting | ModelCompleted)), None)
    return found if isinstance(found, ModelWaiting) and not found.rests else None
