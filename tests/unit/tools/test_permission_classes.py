"""Every tool is of one permission class, and what nobody vouches for neither runs beside others nor is offered."""

from pathlib import Path
from typing import Any, get_args

import pytest

from kit.runs.asked_runs import agent
from wakeful import Tool, run, tool
from wakeful.bootstrap.engines import new_engine
from wakeful.contracts.errors import InvalidConfig
from wakeful.contracts.events import ToolResult, ToolStarted
from wakeful.contracts.policies import GatePolicy
from wakeful.contracts.tool_catalog import CatalogEntry
from wakeful.contracts.tools import PermissionClass, ToolDeclaration
from wakeful.decisions.policy.permissions import class_of, default_policy
from wakeful.hosts.tools.tool_declaration import RuntimeToolDeclaration
from wakeful.service.queries.tool_inventory import tool_inventory
from wakeful.store.memory import MemoryStore
from wakeful.tools.client import ClientTool
from wakeful.tools.local.source import LocalTools
from wakeful.tools.person import ask_person

SECRETS = GatePolicy(tools=default_policy("editor", secrets=True))
NAMED = {"safe", "knowledge", "network", "workspace_write", "editor_mutate", "subagent", "secrets"}


def work() -> str:
    """Does something."""
    return "done"


def made(**options: Any) -> Tool[Any]:
    return tool(work, **options)


@pytest.mark.spec("LOOP-PERM-01")
async def test_every_tool_is_of_exactly_one_class_which_it_declares_or_its_flags_give(tmp_path: Path) -> None:
    classes = set(get_args(PermissionClass))
    assert classes == NAMED | {"execute", "external_write"}, "commands and effects elsewhere have classes of their own"
    for name in classes:
        assert class_of(made(permission_class=name, effect="pure").declaration) == name
    assert class_of(made(effect="pure").declaration) == "safe", "a pure read: no network, nothing written"
    assert class_of(made(effect="pure", leaves_machine=True).declaration) == "network"
    for effect in ("keyed", "irreversible"):
        assert class_of(made(effect=effect).declaration) == "external_write", "who says nothing is not trusted with it"
    local = (await LocalTools(tmp_path, "coding").offer()).tools
    assert {each.name.rpartition("/")[2]: class_of(each.declaration) for each in local} == {
        "exec_command": "execute",
        "exec_command_batch": "execute",
        "read_file": "workspace_write",
        "write_file": "workspace_write",
        "edit_file": "workspace_write",
        "apply_patch": "workspace_write",
    }
    assert class_of(ask_person.declaration) in classes
    # A class that is none, several, or one that the tool's own flags speak against is refused where it is declared.
    for wrong in ("root", "", ("safe", "network"), 5):
        with pytest.raises(InvalidConfig, match="no such class"):
            made(permission_class=wrong)
    for untrue in ({"permission_class": "safe"}, {"permission_class": "network", "effect": "keyed"}):
        with pytest.raises(InvalidConfig, match="only reads"):
            made(**untrue)
    with pytest.raises(InvalidConfig, match="leaves the machine"):
        made(permission_class="safe", effect="pure", leaves_machine=True)


def reading(name: str, **options: Any) -> Tool[Any]:
    async def look() -> str:
        """Looks."""
        return name

    return tool(look, name=name, effect="pure", **options)


async def together(*tools: Tool[Any]) -> bool:
    """Did the second call of a batch begin before the first had ended?"""
    names = tuple(each.name for each in tools)
    result = await run(agent(tools, names, policy=SECRETS), "go", store=MemoryStore())
    assert result.output == "done"
    seqs: dict[Any, list[int]] = {ToolStarted: [], ToolResult: []}
    for entry in result.facts():
        for kind, found in seqs.items():
            if isinstance(entry.fact.event, kind):
                found.append(entry.seq)
    return seqs[ToolStarted][1] < seqs[ToolResult][0]


async def test_what_touches_secrets_runs_alone_even_when_it_only_reads() -> None:
    assert not await together(reading("a", permission_class="secrets"), reading("b", permission_class="secrets"))
    assert await together(reading("a"), reading("b")), "the same two, without the class"


