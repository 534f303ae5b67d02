"""Folding a transcript with the host's summarizer: `compact`. Where to cut and what comes out is pure
(`hosts.loop.message_compaction`); here the summarizer is asked. It never changes anything when it fails.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, TypeAlias

from wakeful.contracts.events import (
    TranscriptCompactionCompleted,
    TranscriptCompactionFailed,
    TranscriptCompactionStarted,
    TranscriptOverflowArchived,
)
from wakeful.contracts.tools import PREVIEW_CHARS
from wakeful.contracts.transcript import Message, normalise_all
from wakeful.hosts.host_calls import in_its_place
from wakeful.hosts.loop.compaction_items import CompactionItem
from wakeful.hosts.loop.compaction_policy import TranscriptCompactionPolicy
from wakeful.hosts.loop.event_reports import Teller
from wakeful.hosts.loop.message_compaction import (
    ARCHIVED,
    COMPLETED,
    FAILED,
    STARTED,
    Compaction,
    Overflow,
    Skipped,
    archived,
    failed,
    folded,
    plan,
    skipped,
    started,
)
from wakeful.hosts.loop.results import safe_item, safe_message
from wakeful.hosts.loop.view import LoopView, Sources

Summarizer: TypeAlias = Callable[[list[dict[str, Any]], dict[str, Any]], Any]
"""(messages, context) -> the summary, or `{summary, archived_items?}`. Plain or async."""
Show: TypeAlias = Callable[[Message], Message]
"""A message as a summarizer may see it."""
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


async def compact(
    messages: Iterable[Message | Mapping[str, Any]],
    policy: TranscriptCompactionPolicy | Mapping[str, Any] | None,
    summarizer: Summarizer | None = None,
) -> Compaction:
    """Fold a transcript. Without a policy that says so, and somebody who summarises, it is left as it was."""
    given = normalise_all(messages)
    return await carry_out(given, TranscriptCompactionPolicy.normalise(policy), summarizer)


async def carry_out(
    messages: tuple[Message, ...],
    policy: TranscriptCompactionPolicy,
    summarizer: Summarizer | None,
    *,
    show: Show = lambda message: message,
    begun: Callable[[CompactionFact], Awaitable[None]] | None = None,
) -> Compaction:
    """The same. `show` is how a message looks to the summarizer; `begun` hears before that is asked."""
    planned = plan(messages, policy, summarises=summarizer is not None)
    if isinstance(planned, Skipped):
        return skipped(planned)
    if isinstance(planned, Overflow):
        return archived(planned)
    assert summarizer is not None, "without one nothing is planned"
    if begun is not None:
        await begun(fact_of(started(planned)))
    older = [show(message).to_wire() for message in planned.older]
    try:
        answer = await in_its_place(summarizer, older, dict(planned.context))
    except Exception as error:
        return failed(planned, f"{type(error).__name__}: {error}")
    return folded(planned, answer)


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

    async def _begun(self, fact: CompactionFact) -> None:
        await self._teller.record(fact)
        await self._teller.catch_up()
