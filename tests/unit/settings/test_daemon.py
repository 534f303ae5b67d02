"""`[daemon]` of the owner's file: what it may say, and what is said of the rest."""

from pathlib import Path

import pytest

from wakeful.contracts.owner_settings import DRAIN_SECONDS
from wakeful.errors import InvalidConfig
from wakeful.settings.daemon import owner_drain
from wakeful.settings.owner_file import OwnerFile


def said(**table: object) -> float:
    return owner_drain({}, OwnerFile(Path("wakeful.toml"), {"daemon": table} if table else {}))


def test_a_drain_is_the_owners_or_two_minutes() -> None:
    assert (said(), said(drain=0), said(drain=900)) == (DRAIN_SECONDS, 0.0, 900.0)


@pytest.mark.parametrize("given", [-1, "2h", True, 2 * 24 * 3600, float("nan")])
def test_a_drain_that_is_no_span_is_refused_with_its_place(given: object) -> None:
    with pytest.raises(InvalidConfig) as told:
        said(drain=given)
    assert told.value.field == ("daemon", "drain") and "from 0 (at once) to 86400" in told.value.hint
