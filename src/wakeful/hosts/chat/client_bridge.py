"""The way to the tools of one client: its calls go out as frames, and its answers come back as requests that ended.

The request in the store is what counts; a frame only tells of it. An answer counts for a request that this client was
asked, once, in time. Anything else changes nothing. A client that is gone leaves its requests open until their time is
over: the turn rests meanwhile, and whoever takes it up afterwards finds it so.
"""

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Literal, TypeAlias

from pydantic import ValidationError

from wakeful.contracts.errors import InvalidValue
from wakeful.contracts.events import RuntimeToolRequested
from wakeful.contracts.values import Value
from wakeful.engine.run_request import Engine
from wakeful.hosts.chat.client_manifest import TIMEOUT_SECONDS
from wakeful.hosts.host_calls import awaited
from wakeful.service.commands.client_requests import submit_result, time_out_late_requests
from wakeful.service.run_result import RunResult
from wakeful.views.chat_messages import ClientToolCall


class ClientToolResult(Value):
    """What came of it."""

    type: Literal["client_tool_result"] = "client_tool_result"
    request_id: str
    ok: bool
    result: Any = None
    error: str | None = None
    """With `ok: false`: why."""


SendCall: TypeAlias = Callable[[ClientToolCall], Awaitable[None] | None]
CLIENT = "client/"
LOOK_AGAIN = 0.2
"""Seconds. Another process may have taken the answer in, and a connection may be gone."""
_log = logging.getLogger("wakeful.chat")


class ClientBridge:
    """One connection. `manifest` is what its client says it can do, and `timeout` how many seconds it has for it."""

    def __init__(
        self, engine: Engine, send: SendCall, manifest: Sequence[object] = (), *, timeout: float = TIMEOUT_SECONDS
    ) -> None:
        self.manifest = tuple(manifest)
        self.timeout = timeout
        self._engine = engine
        self._send = send
        self._asked: set[str] = set()
        self._gone = False
        named = (entry.get("name") for entry in self.manifest if isinstance(entry, Mapping))
        self._tools = {f"{CLIENT}{name}" for name in named if isinstance(name, str)}

    def close(self) -> None:
        """The connection is gone: nobody is waited for any more."""
        self._gone = True

    async def take(self, frame: Mapping[str, Any]) -> bool:
        """The client's answer to a call. False: it counts for nothing. Raises InvalidValue for what is no answer."""
        try:
            answer = ClientToolResult.model_validate(frame)
        except ValidationError as error:
            wrong = error.errors()[0]
            path = ".".join(map(str, wrong["loc"]))
            raise InvalidValue("invalid_client_tool_result", path, wrong["msg"], "send request_id and ok") from None
        if answer.request_id not in self._asked:
            _log.warning("an answer to %s was ignored: this client was not asked that", answer.request_id)
            return False
        failure = None if answer.ok else answer.error or "the client says that it failed, and not why"
        ended = await submit_result(self._engine, answer.request_id, answer.result, error=failure)
        return not ended.duplicate

    async def answered(self, resting: RunResult[Any]) -> bool:
        """Ask the client for what the turn rests on, and wait until something of it is over.

        False: nothing of it is this client's, or the client is gone.
        """
        for request in resting.runtime_tools:
            if request.tool_name in self._tools and request.request_id not in self._asked:
                await self._ask(resting, request.request_id)
        mine = {request.request_id for request in resting.runtime_tools} & self._asked
        store, clock = self._engine.store, self._engine.clock
        row = await store.turn(resting.turn_id)
        assert row is not None
        watch = store.watch(row.agent_id, thread_id=row.thread_id)
        try:
            while mine and not self._gone:
                pending = {each.action_id: each for each in await store.actions(pending_only=True, turn_id=row.turn_id)}
                if not mine <= pending.keys():
                    return True
                left = (min(pending[each].expires_at for each in mine) - clock.now()) / 1_000_000
                if left > 0:
                    await watch.wait(timeout=min(left, LOOK_AGAIN))
                else:
                    await time_out_late_requests(self._engine)
        finally:
            watch.close()
        return False

    async def _ask(self, resting: RunResult[Any], request_id: str) -> None:
        request = next(each for each in resting.runtime_tools if each.request_id == request_id)
        asked, fact, seq = next(
            (entry.fact.event, entry.fact, entry.seq)
            for entry in resting.facts()
            if isinstance(entry.fact.event, RuntimeToolRequested) and entry.fact.event.request_id == request_id
        )
        frame = ClientToolCall(
            thread_id=fact.thread_id or "",
            turn_id=resting.turn_id,
            event_seq=seq,
            request_id=request_id,
            tool_call_id=request.tool_call_id or "",
            name=request.tool_name.removeprefix(CLIENT),
            args=dict(request.parameters),
            timeout_ms=max(0, (asked.timeout_at - self._engine.clock.now()) // 1000),
            parent_id=fact.parent_call_id,
            depth=fact.depth,
        )
        self._asked.add(request_id)  # before it is sent: the answer may be here before sending returns
        try:
            await awaited(self._send(frame))
        except Exception as error:
            _log.warning("the client of turn %s is gone: %s: %s", resting.turn_id, type(error).__name__, error)
            self._gone = True
