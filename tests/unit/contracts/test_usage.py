"""Token usage as values, and where it stands in events."""

import pytest

from kit.runs.event_samples import as_published, completed
from wakeful.contracts.events import KINDS_BY_NAME
from wakeful.contracts.models import AgentTokenUsageSummary, TokenUsage


@pytest.mark.spec("HOL-TOK-01")
def test_usage_has_input_output_and_total_and_adds_up() -> None:
    usage = TokenUsage(input_tokens=5, output_tokens=2, total_tokens=7)
    shown = usage.model_dump(mode="json")
    assert (shown["input_tokens"], shown["output_tokens"], shown["total_tokens"]) == (5, 2, 7)
    assert usage + usage == TokenUsage(input_tokens=10, output_tokens=4, total_tokens=14)
    assert set(TokenUsage.model_fields) == set((usage + usage).model_dump()), "no kind of token is lost in a sum"
    with pytest.raises(ValueError, match="input_tokens"):
        TokenUsage.model_validate({"input_tokens": "many"})


@pytest.mark.spec("HOL-TOK-02")
def test_an_agents_summary_has_total_rounds_and_the_last_turn_when_there_was_one() -> None:
    usage = TokenUsage(input_tokens=5, output_tokens=2, total_tokens=7)
    summary = AgentTokenUsageSummary(total=usage + usage, total_model_rounds=2, last_turn=usage)
    assert AgentTokenUsageSummary.model_validate_json(summary.model_dump_json()) == summary
    fresh = AgentTokenUsageSummary().model_dump(mode="json", exclude_none=True)
    assert fresh == {"total": TokenUsage().model_dump(), "total_model_rounds": 0}


@pytest.mark.spec("HOL-TOK-04")
def test_a_completed_round_carries_its_usage_under_either_name() -> None:
    usage = TokenUsage(input_tokens=5, output_tokens=2, total_tokens=7)
    event = as_published(completed(usage))
    assert event["payload"]["token_usage"] == usage.model_dump(mode="json")
    for name in ("provider_round_completed", "terminal_delivery_round_completed"):
        assert KINDS_BY_NAME[name] == (event["type"],)
