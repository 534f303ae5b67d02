"""Facts about requests that came with an idempotency key: begun, then answered or let go of.

They stand in streams of their own, one for each day, which belong to no agent and leave as a whole when they have
reached their age. A request that was begun and has neither of the others was cut off: whether it had its effect is not
known from here.
"""

from typing import ClassVar

from wakeful.contracts.events.base import RuntimeFact


class _KeyedRequest(RuntimeFact):
    caller: str
    """Whose key it is: two callers may use the same one."""
    request_key: str


class KeyedRequestStarted(_KeyedRequest):
    """A request with a key is about to be carried out."""

    kind: ClassVar[str] = "keyed_request.started"

    route: str
    """The method, and the path as it was asked for."""
    digest: str
    """Of everything that the request says."""


class KeyedRequestAnswered(_KeyedRequest):
    """A request with a key was carried out. The same request again is given this answer."""

    kind: ClassVar[str] = "keyed_request.answered"

    status: int
    answer: str | None = None
    """As JSON; None: it holds a secret, or is too long to be kept."""


class KeyedRequestReleased(_KeyedRequest):
    """A request with a key was refused and changed nothing. Its key is free again."""

    kind: ClassVar[str] = "keyed_request.released"

    code: str
    """Why it was refused."""
