"""Looking into a store: its turns, a turn's events as readers may see them, and the same while the turn goes on."""

from collections.abc import AsyncIterator, Iterable, Sequence
from difflib import get_close_matches
from shlex import quote
from typing import Any

from wakeful.contracts.conversation import AssistantItem, ToolItem, UserItem
from wakeful.contracts.envelope import RuntimeEvent, StoredFact, published
from wakeful.contracts.errors import InvalidConfig, TurnDeleted, TurnNotFound
from wakeful.contracts.events import (
    KINDS_BY_NAME,
    AssistantRecorded,
    SubagentStarted,
    Terminal,
    TurnConfigChanged,
    TurnStarted,
)
from wakeful.decisions.redaction import redact, redact_event
from wakeful.decisions.run_secrets import RunSecrets
from wakeful.engine.state_loader import load_config
from wakeful.engine.turn_messages import in_log_order, read_turn
from wakeful.gate.large_content import arguments_of
from wakeful.ports import Leases, MessageLog, Store, TurnFilter, TurnRow, Turns
from wakeful.service.queries.record_names import MOST, SHORTEST, several
from wakeful.views.latency import turn_latency
from wakeful.views.turn_record import TurnLatency

TURN = "turn_"
LOOK_AGAIN_SECONDS = 1.0
"""A watch may sleep at most this long before the turn's row is looked at again."""
NEAR = 200
"""Among how many of the newest turns a mistyped id is looked for."""


async def find_turn(store: Store, name: str | None) -> TurnRow:
    """A turn by its id, the beginning of its id, or its key; the newest turn for None.

    Raises TurnNotFound, with the candidates where several turns have such an id.
    """
    if name is None:
        newest = await store.turns(limit=1)
        if newest:
            return newest[0]
        hint = f'Begin one: wakeful run "hello" --store {quote(store.location)}'
        raise TurnNotFound(f"there is no turn in {store.location} yet", hint)
    row = await store.turn(name) or (await store.turn_of_key(name) if name else None)
    if row is not None:
        return row
    fitting = await _beginning_with(store, name)
    if len(fitting) == 1:
        return fitting[0]
    if fitting:
        candidates = [f"{each.turn_id}  {each.agent_name}  {each.prompt_preview[:30]!r}" for each in fitting]
        raise TurnNotFound(*several(name, "turns", candidates))
    near = get_close_matches(name, [each.turn_id for each in await store.turns(limit=NEAR)], n=3, cutoff=0.6)
    listing = f"List the turns: wakeful events --store {quote(store.location)}"
    hint = f"Did you mean {' or '.join(near)}?" if near else listing
    raise TurnNotFound(f"there is no turn {name!r} in {store.location}", hint)


async def told_turn(store: Store, name: str | None) -> TurnRow:
    """A turn as `find_turn` finds it, of which what was said is to be shown. Raises TurnNotFound or TurnDeleted."""
    row = await find_turn(store, name)
    check_told(row)
    return row


def check_told(row: TurnRow) -> None:
    """Raises TurnDeleted for a turn of a thread that was deleted."""
    if row.deleted_at is not None:
        raise TurnDeleted(
            f"turn {row.turn_id} cannot be shown: its thread {row.thread_id!r} was deleted",
            f"Its events are still there: wakeful events {row.turn_id}",
        )


async def _beginning_with(store: Turns, name: str) -> list[TurnRow]:
    """Turns whose id begins so, the word in front included or not."""
    bare = name.removeprefix(TURN)
    if len(bare) < SHORTEST:
        return []
    return await store.find_turns(TurnFilter(prefix=TURN + bare), limit=MOST + 1)


async def turn_events(store: MessageLog, row: TurnRow) -> list[StoredFact]:
    """All stored facts of a turn, with the messages that it took."""
    return await read_turn(store, row)


async def follow(store: Store, row: TurnRow) -> AsyncIterator[StoredFact]:
    """What is stored, then what is being written, until the turn is over. Works across processes."""
    watch = store.watch(row.agent_id, thread_id=row.thread_id, keeps=True)
    seen, given = row.first_seq - 1, list[StoredFact]()
    try:
        while True:
            if given:
                found = [entry for entry in given if entry.fact.turn_id == row.turn_id and entry.seq > seen]
            else:
                now = await store.turn(row.turn_id)
                found = await store.read(row.agent_id, after=seen, turn_id=row.turn_id)
            if seen < row.first_seq:  # what the turn took from the queue is older than the turn
                found = await in_log_order(store, row.turn_id, found)
            for recorded in found:
                seen = max(seen, recorded.seq)
                yield recorded
            if not given and (now is None or (not now.is_open and seen >= now.last_seq)):
                return
            if given and any(isinstance(recorded.fact.event, Terminal) for recorded in found):
                given = []  # its row says whether that was all
                continue
            await watch.wait(timeout=LOOK_AGAIN_SECONDS)
            given = watch.facts() or []  # nothing: the log has it, or it was woken for nothing
    finally:
        watch.close()


