"""MCP servers that an agent names: the owner's file counts, a workspace's only as the owner trusted it."""

import json
from pathlib import Path

import pytest

from wakeful import Agent, trust
from wakeful.contracts.errors import InvalidConfig
from wakeful.engine.named_servers import check_servers, find_server, server_files


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("WAKEFUL_HOME", str(home))
    return home / "mcp.json"


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    (tmp_path / "shop").mkdir()
    return tmp_path / "shop"


def named(path: Path, **servers: str) -> None:
    path.write_text(json.dumps({"mcpServers": {name: {"command": command} for name, command in servers.items()}}))


def test_a_server_of_the_owners_file_is_found_and_none_is_started(own: Path) -> None:
    named(own, docs="docs-server")
    assert find_server("docs", None).server.where == "docs-server"
    with pytest.raises(InvalidConfig, match="there is no MCP server 'dosc'") as error:
        find_server("dosc", None)
    assert error.value.hint == "Did you mean docs?"


def test_a_file_of_the_workspace_counts_only_as_it_was_trusted(own: Path, workspace: Path) -> None:
    file = workspace / ".mcp.json"
    named(file, build="make-server")
    with pytest.raises(InvalidConfig, match="which is not trusted yet") as error:
        find_server("build", workspace)
    assert f"wakeful trust {file}" in error.value.hint
    trust(workspace)
    assert find_server("build", workspace).server.where == "make-server"
    named(file, build="other-server")
    with pytest.raises(InvalidConfig, match="which is not trusted yet"):
        find_server("build", workspace)
    trust(file)
    assert find_server("build", workspace).server.where == "other-server"


def test_the_owners_entry_wins_over_one_of_the_workspace(own: Path, workspace: Path) -> None:
    named(own, docs="owners")
    named(workspace / "mcp.json", docs="theirs")
    trust(workspace)
    assert find_server("docs", workspace).server.where == "owners"
    assert [(file.path.parent.name, file.is_trusted) for file in server_files(workspace)] == [
        ("home", True),
        ("shop", True),
    ]


def test_a_file_that_is_not_trusted_is_not_even_read_for_errors(own: Path, workspace: Path) -> None:
    (workspace / "mcp.json").write_text("{ no json")
    named(own, docs="owners")
    assert find_server("docs", workspace).server.where == "owners"
    own.write_text("{ no json")
    with pytest.raises(InvalidConfig, match="cannot be read as JSON"):
        find_server("docs", workspace)


def test_a_disabled_server_is_named_as_such(own: Path) -> None:
    own.write_text(json.dumps({"mcpServers": {"docs": {"command": "x", "disabled": True}}}))
    with pytest.raises(InvalidConfig, match="'docs' is disabled"):
        find_server("docs", None)


def test_an_agents_servers_travel_by_name(own: Path, tmp_path: Path) -> None:
    named(own, docs="docs-server")
    agent = Agent("ops", "scripted:demo", mcp=["docs"])
    assert agent.to_dict()["mcp"] == ["docs"]
    agent.to_file(tmp_path / "ops.yaml")
    again = Agent.from_file(tmp_path / "ops.yaml")
    assert (again.mcp, again.given_sources, [source.name for source in again.sources]) == (("docs",), (), ["mcp.docs"])
    assert again.changed(model="scripted:other").mcp == ("docs",)
    check_servers(again.mcp, again.workspace)
    with pytest.raises(InvalidConfig, match="there is no MCP server 'nope'"):
        check_servers(["nope"], None)
