"""No inert flag: each flag of the catalogue and each value of its policy does something to a call."""

from pathlib import Path
from typing import get_args

import pytest

from kit.bites.flags import FLAGS, POLICIES
from wakeful.contracts.tool_catalog import CAPABILITIES, CatalogEntry, CatalogPolicy
from wakeful.contracts.tools import RuntimeOwner

WORDS = {
    *("tool_name", "description", "input_schema", "input_schema_ref", "policy_reason", "metadata_ref", "sandbox"),
}
"""Of an entry: what it is called, how it is described, and why; no flags."""


@pytest.mark.spec("STD-INV-04")
@pytest.mark.parametrize("flag", FLAGS)
async def test_a_call_with_another_value_comes_to_something_else(flag: str, tmp_path: Path) -> None:
    await FLAGS.check(flag, tmp_path)


@pytest.mark.spec("STD-INV-04")
def test_every_flag_and_every_value_of_the_policy_is_looked_at() -> None:
    single = set(CatalogEntry.model_fields) - WORDS - {"capabilities", "runtime_owner"}
    owners = (f"runtime_owner.{owner}" for owner in get_args(RuntimeOwner) if owner != "local")
    flags = (f"capabilities.{flag}" for flag in (*CAPABILITIES, "custom:gpu"))
    FLAGS.check_whole({*single, *owners, *flags, "fail_mode"})
    assert set(POLICIES) == set(get_args(CatalogPolicy))
    assert [value for value, _ in FLAGS["policy"][1]] == list(POLICIES)
