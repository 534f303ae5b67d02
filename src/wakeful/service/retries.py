"""Telling a host what was asked of a provider again, and why. It is in the log already; this is the hook's copy."""

from collections.abc import Sequence

from wakeful.contracts.envelope import Recorded
from wakeful.contracts.events import ModelFailed, ModelRequested
from wakeful.service.hooks import HookRegistry
from wakeful.service.hooks import hooks as default_hooks

HOOK = "provider_turn_retry"


async def tell_retries(facts: Sequence[Recorded], hooks: HookRegistry = default_hooks) -> None:
    """Tell the observers of `provider_turn_retry` of every attempt that followed a lost one, in the log's order."""
    lost: dict[str | None, ModelFailed] = {}
    for entry in facts:
        event, level = entry.fact.event, entry.fact.level
        if isinstance(event, ModelFailed):
            lost[level] = event
        elif isinstance(event, ModelRequested) and event.attempt > 1 and level in lost:
            failure = lost[level]
            provider, _, model = event.model_ref.partition(":")
            payload = {
                "provider_id": provider,
                "model_id": model,
                "attempt": event.attempt,
                "max_attempts": event.max_attempts,
                "delay_seconds": event.backoff_ms / 1000,
                "status": failure.status,
                "retry_after": failure.retry_after_ms / 1000 if failure.retry_after_ms is not None else None,
                "message": failure.message,
            }
            await hooks.observe(HOOK, payload)
