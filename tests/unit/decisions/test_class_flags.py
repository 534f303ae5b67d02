"""What a permission class means for a tool's flags, and what the views leave out on purpose."""

from typing import get_args

import pytest

from wakeful.contracts.tools import PermissionClass, ToolDeclaration
from wakeful.decisions.runtime_answers import SCRATCH_TOOLS, SPAWN_SELF_TOOL, SUBTASK_TOOL, parallel_declaration


def test_the_tools_that_make_children_are_owned_by_them_and_run_side_by_side() -> None:
    for declaration in (SUBTASK_TOOL, SPAWN_SELF_TOOL, parallel_declaration(3)):
        assert (declaration.permission, declaration.runtime_owner) == ("subagent", "subagent")
        assert not declaration.serial and declaration.is_read_only
    for declaration in SCRATCH_TOOLS:
        assert declaration.permission == "knowledge" and declaration.is_read_only and not declaration.serial


@pytest.mark.parametrize("named", get_args(PermissionClass))
def test_whether_a_tool_runs_beside_others_is_one_stored_value(named: PermissionClass) -> None:
    given = ToolDeclaration(name="t", input_schema={}, effect="pure", permission_class=named, parallel_safe=False)
    assert given.serial
    beside = given.model_copy(update={"parallel_safe": True})
    assert beside.serial is (named in ("secrets", "editor_mutate")), "these are always alone"
