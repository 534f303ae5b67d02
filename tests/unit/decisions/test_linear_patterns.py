"""Patterns that others wrote: matched without backtracking, or refused with the reason."""

import re

import pytest

from wakeful.decisions.linear_patterns import MAX_PATTERN_CHARS, PatternRefused, found_by

EMAIL = r"^(?!\.)(?!.*\.\.)([A-Za-z0-9_'+\-\.]*)[A-Za-z0-9_+-]@([A-Za-z0-9][A-Za-z0-9\-]*\.)+[A-Za-z]{2,}$"
"""As schema libraries write it."""


@pytest.mark.parametrize(
    ("pattern", "fits", "others"),
    [
        ("b", ["abc"], ["ac"]),
        ("^[a-z]+$", ["abc"], ["ab1", "abc\n", ""]),
        (r"^\d{3}-\d{4}$", ["555-1234"], ["555-123"]),
        (EMAIL, ["ada@example.org", "a.b@x.yz"], [".ada@example.org", "a..b@example.org", "ada@example"]),
        (r"^(?=.*[A-Z])(?=.*\d).{8,}$", ["abcdefG1"], ["abcdefg1", "ABCDEFGH", "Ab1"]),
        (r"^(?![()|\]])a|b$", None, []),
        (r"^(?!a|b)[a-z]$", ["c"], ["a", "b"]),
        (r"^\u00e4\cJ$", ["ä\n"], ["a\n"]),
        (r"^\p{L}+\Z", ["Größe"], ["1"]),
        (r"[\w-\.]+\/x", ["a.b/x"], ["/x"]),
    ],
)
def test_a_pattern_means_what_json_schema_says(pattern: str, fits: list[str] | None, others: list[str]) -> None:
    if fits is None:
        with pytest.raises(PatternRefused, match="lookaround is supported at the beginning only"):
            found_by(pattern)
        return
    assert {text: found_by(pattern)(text) for text in [*fits, *others]} == {
        **dict.fromkeys(fits, True),
        **dict.fromkeys(others, False),
    }


@pytest.mark.parametrize("pattern", [r"(?<=a)b", r"a(?!b)", r"(a)\1", "(", "[z-a]", "a{1,5000}", "\ud800", "^(?!a"])
def test_what_cannot_be_matched_without_backtracking_is_refused_with_the_pattern(pattern: str) -> None:
    with pytest.raises(PatternRefused):
        found_by(pattern)


def test_a_pattern_that_is_too_long_is_refused() -> None:
    with pytest.raises(PatternRefused, match=f"the limit is {MAX_PATTERN_CHARS:,}"):
        found_by("a" * (MAX_PATTERN_CHARS + 1))


@pytest.mark.parametrize("pattern", ["^(a+)+$", "^(a|a)*$", "^(a|aa)+$", r"^(\w+\s?)*$", "(x+x+)+y", "^(.*)*$!"])
def test_patterns_that_take_for_ever_elsewhere_are_answered(pattern: str) -> None:
    assert found_by(pattern)("a" * 100_000 + "!") is (pattern == "never")


def test_refused_patterns_say_nothing_on_the_error_output(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(PatternRefused):
        found_by("(?<=only here)b")
    assert capfd.readouterr() == ("", "")


def test_a_text_that_is_none_is_matched_like_one() -> None:
    assert found_by("^a.b$")("a\ud800b") is True


@pytest.mark.parametrize("pattern", ["^[a-z]{2}$", r"^(?!\.)[a-z.]+$", r"^(?=a)(?!ab)\w+$"])
def test_what_both_engines_take_they_match_alike(pattern: str) -> None:
    texts = ["", "a", "ab", "abc", ".a", "a.", "ac", "AC", "a b"]
    assert [found_by(pattern)(text) for text in texts] == [bool(re.search(pattern, text)) for text in texts]
