"""Permission classes: what is on by default, what asks, and that nothing can be added."""

from typing import Any

import pytest

from wakeful.contracts.errors import InvalidConfig
from wakeful.contracts.policies import ToolPolicy
from wakeful.contracts.tools import Confinement, ToolDeclaration
from wakeful.decisions.policy.permissions import (
    class_of,
    class_verdict,
    confinement_verdict,
    default_policy,
    stricter,
)

CLASSES = (
    "safe",
    "knowledge",
    "network",
    "workspace_write",
    "editor_mutate",
    "subagent",
    "secrets",
    "execute",
    "external_write",
)


def a_tool(kind: Any = None, name: str = "a_tool", **fields: Any) -> ToolDeclaration:
    return ToolDeclaration(**{"name": name, "input_schema": {}, "permission_class": kind, **fields})


def decisions(policy: ToolPolicy) -> dict[str, str]:
    return {kind: class_verdict(policy, a_tool(kind)).decision for kind in CLASSES}


THREAD = {
    "safe": "allow",
    "knowledge": "allow",
    "subagent": "allow",
    "network": "allow",
    "workspace_write": "allow",
    "editor_mutate": "deny",
    "secrets": "deny",
    "execute": "deny",
    "external_write": "ask",
}


@pytest.mark.spec("LOOP-PERM-04")
def test_the_default_classes_of_a_thread_and_of_the_editor() -> None:
    root = {"workspace_root": "shop"}
    assert decisions(default_policy("thread", **root)) == THREAD
    assert decisions(default_policy("editor", **root)) == {**THREAD, "editor_mutate": "allow"}
    # Secrets come only when somebody says so, in both; files of a workspace only where there is one.
    for context in ("thread", "editor"):
        assert decisions(default_policy(context, secrets=True))["secrets"] == "allow"
        assert decisions(default_policy(context))["workspace_write"] == "deny"


@pytest.mark.parametrize(("profile", "decision"), [("coding", "allow"), ("shell_first", "allow"), ("chat", "deny")])
def test_commands_are_on_in_the_profiles_that_run_them(profile: str, decision: str) -> None:
    assert decisions(default_policy("thread", profile=profile))["execute"] == decision


def test_in_a_library_run_the_callers_own_functions_need_nobodys_leave() -> None:
    policy = default_policy("library", workspace_root="shop", allowed_mcp_servers=["github"])
    assert decisions(policy) == {**THREAD, "execute": "allow", "external_write": "allow", "secrets": "ask"}
    assert decisions(default_policy("library", secrets=True))["secrets"] == "allow"
    for owner, name in (("mcp_server", "mcp.github/merge"), ("client", "client/merge"), ("hosted_connector", "merge")):
        assert class_verdict(policy, a_tool("external_write", name, runtime_owner=owner)).decision == "ask"
    # Also when a server's tool does not say whose it is: its name does.
    assert class_verdict(policy, a_tool("external_write", "mcp.github/merge")).decision == "ask"


@pytest.mark.spec("LOOP-PERM-03")
def test_a_policy_is_its_classes_its_root_and_its_servers_and_cannot_be_changed() -> None:
    policy = default_policy("thread", workspace_root="shop", allowed_mcp_servers=["github"])
    assert {"safe", "knowledge", "subagent", "network", "workspace_write"} <= policy.classes
    assert (policy.workspace_root, policy.allowed_mcp_servers) == ("shop", ("github",))
    assert default_policy("thread").allowed_mcp_servers == ()
    with pytest.raises(ValueError, match="frozen"):
        policy.classes = frozenset({"secrets"})  # type: ignore[misc]
    stored = policy.model_dump_json()
    assert ToolPolicy.model_validate_json(stored) == policy
    assert stored == default_policy("thread", workspace_root="shop", allowed_mcp_servers=["github"]).model_dump_json()


def test_a_server_that_is_not_named_contributes_nothing_in_any_context() -> None:
    for context in ("thread", "editor", "library"):
        policy = default_policy(context, allowed_mcp_servers=["github"])
        search = a_tool("network", "mcp.github/search", runtime_owner="mcp_server")
        assert class_verdict(policy, search).decision == "allow"
        for stranger in ("mcp.gitlab/search", "mcp.github.evil/search", "search"):
            verdict = class_verdict(policy, a_tool("network", stranger, runtime_owner="mcp_server"))
            assert (verdict.decision, verdict.error_type) == ("deny", "tool_not_found")


def test_what_is_off_is_refused_like_a_tool_that_does_not_exist() -> None:
    verdict = class_verdict(default_policy("thread"), a_tool("secrets", "read_vault"))
    assert (verdict.decision, verdict.source, verdict.error_type) == ("deny", "mode", "tool_not_found")
    assert verdict.reason == "read_vault is of class secrets, which is off in context thread"


def test_what_a_client_says_of_its_own_tool_makes_it_no_safer() -> None:
    assert class_of(a_tool("safe", runtime_owner="client")) == "external_write"
    assert class_of(a_tool("safe", runtime_owner="client", effect="pure")) == "network"
    assert class_of(a_tool("secrets", runtime_owner="client")) == "secrets"
    assert class_of(a_tool("safe")) == "safe"  # inversion: of our own it is believed


def test_a_call_that_is_more_than_its_tool_declared_is_judged_as_both() -> None:
    policy = default_policy("thread", profile="coding")
    reading = a_tool("safe", effect="pure")
    assert stricter(policy, reading, a_tool("external_write")).decision == "ask"
    assert stricter(policy, a_tool("secrets"), reading).decision == "deny"
    assert stricter(policy, reading, reading).decision == "allow"


def test_a_command_that_nothing_confines_is_named_as_such() -> None:
    loose = Confinement(mode="not_enforced", cwd="shop", reason="no bubblewrap here")
    ask = default_policy("thread", profile="coding", unconfined="ask")
    verdict = confinement_verdict(ask, "exec_command", loose)
    assert verdict is not None
    assert (verdict.decision, verdict.source) == ("ask", "sandbox")
    assert "not_enforced (no bubblewrap here)" in verdict.reason
    assert confinement_verdict(ask, "exec_command", Confinement(mode="landlock", cwd="shop")) is None
    assert confinement_verdict(ask, "read_file", None) is None


def test_a_context_that_nobody_knows_has_no_policy() -> None:
    with pytest.raises(InvalidConfig, match="'web'"):
        default_policy("web")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("context", "answered_by", "decision"),
    [
        ("library", "client", "allow"),
        ("library", "code", "ask"),
        ("thread", "client", "ask"),
        ("editor", "client", "ask"),
    ],
)
def test_what_the_caller_declared_for_its_own_client_is_handed_over_in_a_library_run_alone(
    context: Any, answered_by: str, decision: str
) -> None:
    tool = a_tool("external_write", runtime_owner="client", answered_by=answered_by)
    assert class_verdict(default_policy(context), tool).decision == decision
