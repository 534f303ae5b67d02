"""What each safety check stops, and that nothing else stops it: it goes through once the check is content."""

from pathlib import Path

import pytest

from kit.bites.guards import GUARDS


@pytest.mark.parametrize("check", GUARDS)
async def test_it_is_the_check_that_stops_it(check: str, tmp_path: Path) -> None:
    await GUARDS.check(check, tmp_path)
