"""The snapshot of an execution claims what holds, and nothing more."""

import pytest

from wakeful.views.execution_snapshot import ActiveWorkspaceEntry, CommandConfinement, execution_snapshot

ENTRY = ActiveWorkspaceEntry(
    workspace_id="ws_1",
    workspace_anchor="/srv/shop",
    execution_root="/srv/trees/1",
    execution_root_id="wt_1",
    cwd="/srv/trees/1/src",
    mode="isolated",
    projection_kind="git_worktree_root",
)
FIVE = ("path_confinement", "write_confinement", "network_confinement", "secret_isolation", "child_process_containment")


@pytest.mark.spec("HOL-EXEC-02", "HOL-EXEC-10", "HOL-EXEC-11", "HOL-EXEC-13")
def test_where_nothing_holds_commands_each_of_the_five_limits_says_so() -> None:
    found = execution_snapshot(ENTRY, CommandConfinement("not_enforced", "no bwrap"), works_on_files=True)
    held = found.policy.process_execution.model_dump()
    assert found.profile.backend == found.policy.backend == "host_local"
    assert {name: held[name] for name in FIVE} == dict.fromkeys(FIVE, "not_enforced")
    assert (held["cwd_rooting"], held["projection_rooting"]) == ("hard_enforced", "hard_enforced")
    assert (found.policy.resource_authority.process_execution, found.policy.reason) == ("runtime_shaped", "no bwrap")


@pytest.mark.parametrize("mode", ["bubblewrap", "landlock"])
def test_where_the_kernel_holds_them_it_is_another_backend(mode: str) -> None:
    level = CommandConfinement("bubblewrap" if mode == "bubblewrap" else "landlock")
    found = execution_snapshot(ENTRY, level._replace(grants_network=False), works_on_files=True)
    assert found.policy.backend == "sandboxed"
    held = found.policy.process_execution.model_dump()
    arranged = {name for name, value in held.items() if value == "runtime_shaped"}
    assert arranged == (set() if mode == "bubblewrap" else {"write_confinement", "child_process_containment"})
    assert set(held.values()) <= {"hard_enforced", "runtime_shaped"}


@pytest.mark.spec("HOL-EXEC-01", "HOL-EXEC-03")
def test_the_snapshot_follows_from_the_place_and_the_profile_alone() -> None:
    chat = execution_snapshot(ENTRY, CommandConfinement("not_enforced"), works_on_files=False)
    assert (chat.profile.process_execution_exposed, chat.policy.process_execution_exposed) == (False, False)
    assert (chat.workspace_id, chat.workspace_anchor, chat.execution_root, chat.cwd) == (
        ENTRY.workspace_id,
        ENTRY.workspace_anchor,
        ENTRY.execution_root,
        ENTRY.cwd,
    )
    assert (chat.execution_root_id, chat.projection_kind) == ("wt_1", "git_worktree_root")
