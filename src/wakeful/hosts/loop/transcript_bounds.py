"""What keeps a transcript small: the options `tool_result_truncator` and `compaction_policy` of a run.

Neither cuts by itself. A result is cut by the cut of every result (`tools.results`), a transcript is folded by the rule
of every conversation (`hosts.compaction` over `decisions.conversation_cut`); here is what a host reads about it, and
the log says so. A cut text has lost the keys by which its values would be redacted, so those are redacted before.
"""

import copy
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from wakeful.contracts.errors import InvalidValue
from wakeful.contracts.events import (
    ObserverFailed,
    ToolResultTruncated,
    TranscriptCompactionCompleted,
    TranscriptCompactionFailed,
    TranscriptCompactionStarted,
    TranscriptOverflowArchived,
)
from wakeful.contracts.tools import PREVIEW_CHARS
from wakeful.decisions.redaction import redact
from wakeful.decisions.secret_values import SecretValues
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
from wakeful.hosts.host_calls import at_once
from wakeful.hosts.loop.loop_events import Teller, describe
from wakeful.hosts.loop.result_export import safe_item, safe_message
from wakeful.hosts.loop.run_calls import Sources
from wakeful.hosts.loop.view import LoopView
from wakeful.tools.results import excerpt_of

INVALID = "invalid_truncator"
DEFAULT_BYTES = 8_192
SURFACE = "tool_result_truncator"
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


@dataclass(slots=True, frozen=True)
class ResultExcerpt:
    """A result that was too large, as it goes on from here."""

    result: dict[str, Any]
    original_bytes: int
    excerpt_bytes: int
    citations_dropped: int = 0


@dataclass(slots=True, frozen=True)
class ToolResultTruncator:
    """Keeps the payload of each result to a size.

    `sink(result, about)` gets what was too large, whole, as it happens: nobody else does.
    """

    max_bytes: int = DEFAULT_BYTES
    sink: Callable[[dict[str, Any], dict[str, Any]], Any] | None = None

    def __post_init__(self) -> None:
        if isinstance(self.max_bytes, bool) or self.max_bytes < 1:
            raise InvalidValue(INVALID, "max_bytes", f"is a number of bytes, at least 1, not {self.max_bytes!r}")
        if self.sink is not None and not callable(self.sink):
            raise InvalidValue(INVALID, "sink", f"is a callable, not a {type(self.sink).__name__}")

    def bound(self, result: Mapping[str, Any], hide: Callable[[str], str]) -> ResultExcerpt | None:
        """A normalised result within the size; None when it is within it already. `hide` takes known secrets out."""
        name = "result" if result.get("success") is True else "error"
        payload = result.get(name)
        whole = payload if name == "error" else _json(payload)
        size = _size(str(whole))
        citations, dropped = self._citations(result)
        if size <= self.max_bytes and not dropped:
            return None
        bounded = dict(result)
        kept = size
        if size > self.max_bytes:
            safe = str(payload) if name == "error" else _json(redact(payload))
            excerpt = excerpt_of(safe, hide, self.max_bytes)
            kept = _size(excerpt)
            about = {"truncated": True, "excerpt": excerpt, "original_bytes": size, "excerpt_bytes": kept}
            bounded[name] = about if name == "result" else excerpt
        if dropped:
            bounded["metadata"] = {**bounded["metadata"], "citations": citations, "citations_dropped": dropped}
        return ResultExcerpt(bounded, size, kept, dropped)

    def _citations(self, result: Mapping[str, Any]) -> tuple[list[Any], int]:
        """As many citations as fit, from the first on, and how many do not."""
        metadata = result.get("metadata")
        given = metadata.get("citations") if isinstance(metadata, Mapping) else None
        if not isinstance(given, list):
            return [], 0
        kept: list[Any] = []
        used = len("[]")
        for citation in given:
            used += _size(_json(citation)) + len(",")
            if used - len(",") > self.max_bytes:
                break
            kept.append(citation)
        return kept, len(given) - len(kept)


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _size(words: str) -> int:
    return len(words.encode("utf-8", "surrogatepass"))


class ResultBounds:
    """Every result of one run goes through here, whoever gave it, before anybody else sees it."""

    def __init__(
        self,
        truncator: ToolResultTruncator | None,
        teller: Teller,
        turn: Callable[[], int],
        keys: Callable[[], SecretValues],
    ) -> None:
        self._truncator = truncator
        self._teller = teller
        self._turn = turn
        self._keys = keys

    async def bound(self, call_id: str, result: dict[str, Any]) -> dict[str, Any]:
        """The result, or what stands for it. What was too large goes to the truncator's own sink alone."""
        truncator = self._truncator
        bounded = truncator.bound(result, self._keys().hide_keys) if truncator is not None else None
        if truncator is None or bounded is None:
            return result
        event = ToolResultTruncated(
            turn=self._turn(),
            tool_name=str(result.get("tool_name") or ""),
            tool_call_id=call_id,
            original_bytes=bounded.original_bytes,
            excerpt_bytes=bounded.excerpt_bytes,
            citations_dropped=bounded.citations_dropped or None,
        )
        if truncator.sink is not None:
            try:
                await at_once(truncator.sink, copy.deepcopy(result), event.model_dump(mode="json", exclude_none=True))
            except Exception as error:
                await self._teller.record(ObserverFailed(surface=SURFACE, error=describe(error)))
        await self._teller.record(event)
        return bounded.result


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
