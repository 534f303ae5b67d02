"""No inert control: every field an agent is made with is looked at by a run in which it bites."""

import inspect
from pathlib import Path

import pytest

from bites import fields_of, joined
from bites.controls import COMPACTION, CONTROLS, SETTINGS
from wakeful import Agent
from wakeful.agents.config import ABOUT_MODELS, SAMPLING
from wakeful.contracts.controls import CompactionPolicy

TABLE = joined(CONTROLS, COMPACTION, SETTINGS)


@pytest.mark.parametrize("setting", TABLE)
async def test_a_run_with_another_value_comes_to_something_else(setting: str, tmp_path: Path) -> None:
    await TABLE.check(setting, tmp_path)
