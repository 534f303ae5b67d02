"""Compaction, and the percentage of a budget's awareness: nothing is accepted that is only nearly right."""

from typing import Any

import pytest

from wakeful.contracts.controls import CompactionPolicy, awareness_limit, checked_compaction
from wakeful.contracts.errors import InvalidConfig


def test_the_percentage_is_read_from_the_field() -> None:
    assert [awareness_limit(text) for text in ("limit:0", "limit:70", "limit:100")] == [0, 70, 100]
    assert [awareness_limit(text) for text in (None, "per-message", "limit:101")] == [None, None, None]


def test_compaction_is_on_by_default_with_its_numbers() -> None:
    assert CompactionPolicy() == checked_compaction("a", None) == checked_compaction("a", {})
    assert CompactionPolicy().model_dump() == {"enabled": True, "threshold": 0.8, "keep_user_turns": 4, "model": None}
    given = {"enabled": False, "threshold": 1, "keep_user_turns": 1, "model": "a:b"}
    assert checked_compaction("a", given).model_dump() == given
    again = CompactionPolicy(**given)
    assert checked_compaction("a", again) is again
    assert CompactionPolicy.model_validate_json(again.model_dump_json()) == again


@pytest.mark.parametrize(
    ("field", "wrong"),
    [
        *(("enabled", wrong) for wrong in (None, 1)),
        *(("threshold", wrong) for wrong in (0, 1.01, -1, "0.8", True, float("nan"))),
        *(("keep_user_turns", wrong) for wrong in (0, 1.5, "4", True)),
        *(("model", wrong) for wrong in ("gpt", 5)),
        ("when", "later"),
    ],
)
def test_a_compaction_that_makes_no_sense_is_refused(field: str, wrong: Any) -> None:
    with pytest.raises(InvalidConfig, match=f"Agent 'a': compaction.*{field}"):
        checked_compaction("Agent 'a'", {field: wrong})


@pytest.mark.parametrize("wrong", [True, "on", 5])
def test_a_compaction_is_a_policy_or_data(wrong: Any) -> None:
    with pytest.raises(InvalidConfig, match="Agent 'a': compaction="):
        checked_compaction("Agent 'a'", wrong)
