"""No inert control: every field that an agent can be made with is looked at by a run in which it bites."""

import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kit.bites import Bites, fields_of, joined
from kit.bites.budgets import BUDGET, WINDOWS
from kit.bites.controls import COMPACTION, CONTROLS, SETTINGS
from kit.bites.model_settings import MODEL_SETTINGS
from kit.bites.policies import POLICY, RULES, TOOLS
from kit.bites.sandboxes import LIMITS, SANDBOX
from wakeful import Agent, Budget, ModelSettings, Retry, SpendWindow
from wakeful.contracts.controls import CompactionPolicy
from wakeful.contracts.policies import GatePolicy, ProvenancePolicy, Rule, ToolPolicy
from wakeful.engine import agent_data
from wakeful.engine.agent_options import OPTIONS
from wakeful.sandbox.settings import MachineLimits, SandboxSettings

TABLE = joined(CONTROLS, COMPACTION, SETTINGS, MODEL_SETTINGS, BUDGET, WINDOWS, POLICY, TOOLS, RULES, SANDBOX, LIMITS)
VALUES: dict[str, Any] = {
    "compaction": CompactionPolicy,
    "settings": ModelSettings,
    "policy": GatePolicy,
    "policy.tools": ToolPolicy,
    "policy.rules": Rule,
    "policy.provenance": ProvenancePolicy,
    "sandbox": SandboxSettings,
    "sandbox.limits": MachineLimits,
    "spend_windows": SpendWindow,
    "retry": Retry,
}
"""Settings that are values with fields of their own."""
CALLED = {"": Agent, "budget": Budget}
"""Of these a caller gives arguments, which are more than their fields."""


def settings_of_an_agent() -> Iterator[str]:
    """Everything that can be set, as the code has it; of a value, its fields in its place."""
    found = [
        f"{prefix}{'.' if prefix else ''}{name}"
        for prefix, kind in CALLED.items()
        for name, given in inspect.signature(kind.__init__).parameters.items()
        if name != "self" and given.kind is not inspect.Parameter.VAR_KEYWORD
    ]
    found += [name for prefix, kind in VALUES.items() for name in fields_of(kind, f"{prefix}.")]
    return (name for name in found if name not in {*VALUES, *CALLED})


@pytest.mark.spec("CTL-INV-01")
@pytest.mark.parametrize("setting", TABLE)
async def test_a_run_with_another_value_comes_to_something_else(setting: str, tmp_path: Path) -> None:
    await TABLE.check(setting, tmp_path)


@pytest.mark.spec("CTL-INV-01")
def test_every_field_of_an_agent_is_looked_at() -> None:
    TABLE.check_whole(settings_of_an_agent())
    assert set(OPTIONS) <= {name.partition(".")[0] for name in TABLE}
    given = {*inspect.signature(Agent.__init__).parameters, *agent_data.SAMPLING}
    assert set(agent_data.WRITTEN) <= given, "a file says nothing that a program could not"


async def test_the_table_would_notice_a_setting_that_does_nothing_and_one_that_is_missing(tmp_path: Path) -> None:
    """The inversion, for the table itself."""
    idle = Bites()

    @idle.of("idle", (1, "same"), (2, "same"))
    async def _passed_over(value: int, folder: Path) -> str:
        return "same"

    with pytest.raises(AssertionError, match="comes to the same as another value"):
        await idle.check("idle", tmp_path)
    with pytest.raises(AssertionError, match="no test looks at"):
        idle.check_whole(["idle", "new"])
    with pytest.raises(AssertionError, match="settings that are none"):
        joined(idle, Bites({"gone": idle["idle"]})).check_whole(["idle"])
