"""Facts about the model: asked, lost, answered, said."""

from typing import Any, ClassVar

from wakeful.contracts.conversation import AssistantItem, Item
from wakeful.contracts.events.base import STEP, Event, Need, Preview
from wakeful.contracts.models import (
    Disposition,
    FailureKind,
    ProviderAttemptRecord,
    ProviderAttemptTimeline,
    Stage,
    StopReason,
    TokenUsage,
    TransportDiagnostics,
)
from wakeful.contracts.spending import WindowRef
from wakeful.contracts.values import Value


class ModelRequested(Event):
    """The intent to ask: written before anything is sent."""

    kind: ClassVar[str] = "model.requested"
    aliases: ClassVar[tuple[str, ...]] = ("turn_started", "step(started)")
    needs: ClassVar[tuple[Need, ...]] = STEP

    model_ref: str
    candidate: int = 0
    """Position in the chain of fallbacks."""
    attempt: int = 1
    """Counts from 1 on each candidate; an attempt that a crash cut off does not count."""
    max_attempts: int = 3
    items: int
    """How long the conversation was when it was sent."""
    backoff_ms: int = 0
    """How long was waited before this attempt."""
    context_build_ms: float = 0.0
    reserved_input: int | None = None
    reserved_output: int | None = None
    reserved_usd: str | None = None
    """What is held back of the turn's budget until the answer says what it took; absent where nothing limits it."""
    shortened_by: str = ""
    """The limit, in words, that allows the answer no more than `reserved_output`; without it there would be more."""
    windows: tuple[WindowRef, ...] = ()
    """The spend windows that `reserved_usd` is held back in, too."""
    final: bool = False
    """The last request there is room for: the model is told so, and is to call no tool."""


class ModelResponseAccepted(Event):
    """The provider took the request on and works at it by itself: under this id its answer can be had later."""

    kind: ClassVar[str] = "model.response.accepted"
    needs: ClassVar[tuple[Need, ...]] = STEP

    model_ref: str
    provider: str
    candidate: int = 0
    attempt: int
    response_id: str


class ModelResponseReattached(Event):
    """After a crash: the answer of an accepted request is asked for by its id, and nothing is sent again."""

    kind: ClassVar[str] = "model.response.reattached"
    needs: ClassVar[tuple[Need, ...]] = STEP

    model_ref: str
    candidate: int = 0
    attempt: int
    response_id: str


class ModelFailed(Event):
    """An attempt is lost; nothing that was glimpsed of it is believed."""

    kind: ClassVar[str] = "model.failed"
    needs: ClassVar[tuple[Need, ...]] = STEP

    model_ref: str
    candidate: int = 0
    attempt: int
    failure_kind: FailureKind
    stage: Stage
    disposition: Disposition
    message: str
    status: int | None = None
    retry_after_ms: int | None = None
    """How long the provider asks to be left alone, by its `Retry-After` or by when its limit is reset."""
    retryable: bool | None = None
    """What the provider said about asking again; None: it follows from the kind."""
    unknown_model: bool = False
    """The provider knows no model of that name."""
    after_wait: bool = False
    """The round had waited for a provider before."""
    duration_ms: int | None = None
    started_at: str | None = None
    completed_at: str | None = None
    token_usage: TokenUsage | None = None
    transport_diagnostics: TransportDiagnostics | None = None


class ModelWaiting(Event):
    """No model of the level answers for now. The request is made again later; until then nothing is held for it."""

    kind: ClassVar[str] = "model.wait_started"
    aliases: ClassVar[tuple[str, ...]] = ("model.waiting",)
    needs: ClassVar[tuple[Need, ...]] = STEP

    model_ref: str
    """The model whose failure says how long; its provider is what is waited for."""
    failure_kind: FailureKind
    message: Preview
    """Of that failure."""
    wait: int
    """Counts from 1 in the round."""
    since: int
    """Unix microseconds: when the first wait of the round began, with the loss of its newest attempt."""
    next_try: int
    """Unix microseconds."""
    rests: bool = False
    """Time alone will hardly mend it (a key that is refused, a quota that is used up, a model that is not there): it is
    asked again when somebody resumes the turn, and at `next_try`."""
    absent: bool = False
    """Nothing listens at that address of this machine, or no host has that name."""
    told: bool = False
    """Who follows the agent is told of it: it takes longer than a moment, and they know of no wait of the turn for this
    provider with this reason."""


class ModelWaitEnded(Event):
    """A level asks again, because its time has come while other work of the turn went on. Where nothing else goes on,
    the turn rests, and `turn.resumed` ends the wait."""

    kind: ClassVar[str] = "model.wait_ended"
    needs: ClassVar[tuple[Need, ...]] = STEP


class ModelAnswered(Event):
    """The end of a wait of which people who follow were told: a model has answered the round, this one or another."""

    kind: ClassVar[str] = "model.answered"
    needs: ClassVar[tuple[Need, ...]] = STEP

    model_ref: str
    waited_ms: int
    """Since the first wait of the round."""


class ModelCompleted(Event):
    """Telemetry of a round that was answered. What was said is in `assistant.recorded`."""

    kind: ClassVar[str] = "model.completed"
    aliases: ClassVar[tuple[str, ...]] = ("provider_round_completed", "terminal_delivery_round_completed", "usage")
    needs: ClassVar[tuple[Need, ...]] = STEP

    model_ref: str
    attempt: int
    stop_reason: StopReason
    token_usage: TokenUsage | None = None
    context_build_ms: float
    provider_round_ms: float
    provider_started_at: str
    provider_completed_at: str
    finish_reason: str | None = None
    """Why the reply ended, in the provider's own word."""
    output_limit: int | None = None
    """Of a reply that was cut off: how many tokens it could have, where that is known."""
    request_metadata: dict[str, Any] = {}
    timeline: ProviderAttemptTimeline | None = None
    """Only when there was more than the one attempt; `whole_timeline` is there always."""

    def whole_timeline(self) -> ProviderAttemptTimeline:
        """The attempts of the round. A single one has the round's own times; of several, each has its own."""
        if self.timeline is not None:
            return self.timeline
        only = ProviderAttemptRecord(
            provider=self.model_ref.partition(":")[0],
            model_ref=self.model_ref,
            attempt=self.attempt,
            max_attempts=3,
            started_at=self.provider_started_at,
            completed_at=self.provider_completed_at,
            duration_ms=round(self.provider_round_ms),
            outcome="succeeded",
            token_usage=self.token_usage,
        )
        return ProviderAttemptTimeline(
            attempts=(only,),
            requested_model_ref=self.model_ref,
            active_model_ref=self.model_ref,
            winning_model_ref=self.model_ref,
            aggregated_token_usage=self.token_usage,
        )


class CallAsked(Value):
    """A call of the round, as far as deciding needs it."""

    call_id: str
    name: str
    malformed: bool = False
    """The arguments are not a JSON object."""


class AssistantRecorded(Event):
    """What the model said, whole and believed."""

    kind: ClassVar[str] = "assistant.recorded"
    aliases: ClassVar[tuple[str, ...]] = ("assistant_round_recorded", "assistant_round")
    needs: ClassVar[tuple[Need, ...]] = STEP

    item: AssistantItem
    calls: tuple[CallAsked, ...] = ()
    """In model order."""
    text_preview: Preview = ""
    continuation: tuple[Item, ...] = ()
    """Items that follow the round's results; a round that has some is not the last."""
