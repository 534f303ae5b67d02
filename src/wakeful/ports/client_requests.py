"""Where calls are kept that a client answers. Methods may be plain or async: hosts bring stores of their own."""

from collections.abc import Awaitable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol, TypeAlias, TypeVar

from wakeful.contracts.runtime_tools import RuntimeToolRequest, RuntimeToolResult

AnswerT = TypeVar("AnswerT")
PlainOrAsync: TypeAlias = AnswerT | Awaitable[AnswerT]
"""What a method of a host answers, at once or when it is awaited."""


class RequestEnding(NamedTuple):
    """The answer to an attempt to end a request."""

    won: bool
    """False: it had ended before, and nothing was written."""
    request: RuntimeToolRequest
    """As it is stored now."""
    result: RuntimeToolResult | None
    """The result that is stored: the winner's."""


class RuntimeToolRequestStore(Protocol):
    """Keeps calls that somebody outside answers.

    `complete` and `timeout` compare and set: they end a request that is pending, once, and tell everybody else what it
    ended with. A store says so with `compare_and_set = True`; one that does not is refused for ending requests.
    """

    compare_and_set: bool

    def create(self, request: RuntimeToolRequest) -> PlainOrAsync[None]:
        """Keep a pending request. One with that id may be there already: then it stays as it is."""
        ...

    def get(self, request_id: str) -> PlainOrAsync[RuntimeToolRequest | None]:
        """The request of this id, or None."""
        ...

    def complete(self, request_id: str, result: RuntimeToolResult) -> PlainOrAsync[RequestEnding | None]:
        """End it with a result. None: there is no such request."""
        ...

    def timeout(self, request_id: str, result: RuntimeToolResult | None = None) -> PlainOrAsync[RequestEnding | None]:
        """End it unanswered, keeping `result` as what it ended with. None: there is no such request."""
        ...

    def recent_pending(self, query: Mapping[str, Any]) -> PlainOrAsync[Sequence[RuntimeToolRequest]]:
        """Pending requests, newest first. Keys of the query: run_id, tool_name, before (an ISO time), limit."""
        ...


class RuntimeToolContinuation(Protocol):
    """Goes on with a run once its call is answered."""

    def resume(self, request: RuntimeToolRequest, result: RuntimeToolResult, context: dict[str, Any]) -> Any:
        """An object. Called once, for whoever ended the request."""
        ...
