"""The context of a call, as a tool gets it.

Read-only: a tool changes the world, never its context. Every field but `deps` is a value of the log or follows from
one; `deps` are live objects of this process, are rebuilt after a restart, and are never stored.
"""

import asyncio
import threading
from collections.abc import Awaitable, Callable, Generator, Mapping
from datetime import datetime
from types import MappingProxyType
from typing import Any, Generic, TypeAlias

from typing_extensions import TypeVar

from wakeful.contracts.approvals import Approval
from wakeful.contracts.authority import Authority
from wakeful.contracts.budgets import BudgetLeft
from wakeful.contracts.content import BlobRef
from wakeful.contracts.errors import InvalidConfig
from wakeful.contracts.models import TokenUsage
from wakeful.contracts.tools import Principal
from wakeful.contracts.values import JsonValue

# Waiting is rare and setting is rarer: one lock for all signals keeps each of them two empty slots.
_LOCK = threading.Lock()


class CancelSignal:
    """Set once by the runtime. `is_set()` anywhere, `wait(seconds)` in a sync tool, `await` in an async one."""

    __slots__ = ("_event", "_futures", "_set", "on_seen")

    def __init__(self) -> None:
        self._set = False
        self._event: threading.Event | None = None
        self._futures: list[asyncio.Future[None]] | None = None
        self.on_seen: Callable[[], None] | None = None
        """Told once, in whichever thread it is, that the tool has seen it."""

    def is_set(self) -> bool:
        if self._set:
            self._seen()
        return self._set

    def _seen(self) -> None:
        told, self.on_seen = self.on_seen, None
        if told is not None:
            told()

    def set(self) -> None:
        """Tell everybody who waits. From any thread, any number of times."""
        with _LOCK:
            self._set = True
            event, futures = self._event, self._futures
            self._futures = None
        if event is not None:
            event.set()
        for future in futures or ():
            try:
                future.get_loop().call_soon_threadsafe(_resolve, future)
            except RuntimeError:  # that loop is closed: nobody awaits there any more
                pass

    def wait(self, timeout: float | None = None) -> bool:
        """Block this thread until the call is cancelled or the time is over; says whether it is cancelled."""
        if self._set or (timeout is not None and timeout <= 0):
            return self.is_set()
        if asyncio._get_running_loop() is not None:
            raise RuntimeError("ctx.cancelled.wait() would block the event loop: use `await ctx.cancelled` here")
        with _LOCK:
            was_set = bool(self._set)  # since the first look
            self._event = event = self._event or threading.Event()
        return (was_set or event.wait(timeout)) and self.is_set()

    def __await__(self) -> Generator[None, None, None]:
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        with _LOCK:
            was_set = self._set
            self._futures = [*(waiting for waiting in self._futures or () if not waiting.done()), future]
        if not was_set:
            yield from future
        self._seen()


