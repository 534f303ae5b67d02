"""Compaction in a run: where its host asks for it, the transcript is folded before each turn, and the log says so."""

from collections.abc import Mapping
from typing import Any, TypeAlias

from wakeful.contracts.events import (
    TranscriptCompactionCompleted,
    TranscriptCompactionFailed,
    TranscriptCompactionStarted,
    TranscriptOverflowArchived,
)
from wakeful.contracts.tools import PREVIEW_CHARS
from wakeful.hosts.compaction.compaction_items import CompactionItem
from wakeful.hosts.compaction.transcript_compaction import (
    ARCHIVED,
    COMPLETED,
    FAILED,
    STARTED,
    Compaction,
    Summarizer,
    carry_out,
)
from wakeful.hosts.compaction.transcript_cut import TranscriptCompactionPolicy
from wakeful.hosts.loop.loop_events import Teller
from wakeful.hosts.loop.results import safe_item, safe_message
from wakeful.hosts.loop.run_calls import Sources
from wakeful.hosts.loop.view import LoopView

CompactionFact: TypeAlias = (
    TranscriptCompactionStarted
    | TranscriptCompactionCompleted
    | TranscriptCompactionFailed
    | TranscriptOverflowArchived
)
FACTS: dict[str, type[CompactionFact]] = {
    STARTED: TranscriptCompactionStarted,
    COMPLETED: TranscriptCompactionCompleted,
    FAILED: TranscriptCompactionFailed,
    ARCHIVED: TranscriptOverflowArchived,
}


def facts_of(done: Compaction) -> list[CompactionFact]:
    """What is said when it is over."""
    facts = [fact_of(event) for event in done.events if event["type"] != STARTED]
    return [
        fact.model_copy(update={"summary_preview": str(done.messages[0].content)[:PREVIEW_CHARS]})
        if isinstance(fact, TranscriptCompactionCompleted)
        else fact
        for fact in facts
    ]


def fact_of(event: Mapping[str, Any]) -> CompactionFact:
    """An event of a compaction as a fact."""
    return FACTS[event["type"]](**event["metadata"])


class Compactor:
    """Folds the transcript of one run before each turn, where its host asked for that."""

    def __init__(
        self,
        policy: TranscriptCompactionPolicy | None,
        summarizer: Summarizer | None,
        view: LoopView,
        sources: Sources,
        teller: Teller,
    ) -> None:
        self._policy = policy
        self._summarizer = summarizer
        self._view = view
        self._sources = sources
        self._teller = teller
        self._newest: dict[str, Any] = {}
        self._archive: tuple[CompactionItem, ...] = ()

    def metadata(self) -> dict[str, Any]:
        """For the result: how the newest compaction that did something went, and what was moved out."""
        found: dict[str, Any] = {"compaction": self._newest} if self._newest else {}
        if self._archive:
            known = self._sources.declarations
            found["archive_items"] = [safe_item(item, known).to_wire() for item in self._archive]
        return found

    async def fold(self) -> None:
        """Whoever summarises sees no more of a call than any other observer."""
        if self._policy is None:
            return
        done = await carry_out(
            tuple(self._view.messages),
            self._policy,
            self._summarizer,
            show=lambda message: safe_message(message, self._sources.declarations),
            begun=self._begun,
        )
        about = done.metadata["compaction"]
        if done.status != "skipped" or not self._newest:
            self._newest = about
        self._archive += done.archive_items
        if done.changed:
            self._sources.compacted = done.messages
        await self._teller.record(*facts_of(done))
        await self._teller.catch_up()

    async def _begun(self, event: dict[str, Any]) -> None:
        await self._teller.record(fact_of(event))
        await self._teller.catch_up()
