"""Listens to channels, in the process that runs the agents: what a paired phone wants is stored, and carried out once.

One loop a channel. What one look brought is written in one commit: each thing that is wanted, and up to where was
looked. A kill before it is looked at again; after it, nothing is repeated. Strangers and wrong codes get no answer, and
are counted: one fact when their number has doubled, so that nobody fills the log from outside.
"""

import asyncio
import logging
import traceback
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

from wakeful.contracts.channels import MOST_CANDIDATES, ChannelUpdate, ChannelUpdates, InputState
from wakeful.contracts.envelope import Fact
from wakeful.contracts.errors import EventRefused, InvalidConfig, StoreProblem
from wakeful.contracts.events import (
    AnyEvent,
    ChannelInputSettled,
    ChannelPeerSeen,
    ChannelPolled,
    ChannelTroubled,
)
from wakeful.contracts.events.holds import RUNTIME_STREAM
from wakeful.decisions.channel_answers import UnfitWords
from wakeful.decisions.channels import read_code
from wakeful.engine.run_request import Engine
from wakeful.ports import WakeRow
from wakeful.ports.channels import Channel, ChannelFailure, ChannelInputRow, ChannelRow
from wakeful.runtime.channel_inputs import ChannelInputs, is_second
from wakeful.runtime.parked_providers import append_to_runtime

LOG = logging.getLogger(__name__)
FIRST_PAUSE = 1.0
LONGEST_PAUSE = 300.0
LEAST_WAIT = 1.0
FAILURES_TO_TELL = 5
"""Failures in a row after which people are told of what may mend itself."""

Connect: TypeAlias = Callable[[ChannelRow], Channel]
"""Raises InvalidConfig for a token that is not there."""


class InputSettlement(NamedTuple):
    """What became of what a phone wanted."""

    outcome: InputState
    words: str = ""


CarryOut: TypeAlias = Callable[[ChannelInputRow], Awaitable[InputSettlement]]
Tell: TypeAlias = Callable[[ChannelRow, str], Awaitable[None]]
"""Shows a phone some words, if that can be done."""


@dataclass(slots=True)
class _Looked:
    """What this process has looked at and not written down."""

    cursor: str
    strangers: int = 0
    refused: int = 0
    counted: int = 0
    """Of both, since this process began."""
    told: set[str] = field(default_factory=set)
    """Why words fitted nothing, since some did: each is told once, so that nonsense is not answered line by line."""


