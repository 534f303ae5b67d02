"""Actions that wait for a decision."""

from typing import Any

import pytest

from wakeful.contracts.errors import InvalidValue
from wakeful.hosts.actions.pending_action import PendingAction, approval_envelope

ACTION: dict[str, Any] = {
    "action_id": "a1",
    "kind": "publish",
    "summary": "Publish 'Hello'",
    "preview": {"title": "Hello"},
    "apply_input": {"post": 7},
    "created_at": "2026-01-01T00:00:00Z",
}


@pytest.mark.spec("API-PND-01")
def test_an_action_has_its_shape_and_what_it_needs_is_named() -> None:
    action = PendingAction.normalise(ACTION)
    assert action.model_dump() == {
        **ACTION,
        "status": "pending",
        **dict.fromkeys(("workspace", "agent", "creator", "expires_at", "resolved_at", "resolver")),
        "resolution_result": None,
        "resolution_error": None,
        "resolution_metadata": {},
        "metadata": {},
    }
    for field in ACTION:
        with pytest.raises(InvalidValue, match=rf"^invalid_pending_action: {field}"):
            PendingAction.normalise({name: value for name, value in ACTION.items() if name != field})
    for wrong in ({"status": "done"}, {"preview": object()}, {"unknown": 1}):
        with pytest.raises(InvalidValue, match=r"^invalid_pending_action: "):
            PendingAction.normalise({**ACTION, **wrong})
    with pytest.raises(InvalidValue, match=r"^invalid_pending_action: "):
        PendingAction.normalise("publish")  # type: ignore[arg-type]


@pytest.mark.spec("API-PND-02")
@pytest.mark.parametrize("status", ["accepted", "rejected", "expired", "deleted"])
def test_an_end_says_when_and_by_whom(status: str) -> None:
    ended = {**ACTION, "status": status, "resolved_at": "2026-01-02T00:00:00Z", "resolver": "user:1"}
    assert PendingAction.normalise(ended).status == status
    with pytest.raises(InvalidValue, match="resolved_at is missing"):
        PendingAction.normalise({**ended, "resolved_at": None})
    if status == "expired":
        assert PendingAction.normalise({**ended, "resolver": None}).resolver is None
    else:
        with pytest.raises(InvalidValue, match="resolver is missing"):
            PendingAction.normalise({**ended, "resolver": ""})


def test_the_envelope_carries_the_whole_action() -> None:
    action = PendingAction.normalise({**ACTION, "preview": None})
    message = approval_envelope(
        action, ability_name="posts/publish", staged=True, instruction="Look twice.", grants=[{"scope": "once"}]
    )
    assert (message.type, message.role, message.content) == ("approval_required", "tool", "Publish 'Hello'")
    assert message.payload == {
        **ACTION,
        "preview": None,
        "status": "pending",
        "resolution_metadata": {},
        "metadata": {},
        "instruction": "Look twice.",
        "grants": [{"scope": "once"}],
    }
    assert message.metadata == {"ability_name": "posts/publish", "staged": True}
