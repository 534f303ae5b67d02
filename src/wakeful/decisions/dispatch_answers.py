"""The record of a dispatched run, and what its executor says of it, as one. All of it is JSON data."""

from collections.abc import Mapping
from typing import Any

OURS = ("schema", "run_id", "session_id", "executor_id", "owner", "started_at", "updated_at")
"""What nobody else says of a run."""
FALLBACK = "placement_fallback"
OVER = ("succeeded", "failed", "cancelled")


def joined(now: Mapping[str, Any], said: Mapping[str, Any]) -> dict[str, Any]:
    """The run with what an executor says of it. Who it is, whose and where is not the executor's to say.

    A run that is asked to stop goes on being that until it is over.
    """
    kept = {name: value for name, value in said.items() if name not in OURS and value is not None}
    stays = now["status"] == "cancelling" and kept.get("status") in ("queued", "running")
    return {
        "artifact_refs": now["artifact_refs"],
        "output": now["output"],
        "execution_metrics": now["execution_metrics"],
        **kept,
        **{name: now[name] for name in OURS},
        **({"status": "cancelling"} if stays else {}),
        "diagnostics": _merged(kept.get("diagnostics", now["diagnostics"]), _ours(now["diagnostics"])),
        "provenance": _merged(now["provenance"], kept.get("provenance", {})),
        "metadata": _merged(kept.get("metadata", {}), now["metadata"]),
        "events": [*now["events"], *_list(kept.get("events", []))],
    }


def _merged(first: Any, second: Any) -> Any:
    """Both, the second before the first. What is no object is left for whoever checks to refuse."""
    for each in (first, second):
        if not isinstance(each, Mapping):
            return each
    return {**first, **second}


def _ours(diagnostics: Mapping[str, Any]) -> dict[str, Any]:
    """Which target was chosen instead is no executor's to say."""
    return {name: value for name, value in diagnostics.items() if name == FALLBACK}


def _list(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list | tuple) else [value]
