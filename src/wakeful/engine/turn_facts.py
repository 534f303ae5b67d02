"""A turn's stored facts, for its result: in memory while they are few, read back from the log when they are many.

A long turn must not keep every fact it ever wrote alive: it would cost memory, and the garbage collector would walk
over all of them again and again. What is asked of them in the middle of a turn is noted as they come.
"""

import asyncio
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

from wakeful.contracts.conversation import AssistantItem, ToolItem, UserItem
from wakeful.contracts.envelope import Fact, StoredFact, event_id
from wakeful.contracts.events import (
    AssistantRecorded,
    HistoryImported,
    ModelCompleted,
    PermissionEvaluated,
    QuotaBlocked,
    QuotaLow,
    RateLimitHit,
    SandboxApplied,
    ToolFailed,
    ToolResult,
    TurnResumed,
)
from wakeful.ports import TurnReader

KEPT = 1_000
"""A turn with more facts than this keeps none of them."""
MOST_LIMITS = 100
"""How many facts about limits of providers a thread keeps."""
_LIMITS = (RateLimitHit, QuotaBlocked, QuotaLow)


def note_limit(limits: list[StoredFact], entry: StoredFact) -> None:
    """Keep what is needed to know which limits of providers still hold."""
    event = entry.fact.event
    if isinstance(event, _LIMITS) or (limits and isinstance(event, ModelCompleted)):
        limits.append(entry)
        del limits[:-MOST_LIMITS]


def call_ids_of(event: AssistantRecorded | HistoryImported) -> list[str]:
    """The ids of calls that a fact brings into the conversation."""
    items: Iterable[UserItem | AssistantItem | ToolItem]
    ids: list[str] = []
    if isinstance(event, AssistantRecorded):
        ids, items = [asked.call_id for asked in event.calls], event.continuation
    else:
        items = event.items
    for item in items:
        if isinstance(item, AssistantItem):
            ids += [part.call_id for part in item.calls]
    return ids


class CallRefs(NamedTuple):
    """The events that say under which verdict and in which sandbox a call began."""

    permission: str | None = None
    sandbox: str | None = None


_CHECKED = frozenset((PermissionEvaluated, SandboxApplied))
_OUTCOMES = frozenset((ToolResult, ToolFailed))


class KnownFacts:
    """What is known of a turn's facts in this process."""

    def __init__(
        self, agent_id: str, recorded: Sequence[StoredFact], read: TurnReader, limits: Sequence[StoredFact]
    ) -> None:
        """`limits`: what providers said about theirs in the thread's earlier turns."""
        self._agent_id = agent_id
        self._facts: list[Fact] | None = []
        self._seqs: list[int] = []
        """Where each of the facts stands. An object for the pair would be one more for each fact of every open turn."""
        self._read = read
        self.count = 0
        self.limits: list[StoredFact] = [*limits]
        """What providers said about theirs, in the thread up to here: an answer ends what an earlier turn was told."""
        self.last_seq = 0
        self.resumed_at = 0
        """The newest `turn.resumed`."""
        self._checks: dict[str, list[tuple[type, int]]] = {}
        """What let the calls through that have no outcome yet: kinds of facts, and where they stand."""
        self.call_ids: list[str] = []
        """Of calls that were recorded since the turn was taken up, in the order of the log."""
        self.add(recorded)
        self.call_ids.clear()

    def add(self, recorded: Sequence[StoredFact]) -> None:
        """Facts that are stored now, wherever they stand."""
        self._keep([entry.fact for entry in recorded], [entry.seq for entry in recorded])

    def add_own(self, facts: Sequence[Fact], first_seq: int) -> None:
        """Facts of the owner that are stored now, one after the other."""
        self._keep(facts, range(first_seq, first_seq + len(facts)))

    def _keep(self, facts: Sequence[Fact], seqs: Sequence[int]) -> None:
        if seqs:
            self.count += len(seqs)
            for place, fact in enumerate(facts):
                event = fact.event
                kind = type(event)
                if kind in _CHECKED:
                    self._checks.setdefault(fact.call_id or "", []).append((kind, seqs[place]))
                elif kind in _OUTCOMES:
                    self._checks.pop(fact.call_id or "", None)
                elif isinstance(event, AssistantRecorded):
                    self.call_ids.extend(call_ids_of(event))
                elif kind is TurnResumed:
                    self.resumed_at = seqs[place]
                elif self.limits or kind in _LIMITS:
                    note_limit(self.limits, StoredFact(self._agent_id, seqs[place], fact))
            self.last_seq = seqs[-1]
            if self._facts is not None:
                self._facts.extend(facts)
                self._seqs.extend(seqs)
                if len(self._facts) > KEPT:
                    self._facts = None
                    self._seqs.clear()

    def refs_of(self, call_id: str) -> CallRefs:
        """What was stored about a call that has no outcome yet."""
        checks = self._checks.get(call_id, ())
        newest = {kind: event_id(self._agent_id, seq) for kind, seq in checks}
        return CallRefs(newest.get(PermissionEvaluated), newest.get(SandboxApplied))

    async def all(self) -> list[StoredFact]:
        """All of them, in order."""
        return await self._read() if self._facts is None else self._kept(self._facts)

    def for_result(self) -> list[StoredFact]:
        """All of them, in order, for a caller that cannot await: also after the store was closed."""
        return run_apart(self._read) if self._facts is None else self._kept(self._facts)

    def _kept(self, facts: Sequence[Fact]) -> list[StoredFact]:
        return [StoredFact(self._agent_id, seq, fact) for seq, fact in zip(self._seqs, facts, strict=True)]


def run_apart(read: TurnReader) -> list[StoredFact]:
    """Wait for a read, on a loop and a thread of its own: the caller's loop, if it has one, cannot be waited on."""
    with ThreadPoolExecutor(1, "wakeful-result") as thread:
        return thread.submit(lambda: asyncio.run(read())).result()
