"""Results that are too large, as excerpts."""

from typing import Any

import pytest

from wakeful.contracts.errors import InvalidValue
from wakeful.hosts.loop.transcript_bounds import ToolResultTruncator


def result(payload: Any, **metadata: Any) -> dict[str, Any]:
    return {"success": True, "tool_name": "a/b", "metadata": metadata, "result": payload}


def same(words: str) -> str:
    return words


def test_a_result_within_the_size_is_left_alone() -> None:
    assert ToolResultTruncator().bound(result("x" * 8190), same) is None  # two quotes make it 8192
    assert ToolResultTruncator().bound(result("x" * 8191), same) is not None


def test_an_oversized_payload_is_replaced_by_an_excerpt_with_both_sizes() -> None:
    bounded = ToolResultTruncator(20).bound(result({"text": "abcdefghijklmnop"}), same)
    assert bounded is not None
    assert bounded.result == result(
        {"truncated": True, "excerpt": '{"text":"abcdefghijk', "original_bytes": 27, "excerpt_bytes": 20}
    )
    assert (bounded.original_bytes, bounded.excerpt_bytes, bounded.citations_dropped) == (27, 20, 0)


@pytest.mark.spec("API-GRD-04")
def test_an_excerpt_cuts_no_character_in_half_and_shows_nothing_that_is_hidden() -> None:
    for most in range(1, 30):
        bounded = ToolResultTruncator(most).bound(result("äö€😀" * 20), same)
        assert bounded is not None
        excerpt = bounded.result["result"]["excerpt"]
        assert ('"' + "äö€😀" * 20).startswith(excerpt) and len(excerpt.encode()) <= most
    secret = {"api_key": "sk-very-secret", "nested": [{"password": "hunter2"}], "text": "x" * 100}
    for most in range(1, 120):
        bounded = ToolResultTruncator(most).bound(result(secret), same)
        assert bounded is not None
        excerpt = bounded.result["result"]["excerpt"]
        assert "sk-" not in excerpt and "hunter" not in excerpt
    assert "[redacted]" in excerpt, "it would have been there"
    # A secret that is known by its value goes before the cut: no half of it stays.
    hidden = ToolResultTruncator(12).bound(
        result("abcdefghTOPSECRET" + "x" * 50), lambda words: words.replace("TOPSECRET", "[key]")
    )
    assert hidden is not None and hidden.result["result"]["excerpt"] == '"abcdefgh[ke'


def test_a_long_error_stays_a_text() -> None:
    failed = {"success": False, "tool_name": "a/b", "metadata": {"error_type": "x"}, "error": "no " * 100}
    bounded = ToolResultTruncator(10).bound(failed, same)
    assert bounded is not None
    assert bounded.result == {**failed, "error": "no no no n"}


def test_citations_are_kept_to_the_same_size_from_the_first_on() -> None:
    cited = [{"source": f"s{number}"} for number in range(10)]
    bounded = ToolResultTruncator(50).bound(result("short", citations=cited, other=1), same)
    assert bounded is not None
    assert bounded.result["result"] == "short"
    assert bounded.result["metadata"] == {"citations": cited[:3], "citations_dropped": 7, "other": 1}
    assert bounded.citations_dropped == 7


@pytest.mark.parametrize("fields", [{"max_bytes": 0}, {"max_bytes": True}, {"sink": "me"}])
def test_a_truncator_of_the_wrong_kind_is_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(InvalidValue, match=r"^invalid_truncator: "):
        ToolResultTruncator(**fields)