def kinds_named(name: str) -> frozenset[str]:
    """The kinds of event that a kind or an alias stands for. Raises InvalidConfig with near names."""
    kinds = KINDS_BY_NAME.get(name)
    if kinds is None:
        near = get_close_matches(name, KINDS_BY_NAME, n=3, cutoff=0.5)
        hint = f"did you mean {' or '.join(near)}?" if near else f"for example {', '.join(list(KINDS_BY_NAME)[:4])}"
        raise InvalidConfig(f"no event is called {name!r}", hint)
    return frozenset(kinds)


class EventReader:
    """Facts to the events that readers outside get. Secrets are hidden unless the reader holds the right to see them.

    By name, by what tools declare, and by value: what the run gave to its tools, and `keys`, the runtime's own.
    """

    def __init__(self, store: Store, *, reveal: bool = False, keys: Iterable[str] = ()) -> None:
        self._store = store
        self._reveal = reveal
        self._secrets = RunSecrets(keys)

    @property
    def secrets(self) -> RunSecrets:
        """What is known to be secret so far."""
        return self._secrets

    async def learn(self, facts: Iterable[StoredFact]) -> None:
        """Know a turn's secrets before any of it is read; who reads along learns them as they come."""
        if not self._reveal:
            for recorded in facts:
                await self._take(recorded)

    async def hear(self, items: Iterable[UserItem | AssistantItem | ToolItem]) -> None:
        """Know the secrets of a conversation whose facts are not read: it stands in pages."""
        if not self._reveal:
            said = list(items)
            await self._learn_large([item for item in said if isinstance(item, AssistantItem)])
            self._secrets.said(said)

    async def read(self, recorded: StoredFact) -> RuntimeEvent:
        """One fact. Feed them in order: a turn's own configuration says what its tools call sensitive."""
        event = published(recorded, self._store.runtime_id)
        if self._reveal:
            return event
        await self._take(recorded)
        return redact_event(event, self._secrets.declarations, self._secrets)

    def hide(self, value: Any) -> Any:
        """A copy of JSON data without what was learned to be secret."""
        return self._secrets.hide_in(redact(value))

    async def _take(self, recorded: StoredFact) -> None:
        fact, secrets = recorded.fact.event, self._secrets
        if isinstance(fact, TurnStarted | TurnConfigChanged):
            config = await load_config(self._store, fact.config_ref.digest)
            secrets.declarations = {tool.name: tool for tool in config.tools}
        elif isinstance(fact, SubagentStarted) and fact.config_ref is not None:  # another agent, with tools of its own
            config = await load_config(self._store, fact.config_ref.digest)
            secrets.declarations = {**{tool.name: tool for tool in config.tools}, **secrets.declarations}
        elif isinstance(fact, AssistantRecorded):
            await self._learn_large([fact.item])
        secrets.take(recorded.fact)

    async def _learn_large(self, items: Iterable[AssistantItem]) -> None:
        """Arguments that are too long to stand in the conversation."""
        for part in (part for item in items for part in item.calls if part.arguments_ref is not None):
            arguments = await arguments_of(part, self._store.get_blob)
            self._secrets.given(arguments or {}, self._secrets.declarations.get(part.name))


async def latency_of(store: MessageLog, row: TurnRow) -> TurnLatency:
    """Where a turn's time went, from the durations its facts carry."""
    return turn_latency(row.turn_id, await turn_events(store, row))


def wire(event: RuntimeEvent) -> dict[str, object]:
    """An event as JSON data, in the form the published schema describes."""
    return event.model_dump(mode="json", exclude_none=True)


CUT_OFF = "cut off"
"""A turn whose process is gone: it goes on when somebody takes it up."""


async def shown_states(store: Leases, rows: Sequence[TurnRow]) -> list[str]:
    """The states of turns for people: one that runs in no process any more is cut off."""
    running = {(row.agent_id, row.thread_id) for row in rows if row.state == "running"}
    held = {thread for thread in running if await store.is_held(*thread)}
    is_cut_off = [row.state == "running" and (row.agent_id, row.thread_id) not in held for row in rows]
    return [CUT_OFF if cut_off else row.state for cut_off, row in zip(is_cut_off, rows, strict=True)]


async def open_turns(store: Turns) -> list[TurnRow]:
    """Turns that are not over, in the order they were asked for."""
    return [row async for row in store.open_turns()]
