"""Codes of buttons and of pairing, and what a phone is shown: pure functions of the secret and of what is asked."""

import pytest

from wakeful.contracts.channels import Button
from wakeful.decisions.channel_answers import answer_code
from wakeful.decisions.channels import (
    ChannelQuestion,
    Words,
    action_of,
    code_of,
    decided_words,
    input_id_of,
    is_genuine,
    pairing_code,
    question_for,
    read_code,
    read_words,
    same_pairing_code,
    topic_of,
)
from wakeful.decisions.salted_secrets import SaltedSecret, salted

SECRET = salted(b"s" * 32, "salt_1")
HOW = "reply, or write"
APPROVAL = "appr_01KA8Z6Q0M3V5T7W9Y1B2C4D6E"
QUESTION = "ask_01KA8Z6Q0M3V5T7W9Y1B2C4D6E"
ASKED = ChannelQuestion(
    action_id=APPROVAL,
    binding="b1",
    is_question=False,
    choices=(),
    agent="ops",
    tool="refund",
    prompt="refund 4200?",
    reason="over 10",
    working_directory=None,
    expires_at=1_800_000_000_000_000,
)


def genuine(
    code: str, secret: SaltedSecret = SECRET, channel: str = "phone", generation: int = 1, binding: str = "b1"
) -> bool:
    found = read_code(code)
    return found is not None and is_genuine(secret, channel, generation, action_of(found), binding, found)


def buttons(asked: ChannelQuestion = ASKED, most: int = 3) -> tuple[Button, ...]:
    return question_for(asked, SECRET, "phone", 1, buttons=most, how=HOW).buttons


def test_a_code_fits_a_button_of_telegram_and_names_its_approval_and_what_it_decides() -> None:
    shown = buttons()
    assert [each.label for each in shown] == ["Approve", "Reject", "Pause"]
    codes = [read_code(each.code) for each in shown]
    assert [(found.verb, action_of(found)) for found in codes if found is not None] == [
        ("approve", APPROVAL),
        ("reject", APPROVAL),
        ("pause", APPROVAL),
    ]
    assert all(len(each.code.encode()) <= 64 for each in shown)


def test_inversion_the_code_of_this_approval_with_these_arguments_is_taken() -> None:
    assert all(genuine(each.code) for each in buttons())


@pytest.mark.parametrize(
    "other",
    [
        {"secret": salted(b"t" * 32, "salt_1")},
        {"secret": salted(b"s" * 32, "salt_2")},
        {"channel": "tablet"},
        {"generation": 2},
        {"binding": "b2"},
    ],
    ids=["another store", "another salt", "another channel", "a channel that was added again", "other arguments"],
)
def test_a_code_is_bound_to_store_channel_and_arguments(other: dict[str, object]) -> None:
    assert not any(genuine(each.code, **other) for each in buttons())  # type: ignore[arg-type]


def test_a_code_for_one_decision_or_approval_is_none_for_another() -> None:
    approve = buttons()[0].code
    subject, _, mac = approve.split(".")
    assert not genuine(f"{subject}.r.{mac}")
    assert not genuine(f"{subject[:-1]}F.a.{mac}")
    assert not genuine(f"{subject}.0.{mac}")
    assert [read_code(text) for text in ("", "hello", f"{subject}.x.{mac}", f"{subject}.a.short", approve * 9)] == [
        None
    ] * 5


def test_choices_of_a_question_are_buttons_while_they_fit_and_else_they_are_words() -> None:
    question = ASKED._replace(action_id=QUESTION, is_question=True, choices=("today", "tomorrow", "never", "later"))
    assert {action_of(read) for each in buttons(question, 10) if (read := read_code(each.code))} == {QUESTION}
    assert all(len(each.code.encode()) <= 64 and genuine(each.code) for each in buttons(question, 10))
    assert [each.label for each in buttons(question, 10)] == ["today", "tomorrow", "never", "later"]
    assert [read.choice for each in buttons(question, 10) if (read := read_code(each.code))] == [0, 1, 2, 3]
    shown = question_for(question, SECRET, "phone", 1, buttons=3, how=HOW)
    assert [each.label for each in shown.buttons] == ["Reject", "Pause"]
    code = answer_code(SECRET, "phone", 1, QUESTION, "b1")
    assert shown.text.endswith(f"choices: today, tomorrow, never, later\nin words: reply, or write {code} your answer")
    silent = question_for(ASKED, SECRET, "phone", 1, buttons=0, how=HOW)
    assert (silent.buttons, silent.wants_words, code in silent.text) == ((), False, False)


def test_long_words_are_cut() -> None:
    shown = question_for(ASKED._replace(prompt="x" * 9_000), SECRET, "phone", 1, buttons=3, how=HOW)
    assert len(shown.text) <= 1_500 and "(cut here)\nuntil" in shown.text


def test_a_call_that_was_cut_can_be_rejected_on_a_phone_and_not_approved() -> None:
    code = answer_code(SECRET, "phone", 1, APPROVAL, "b1")
    long, preview = ASKED._replace(prompt="x" * 1_200), ASKED._replace(is_whole=False)
    for asked in (long, preview, ASKED._replace(prompt="é" * 600)):
        shown = question_for(asked, SECRET, "phone", 1, buttons=3, how=HOW)
        assert [each.label for each in shown.buttons] == ["Reject", "Pause"]
        assert not shown.wants_words and code not in shown.text
        assert shown.text.endswith(f"too long to approve here: wakeful approvals show {APPROVAL}")
    # The inversion: a call that is there whole has the button and the code.
    fits = question_for(ASKED._replace(prompt="x" * 1_000), SECRET, "phone", 1, buttons=3, how=HOW)
    assert [each.label for each in fits.buttons] == ["Approve", "Reject", "Pause"]
    assert f"{'x' * 1_000}\n" in fits.text and code in fits.text


def test_a_pairing_code_is_typed_as_people_type_and_holds_for_one_peer_and_one_time() -> None:
    code = pairing_code(SECRET, "phone", 1, "17", 600)
    assert len(code) == 9 and code[4] == "-"
    assert same_pairing_code(f" {code.lower().replace('-', '')} ", code)
    others = {pairing_code(SECRET, "phone", 1, "18", 600), pairing_code(SECRET, "phone", 1, "17", 601)}
    assert code not in others and not any(same_pairing_code(code, other) for other in others)


def test_topics_are_long_and_differ_by_direction_and_generation() -> None:
    topics = {topic_of(SECRET, "phone", generation, which) for generation in (1, 2) for which in ("out", "in")}
    assert len(topics) == 4 and all(topic.isalnum() and len(topic) == 32 for topic in topics)


def test_lines_that_ask_for_something_are_read_and_nothing_else_is() -> None:
    assert read_words("/send ops check the disk") == Words("send", "ops", "check the disk")
    assert read_words(" /pause ops ") == Words("pause", "ops", "")
    assert [read_words(text) for text in ("hello", "/send ops", "/pause", "/pause ops now", "/stop ops", "")] == [
        None
    ] * 6


def test_what_was_decided_is_said_with_who_did() -> None:
    assert decided_words("refund", "approved", "local:1000") == "refund: approved by local:1000"
    assert decided_words("refund", "rejected", "local:1000", "too much") == "refund: rejected by local:1000: too much"
    assert decided_words("refund", "timed_out", "runtime") == "refund: nobody decided in time"


def test_one_press_has_one_id() -> None:
    code = code_of(SECRET, "phone", 1, APPROVAL, "b1", "a")
    assert input_id_of("code", code) == input_id_of("code", code) != input_id_of("code", code[:-1])
