"""One runner a transcript: taking the host's lock, letting it go, and a lock for hosts that live in one process."""

import contextlib
import secrets
import time
from collections.abc import Callable
from typing import NamedTuple

from wakeful.hosts.host_calls import in_its_place
from wakeful.hosts.ports import ConversationLock


class LockContention(NamedTuple):
    """Somebody else has the transcript, or the lock cannot be asked."""

    error: str | None = None


class HeldLock:
    """A lock that was taken. `release` may be asked any number of times and lets go once."""

    def __init__(self, lock: ConversationLock, session_id: str, token: str) -> None:
        self._lock = lock
        self._session_id = session_id
        self._token: str | None = token

    async def release(self) -> None:
        """Raises what the host's lock raises."""
        token, self._token = self._token, None
        if token is not None:
            await in_its_place(self._lock.release_session_lock, self._session_id, token)

    async def release_quietly(self) -> None:
        """For a way out on which nobody listens any more."""
        with contextlib.suppress(Exception):
            await self.release()


async def acquire(lock: ConversationLock, session_id: str, ttl: int) -> HeldLock | LockContention:
    """Take the lock. One that raises, or answers with anything but a token, is as good as taken by another."""
    try:
        token = await in_its_place(lock.acquire_session_lock, session_id, ttl)
    except Exception as error:
        return LockContention(f"{type(error).__name__}: {error}")
    if not isinstance(token, str) or not token:
        return LockContention()
    return HeldLock(lock, session_id, token)


class _Held(NamedTuple):
    token: str
    expires: float


class MemoryConversationLock:
    """A `ConversationLock` for the loops of one process."""

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._held: dict[str, _Held] = {}

    async def acquire_session_lock(self, session_id: str, ttl_seconds: int = 300) -> str | None:
        """A token, or None while another one holds and its time is not over."""
        now = self._monotonic()
        held = self._held.get(session_id)
        if held is not None and held.expires > now:
            return None
        token = secrets.token_hex(16)
        self._held[session_id] = _Held(token, now + max(1, ttl_seconds))
        return token

    async def release_session_lock(self, session_id: str, token: str) -> bool:
        """False, and nothing changes, when the lock belongs to another token by now."""
        held = self._held.get(session_id)
        if held is None or not secrets.compare_digest(held.token, token):
            return False
        del self._held[session_id]
        return True
