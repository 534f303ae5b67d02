"""Times as a person says them, as cron lines; other words are refused with what would be right."""

import pytest

from wakeful.decisions.waking.spoken_schedules import FORMS, NotASchedule, cron_of


@pytest.mark.parametrize(
    ("said", "cron"),
    [
        ("07:00", "0 7 * * *"),
        ("daily 7:05", "5 7 * * *"),
        ("every day at 23:59", "59 23 * * *"),
        ("Weekdays 07:00", "0 7 * * 1-5"),
        ("weekends  at 10:00", "0 10 * * 0,6"),
        ("mon,thu 18:30", "30 18 * * 1,4"),
        ("Tuesday and fridays 06:00", "0 6 * * 2,5"),
        ("hourly", "0 * * * *"),
        ("every 15 minutes", "*/15 * * * *"),
        ("every 1 min", "* * * * *"),
        ("every 2 hours", "0 */2 * * *"),
        ("every 1 h", "0 * * * *"),
        ("0 7 * * 1-5", "0 7 * * 1-5"),
    ],
)
def test_what_is_said_is_a_cron_line(said: str, cron: str) -> None:
    assert cron_of(said) == cron


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ("noonish", "not a time that wakeful understands"),
        ("", "not a time that wakeful understands"),
        ("25:00", "25:00 is not a time of day"),
        ("mo 07:00", "'mo' is not a day of the week"),
        ("funday 07:00", "'funday' is not a day of the week"),
        ("every 7 minutes", "does not divide an hour evenly"),
        ("every 0 hours", "does not divide a day evenly"),
        ("every 5 hours", "does not divide a day evenly"),
    ],
)
def test_other_words_are_refused_with_the_reason(said: str, why: str) -> None:
    with pytest.raises(NotASchedule, match=why):
        cron_of(said)


def test_every_form_that_is_shown_works() -> None:
    assert all(len(cron_of(form).split()) == 5 for form in FORMS)
