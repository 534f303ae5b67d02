"""The option `tool_result_truncator`: results of a host's tools, no larger than the host wants them.

The cut itself is the one of every result (`tools.results.show`); here is what a host reads about it. A cut text has
lost the keys by which its values would be redacted, so those values are redacted before it is cut.
"""

import copy
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from wakeful.contracts.errors import InvalidValue
from wakeful.contracts.events import ObserverFailed, ToolResultTruncated
from wakeful.decisions.redaction import redact
from wakeful.decisions.secret_values import SecretValues
from wakeful.hosts.host_calls import at_once
from wakeful.hosts.loop.loop_events import Teller, describe
from wakeful.tools.results import excerpt_of

INVALID = "invalid_truncator"
DEFAULT_BYTES = 8_192


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


SURFACE = "tool_result_truncator"


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
