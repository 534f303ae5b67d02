"""Citations in `metadata.citations` of tool results: where something was found, in words that anybody may read.

Who may read what is decided elsewhere: nothing here is ever an input to that, and nothing private survives here.
"""

from collections.abc import Mapping, Sequence
from typing import Any, get_args

from wakeful.contracts.jsonable import NotJson, plain
from wakeful.contracts.principals import SAFE_METADATA
from wakeful.contracts.sensitive_names import is_sensitive
from wakeful.contracts.values import JsonScalar

PLACES = ("citations", "source_diagnostics")
"""Where in a result's metadata they stand."""
TEXTS = ("source", "source_id", "item_id", "fragment_id", "source_title", "source_url", "excerpt", "restriction_reason")
ACCESS = ("allowed", "denied", "partial", "source_restricted")
PRIVATE = frozenset(
    {
        "requestmetadata",
        "ownerkey",
        "audienceclaims",
        "claims",
        "capabilities",
        "capabilityceiling",
        "capability",
        "callercontext",
        "binding",
        "bindingclaims",
    }
)
"""Keys that have no business in a citation, beside those whose name says that they are secrets."""
_SCALARS = tuple(kind for kind in get_args(JsonScalar) if kind is not type(None))


def with_safe_citations(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """The metadata of a result with its citations normalised; everything else in it as it is."""
    safe = dict(metadata)
    for place in PLACES:
        if place in safe:
            citations = map(normalise_citation, _entries(safe[place]))
            safe[place] = [citation for citation in citations if citation is not None]
    return safe


def cited_sources(metadata: Mapping[str, Any]) -> tuple[str, ...]:
    """What a result rests on, in the order of its citations: the address of each source, or else its id."""
    found = (normalise_citation(raw) or {} for raw in _entries(metadata.get("citations")))
    named = (citation.get("source_url") or citation.get("source_id") for citation in found)
    return tuple(dict.fromkeys(name for name in named if name))


def _entries(value: Any) -> Sequence[Any]:
    return value if isinstance(value, list | tuple) else ()


def normalise_citation(raw: Any) -> dict[str, Any] | None:
    """One citation; None for what is no object. Extra fields stay, unless they are private or no JSON."""
    if not isinstance(raw, Mapping):
        return None
    citation: dict[str, Any] = {}
    for key, value in raw.items():
        if not isinstance(key, str) or _is_private(key):
            continue
        if key in TEXTS:
            kept: Any = _text(value)
        elif key == "score":
            kept = value if isinstance(value, int | float) and not isinstance(value, bool) else None
        elif key == "access_status":
            kept = value if value in ACCESS else None
        elif key == "principal":
            kept = _principal(value)
        else:
            kept = _public(value)
        if kept is not None:
            citation[key] = kept
    return citation


def _text(value: Any) -> str | None:
    if not isinstance(value, _SCALARS) or isinstance(value, bool):
        return None
    return str(value).strip() or None


def _principal(value: Any) -> dict[str, Any] | None:
    """Safe metadata of a principal, whatever else was given."""
    if not isinstance(value, Mapping):
        return None
    return {
        key: value[key]
        for key in SAFE_METADATA
        if key in value and (value[key] is None or isinstance(value[key], _SCALARS))
    }


def _public(value: Any) -> Any:
    """JSON without private keys, at every depth."""
    try:
        return _without_private(plain(value))
    except NotJson:
        return None


def _without_private(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_private(inner) for key, inner in value.items() if not _is_private(key)}
    if isinstance(value, list):
        return [_without_private(inner) for inner in value]
    return value


def _is_private(key: str) -> bool:
    return is_sensitive(key) or key.lower().replace("_", "").replace("-", "").replace(" ", "") in PRIVATE