@dataclass(slots=True)
class ChannelListeners:
    """Listens to every channel of a store."""

    engine: Engine
    connect: Connect
    carry_out: CarryOut
    tell: Tell
    inputs: ChannelInputs
    _looked: dict[tuple[str, int], _Looked] = field(default_factory=dict)

    async def run(self) -> None:
        """Until it is cancelled."""
        store, loops = self.engine.store, dict[tuple[str, int], asyncio.Task[None]]()
        watch = store.watch(RUNTIME_STREAM)
        try:
            while True:
                try:
                    wanted = {(row.name, row.generation): row for row in await store.channels() if self._is_open(row)}
                except StoreProblem:
                    await self.engine.clock.sleep(FIRST_PAUSE)
                    continue
                for key in [key for key, loop in loops.items() if key not in wanted or loop.done()]:
                    loops.pop(key).cancel()
                for key in wanted:
                    if key not in loops:
                        loops[key] = asyncio.create_task(self._listen(*key))
                await watch.wait()
        finally:
            watch.close()
            for loop in loops.values():
                loop.cancel()
            await asyncio.gather(*loops.values(), return_exceptions=True)

    async def settle(self, wake: WakeRow) -> None:
        """Carry out what a phone wanted, and write down what became of it."""
        row = await self.engine.store.channel_input(wake.cause_id)
        if row is None or row.state != "pending":
            return
        found = await self.carry_out(row)
        event = ChannelInputSettled(
            channel=row.channel, input_id=row.input_id, outcome=found.outcome, error=found.words[:500]
        )
        with suppress(EventRefused):
            await append_to_runtime(self.engine, Fact(event, self.engine.clock.now()))
        channel = await self.engine.store.channel(row.channel)
        if channel is None or channel.state != "paired":
            return
        if found.outcome == "refused":
            await self.tell(channel, f"that was refused: {found.words}")
        elif found.outcome == "late" and row.words:
            await self.tell(channel, f"that came too late: {found.words}")

    # --- one channel -------------------------------------------------------------------------------------------------

    def _is_open(self, row: ChannelRow) -> bool:
        """Is it listened to? A topic from its pairing on; a bot also while it waits for somebody to pair."""
        opens = row.kind == "telegram" and row.pairing_until > self.engine.clock.now()
        return row.state == "paired" or opens

    async def _open_row(self, name: str, generation: int) -> ChannelRow | None:
        row = await self.engine.store.channel(name)
        return row if row is not None and row.generation == generation and self._is_open(row) else None

    async def _listen(self, name: str, generation: int) -> None:
        row, failures = await self._open_row(name, generation), 0
        while True:
            try:
                row = await self._open_row(name, generation)
                if row is None:
                    return
                looked = self._looked.setdefault((name, generation), _Looked(row.cursor))
                began = self.engine.clock.monotonic()
                found = await self.connect(row).receive(looked.cursor)
                row = await self._open_row(name, generation)  # it may have been paired or removed meanwhile
                if row is None:
                    return
                await self._take_in(row, looked, found)
                if row.trouble:
                    await self._write(ChannelTroubled(channel=name))
                failures = 0
                if not found.updates and self.engine.clock.monotonic() - began < LEAST_WAIT:
                    await self.engine.clock.sleep(LEAST_WAIT)  # a server that does not wait must not keep us busy
            except ChannelFailure as problem:
                failures += 1
                if problem.needs_person or failures >= FAILURES_TO_TELL:
                    await self._troubled(row, problem.words)
                await self._pause(failures, problem.retry_after)
            except InvalidConfig as problem:
                failures += 1
                await self._troubled(row, problem.message)
                await self._pause(failures)
            except (StoreProblem, EventRefused):  # it cannot be written now, or was removed: the row says which
                failures += 1
                await self._pause(failures)
            except Exception as problem:  # an answer that nobody foresaw must not leave the phone unheard for good
                failures += 1
                told = "".join(traceback.format_exception(problem))
                LOG.error("channel %s failed, and is tried again: %s", name, self.engine.keys().hide(told))
                await self._troubled(row, f"{type(problem).__name__}: {problem}")
                await self._pause(failures)

    async def _pause(self, failures: int, wanted: float = 0.0) -> None:
        await self.engine.clock.sleep(max(wanted, min(FIRST_PAUSE * 2 ** (failures - 1), LONGEST_PAUSE)))

    async def _troubled(self, row: ChannelRow | None, words: str) -> None:
        """Told once, until it works again."""
        hidden = self.engine.keys().hide(words)[:500]
        if row is not None and row.trouble != hidden:
            with suppress(StoreProblem, EventRefused):
                await self._write(ChannelTroubled(channel=row.name, words=hidden))

    async def _take_in(self, row: ChannelRow, looked: _Looked, found: ChannelUpdates) -> None:
        if found.cursor == looked.cursor and not found.updates:
            return
        events: list[AnyEvent] = []
        accepted: list[ChannelUpdate] = []
        refusals: list[str] = []
        strangers, refused = looked.strangers, looked.refused
        for update in found.updates:
            if not row.peer or update.peer != row.peer:
                seen = self._candidate(row, update, events)
                events += [seen] if seen is not None else []
                strangers += seen is None
                continue
            event = await self.inputs.wanted(row, update)
            if isinstance(event, UnfitWords) or is_second(event, events):
                refused += 1
                told = event.words if isinstance(event, UnfitWords) else "only the first answer counts"
                refusals += [told] if told and read_code(update.text) is None else []
            else:
                events.append(event)
                accepted.append(update)
        before = looked.counted
        looked.counted += strangers + refused - looked.strangers - looked.refused
        if events or looked.counted.bit_length() > before.bit_length():
            polled = ChannelPolled(channel=row.name, cursor=found.cursor, strangers=strangers, refused=refused)
            await self._write(*events, polled)
            strangers = refused = 0
        looked.cursor, looked.strangers, looked.refused = found.cursor, strangers, refused
        for update in accepted:
            with suppress(ChannelFailure):
                await self.connect(row).acknowledge(update, "noted")
        if accepted:
            looked.told.clear()
        fresh = [words for words in dict.fromkeys(refusals) if words not in looked.told]
        looked.told.update(fresh)
        if fresh:
            await self.tell(row, f"nothing was changed: {'; '.join(fresh)}")

    def _candidate(self, row: ChannelRow, update: ChannelUpdate, before: list[AnyEvent]) -> ChannelPeerSeen | None:
        """Somebody who starts the bot while pairing is open, and is not known yet."""
        known = {*row.candidates, *(event.peer for event in before if isinstance(event, ChannelPeerSeen))}
        is_open = row.pairing_until > self.engine.clock.now() and len(known) < MOST_CANDIDATES
        if not is_open or update.peer in known or not update.text.startswith("/start"):
            return None
        return ChannelPeerSeen(channel=row.name, peer=update.peer)

    async def _write(self, *events: AnyEvent) -> None:
        at = self.engine.clock.now()
        await append_to_runtime(self.engine, *(Fact(event, at) for event in events))
