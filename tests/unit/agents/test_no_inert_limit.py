import pytest
from pathlib import Path
from bites import joined
from bites.budgets import BUDGET, CONSTANTS, WINDOWS
TABLE = joined(BUDGET, CONSTANTS, WINDOWS)
@pytest.mark.parametrize("setting", TABLE)
async def test_a_run_with_another_value_comes_to_something_else(setting: str, tmp_path: Path) -> None:
    await TABLE.check(setting, tmp_path)