@pytest.mark.spec("LOOP-PERM-02")
async def test_every_tool_says_whether_it_runs_beside_others_and_which_lock_it_needs(tmp_path: Path) -> None:
    fields = ToolDeclaration.model_fields
    assert fields["parallel_safe"].default is True and fields["locks"].default == ()
    offered = (await LocalTools(tmp_path, "coding").offer()).tools
    hosts = [
        RuntimeToolDeclaration(name="a/b", source="a", description="", executor="host", effect=effect).to_declaration()
        for effect in ("pure", "keyed")
    ]
    every = [
        *(each.declaration for each in (*offered, ask_person, made(effect="pure"), made(effect="keyed"), made())),
        *hosts,
    ]
    for declared in every:
        assert declared.parallel_safe is declared.is_read_only, declared.name
        assert declared.requires_exclusive_lock is None or declared.requires_exclusive_lock in declared.locks
    assert [each.requires_exclusive_lock for each in hosts] == [None, None]
    assert made(effect="pure", locks=["workspace_fs"]).declaration.requires_exclusive_lock == "workspace_fs"
    # A host says it by that name, and no two calls that need it run together, also where each of them only reads.
    host = RuntimeToolDeclaration(
        name="a/b", source="a", description="", executor="host", effect="pure", requires_exclusive_lock="workspace_fs"
    ).to_declaration()
    assert (host.requires_exclusive_lock, host.parallel_safe) == ("workspace_fs", True)

    assert await together(reading("a"), reading("b"))
    assert not await together(reading("a", locks=["workspace_fs"]), reading("b", locks=["workspace_fs"]))
    assert await together(reading("a", locks=["workspace_fs"]), reading("b", locks=["other"]))


@pytest.mark.spec("STD-MAP-05")
async def test_the_class_of_a_tool_gives_the_flags_it_has_in_the_catalogue(tmp_path: Path) -> None:
    named = ("safe", "knowledge", "network", "editor_mutate", "secrets")
    tools = [made(name=f"{each}_tool", permission_class=each, effect="pure") for each in named]
    desk = agent(tools, workspace=tmp_path, subtasks=True)

    async def catalogue(**options: Any) -> dict[str, CatalogEntry]:
        found = await tool_inventory(new_engine(MemoryStore()), agent=desk.changed(**options))
        return {entry.tool_name.rpartition("/")[2]: entry for entry in found.catalog.entries}

    entries = await catalogue()
    alone = {name: (entry.is_read_only, entry.is_concurrency_safe) for name, entry in entries.items()}
    for name in ("safe_tool", "knowledge_tool", "network_tool", "scratch_write", "read_file"):
        assert alone[name] == (True, True), name
    assert "network" in entries["network_tool"].capabilities and "network" not in entries["safe_tool"].capabilities
    for name in ("read_file", "write_file", "edit_file", "apply_patch"):
        assert "filesystem" in entries[name].capabilities
        assert alone[name] == ((True, True) if name == "read_file" else (False, False)), "only a pure reader only reads"
    assert (alone["editor_mutate_tool"], entries["editor_mutate_tool"].capabilities) == ((False, False), ("write",))
    for name in ("run_subtask", "spawn_self"):
        assert (alone[name], entries[name].runtime_owner) == ((True, True), "subagent")
    assert (alone["secrets_tool"], entries["secrets_tool"].policy) == ((True, False), "ask")
    assert (await catalogue(policy=SECRETS))["secrets_tool"].policy == "allowed", "opted in"
    # Whether it runs beside others is one value: what is declared, shown, on record with the call, and done.
    for name, beside in {
        "safe": True,
        "knowledge": True,
        "network": True,
        "editor_mutate": False,
        "secrets": False,
    }.items():
        pair = [reading(each, permission_class=name) for each in "ab"]
        assert {each.declaration.serial for each in pair} == {not beside}
        assert entries[f"{name}_tool"].is_concurrency_safe is beside is await together(*pair), name
    for wrong in ("safe", "network"):
        with pytest.raises(InvalidConfig, match="only reads"):
            made(permission_class=wrong, effect="keyed")


def test_a_clients_tool_is_safe_beside_others_only_when_it_says_so() -> None:
    silent = ToolDeclaration(name="client/look", input_schema={"type": "object"}, effect="pure")
    assert ClientTool(silent).declaration.serial
    assert tool(work, external=True, effect="pure").declaration.serial
    assert not ClientTool(silent.model_copy(update={"parallel_safe": True})).declaration.serial
