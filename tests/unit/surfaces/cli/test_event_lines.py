"""Lines of the log about routing, limits and decisions, as people read them."""

import pytest

from kit.runs.event_samples import NOON, ONE_OF_EACH, THREAD, TURN
from wakeful.contracts.envelope import Fact, StoredFact, published
from wakeful.surfaces.cli.event_lines import event_line
from wakeful.surfaces.cli.shown_values import local_times

LINES = {
    "routing.candidates.resolved": "openai:gpt-5.5; without groq:llama-3 (capability_gap)",
    "routing.single_candidate": "openai:gpt-5.5",
    "routing.decided": "openai:gpt-5.5: it is the only one that can be asked",
    "routing.not_possible": "no model can be asked",
    "rate_limit.hit": "openai:gpt-5.5: 60 of 60 requests, until " + local_times("2027-01-15T08:00:01.000Z"),
    "quota.low": "openai:gpt-5.5: 950 of 1000 tokens",
    "quota.blocked": "openai:gpt-5.5",
    "budget.noticed": "agent:support, day: 80 %, 1.5 dollars",
    "tool.catalog.resolved": "2 offered, 1 withheld",
    "action.required": "appr_1: refund, because refund asks before this call",
    "action.resolved": "appr_1: approved by operator",
    "turn.resumed": "the turn was cut off",
    "answer.accepted": 'order="A17"',
    "budget.granted": "agent:support, day: 5 dollars more, by operator (a launch)",
}


@pytest.mark.parametrize("kind", LINES)
def test_a_fact_says_in_words_who_did_what_and_why(kind: str) -> None:
    event = next(each for each in ONE_OF_EACH if each.kind == kind)
    line = event_line(published(StoredFact("agent_1", 1, Fact(event, NOON, THREAD, TURN, 1)), "rt_1")).plain
    assert line.endswith(f"  {LINES[kind]}")
