"""One attempt at a model: from the request to the one fact it ends in.

Glimpses are shown as they come and believed by nobody. A reply is believed when it is whole: its calls have ids that
are unique in the turn, and it is stored before anything acts on it. Whatever a provider raises is a lost attempt.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

from pydantic_core import to_json

from wakeful.contracts.conversation import AssistantItem, CallPart
from wakeful.contracts.envelope import iso
from wakeful.contracts.errors import ModelFailure, ResponseGone, StoreProblem
from wakeful.contracts.events import (
    AnyEvent,
    AssistantRecorded,
    CallAsked,
    CostRecorded,
    ModelAnswered,
    ModelCompleted,
    ModelFailed,
    ModelWaiting,
    WarningIssued,
)
from wakeful.contracts.findings import SEARCHES
from wakeful.contracts.models import ModelGlimpse, ProviderAttemptRecord, ProviderAttemptTimeline, Reply, TokenUsage
from wakeful.contracts.tools import PREVIEW_CHARS
from wakeful.contracts.values import unchecked
from wakeful.decisions.limits import asked_for, limit_fact, quota_low
from wakeful.decisions.retries import MAX_ATTEMPTS, dispose
from wakeful.engine.low_limits import LowLimits
from wakeful.engine.replies import check_size, fit, is_countable
from wakeful.engine.reply_ends import ending_warning, most_output, refuse_unusable, without_cut_call
from wakeful.engine.settings_left_out import UnsentSettings
from wakeful.gate.large_content import Keep, offload
from wakeful.ports import Clock, Model, ModelRequest, Pricing, Reattachable, Secretive
from wakeful.tools.results import clean

MAX_FINISH_REASON = 64
CUT_BY_LIMIT = "answer_cut_by_limit"
"""The code of the warning that an answer was cut off because a budget allowed no longer one."""
_assistant_recorded, _asked = unchecked(AssistantRecorded), unchecked(CallAsked)
_model_completed = unchecked(ModelCompleted)


class Attempt:
    """One request, sent once."""

    __slots__ = (
        "candidate",
        "clock",
        "context_build_ms",
        "has_waited",
        "keep",
        "left_out",
        "low_limits",
        "model",
        "more_candidates",
        "pricing",
        "reattach_to",
        "request",
        "shortened_by",
        "show",
        "told_wait",
        "waited_ms",
        "withheld_tools",
    )

    def __init__(
        self,
        model: Model,
        request: ModelRequest,
        *,
        candidate: int,
        more_candidates: bool,
        has_waited: bool,
        told_wait: ModelWaiting | None = None,
        context_build_ms: float,
        clock: Clock,
        keep: Keep,
        show: Callable[[ModelGlimpse], None] | None,
        pricing: Pricing | None = None,
        reattach_to: str | None = None,
        low_limits: LowLimits | None = None,
        left_out: UnsentSettings | None = None,
        withheld_tools: Sequence[str] = (),
        shortened_by: str = "",
    ) -> None:
        self.model = model
        self.request = request
        self.candidate = candidate
        self.more_candidates = more_candidates
        self.has_waited = has_waited
        """The round has waited for a provider before."""
        self.told_wait = told_wait
        """The wait of the round of which people who follow were told."""
        self.context_build_ms = context_build_ms
        self.clock = clock
        self.keep = keep
        self.show = show
        self.pricing = pricing
        self.reattach_to = reattach_to
        """The id of an answer that the provider has, or is making; None for a request that is sent."""
        self.low_limits = low_limits if low_limits is not None else LowLimits()
        self.left_out = left_out if left_out is not None else UnsentSettings()
        self.withheld_tools = withheld_tools
        self.shortened_by = shortened_by
        """The limit, in words, because of which its answer may be no longer."""
        self.waited_ms = 0
        """How long was waited before it was sent."""

    async def outcome(
        self, lost: list[ProviderAttemptRecord], used_call_ids: set[str]
    ) -> tuple[list[AnyEvent], AssistantItem | None]:
        """The facts of this attempt, and the reply as it came when there is one."""
        started_at, began = self.clock.now(), time.perf_counter()
        reply: Reply | None = None
        try:
            reply = await self._reply()
            limit = most_output(self.model, self.request.settings)
            refuse_unusable(self.model.ref, reply, limit)
            whole = without_cut_call(reply, limit)
            item = fit(whole, self.request.step, used_call_ids, self.request.tools)
            stored = await offload(item, self.keep)
            assert isinstance(stored, AssistantItem)
            # What is not given is not written down either.
            said: dict[str, Any] = {"continuation": reply.continuation} if reply.continuation else {}
            if text := item.text:
                said["text_preview"] = text[:PREVIEW_CHARS]
            asked = [_call_asked(part) for part in stored.parts if isinstance(part, CallPart)]
            recorded = _assistant_recorded(item=stored, calls=tuple(asked), **said)
            check_size(recorded)
            if reply.request_metadata:
                to_json(reply.request_metadata)  # what a provider says about itself has to be storable, too
        except (asyncio.CancelledError, StoreProblem):
            raise  # nothing the provider did
        except ResponseGone as gone:
            if self.reattach_to is not None:
                return [lost_in_crash(self.model.ref, self.candidate, self.request.attempt, gone.message)], None
            return self._facts_of(gone, started_at, began), None
        except ModelFailure as failure:
            return self._facts_of(failure, started_at, began, reply), None
        except Exception as bug:  # a provider that breaks is a lost attempt, not a lost turn
            words = without_secrets(f"{type(bug).__name__}: {bug}", self.model)
            broken = ModelFailure(words, kind="unknown", stage="decode", retryable=False)
            return self._facts_of(broken, started_at, began, reply), None
        more: dict[str, Any] = {"request_metadata": dict(reply.request_metadata)} if reply.request_metadata else {}
        if reply.finish_reason:
            more["finish_reason"] = clean(reply.finish_reason[:MAX_FINISH_REASON])
        if reply.stop_reason == "length" and limit is not None:
            more["output_limit"] = limit
        if lost:
            more["timeline"] = self._timeline(lost, reply, started_at, began)
        completed = _model_completed(
            model_ref=self.model.ref,
            attempt=self.request.attempt,
            stop_reason=reply.stop_reason,
            token_usage=reply.usage,
            context_build_ms=self.context_build_ms,
            provider_round_ms=round((time.perf_counter() - began) * 1000, 3),
            provider_started_at=iso(started_at),
            provider_completed_at=iso(self.clock.now()),
            **more,
        )
        costs = self._cost(reply.usage, reply, started_at)
        low = None
        if reply.limits:
            found = quota_low(self.model.ref, self.request.attempt, reply.limits)
            low = self.low_limits.crossed(self.model.ref, found, self.clock.now())
        facts = [completed, *costs, *([low] if low is not None else ())]
        if self.told_wait is not None:
            waited_ms = max(0, self.clock.now() - self.told_wait.since) // 1000
            facts.append(ModelAnswered(model_ref=self.model.ref, waited_ms=waited_ms))
        if self.withheld_tools:
            facts += self.left_out.withheld(self.withheld_tools)
        if unsent := reply.request_metadata.get("left_out"):
            facts += self.left_out.warning(self.model.ref, unsent)
        if reply.stop_reason == "length" and self.shortened_by:
            facts.append(WarningIssued(code=CUT_BY_LIMIT, message=f"the answer was cut off: {self._held_words()}"))
        facts += ending_warning(self.model.ref, reply)
        return [*facts, recorded], item

    def _held_words(self) -> str:
        most = self.request.settings.max_tokens or 0
        return f"{self.shortened_by} allows this request {most:,} tokens of output; a larger limit allows more"

    def cancelled(self, started_at: int, more: str = "") -> ModelFailed:
        """The turn is to end: the request was given up."""
        failure = ModelFailure(f"the turn was told to stop{more}", kind="cancelled", stage="body")
        return self._lost(failure, started_at, None)

    def turned_down(self, refusal: ModelFailure) -> ModelFailed:
        """Nothing was sent and nothing will be: the model said beforehand that it cannot be asked for this."""
        return self._lost(refusal, self.clock.now(), None)

    def _cost(
        self, usage: TokenUsage | None, reply: Reply | None, started_at: int, *, lost: bool = False
    ) -> list[CostRecorded]:
        """What it cost; nothing where that is unknown, which is not the same as nothing spent."""
        if self.pricing is None:
            return []
        told = {} if reply is None else reply.request_metadata
        tier, searches = told.get("service_tier"), told.get(SEARCHES)
        cost = self.pricing.spent(
            self.model,
            usage,
            tier=tier if isinstance(tier, str) else None,
            at=started_at,
            attempt=self.request.attempt,
            lost=lost,
            searches=searches if isinstance(searches, int) and searches > 0 else 0,
        )
        return [] if cost is None else [cost]

    async def _reply(self) -> Reply:
        reply: Reply | None = None
        show = self.show
        async for piece in self._pieces():
            if isinstance(piece, Reply):
                reply = piece
            elif show is not None:
                show(piece)
        if reply is None:
            raise ModelFailure("the stream ended without its end", kind="stream_interrupted", stage="body")
        return reply if is_countable(reply.usage) else reply.model_copy(update={"usage": None})

    def _pieces(self) -> AsyncIterator[ModelGlimpse | Reply]:
        if self.reattach_to is None:
            return self.model.respond(self.request)
        assert isinstance(self.model, Reattachable), "asked before it was taken up"
        return self.model.reattach(self.request, self.reattach_to)

    def _facts_of(
        self, failure: ModelFailure, started_at: int, began: float, unused: Reply | None = None
    ) -> list[AnyEvent]:
        """What the provider said about its limits, when one was the reason, the lost attempt, and what it cost.

        A reply that came and is not used was paid all the same.
        """
        if unused is not None and failure.usage is None:
            failure.usage = unused.usage
        if not is_countable(failure.usage):
            failure.usage = None
        lost = self._lost(failure, started_at, began)
        limit = limit_fact(lost, failure.limits)
        costs = self._cost(failure.usage, unused, started_at, lost=True)
        return [lost, *costs] if limit is None else [limit, lost, *costs]

    def _lost(self, failure: ModelFailure, started_at: int, began: float | None) -> ModelFailed:
        after = asked_for(failure, self.clock.now())
        return ModelFailed(
            model_ref=self.model.ref,
            candidate=self.candidate,
            attempt=self.request.attempt,
            failure_kind=failure.kind,
            stage=failure.stage,
            disposition=dispose(
                failure.kind,
                retryable=failure.retryable,
                attempt=self.request.attempt,
                retry_after_ms=after,
                more_candidates=self.more_candidates,
                has_waited=self.has_waited,
            ),
            message=clean(failure.message[:2000])
            + (f"; {self._held_words()}" if self.shortened_by and failure.kind == "empty_response" else ""),
            status=failure.status,
            retry_after_ms=after,
            retryable=failure.retryable,
            unknown_model=failure.unknown_model,
            after_wait=self.has_waited,
            duration_ms=round((time.perf_counter() - began) * 1000) if began is not None else None,
            started_at=iso(started_at),
            completed_at=iso(self.clock.now()),
            token_usage=failure.usage,
            transport_diagnostics=failure.diagnostics,
        )

    def _timeline(
        self, lost: list[ProviderAttemptRecord], reply: Reply, started_at: int, began: float
    ) -> ProviderAttemptTimeline:
        ref = self.model.ref
        won = ProviderAttemptRecord(
            provider=ref.partition(":")[0],
            model_ref=ref,
            attempt=self.request.attempt,
            max_attempts=MAX_ATTEMPTS,
            started_at=iso(started_at),
            completed_at=iso(self.clock.now()),
            duration_ms=round((time.perf_counter() - began) * 1000),
            outcome="succeeded",
            backoff_ms=self.waited_ms or None,
            token_usage=reply.usage,
        )
        usages = [record.token_usage for record in (*lost, won) if record.token_usage is not None]
        total = usages[0] if usages else None
        for usage in usages[1:]:
            total = total + usage if total is not None else usage
        return ProviderAttemptTimeline(
            attempts=(*lost, won),
            requested_model_ref=lost[0].model_ref,
            active_model_ref=ref,
            winning_model_ref=ref,
            aggregated_token_usage=total,
        )


def _call_asked(part: CallPart) -> CallAsked:
    malformed = part.arguments is None and part.arguments_ref is None
    return _asked(call_id=part.call_id, name=part.name, malformed=malformed)


def lost_in_crash(model_ref: str, candidate: int, attempt: int, message: str) -> ModelFailed:
    """An attempt that died with the process: asked again, and none of the provider's."""
    return ModelFailed(
        model_ref=model_ref,
        candidate=candidate,
        attempt=attempt,
        failure_kind="unknown",
        stage="crash",
        disposition="retry",
        message=message,
    )


def without_secrets(text: str, model: Model) -> str:
    """The words of an exception that nobody expected, without the values that the model knows to be secret."""
    try:
        return model.redacted(text) if isinstance(model, Secretive) else text
    except Exception:
        return text.partition(":")[0]  # a model that cannot say what is secret: the name of the exception has to do
