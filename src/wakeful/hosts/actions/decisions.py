"""Deciding about pending actions, and carrying out what was accepted: `PendingActions`.

A decision is `accepted` or `rejected`, and holds once: the store compares and sets, and only the winner goes on. Then
exactly the stored `apply_input` is executed, by whoever is named for actions of its kind; a call of a turn is carried
out by its turn. Whoever comes later gets what was decided, and nothing is done again. A crash between the decision and
its execution leaves an accepted action that was not carried out, never one that was carried out twice.
"""

import copy
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias, get_args

from wakeful.contracts.envelope import iso
from wakeful.engine.run_request import Engine
from wakeful.hosts.actions.pending_action import (
    INVALID_DECISION,
    MISSING_RESOLVER,
    NO_RESOLVER,
    NO_STORE,
    Decision,
    PendingAction,
    PendingActionError,
)
from wakeful.hosts.actions.records import REMEMBER, OwnPendingActionStore
from wakeful.hosts.host_calls import awaited
from wakeful.hosts.ports import PendingActionStore
from wakeful.ports import Clock
from wakeful.service.hooks import HookRegistry
from wakeful.service.hooks import hooks as default_hooks
from wakeful.system import SystemClock

STORE_HOOK = "pending_action_store"
Carry: TypeAlias = Callable[[PendingAction], object]
"""Carries out an accepted action; plain or async. `action.apply_input` is what it is given to do, and nothing else."""


@dataclass(frozen=True, slots=True)
class ActionOutcome:
    """The outcome of a decision."""

    action: PendingAction
    """As it is now: whoever decided it."""
    duplicate: bool = False
    """It had ended before. Nothing was done."""
    result: Any = None
    """The result of the action."""


class PendingActions:
    """Decides about the actions of one host. `carry` names who carries out what was accepted, by kind."""

    def __init__(
        self,
        carry: Mapping[str, Carry] | None = None,
        *,
        store: PendingActionStore | None = None,
        hooks: HookRegistry = default_hooks,
        clock: Clock | None = None,
    ) -> None:
        self._carry = dict(carry or {})
        self._store = store
        """Used when no hook names another."""
        self._hooks = hooks
        self._clock = clock if clock is not None else SystemClock()

    @classmethod
    def on(
        cls, engine: Engine, carry: Mapping[str, Carry] | None = None, hooks: HookRegistry = default_hooks
    ) -> "PendingActions":
        """Over wakeful's own store, approvals and questions of turns included, unless a hook names another."""
        return cls(carry, store=OwnPendingActionStore(engine), hooks=hooks, clock=engine.clock)

    async def decide(
        self,
        action_id: str,
        decision: Decision | str,
        *,
        resolver: str,
        remember: bool | Mapping[str, Any] | None = None,
        note: str = "",
    ) -> ActionOutcome:
        """Decide once. Raises PendingActionError, and then nothing was decided.

        `remember`, of what is accepted: do not ask again about what is like it (`{"scope": "call" | "tool",
        "for_seconds": n}`; True: this very call). An exception of the resolver is passed on: it was accepted,
        and only the caller knows what that means.
        """
        _check(decision, resolver, remember)
        store = await self._found_store()
        now = iso(self._clock.now())
        await awaited(store.expire(now))
        action = await awaited(store.get(action_id))
        if action is None:
            raise PendingActionError(INVALID_DECISION, f"there is no action {action_id!r}", "list what is pending")
        if not action.is_pending:
            return ActionOutcome(action, duplicate=True)
        carry = await self._who_carries(store, action) if decision == "accepted" else None
        metadata = {**action.resolution_metadata, **({REMEMBER: _plain(remember)} if remember else {})}
        if note and decision == "accepted":
            metadata["note"] = note
        ended = PendingAction.normalise(
            {
                **action.model_dump(),
                "status": decision,
                "resolved_at": now,
                "resolver": resolver,
                "resolution_error": note or None if decision == "rejected" else None,
                "resolution_metadata": metadata,
            }
        )
        won = await awaited(store.record_resolution(ended)) is True
        seen = await awaited(store.get(action_id)) or ended
        if not won:
            return ActionOutcome(seen, duplicate=True)
        if carry is None:
            return ActionOutcome(seen)
        return ActionOutcome(seen, result=await awaited(carry(copy.deepcopy(action))))

    async def _found_store(self) -> Any:
        store = await self._hooks.resolve(STORE_HOOK)
        store = self._store if store is None else store
        if store is None:
            raise PendingActionError(
                NO_STORE, "there is no store of pending actions", f"give one, or register the hook {STORE_HOOK!r}"
            )
        return store

    async def _who_carries(self, store: Any, action: PendingAction) -> Carry | None:
        """None: the store's own turn does. A decision that nothing would carry out is not accepted."""
        itself = getattr(store, "carries_out", None)
        if callable(itself) and await awaited(itself(action.action_id)):
            return None
        carry = self._carry.get(action.kind)
        if carry is None:
            known = ", ".join(sorted(self._carry)) or "none"
            raise PendingActionError(
                NO_RESOLVER,
                f"no resolver is registered for actions of the kind {action.kind!r}",
                f"it is still pending and can be rejected; kinds that are carried out: {known}",
            )
        return carry


def _check(decision: Any, resolver: Any, remember: Any) -> None:
    if decision not in get_args(Decision):
        raise PendingActionError(INVALID_DECISION, f"a decision is accepted or rejected, not {decision!r}")
    if not isinstance(resolver, str) or not resolver.strip():
        raise PendingActionError(MISSING_RESOLVER, f"the resolver must be a name, not {resolver!r}")
    if remember is None or remember is False:
        return
    if decision != "accepted":
        raise PendingActionError(INVALID_DECISION, "only what is accepted is remembered")
    wrong = isinstance(remember, Mapping) and set(remember) - {"scope", "for_seconds"}
    if wrong or not (remember is True or isinstance(remember, Mapping)):
        raise PendingActionError(INVALID_DECISION, f"remember is True, or says scope and for_seconds, not {remember!r}")


def _plain(remember: bool | Mapping[str, Any]) -> Any:
    return dict(remember) if isinstance(remember, Mapping) else remember
