"""Words from a phone: which question they are about, and what they decide."""

import pytest

from wakeful.decisions.channel_answers import (
    DecidingWords,
    PhoneReply,
    UnfitWords,
    answer_code,
    decided_by,
    read_reply,
    same_code,
    which_question,
    words_from_outside,
)
from wakeful.decisions.salted_secrets import salted

SECRET = salted(b"s" * 32, "salt_1")
CODE = answer_code(SECRET, "phone", 1, "appr_1", "b1")


def test_a_code_is_short_enough_to_be_typed_and_its_first_half_says_which_question() -> None:
    assert len(CODE) == 9 and CODE[4] == "-" and CODE.isupper()
    assert CODE.startswith(which_question(SECRET, "phone", 1, "appr_1"))


def test_inversion_the_code_of_this_question_is_taken() -> None:
    assert same_code(CODE, answer_code(SECRET, "phone", 1, "appr_1", "b1"))


@pytest.mark.parametrize(
    "other",
    [
        answer_code(salted(b"t" * 32, "salt_1"), "phone", 1, "appr_1", "b1"),
        answer_code(salted(b"s" * 32, "salt_2"), "phone", 1, "appr_1", "b1"),
        answer_code(salted(b"s" * 32, None), "phone", 1, "appr_1", "b1"),
        answer_code(SECRET, "tablet", 1, "appr_1", "b1"),
        answer_code(SECRET, "phone", 2, "appr_1", "b1"),
        answer_code(SECRET, "phone", 1, "appr_2", "b1"),
        answer_code(SECRET, "phone", 1, "appr_1", "b2"),
    ],
    ids=[
        "another store",
        "another salt",
        "no salt",
        "another channel",
        "a channel that was added again",
        "another question",
        "other arguments",
    ],
)
def test_a_code_is_bound_to_store_channel_question_and_arguments(other: str) -> None:
    assert not same_code(other, CODE)


def test_a_code_stands_before_the_words_or_in_the_message_that_they_reply_to() -> None:
    assert read_reply(f" {CODE.lower()}: on Friday\nat noon ") == PhoneReply(CODE, "on Friday\nat noon")
    assert read_reply(CODE) == PhoneReply(CODE, "")
    assert read_reply("on Friday", f"which day?\nin words: reply to this message, or write {CODE} your answer") == (
        PhoneReply(CODE, "on Friday")
    )
    assert read_reply("on Friday", "ops asks: use AAAA-BBBB?\n" + CODE) == PhoneReply(CODE, "on Friday")
    assert [read_reply(text) for text in ("", "hello", "tomorrow it is", "AAAA-BBBBX yes")] == [None] * 4


def test_words_answer_a_question_and_a_choice_is_known_as_people_write_it() -> None:
    assert decided_by("on Friday", is_question=True, choices=()) == DecidingWords("answer", "on Friday")
    assert decided_by("tomorrow", is_question=True, choices=("Today", "Tomorrow")) == DecidingWords(
        "answer", "Tomorrow"
    )
    refused = decided_by("never", is_question=True, choices=("Today", "Tomorrow"))
    assert refused == UnfitWords("that is not one of the choices: Today, Tomorrow")


def test_words_about_an_approval_say_what_they_decide() -> None:
    assert decided_by("Approve", is_question=False, choices=()) == DecidingWords("approve", "")
    assert decided_by("reject: too much", is_question=False, choices=()) == DecidingWords("reject", "too much")
    for words in ("yes", "approved", "ok go", "rejecting it"):
        assert decided_by(words, is_question=False, choices=()) == (
            UnfitWords("begin with approve or reject, then your note")
        )
    assert decided_by("", is_question=False, choices=()) == UnfitWords("write your answer after the code")


def test_words_from_a_phone_are_from_outside_and_a_choice_that_an_agent_offered_is_not() -> None:
    assert words_from_outside("channel:ntfy:phone", "", "on Friday", ()) == "words of channel:ntfy:phone"
    assert words_from_outside("channel:ntfy:phone", "too much", None, ()) == "words of channel:ntfy:phone"
    assert words_from_outside("channel:ntfy:phone", "", "Today", ("Today",)) == ""
    assert words_from_outside("channel:ntfy:phone", "", None, ()) == ""
    assert words_from_outside("local:1000", "too much", "on Friday", ()) == ""
