"""What came of one tiny call, and what a person is told to do about it."""

from collections.abc import AsyncIterator, Callable, Sequence
from typing import get_args

import pytest

from wakeful.contracts.catalogue import ProviderState, RetryPolicy
from wakeful.contracts.conversation import AssistantItem
from wakeful.contracts.errors import ModelFailure
from wakeful.contracts.events import CostRecorded
from wakeful.contracts.models import FailureKind, ModelGlimpse, Reply, TokenUsage
from wakeful.ports import Model, ModelRequest
from wakeful.service.queries.model_probe import advice, probe

RETRY = RetryPolicy(
    max_attempts=3, first_backoff_ms=200, longest_backoff_ms=8000, longest_retry_after_ms=60_000, retried=()
)
ACME = ProviderState(
    name="acme",
    status="available",
    transport="openai_chat_completions",
    endpoint="https://acme.test/v1",
    endpoint_source="ACME_BASE_URL",
    key="found",
    key_variable="ACME_KEY",
    retry=RETRY,
)
SILENT: tuple[str, ...] = ("server_error", "empty_response", "content_filtered", "cancelled", "unknown")
"""Kinds about which a person can do nothing that the message does not say already."""


class Once:
    """A model that says one thing, or fails with it."""

    def __init__(self, said: Reply | Exception | None) -> None:
        self.said = said
        self.requests: list[ModelRequest] = []

    ref = "acme:m"

    async def respond(self, request: ModelRequest) -> AsyncIterator[ModelGlimpse | Reply]:
        self.requests.append(request)
        if isinstance(self.said, Exception):
            raise self.said
        if self.said is not None:
            yield self.said


class PerToken:
    """A millionth for each token."""

    async def ready(self, models: Sequence[Model]) -> None:
        raise AssertionError("a probe is no turn")

    def estimate(
        self, model: Model, input_tokens: Callable[[], int], most_output: int, at: int, searches: int = 0
    ) -> None:
        raise AssertionError("a probe is not estimated")

    def spent(
        self,
        model: Model,
        usage: TokenUsage,
        *,
        tier: str | None,
        at: int,
        attempt: int = 1,
        lost: bool = False,
        searches: int = 0,
    ) -> CostRecorded:
        return CostRecorded(model_ref=model.ref, amount=f"0.{usage.total_tokens:06}", price_list="mine")


async def test_an_answer_without_words_is_an_answer_and_no_tokens_are_no_cost() -> None:
    thinking = Once(Reply(item=AssistantItem(parts=()), stop_reason="length", usage=TokenUsage(total_tokens=64)))
    done = await probe(thinking, ACME, pricing=PerToken())
    assert (done.ok, done.said, done.stop_reason, done.cost) == (True, "", "length", "0.000064")
    assert (thinking.requests[0].settings.max_tokens or 101) <= 100
    assert len(thinking.requests) == 1
    untold = await probe(Once(Reply(item=AssistantItem(parts=()))), ACME, pricing=PerToken())
    assert (untold.ok, untold.usage, untold.cost) == (True, None, None)


async def test_a_model_that_breaks_or_never_ends_is_a_lost_call_and_no_error() -> None:
    broken = await probe(Once(ZeroDivisionError("oops")), ACME)
    assert (broken.ok, broken.failure_kind, broken.message) == (False, "unknown", "ZeroDivisionError: oops")
    endless = await probe(Once(None), ACME)
    assert (endless.ok, endless.failure_kind) == (False, "stream_interrupted")


@pytest.mark.parametrize("kind", get_args(FailureKind))
def test_for_every_kind_that_a_person_can_do_something_about_there_is_advice(kind: FailureKind) -> None:
    told = advice(ModelFailure("it failed", kind=kind, stage="body"), ACME)
    if kind == "unsupported_transport":
        assert "transport" in told
    else:
        assert bool(told) == (kind not in SILENT)


def test_advice_names_the_variable_the_address_and_the_wait() -> None:
    assert "ACME_KEY" in advice(ModelFailure("", kind="auth_error", stage="headers"), ACME)
    keyless = ACME.model_copy(update={"key_variable": None})
    assert "key_env" in advice(ModelFailure("", kind="auth_error", stage="headers"), keyless)
    assert "ACME_BASE_URL" in advice(ModelFailure("", kind="connection", stage="connect"), ACME)
    assert "Wait 7 s" in advice(ModelFailure("", kind="rate_limited", stage="headers", retry_after=7.0), ACME)
