"""What the provider still has of a conversation, so that only what is new has to be sent. Optional, and never needed.

A snapshot is of one request and its answer. It is used only when the next request is, byte for byte, that request with
that answer and something new after it, of the same agent and under the same cache key. Anything else, and anything that
is not certain, is sent whole. The state is here and in no history: with all of it lost, every request is still right.
"""

from collections import OrderedDict
from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

from wakeful.ports import ModelRequest
from wakeful.providers.openai_responses.encode import EncodedRequest, cache_key

MOST_SNAPSHOTS = 256
Scope: TypeAlias = tuple[str, str]
"""The agent and its cache key."""


class KnownResponse(NamedTuple):
    """A response the provider has, and how many items of the history it covers."""

    response_id: str
    items: int


class _Snapshot(NamedTuple):
    head: bytes
    items: Sequence[bytes]
    tail: bytes
    said: bytes
    response_id: str


class Continuations:
    """The newest snapshot of each scope."""

    __slots__ = ("_snapshots",)

    def __init__(self) -> None:
        self._snapshots: OrderedDict[Scope, _Snapshot] = OrderedDict()

    def known(self, scope: Scope | None, encoded: EncodedRequest) -> KnownResponse | None:
        """What need not be sent again; None when the whole request has to be."""
        snapshot = self._snapshots.get(scope) if scope is not None else None
        if snapshot is None or snapshot.head != encoded.head or snapshot.tail != encoded.tail:
            return None
        before = len(snapshot.items)
        is_extension = (
            len(encoded.items) > before + 1
            and encoded.items[before] == snapshot.said
            and encoded.items[:before] == snapshot.items
            and any(encoded.items[before + 1 :])
        )
        return KnownResponse(snapshot.response_id, before + 1) if is_extension else None

    def remember(self, scope: Scope | None, encoded: EncodedRequest, said: bytes, response_id: object) -> None:
        """After a whole answer. Without a response id there is nothing to continue from."""
        if scope is None:
            return
        self._snapshots.pop(scope, None)
        if isinstance(response_id, str) and response_id:
            # The list of chunks grows with the history: a copy of its references is what the request was.
            self._snapshots[scope] = _Snapshot(encoded.head, encoded.items[:], encoded.tail, said, response_id)
            if len(self._snapshots) > MOST_SNAPSHOTS:
                self._snapshots.popitem(last=False)

    def forget(self, scope: Scope | None) -> None:
        """After anything that went wrong."""
        if scope is not None:
            self._snapshots.pop(scope, None)


def scope_of(request: ModelRequest) -> Scope | None:
    """None when the request names no cache: then nothing is continued."""
    cache = request.frame.cache if request.frame is not None else None
    key = cache_key(request)
    return (cache.agent_id, key) if cache is not None and key else None
