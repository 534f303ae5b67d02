"""Turns that an agent starts itself and that come to nothing are spaced out."""

import pytest

from wakeful.decisions.waking.backoff import LONGEST_PAUSE, BackoffPause, Sign, TurnSigns, is_self_started, pause_after

SECOND = 1_000_000
IDLE = TurnSigns(True)
NO_PAUSE = BackoffPause(0, 0, False)


def did(*signs: Sign) -> TurnSigns:
    return TurnSigns(True, frozenset(signs))


def test_three_turns_without_progress_begin_a_pause_that_doubles_up_to_an_hour() -> None:
    found = [pause_after([IDLE] * count) for count in range(14)]
    assert [pause.microseconds // SECOND for pause in found[:8]] == [0, 0, 0, 30, 60, 120, 240, 480]
    assert [pause.turns for pause in found] == list(range(14))
    assert {pause.microseconds for pause in found[10:]} == {LONGEST_PAUSE}
    assert found[0] == NO_PAUSE


def test_at_ten_somebody_is_to_be_told() -> None:
    assert not pause_after([IDLE] * 9).is_stalled
    assert pause_after([IDLE] * 10).is_stalled
    assert pause_after([IDLE] * 775).microseconds == LONGEST_PAUSE


@pytest.mark.parametrize("sign", ["work", "effect", "brief"])
def test_any_sign_of_progress_ends_the_row(sign: Sign) -> None:
    assert pause_after([did(sign), *[IDLE] * 9]) == NO_PAUSE
    assert pause_after([IDLE, IDLE, did(sign), *[IDLE] * 9]).turns == 2


def test_a_turn_that_somebody_else_started_ends_the_row() -> None:
    assert pause_after([TurnSigns(False), *[IDLE] * 9]) == NO_PAUSE


def test_a_changed_plan_counts_twice_in_a_row_and_no_more() -> None:
    assert pause_after([did("plan"), *[IDLE] * 9]) == NO_PAUSE
    assert pause_after([did("plan"), did("plan"), *[IDLE] * 9]) == NO_PAUSE
    assert pause_after([did("plan")] * 5).turns == 3
    assert pause_after([did("plan"), did("plan", "effect"), did("plan"), did("plan")]).turns == 0
    assert pause_after([did("plan"), IDLE] * 4).turns == 4, "turns that show nothing are no other sign"
    assert pause_after([did("plan"), TurnSigns(False), did("plan"), did("plan")]).turns == 0


def test_an_agent_starts_itself_by_timers_follow_ups_and_ticks_of_the_runtime() -> None:
    own, owners = "runtime_instruction", "operator_instruction"
    assert is_self_started([("timer_tick", own), ("system_tick", own), ("internal_followup", own)])  # type: ignore[list-item]
    assert not is_self_started([("timer_tick", owners)])  # type: ignore[list-item]
    assert not is_self_started([("system_tick", "integration_signal")])
    assert not is_self_started([("timer_tick", own), ("operator_prompt", owners)])  # type: ignore[list-item]
    assert not is_self_started([])
