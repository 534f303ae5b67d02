"""Bodies as somebody would send them, for the description of the HTTP interface and for its page. Tests try each."""

from collections.abc import Mapping
from typing import Any

_AGENT = "/agents/{agent_id}"
_CONTROL = "/control/agents/{agent_id}"
_APPROVAL = "/approvals/{approval_id}"
_TRIGGER = "/control/triggers/{trigger_id}"
BODIES: Mapping[tuple[str, str], Mapping[str, Any]] = {
    ("POST", "/control/runtime/hold"): {"control": "paused", "reason": "the database moves"},
    ("POST", "/agents"): {
        "definition": {"name": "ops", "model": "openai:gpt-5.5", "instructions": "Watch the builds."}
    },
    ("PATCH", _AGENT): {"changes": {"instructions": "Watch the builds and the backups."}},
    ("PUT", f"{_AGENT}/model"): {"model": "anthropic:claude-sonnet-4-5"},
    ("POST", f"{_AGENT}/archive"): {"reason": "the project is over"},
    ("POST", f"{_CONTROL}/pause"): {"reason": "the database moves", "seconds": 3600.0},
    ("POST", f"{_CONTROL}/stop"): {"reason": "it does the wrong thing"},
    ("POST", f"{_AGENT}/messages"): {"text": "Check the backups.", "key": "monday"},
    ("POST", f"{_AGENT}/chat"): {"text": "Check the backups.", "thread": "main"},
    ("POST", f"{_CONTROL}/work-items"): {"objective": "Make last night's backup work again."},
    ("POST", "/control/channels"): {"kind": "ntfy", "channel": "phone"},
    ("POST", "/control/channels/{channel_id}/pair"): {"code": "7F3K-92QD"},
    ("POST", "/tasks/{task_id}/stop"): {"reason": "it hangs"},
    ("PUT", f"{_AGENT}/memory/entry"): {"ref": "episode:12", "text": "Backups run at 03:00."},
    ("POST", f"{_AGENT}/workspaces"): {"path": "/srv/shop"},
    ("PUT", f"{_AGENT}/workspace"): {"path": "/srv/shop", "mode": "isolated", "label": "backup"},
    ("POST", f"{_CONTROL}/triggers"): {"name": "ci", "say": "A build reported in.", "thread": "main"},
    ("POST", f"{_TRIGGER}/rotate"): {"reason": "its address was in a log"},
    ("POST", f"{_TRIGGER}/revoke"): {"reason": "unused"},
    ("POST", f"{_TRIGGER}/url"): {"purpose": "for the build server"},
    ("POST", f"{_APPROVAL}/decision"): {"decision": "approved", "reason": "the amount is right"},
    ("POST", f"{_APPROVAL}/edit"): {"arguments": {"cents": 500}, "reason": "half of it"},
    ("POST", f"{_APPROVAL}/answer"): {"answer": "Tuesday"},
    ("POST", f"{_APPROVAL}/always"): {"scope": "tool", "for_seconds": 86400.0},
    ("POST", "/calls/{call_id}/outcome"): {"happened": True, "result": "the refund is in the books"},
    ("POST", "/requests/{request_id}/result"): {"result": {"chosen": "blue"}},
    ("POST", "/turns/{turn_id}/messages"): {"text": "Leave the archive alone."},
    ("POST", "/budgets/grant"): {"scope": "agent:ops", "usd": "5.00", "period": "day", "reason": "a large repair"},
}
"""By method and path: of every route that has fields in its body."""