def _resolve(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


Deps_co = TypeVar("Deps_co", covariant=True, default=None)
ProgressSink: TypeAlias = Callable[[str, float | None, float | None, str], None]
"""Called with (message, done, total, partial output), from whichever thread the tool runs in."""
OutputSink: TypeAlias = Callable[[str], None]
"""Called with a piece of output as it comes."""
Keep: TypeAlias = Callable[[bytes, str], Awaitable[BlobRef]]
"""Keeps bytes of a media type, and returns how to find them."""

NO_CONTEXT: Mapping[str, Any] = MappingProxyType({})
NO_LIMIT = BudgetLeft(model_calls=None, tool_calls=None, seconds=None)
NO_USAGE = TokenUsage()


class RunContext(Generic[Deps_co]):
    """The optional first parameter of tools, probes and callable instructions.

    `budget` and `usage` may be given as functions: they are then what they are at the moment a tool looks.
    """

    __slots__ = (
        "_agent",
        "_approval",
        "_attempt",
        "_budget",
        "_call_id",
        "_cancelled",
        "_context",
        "_deadline",
        "_deps",
        "_derived_from",
        "_hold",
        "_idempotency_key",
        "_keep",
        "_output",
        "_principal",
        "_sink",
        "_thread",
        "_turn_id",
        "_usage",
    )

    def __init__(
        self,
        deps: Deps_co,
        *,
        context: Mapping[str, JsonValue] = NO_CONTEXT,
        principal: Principal | None = None,
        agent: str = "",
        thread: str = "",
        turn_id: str = "",
        call_id: str = "",
        attempt: int = 1,
        idempotency_key: str = "",
        budget: BudgetLeft | Callable[[], BudgetLeft] = NO_LIMIT,
        usage: TokenUsage | Callable[[], TokenUsage] = NO_USAGE,
        deadline: datetime | None = None,
        cancelled: CancelSignal | None = None,
        progress: ProgressSink | None = None,
        output: OutputSink | None = None,
        keep: Keep | None = None,
        approval: Approval | None = None,
        hold: Callable[[], None] | None = None,
        derived_from: Authority = "operator_instruction",
    ) -> None:
        self._deps = deps
        self._context = context
        self._principal = principal
        self._agent = agent
        self._thread = thread
        self._turn_id = turn_id
        self._call_id = call_id
        self._attempt = attempt
        self._idempotency_key = idempotency_key
        self._budget = budget
        self._usage = usage
        self._deadline = deadline
        self._cancelled = cancelled if cancelled is not None else CancelSignal()
        self._sink = progress
        self._output = output
        self._keep = keep
        self._approval = approval
        self._hold = hold
        self._derived_from = derived_from

    @property
    def deps(self) -> Deps_co:
        """Live objects of this process: pools, clients. Never stored."""
        return self._deps

    @property
    def context(self) -> Mapping[str, JsonValue]:
        """The `context=` of the run. It is stored, and is the same after a restart."""
        return self._context

    @property
    def principal(self) -> Principal | None:
        """The user or service that the run acts for."""
        return self._principal

    @property
    def agent(self) -> str:
        return self._agent

    @property
    def thread(self) -> str:
        return self._thread

    @property
    def turn_id(self) -> str:
        return self._turn_id

    @property
    def call_id(self) -> str:
        return self._call_id

    @property
    def attempt(self) -> int:
        """From 1; 2 when this very call was begun before and is carried out again."""
        return self._attempt

    @property
    def idempotency_key(self) -> str:
        """Stable for this call over retries, restarts and workers."""
        return self._idempotency_key

    @property
    def approval(self) -> Approval | None:
        """The record with which a person let this call through; None when nobody had to."""
        return self._approval

    @property
    def derived_from(self) -> Authority:
        """The lowest authority in the chain of causes of this turn: whatever it leaves behind carries it on."""
        return self._derived_from

    @property
    def budget(self) -> BudgetLeft:
        """The rest of the turn's budget."""
        return self._budget() if callable(self._budget) else self._budget

    @property
    def usage(self) -> TokenUsage:
        """The tokens that the turn has used so far."""
        return self._usage() if callable(self._usage) else self._usage

    @property
    def deadline(self) -> datetime | None:
        """When the runtime stops waiting for this call."""
        return self._deadline

    @property
    def cancelled(self) -> CancelSignal:
        """Set when nobody waits for this call any more."""
        return self._cancelled

    def progress(
        self, message: str = "", *, done: float | None = None, total: float | None = None, partial: str = ""
    ) -> None:
        """Show whoever watches how far this call is. A glimpse: of many in one second the log keeps one and the last.

        `partial` is what there is of the result so far; the log keeps its first 500 characters.
        """
        if self._sink is not None:
            self._sink(message, done, total, partial)

    def show(self, text: str) -> None:
        """Show whoever watches a piece of output as it comes. A glimpse: the result is what counts."""
        if self._output is not None:
            self._output(text)

    async def keep(self, data: bytes, media_type: str = "text/plain; charset=utf-8") -> BlobRef:
        """Keep bytes as an artifact of this run, under the hash of what they are."""
        if self._keep is None:
            raise InvalidConfig("this context keeps no artifacts", "the tool was called outside a run")
        return await self._keep(data, media_type)

    def hold(self) -> None:
        """Make sure that this process still owns the turn. Raises OwnerFenced when another one has taken it over.

        A process that was stopped for longer than its lease may wake up in the middle of a tool. A tool that changes
        several things asks before each of them. It waits for the store, so it is for functions that are not async.
        """
        if self._hold is not None:
            self._hold()

    def __repr__(self) -> str:
        return f"RunContext(agent={self._agent!r}, turn_id={self._turn_id!r}, call_id={self._call_id!r})"
