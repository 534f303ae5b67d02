"""Stored outputs of a turn, as its facts name them. Pure."""

from typing import Any

from wakeful.contracts.envelope import StoredFact
from wakeful.contracts.events import OutputSpilled, ToolFailed, ToolResult
from wakeful.views.store_records import Artifact


def artifacts_of(turn_id: str, facts: list[StoredFact]) -> list[Artifact]:
    """The artifacts that the calls of a turn left, in the order in which they came; each once."""
    found: dict[str, Artifact] = {}

    def add(digest: str, call_id: str, **known: Any) -> None:
        before = found.get(digest)
        if before is None:
            found[digest] = Artifact(artifact_id=digest, turn_id=turn_id, call_id=call_id, **known)
        else:
            found[digest] = before.model_copy(update={name: value for name, value in known.items() if value})

    for recorded in facts:
        event, call_id = recorded.fact.event, recorded.fact.call_id or ""
        if isinstance(event, OutputSpilled):
            add(
                event.output_ref,
                call_id or event.owner,
                media_type=event.media_type,
                size_bytes=event.size_bytes,
                preview=event.preview,
            )
        elif isinstance(event, ToolResult | ToolFailed):
            tool = event.tool_name
            for digest in event.artifact_refs:
                add(digest, call_id, tool=tool)
            for kept in _kept(event.details) if isinstance(event, ToolResult) else ():
                if kept["digest"] in event.artifact_refs:
                    add(kept["digest"], call_id, media_type=kept.get("media_type"), size_bytes=kept.get("size"))
            for part in event.item.parts:
                if part.type in ("image", "file") and part.ref is not None:
                    ref = part.ref
                    add(ref.digest, call_id, tool=tool, media_type=ref.media_type, size_bytes=ref.size)
    return list(found.values())


def artifact_ids(event: OutputSpilled | ToolResult | ToolFailed) -> list[str]:
    """The artifacts that an event names: what `artifacts_of` shows of it."""
    if isinstance(event, OutputSpilled):
        return [event.output_ref]
    parts = [part.ref.digest for part in event.item.parts if part.type in ("image", "file") and part.ref is not None]
    return [*dict.fromkeys((*event.artifact_refs, *parts))]


def _kept(details: dict[str, Any]) -> list[dict[str, Any]]:
    """What a tool says of the outputs it kept."""
    listed = details.get("artifacts")
    listed = listed if isinstance(listed, list) else []
    return [each for each in listed if isinstance(each, dict) and isinstance(each.get("digest"), str)]
