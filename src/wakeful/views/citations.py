"""Citations of a run: what its tools and the providers of its models say about where they found something."""

from collections.abc import Iterable
from typing import Any

from wakeful.contracts.citations import normalise_citation
from wakeful.contracts.events import AnyEvent, AssistantRecorded, ToolResult


def citations_in(events: Iterable[AnyEvent]) -> tuple[dict[str, Any], ...]:
    """Each citation once, in the order of the run; only what anybody may read."""
    found: list[dict[str, Any]] = []
    for event in events:
        for raw in _cited(event):
            safe = normalise_citation(raw)
            if safe and safe not in found:
                found.append(safe)
    return tuple(found)


def _cited(event: AnyEvent) -> Iterable[Any]:
    if isinstance(event, AssistantRecorded):
        return event.item.citations or ()
    if isinstance(event, ToolResult) and event.details:
        cited = event.details.get("citations")
        return cited if isinstance(cited, list | tuple) else ()
    return ()
