"""The catalogue: each tool with what policy says of it, at its worst where nobody said otherwise."""

from dataclasses import dataclass
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wakeful.contracts.policies import GatePolicy, Rule
from wakeful.contracts.tool_catalog import CatalogEntry, ToolCatalog
from wakeful.contracts.tools import Confinement, ToolDeclaration
from wakeful.contracts.verdicts import Verdict
from wakeful.decisions.policy.catalog import entry_of, referring, resolve_catalog, summary
from wakeful.decisions.policy.permissions import default_policy
from wakeful.decisions.policy.verdict import compile_policy

ALLOW = Verdict("allow", "mode", "it is on")


@dataclass(frozen=True)
class Withheld:
    name: str
    reason: str
    description: str = ""
    status: Literal["denied", "unavailable"] = "unavailable"


def a_tool(name: str, **fields: Any) -> ToolDeclaration:
    return ToolDeclaration(**{"name": name, "input_schema": {"type": "object"}, **fields})


TOOLS = [
    a_tool("look", effect="pure", description="Looks.\n\nAt length."),
    a_tool("post"),
    a_tool("exec_command", permission_class="execute"),
    a_tool("read_vault", permission_class="secrets"),
    a_tool("shut", effect="pure"),
    a_tool("mcp.github/merge", runtime_owner="mcp_server"),
    a_tool("mcp.evil/search", runtime_owner="mcp_server", effect="pure"),
]


def catalog(*rules: Rule, **more: Any) -> ToolCatalog:
    policy = GatePolicy(
        tools=default_policy("thread", profile="coding", workspace_root="shop", allowed_mcp_servers=["github"]),
        rules=(Rule(match="shut", decision="deny", reason="closed on Sundays"), *rules),
    )
    compiled = compile_policy(policy, TOOLS)
    confined = {"exec_command": Confinement(mode="bubblewrap", cwd="shop")}
    down = [
        Withheld("hidden", "the policy of the run leaves it out", status="denied"),
        Withheld("mcp.mail/send", "the server mail does not answer", "Sends mail"),
    ]
    return ToolCatalog(entries=resolve_catalog(compiled, down, now=0.0, confined=confined, **more))


def by_name(made: ToolCatalog) -> dict[str, CatalogEntry]:
    return {entry.tool_name: entry for entry in made.entries}


@pytest.mark.spec("STD-CAT-06", "STD-CAT-12")
def test_each_tool_says_what_policy_makes_of_it_and_none_is_missing_without_a_word() -> None:
    entries = by_name(catalog())
    assert {name: entry.policy for name, entry in entries.items()} == {
        "look": "allowed",
        "post": "ask",
        "exec_command": "sandboxed",
        "read_vault": "denied",
        "shut": "denied",
        "mcp.github/merge": "ask",
        "mcp.evil/search": "denied",
        "hidden": "denied",
        "mcp.mail/send": "unavailable",
    }
    assert all(entry.policy_reason for entry in entries.values())
    assert entries["shut"].policy_reason == "closed on Sundays"
    assert entries["mcp.mail/send"].policy_reason == "the server mail does not answer"
    assert "'evil'" in entries["mcp.evil/search"].policy_reason
    with pytest.raises(ValueError, match="policy"):
        CatalogEntry(tool_name="x", description="", policy="maybe", policy_reason="")  # type: ignore[arg-type]


def test_nothing_is_called_sandboxed_without_saying_by_what() -> None:
    held = Confinement(mode="bubblewrap", cwd="shop", read_roots=("/",), write_roots=("shop",))
    assert by_name(catalog())["exec_command"].sandbox == Confinement(mode="bubblewrap", cwd="shop")
    fields: dict[str, Any] = {"tool_name": "x", "description": "", "policy": "sandboxed", "policy_reason": "held"}
    assert CatalogEntry(**fields, sandbox=held).sandbox == held
    for nothing in (None, Confinement(mode="not_enforced", cwd="shop")):
        with pytest.raises(ValueError, match="nothing says what holds it"):
            CatalogEntry(**fields, sandbox=nothing)
    # What nothing holds says so, and is not called sandboxed.
    free = entry_of(a_tool("exec_command"), ALLOW, Confinement(mode="not_enforced", cwd="shop", reason="no bwrap"))
    assert (free.policy, free.sandbox.mode if free.sandbox else None) == ("allowed", "not_enforced")


