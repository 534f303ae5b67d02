"""The belt: registered, allowed, unlocked; all three."""

import inspect
from typing import Any

import pytest

from wakeful.contracts.errors import InvalidValue
from wakeful.contracts.policies import GatePolicy, ToolPolicy
from wakeful.contracts.tools import ToolDeclaration
from wakeful.decisions.policy.permissions import default_policy
from wakeful.decisions.policy.verdict import CallUnderJudgement, compile_policy, judge
from wakeful.hosts.chat.toolbelt import compose_toolbelt


def a_tool(name: str, kind: Any, **fields: Any) -> ToolDeclaration:
    return ToolDeclaration(**{"name": name, "input_schema": {}, "permission_class": kind, **fields})


REGISTERED = [
    a_tool("run_subtask", "subagent"),
    a_tool("memory_list", "knowledge"),
    a_tool("memory_read", "knowledge"),
    a_tool("memory_write", "knowledge"),
    a_tool("read_file", "workspace_write"),
    a_tool("write_file", "workspace_write"),
    a_tool("read_vault", "secrets"),
    a_tool("build_workflow", "editor_mutate"),
    a_tool("ui_select", "editor_mutate", runtime_owner="client"),
    a_tool("mcp.github/search", "network", runtime_owner="mcp_server"),
    a_tool("mcp.gitlab/search", "network", runtime_owner="mcp_server"),
]
EDITOR = {"kind": "editor", "workflow_id": "w1"}


def belt(policy: ToolPolicy, **changes: Any) -> set[str]:
    given = {
        "chat_context": {"kind": "thread"},
        "registry": object(),
        "providers": REGISTERED,
        "memory_enabled": True,
        "client_tools_manifest": (),
        "tool_bridge": object(),
        "send_message": object(),
        "policy": policy,
        "declared": lambda one: one,
        **changes,
    }
    return {tool.name for tool in compose_toolbelt(**given)}


THREAD = default_policy("thread", workspace_root="shop", allowed_mcp_servers=["github"])
IN_EDITOR = default_policy("editor", workspace_root="shop", allowed_mcp_servers=["github"])
MEMORY = {"memory_list", "memory_read", "memory_write"}
PLAIN = {"run_subtask", "read_file", "write_file", "mcp.github/search"} | MEMORY


def test_the_belt_is_what_is_registered_and_allowed_and_unlocked() -> None:
    assert belt(THREAD) == PLAIN
    # Each of the three alone takes a tool away.
    assert belt(THREAD, providers=[one for one in REGISTERED if one.name != "read_file"]) == PLAIN - {"read_file"}
    assert belt(default_policy("thread", workspace_root="shop")) == PLAIN - {"mcp.github/search"}
    assert belt(THREAD, memory_enabled=False) == PLAIN - MEMORY
    # And a server that is not on the policy's list has no tool in it.
    both = default_policy("thread", workspace_root="shop", allowed_mcp_servers=["github", "gitlab"])
    assert belt(both) - belt(THREAD) == {"mcp.gitlab/search"}


@pytest.mark.spec("LOOP-BELT-02")
def test_the_belt_is_made_from_the_context_the_server_and_the_policy() -> None:
    wanted = {
        "chat_context",
        "registry",
        "providers",
        "memory_enabled",
        "client_tools_manifest",
        "tool_bridge",
        "send_message",
        "policy",
    }
    assert wanted <= set(inspect.signature(compose_toolbelt).parameters)
    assert belt(IN_EDITOR, chat_context=EDITOR) == PLAIN | {"build_workflow", "ui_select"}


def test_the_editors_tools_need_the_editor_a_registry_and_somebody_to_show_them_to() -> None:
    assert belt(IN_EDITOR, chat_context={"kind": "thread"}) == PLAIN
    assert belt(IN_EDITOR, chat_context=EDITOR, registry=None) == PLAIN
    assert belt(IN_EDITOR, chat_context=EDITOR, tool_bridge=None) == PLAIN | {"build_workflow"}
    assert belt(THREAD, chat_context=EDITOR) == PLAIN  # the policy has editor_mutate off
    assert belt(THREAD, chat_context=None) == PLAIN


@pytest.mark.spec("LOOP-PERM-06")
def test_nothing_a_client_sends_adds_a_class_a_root_or_a_server() -> None:
    manifest = [
        a_tool("client/vault", "secrets"),
        a_tool("client/shell", "execute"),
        a_tool("mcp.gitlab/search", "network"),
        a_tool("read_vault", "safe", effect="pure"),
        a_tool("client/files", "workspace_write"),
        a_tool("client/lookup", "safe", effect="pure"),
    ]
    rootless = default_policy("thread", allowed_mcp_servers=["github"])
    wishes = {"kind": "thread", "classes": ["secrets"], "workspace_root": "/", "allowed_mcp_servers": ["gitlab"]}
    before = rootless.model_dump_json()
    sent = belt(rootless, client_tools_manifest=manifest, chat_context=wishes)
    assert rootless.model_dump_json() == before
    assert sent - belt(rootless) == {"client/lookup"}  # its own, which reads; not under the name of a registered one
    assert belt(rootless, client_tools_manifest=manifest, tool_bridge=None) == belt(rootless)
    # A tool of the client's own that calls itself safe is no safe tool of ours.
    only_safe = rootless.model_copy(update={"classes": frozenset({"safe"}), "ask": frozenset()})
    assert belt(only_safe, providers=[manifest[5]]) == {"client/lookup"}
    assert belt(only_safe, providers=(), client_tools_manifest=[manifest[5]]) == set()
    # At the call the same holds, whatever the arguments ask for.
    gate = compile_policy(GatePolicy(tools=rootless), [*REGISTERED, *manifest[:2], manifest[4]])
    wished = {"permission_class": "safe", "classes": ["secrets"], "workspace_root": "/", "policy": "allow"}
    for name in ("read_vault", "client/vault", "client/shell", "client/files", "mcp.gitlab/search", "read_file"):
        assert judge(CallUnderJudgement(name=name, arguments=wished, now=0.0), gate).decision == "deny"


def test_a_tool_that_is_filtered_out_is_refused_as_one_there_is_not() -> None:
    gate = compile_policy(GatePolicy(tools=THREAD), REGISTERED)
    for name in ("mcp.gitlab/search", "read_vault", "no_such_tool"):
        verdict = judge(CallUnderJudgement(name=name, arguments={}, now=0.0), gate)
        assert (verdict.decision, verdict.error_type) == ("deny", "tool_not_found")


def test_a_context_that_nobody_knows_is_refused_and_not_taken_for_another() -> None:
    for context in ({"kind": "web"}, {"kind": "editor"}):
        with pytest.raises(InvalidValue, match="invalid_chat_context"):
            belt(THREAD, chat_context=context)
