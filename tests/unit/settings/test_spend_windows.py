"""The owner's word about money over time: read whole, or refused with its place."""

from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from wakeful.contracts.budgets import SpendWindow
from wakeful.contracts.errors import InvalidConfig
from wakeful.decisions.spend_windows import NO_WINDOWS, OwnerWindows
from wakeful.settings.spend_windows import owner_windows


def said(tmp_path: Path, text: str) -> OwnerWindows:
    file = tmp_path / "wakeful.toml"
    file.write_text(text)
    return owner_windows({"WAKEFUL_CONFIG": str(file)})


def test_without_a_word_nothing_is_limited(tmp_path: Path) -> None:
    assert said(tmp_path, "") == said(tmp_path, "[models]\noffline = true\n") == NO_WINDOWS


def test_windows_of_the_runtime_of_principals_and_whose_days_they_are(tmp_path: Path) -> None:
    found = said(
        tmp_path,
        '[budget]\nper_day = {usd = 5}\nper_month = {usd = "60.5"}\ntimezone = "Europe/Berlin"\n'
        '[principals."customer-17"]\nper_hour = {usd = 0.1}\n',
    )
    assert found == OwnerWindows(
        (SpendWindow("day", 5), SpendWindow("month", "60.5")),
        {"customer-17": (SpendWindow("hour", "0.1"),)},
        ZoneInfo("Europe/Berlin"),
    )
    assert found.of_principal("customer-17") == (SpendWindow("hour", "0.1"),)
    assert found.of_principal("other") == found.of_principal(None) == ()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[budget]\nper_dya = {usd = 5}\n", r"\[budget\] has no setting 'per_dya'\nDid you mean per_day"),
        ("[budget]\nper_day = 5\n", r"\[budget\] per_day is 5\nWrite an amount"),
        ("[budget]\nper_day = {usd = -1}\n", r"\[budget\] per_day: .*usd=-1"),
        ("[budget]\nper_day = {usd = 1, eur = 1}\n", r"\[budget\] per_day is"),
        ('[budget]\ntimezone = "Mars/Olympus"\n', r"timezone is 'Mars/Olympus'"),
        ('[budget]\ntimezone = "../etc/passwd"\n', r"timezone is '../etc/passwd'"),
        ("[budget]\ntimezone = 1\n", r"timezone is 1"),
        ("[principals]\nada = 5\n", r'\[principals."ada"\] is 5'),
        ('[principals.ada]\ntimezone = "UTC"\n', r"has no setting 'timezone'"),
        ("budget = 5\n", r"budget is 5"),
    ],
)
def test_a_line_that_cannot_be_read_is_an_error_with_its_place(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(InvalidConfig, match=words) as refused:
        said(tmp_path, text)
    assert "wakeful.toml" in str(refused.value)
