"""A process that retries and falls back over HTTP, killed at every moment: no answer is paid for twice."""

import os
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from crash.paid_models import FIRST, GEMINI, paid_models
from crash.provider_scenarios import retries_and_fallbacks
from crash.storms import storm
from crash.sweeps import sweep
from crash.test_controls import without_requests
from wakeful.testing import KillPoint, kill_everywhere

STORMS = range(int(os.environ.get("WAKEFUL_STORMS", "1")))


@pytest.fixture(scope="module")
def models() -> Iterator[str]:
    with paid_models() as url:
        yield url


WIRES = pytest.mark.parametrize("wire", [FIRST, GEMINI])


@WIRES
def test_a_run_that_is_killed_between_and_within_its_attempts_pays_for_no_answer_twice(models: str, wire: str) -> None:
    sweep(partial(retries_and_fallbacks, models, "k", wire=wire), more_than=40)


@WIRES
@pytest.mark.parametrize("seed", STORMS)
def test_a_run_on_providers_that_is_killed_again_and_again_finishes(
    models: str, wire: str, seed: int, tmp_path: Path
) -> None:
    assert storm(partial(retries_and_fallbacks, models, "k", wire=wire), seed, tmp_path) == []


def test_without_the_intent_a_request_is_found_that_the_log_knows_nothing_of(models: str) -> None:
    in_an_answer = KillPoint("here", 2, "before")
    with pytest.raises(AssertionError, match=r"round 1: \d requests to openai-compatible:first and \d intents"):
        kill_everywhere(partial(retries_and_fallbacks, models, "k"), open_store=without_requests, points=[in_an_answer])


@WIRES
def test_a_program_that_starts_anew_is_found_to_pay_again(models: str, wire: str) -> None:
    late = KillPoint("ledger", 2, "after")
    with pytest.raises(AssertionError, match=r"was answered, and .* was paid for it again"):
        kill_everywhere(partial(retries_and_fallbacks, models, None, wire=wire), points=[late])
