"""Step 9 of the gate: a call takes all its locks before it is let through, under a name that no other run has."""

from collections.abc import Callable

from wakeful.gate.call_at_gate import Admission, CallAtGate
from wakeful.gate.turn_gate import GateParts
from wakeful.gate.verdicts import locked


class CallLocks:
    """The locks that calls of one level claim."""

    def __init__(self, parts: GateParts, turn_id: str) -> None:
        self._parts = parts
        self._turn_id = turn_id
        self.claimants: set[str] = set()
        """Calls that asked for locks here."""

    def admit(
        self, at: CallAtGate, through: Callable[[CallAtGate], Admission], judge: Callable[[CallAtGate], Admission]
    ) -> Admission:
        """Let it through with its locks. Much may have happened before they were free: then it is judged once more."""
        owner, locks, names, seconds = self.owner(at), self._parts.locks, at.declaration.locks, self._parts.lock_seconds
        if owner is None or locks is None:
            return through(at)
        self.claimants.add(at.call_id)
        if locks.try_claim(owner, names):
            return through(at)

        async def wait() -> Callable[[], Admission]:
            if not await locks.claim(owner, names, seconds):
                at.heard = at.heard.and_then(locked(locks.holders(names), seconds))
            return lambda: judge(at)

        return Admission([], later=wait)

    def owner(self, at: CallAtGate) -> str | None:
        """Under which name the call holds its locks; None: it has none."""
        is_locked = bool(at.declaration.locks) and self._parts.locks is not None
        at.lock_owner = self._owner_of(at.call_id, at.attempt) if is_locked else None
        return at.lock_owner

    def let_go(self, call_id: str) -> None:
        """Nobody will run this call: what it claimed is free again."""
        if self._parts.locks is not None:
            self._parts.locks.release(self._owner_of(call_id))

    def _owner_of(self, call_id: str, attempt: int = 1) -> str:
        """A run that a crash or its caller left behind may still be at it: the next one is another owner."""
        return f"{self._turn_id}/{call_id}/{attempt}"
