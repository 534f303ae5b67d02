"""Attempts that the Responses API itself calls lost, from what it says: `response.failed` and `error` events.

The kinds all providers share are in `wire.failures`. Here are the codes of this API's own list of reasons.
"""

from typing import Any

from wakeful.contracts.errors import ModelFailure
from wakeful.contracts.models import FailureKind, TokenUsage
from wakeful.providers.wire.failures import Peer, from_error_object

_KINDS: dict[str, FailureKind] = {
    "usage_limit_reached": "quota_exhausted",
    "usage_not_included": "quota_exhausted",
    "bio_policy": "content_filtered",
    "cyber_policy": "content_filtered",
    "misalignment_policy_violation": "content_filtered",
    "image_content_policy_violation": "content_filtered",
    "data_residency_mismatch": "contract_error",
    "failed_to_download_image": "contract_error",
    "empty_image_file": "contract_error",
    "unsupported_image_media_type": "contract_error",
}
_ABOUT_THE_REQUEST = ("invalid_", "image_")


def failed_response(peer: Peer, error: Any, usage: TokenUsage | None) -> ModelFailure:
    """A response whose status is `failed`, classified from its own error."""
    failure = reported_error(peer, error if isinstance(error, dict) else {})
    failure.usage = usage
    return failure


def reported_error(peer: Peer, error: dict[str, Any]) -> ModelFailure:
    """An error object: of a response, or of an `error` event, there beside its type or in an object of its own."""
    inner = error.get("error")
    fields = inner if isinstance(inner, dict) else error
    failure = from_error_object(peer.provider, peer.model_ref, fields, peer=peer)
    code = fields.get("code")
    if isinstance(code, str):
        if code in _KINDS:
            failure.kind = _KINDS[code]
        elif failure.kind == "unknown" and code.startswith(_ABOUT_THE_REQUEST):
            failure.kind = "contract_error"
    return failure
