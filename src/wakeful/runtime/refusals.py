"""How much input an agent refused: counted, and nothing of it kept.

Somebody who sends a million messages to a stopped agent must not fill its log. One fact is written at the first, and
each time the number has doubled; the rest is written when the runtime is closed. What a kill takes with it is at most
half of the number.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from types import TracebackType
from typing import NamedTuple, TypeVar

from wakeful.contracts.envelope import Fact
from wakeful.contracts.errors import AgentStopped, ForTheCaller, InvalidRequest, InvalidValue, KeyReused
from wakeful.contracts.events import InputRefused
from wakeful.engine.run_request import Engine
from wakeful.ports.triggers import RefusedInputRow, Triggers
from wakeful.views.runtime_records import AgentRecord

MESSAGE = "message"
"""The door of everything that comes by no trigger."""


Record = TypeVar("Record", bound=AgentRecord)


class _Place(NamedTuple):
    agent_id: str
    door: str
    reason: str


class _Counting:
    """Round one piece of input."""

    __slots__ = ("_agent_id", "_door", "_tally")

    def __init__(self, tally: "RefusalTally", agent_id: str, door: str) -> None:
        self._tally, self._agent_id, self._door = tally, agent_id, door

    async def __aenter__(self) -> None:
        return None

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(error, ForTheCaller):
            await self._tally.take(self._agent_id, error, self._door)


class RefusalTally:
    """What one process has refused."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._all: Counter[_Place] = Counter()
        self._unwritten: Counter[_Place] = Counter()

    def counting(self, agent_id: str, door: str = MESSAGE) -> "_Counting":
        """Count what is refused in here, and let it be refused."""
        return _Counting(self, agent_id, door)

    async def take(self, agent_id: str, error: ForTheCaller, door: str = MESSAGE) -> None:
        """Count what was refused with this, if it is about the input."""
        if isinstance(error, AgentStopped | KeyReused | InvalidValue | InvalidRequest):
            await self.count(agent_id, _reason(error), door)

    async def count(self, agent_id: str, reason: str, door: str = MESSAGE) -> None:
        place = _Place(agent_id, door, reason)
        self._all[place] += 1
        self._unwritten[place] += 1
        number = self._all[place]
        if number & (number - 1) == 0:
            await self._write(place)

    async def write_all(self) -> None:
        for place in list(self._unwritten):
            await self._write(place)

    async def refused(
        self, agent_id: str, door: str | None = None, *, of: Mapping[str, int] | None = None
    ) -> dict[str, int]:
        """By reason, what was refused so far: of a door, or of all of them. `of` is what the log knows, where that is
        at hand."""
        found = Counter(of if of is not None else await stored_refusals(self._engine.store, agent_id, door))
        for place, number in self._unwritten.items():
            if place.agent_id == agent_id and (door is None or place.door == door):
                found[place.reason] += number
        return dict(sorted(found.items()))

    async def counted(self, found: Record) -> Record:
        """What the log knows of an agent, with what this process refused and has not written yet."""
        return found.model_copy(update={"refused": await self.refused(found.agent, of=found.refused)})

    async def _write(self, place: _Place) -> None:
        number = self._unwritten.pop(place, 0)
        if not number or await self._engine.store.runtime_agent(place.agent_id) is None:
            return
        event = InputRefused(door=place.door, reason=place.reason, number=number)
        try:
            await self._engine.store.admit(place.agent_id, [Fact(event, self._engine.clock.now())])
        except ForTheCaller:  # the store cannot be written now; whoever was refused has its answer all the same
            self._unwritten[place] += number


async def stored_refusals(store: Triggers, agent_id: str, door: str | None = None) -> dict[str, int]:
    """By reason, what the log knows of."""
    rows = await store.refused_input(agent_id)
    return by_reason([row for row in rows if door is None or row.door == door])


def by_reason(rows: Iterable[RefusedInputRow]) -> dict[str, int]:
    found: Counter[str] = Counter()
    for row in rows:
        found[row.reason] += row.number
    return dict(sorted(found.items()))


def _reason(refusal: ForTheCaller) -> str:
    match refusal:
        case AgentStopped():
            return "agent_stopped"
        case KeyReused():
            return "key_reused"
        case InvalidValue():
            return refusal.code
    return "invalid_request"
