"""Whether a value stands whole in the owner's words."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wakeful.decisions.policy.owner_text import MOST_CHARS, OwnerText


def said(*texts: str) -> OwnerText:
    words = OwnerText()
    for place, text in enumerate(texts):
        words.add(text, f"t{place}")
    return words


ORDER = "Please pay 1,250.00 EUR to DE89 3704 0044 0532 0130 00 (Bob Müller, bob@corp.example), subject: Rent for May."


@pytest.mark.parametrize(
    "value",
    [
        "bob@corp.example",
        "BOB@corp.example",
        "Bob Müller",
        "Bob  Mu\u0308ller",
        "DE89 3704 0044 0532 0130 00",
        "Rent for May",
        "EUR",
        "1,250.00",
        "Please pay 1,250.00 EUR to DE89",
    ],
)
def test_what_stands_whole_is_the_owners(value: str) -> None:
    assert said(ORDER).holds_text(value)


@pytest.mark.parametrize(
    "value",
    [
        "",
        " ",
        "a",
        "corp.example",
        "Müller Bob",
        "bob@corp.exampl",
        "bob@corp.example.evil.org",
        "b o b@corp.example",
        "Rent May",
        "DE89370400440532013000",
        "Robert Müller",
        "Bob Müller;",
        "Rent for May. Please",
        "Please pay 1,250.00 EUR to Bob",
    ],
)
def test_what_is_shorter_longer_rewritten_or_put_together_is_derived(value: str) -> None:
    assert not said(ORDER).holds_text(value)


@pytest.mark.parametrize(
    ("text", "value", "stands"),
    [
        ("send a mail", "a", True),
        ("send a mail", "A", False),
        ("mail Anna", "a", False),
        ("option B", "B", True),
        ("see bob@corp.example.evil.org", "bob@corp.example", False),
        ("see <bob@corp.example>.", "bob@corp.example", True),
        ("open /srv/data/report.pdf", "report.pdf", False),
        ("把报告发给小王", "报告", True),
        ("把报告发给小王", "告", False),
        ("把报告发给小王", "报小", False),
    ],
)
def test_values_stand_between_boundaries(text: str, value: str, stands: bool) -> None:
    assert said(text).holds_text(value) is stands


@pytest.mark.parametrize(
    ("value", "stands"), [(1250, True), (1250.0, True), (1250.5, False), (89, False), (125, False), (0, False)]
)
def test_numbers_are_compared_by_value(value: float, stands: bool) -> None:
    assert said(ORDER).holds_number(value) is stands


def test_a_date_or_a_name_is_not_a_number() -> None:
    words = said("on 2026-05-01 at 10:30 in A17, version 1.2.3")
    assert [number for number in (2026, 5, 1, 10, 30, 17, 1.2) if words.holds_number(number)] == []


def test_a_value_stands_in_one_text_and_not_across_two() -> None:
    assert not said("send it to bob", "at corp").holds_text("bob at")


def test_the_newest_words_count_and_what_was_counted_is_forgotten_whole() -> None:
    words = said("the first: alpha@x.example")
    assert words.holds_text("alpha@x.example")
    words.add("filler " * (MOST_CHARS // 7), "t1")
    assert not words.holds_text("alpha@x.example")
    assert words.holds_text("filler")


def test_turns_that_are_no_longer_shown_are_forgotten() -> None:
    words = said("alpha one", "beta two")
    assert words.holds_text("alpha one")
    words.keep({"t1"})
    assert not words.holds_text("alpha one")
    assert words.holds_text("beta two")
    fresh = OwnerText()
    fresh.add("beta two", "t1")
    assert words == fresh, "as whoever never read the first"


def test_a_lookup_does_not_look_at_what_was_said_again() -> None:
    """The cost of a lookup is the value's: texts are taken in once, however often values are looked up."""
    words = said(*(f"message number {number} for user{number}@x.example" for number in range(2_000)))
    assert words.holds_text("user1999@x.example")
    before = dict(words._counts)
    assert not words.holds_text("user2000@x.example")
    assert (words._counts, words._taken) == (before, 2_000)


texts = st.text(st.sampled_from("ab @.,-1 \nÄ"), max_size=30)


@given(texts, texts, texts)
def test_a_text_between_spaces_always_stands_and_is_gone_when_it_was_taken_out(
    before: str, value: str, after: str
) -> None:
    words = said(f"{before} {value} {after}")
    assert words.holds_text(value) or not value.strip(" \n")
    words.keep(())
    assert not words.holds_text(value)
    assert words._counts == {}
