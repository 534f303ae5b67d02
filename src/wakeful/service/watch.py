"""A turn's wire messages, sent while it runs: facts after they are stored, words as they come, one after the other.

Whoever cannot be reached any more is not tried again, and the turn does not notice: what was missed is in the log, and
`service/views.wire_messages` gives it to whoever comes back.
"""

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Sequence
from types import TracebackType
from typing import Self, TypeAlias

from wakeful.contracts.envelope import StoredFact
from wakeful.decisions.run_secrets import RunSecrets
from wakeful.engine.watchers import Glimpse, ModelGlimpsed
from wakeful.views.wire import WireView
from wakeful.views.wire_messages import WireMessage

SendMessage: TypeAlias = Callable[[WireMessage], Awaitable[None] | None]


class WireSender:
    """A watcher of one turn. Use it around the run: leaving the block waits until everything was sent.

    A client that comes back has everything up to `after_seq`: only what follows is sent.
    """

    def __init__(self, send_message: SendMessage, *, keys: Sequence[str] = (), after_seq: int = 0) -> None:
        self._send = send_message
        self._after = after_seq
        self._keys = keys
        self._waiting: asyncio.Queue[WireMessage | None] = asyncio.Queue()
        self._view: WireView | None = None
        self._task: asyncio.Task[None] | None = None
        self.failed: Exception | None = None
        """What sending raised, when it did: nothing was sent after that."""

    async def __aenter__(self) -> Self:
        self._task = asyncio.create_task(self._send_all())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._task is not None
        self._waiting.put_nowait(None)
        if kind is not None:
            self._task.cancel()
        await asyncio.wait({self._task})

    async def _send_all(self) -> None:
        while (message := await self._waiting.get()) is not None:
            if self.failed is not None:
                continue
            try:
                sent = self._send(message)
                if inspect.isawaitable(sent):
                    await sent
            except Exception as error:
                self.failed = error

    # --- the watcher -------------------------------------------------------------------------------------------------

    def begun(self, turn_id: str, agent_id: str) -> None:
        """The turn is safe in the store: from here on it is shown."""
        self._view = WireView(turn_id, secrets=RunSecrets(self._keys))

    def facts(self, recorded: Sequence[StoredFact]) -> None:
        if self._view is not None:
            for entry in recorded:
                messages = self._view.feed(entry)
                if entry.seq > self._after:
                    self._put(messages)

    def glimpse(self, seen: Glimpse) -> None:
        if self._view is not None and isinstance(seen, ModelGlimpsed):
            self._put(self._view.glimpse(seen.step, seen.piece, seen.level))

    def _put(self, messages: Sequence[WireMessage]) -> None:
        for message in messages:
            self._waiting.put_nowait(message)