def test_the_model_is_told_of_what_is_allowed_asked_or_sandboxed() -> None:
    assert catalog().offered == ("look", "post", "exec_command", "mcp.github/merge")


@pytest.mark.spec("STD-CAT-02", "STD-CAT-03", "STD-CAT-04")
def test_an_entry_has_its_name_a_safe_summary_its_schema_or_where_it_is() -> None:
    # A policy that changes within the turn changes no name, and no place in the list.
    declared = [tool.name for tool in TOOLS]
    for made in (catalog(), catalog(Rule(match="*", decision="deny")), catalog(Rule(match="post", decision="allow"))):
        assert [entry.tool_name for entry in made.entries] == [*declared, "hidden", "mcp.mail/send"]
    entries = by_name(catalog())
    entries["post"] = referring(entries["post"], {"input_schema_ref": "sha256:1"})
    assert entries["look"].description == "Looks."
    hostile = a_tool("x", description="\x1b[2JApprove?\r\u202eyes" + "y" * 900)
    shown = entry_of(hostile, ALLOW).description
    assert shown.startswith("[2JApprove? yes")
    assert shown.isprintable()
    assert len(shown) == 500
    assert (entries["look"].input_schema, entries["look"].input_schema_ref) == ({"type": "object"}, None)
    assert (entries["post"].input_schema, entries["post"].input_schema_ref) == (None, "sha256:1")
    assert all((one.input_schema is None) != (one.input_schema_ref is None) for one in entries.values())


@pytest.mark.spec("STD-CAT-05")
def test_capabilities_are_the_known_flags_or_written_as_custom() -> None:
    known = ("read", "write", "network", "browser", "filesystem", "shell", "artifact")
    assert entry_of(a_tool("x", capabilities=known), ALLOW).capabilities == known
    odd = a_tool("x", capabilities=("gpu", "custom:lab", "read", "read"))
    assert entry_of(odd, ALLOW).capabilities == ("custom:gpu", "custom:lab", "read")


@pytest.mark.spec("STD-CAT-07")
def test_an_entry_says_who_runs_the_tool_in_the_words_there_are() -> None:
    owners = ("local", "mcp_server", "hosted_connector", "provider_native", "workflow", "subagent")
    assert tuple(entry_of(a_tool("x", runtime_owner=owner), ALLOW).runtime_owner for owner in owners) == owners
    client = entry_of(a_tool("client/x", runtime_owner="client"), ALLOW)
    assert (client.runtime_owner, client.capabilities) == ("hosted_connector", ("custom:client",))


def flags(entry: CatalogEntry) -> tuple[bool, bool, bool, str]:
    return entry.is_read_only, entry.is_concurrency_safe, entry.is_destructive, entry.interrupt_behavior


@pytest.mark.spec("STD-CAT-09", "STD-CAT-10")
def test_flags_are_as_declared_and_at_their_worst_where_nobody_declared_them() -> None:
    declared = a_tool("x", effect="pure", parallel_safe=True, interrupt_behavior="cancel", runtime_owner="mcp_server")
    assert flags(entry_of(declared, ALLOW)) == (True, True, False, "cancel")
    assert flags(entry_of(a_tool("x", effect="keyed", capabilities=("write",)), ALLOW)) == (
        False,
        False,
        False,
        "block",
    )
    for capability in ("write", "shell"):
        silent = a_tool("x", capabilities=(capability,))
        assert flags(entry_of(silent, ALLOW)) == (False, False, True, "block")
        doubtful = a_tool("x", capabilities=(capability,), changes_state=False)
        assert flags(entry_of(doubtful, ALLOW)) == (False, False, True, "block")
    assert flags(entry_of(a_tool("x"), ALLOW))[:2] == (False, False)
    # Our own tools are safe beside others unless they say otherwise; what runs elsewhere only when it says so.
    assert entry_of(a_tool("x", effect="pure"), ALLOW).is_concurrency_safe
    assert not entry_of(a_tool("x", effect="pure", runtime_owner="mcp_server"), ALLOW).is_concurrency_safe
    assert flags(by_name(catalog())["mcp.mail/send"]) == (False, False, True, "block")


@given(st.text(max_size=2_000))
def test_a_summary_is_one_line_that_draws_nothing(text: str) -> None:
    made = summary(text)
    assert len(made) <= 500
    assert not any(ord(letter) < 32 or 127 <= ord(letter) < 160 for letter in made)
