"""A request with an idempotency key is carried out once, however often it comes.

The begin is a fact before anything is done, the answer one before it is given. The same request again gets that answer.
A request that was refused changed nothing, and leaves its key free. One that was cut off between the two facts may or
may not have had its effect: where doing it twice comes to the same, it is done again; everything else is told so, and
where to look, and is never done again by itself.
"""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import NamedTuple

from wakeful.contracts.envelope import Fact
from wakeful.contracts.errors import AgentBusy, ForTheCaller, ForThePerson, KeyReused, RequestUndecided, StoreProblem
from wakeful.contracts.events import (
    KeyedRequestAnswered,
    KeyedRequestReleased,
    KeyedRequestStarted,
)
from wakeful.engine.run_request import Engine
from wakeful.ports.keyed_requests import KeyedRequestRow
from wakeful.runtime.own_streams import append_to_stream
from wakeful.runtime.retention import stream_of_keys

MAX_ANSWER = 65_536
"""Characters of an answer that is kept."""
WAIT_SECONDS = 30.0
"""How long the same request waits for the first of its key."""


class KeyedRequest(NamedTuple):
    """A request as it came."""

    caller: str
    key: str
    route: str
    """The method, and the path as it was asked for."""
    digest: str
    """Of everything that it says."""
    repeatable: bool = False
    """Done twice, it comes to the same as done once."""
    is_secret: bool = False
    """Its answer may not be kept."""
    look: str = ""
    """Where somebody sees whether it had its effect."""


class GivenAnswer(NamedTuple):
    """What is answered."""

    status: int
    body: str
    """As JSON."""
    is_again: bool = False
    """It was given before."""


class _UnderWay(NamedTuple):
    digest: str
    route: str
    over: asyncio.Event


class OncePerKey:
    """The requests of one process that have keys."""

    def __init__(self, engine: Engine, *, wait: float = WAIT_SECONDS) -> None:
        self._engine = engine
        self._wait = wait
        self._under_way: dict[tuple[str, str], _UnderWay] = {}

    async def carry_out(self, asked: KeyedRequest, act: Callable[[], Awaitable[GivenAnswer]]) -> GivenAnswer:
        """The answer of this request: of `act`, or the one that was given before.

        Raises KeyReused for another request of the same key, RequestUndecided while the first is under way for long,
        or when it is not known what became of it, or its answer was not kept; and whatever `act` raises.
        """
        place = asked.caller, asked.key
        while (first := self._under_way.get(place)) is not None:
            _check_same(asked, first.route, first.digest)
            try:
                await asyncio.wait_for(first.over.wait(), self._wait)
            except TimeoutError:
                raise RequestUndecided(
                    "request_under_way",
                    f"the first request with the key {asked.key!r} is still being carried out",
                    "Send it again with the same key in a while.",
                ) from None
        mine = self._under_way[place] = _UnderWay(asked.digest, asked.route, asyncio.Event())
        try:
            return await self._as_first(asked, act)
        finally:
            del self._under_way[place]
            mine.over.set()

    async def _as_first(self, asked: KeyedRequest, act: Callable[[], Awaitable[GivenAnswer]]) -> GivenAnswer:
        row = await self._engine.store.keyed_request(asked.caller, asked.key)
        if row is None:
            stream = await self._begin(asked)
        else:
            _check_same(asked, row.route, row.digest)
            if row.status is not None and row.answer is not None:
                return GivenAnswer(row.status, row.answer, is_again=True)
            if not asked.repeatable:
                raise _undecided(asked, row)
            if row.status is not None:
                return await act()
            stream = row.agent_id
        try:
            given = await act()
        except (ForTheCaller, ForThePerson) as refused:
            if not isinstance(refused, StoreProblem) or isinstance(refused, AgentBusy):
                code = str(getattr(refused, "code", None) or type(refused).__name__)
                await self._say(stream, KeyedRequestReleased(caller=asked.caller, request_key=asked.key, code=code))
            raise
        kept = None if asked.is_secret or len(given.body) > MAX_ANSWER else given.body
        answered = KeyedRequestAnswered(caller=asked.caller, request_key=asked.key, status=given.status, answer=kept)
        await self._say(stream, answered)
        return given

    async def _begin(self, asked: KeyedRequest) -> str:
        now = self._engine.clock.now()
        stream = stream_of_keys(now)
        event = KeyedRequestStarted(caller=asked.caller, request_key=asked.key, route=asked.route, digest=asked.digest)
        await append_to_stream(self._engine.store, stream, [Fact(event, now)])
        return stream

    async def _say(self, stream: str, event: KeyedRequestAnswered | KeyedRequestReleased) -> None:
        await self._engine.store.admit(stream, [Fact(event, self._engine.clock.now())])


def _check_same(asked: KeyedRequest, route: str, digest: str) -> None:
    if asked.digest != digest:
        raise KeyReused(
            f"the key {asked.key!r} belongs to another request:\n"
            f"  then: {route} {digest}\n"
            f"  now:  {asked.route} {asked.digest}",
            "Give this request a key of its own, or repeat the first one exactly.",
        )


def _undecided(asked: KeyedRequest, row: KeyedRequestRow) -> RequestUndecided:
    at = datetime.fromtimestamp(row.begun_at / 1_000_000, UTC).isoformat(timespec="seconds")
    hint = f"Look at {asked.look}. To do it once more, send it with another key."
    if row.status is None:
        return RequestUndecided(
            "outcome_unknown",
            f"the request with the key {asked.key!r} began at {at} and was cut off: it may have had its effect",
            hint,
        )
    return RequestUndecided(
        "answer_not_kept",
        f"the request with the key {asked.key!r} was carried out at {at}; its answer is not kept",
        hint,
    )
