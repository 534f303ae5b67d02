"""`[retry]` of the owner's file: what it may say, and what is said of the rest."""

from pathlib import Path

import pytest

from wakeful.errors import InvalidConfig
from wakeful.settings.owner_file import OwnerFile
from wakeful.settings.retry import RUNTIME_PATIENCE, owner_patience


def said(**table: object) -> float:
    return owner_patience({}, OwnerFile(Path("wakeful.toml"), {"retry": table} if table else {}))


def test_patience_is_the_owners_or_twenty_hours() -> None:
    assert (said(), said(patience=0), said(patience=7200)) == (RUNTIME_PATIENCE, 0.0, 7200.0)


@pytest.mark.parametrize("given", [-1, "2h", True, 8 * 24 * 3600, float("nan")])
def test_a_patience_that_is_no_span_is_refused_with_its_place(given: object) -> None:
    with pytest.raises(InvalidConfig) as told:
        said(patience=given)
    assert told.value.field == ("retry", "patience") and "from 0 to 604800" in told.value.hint


def test_a_name_that_nothing_reads_is_refused_with_a_near_one() -> None:
    with pytest.raises(InvalidConfig) as told:
        said(patiense=5)
    assert told.value.hint == "Did you mean patience?"
