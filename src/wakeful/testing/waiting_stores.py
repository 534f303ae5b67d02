"""What waits for somebody outside, kept in memory: stores for tests of hosts, gone with the process.

Both end an entry once: the first caller wins and everybody else is told what it ended with. No method waits for
anything between looking and writing, so on one event loop nothing comes in between.
"""

from collections import Counter
from collections.abc import Mapping
from typing import Any

from wakeful.contracts.runtime_tools import COMPLETED, TIMEOUT, RequestStatus, RuntimeToolRequest, RuntimeToolResult
from wakeful.hosts.actions.pending_action import PendingAction
from wakeful.ports.client_requests import RequestEnding


class MemoryRuntimeToolStore:
    """A RuntimeToolRequestStore. `writes` counts what was written."""

    compare_and_set = True

    def __init__(self) -> None:
        self._requests: dict[str, RuntimeToolRequest] = {}
        self._results: dict[str, RuntimeToolResult] = {}
        self.writes = 0

    async def create(self, request: RuntimeToolRequest) -> None:
        if request.request_id not in self._requests:
            self._requests[request.request_id] = request
            self.writes += 1

    async def get(self, request_id: str) -> RuntimeToolRequest | None:
        return self._requests.get(request_id)

    async def complete(self, request_id: str, result: RuntimeToolResult) -> RequestEnding | None:
        return self._settle(request_id, COMPLETED, result)

    async def timeout(self, request_id: str, result: RuntimeToolResult | None = None) -> RequestEnding | None:
        return self._settle(request_id, TIMEOUT, result)

    async def recent_pending(self, query: Mapping[str, Any]) -> list[RuntimeToolRequest]:
        before = query.get("before")
        found = [
            request
            for request in reversed(self._requests.values())
            if request.is_pending
            and query.get("run_id") in (None, request.run_id)
            and query.get("tool_name") in (None, request.tool_name)
            and (before is None or (request.timeout_at and request.timeout_at < before))
        ]
        return found[: query.get("limit")]

    def _settle(self, request_id: str, status: RequestStatus, result: RuntimeToolResult | None) -> RequestEnding | None:
        request = self._requests.get(request_id)
        if request is None:
            return None
        won = request.is_pending
        if won:
            request = self._requests[request_id] = request.settled(status)
            if result is not None:
                self._results[request_id] = result
            self.writes += 1
        return RequestEnding(won, request, self._results.get(request_id))


class MemoryPendingActionStore:
    """A PendingActionStore."""

    def __init__(self) -> None:
        self._actions: dict[str, PendingAction] = {}

    def store(self, action: PendingAction) -> None:
        if action.action_id in self._actions:
            raise ValueError(f"there is an action {action.action_id!r} already")
        self._actions[action.action_id] = action

    def get(self, action_id: str) -> PendingAction | None:
        return self._actions.get(action_id)

    def list(self, query: Mapping[str, Any]) -> "list[PendingAction]":
        found = [action for action in reversed(self._actions.values()) if _fits(action, query)]
        return found[: query.get("limit")]

    def summary(self, query: Mapping[str, Any]) -> dict[str, int]:
        return dict(Counter(action.status for action in self._actions.values() if _fits(action, query)))

    def record_resolution(self, action: PendingAction) -> bool:
        stored = self._actions.get(action.action_id)
        if stored is None or not stored.is_pending or action.is_pending:
            return False
        self._actions[action.action_id] = action
        return True

    def expire(self, now: str) -> int:
        late = [action for action in self._actions.values() if action.expires_at and action.expires_at <= now]
        ended = (action.model_copy(update={"status": "expired", "resolved_at": now}) for action in late)
        return sum(self.record_resolution(action) for action in ended)

    def delete(self, action_id: str, *, resolver: str, now: str) -> bool:
        stored = self._actions.get(action_id)
        if stored is None:
            return False
        ended = stored.model_copy(update={"status": "deleted", "resolved_at": now, "resolver": resolver})
        return self.record_resolution(ended)


def _fits(action: PendingAction, query: Mapping[str, Any]) -> bool:
    return all(query.get(name) in (None, getattr(action, name)) for name in ("status", "kind", "agent", "workspace"))
