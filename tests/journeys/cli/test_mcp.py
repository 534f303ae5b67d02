"""`wakeful mcp`: servers of the owner's file, their tools, and changes that wait for the owner."""

import json
import sys
from pathlib import Path

import pytest

from kit.surfaces.command_line import Wakeful

ODD = Path(__file__).resolve().parents[2] / "kit" / "mcp_peers" / "odd_server.py"


def entry(mode: str = "well", **more: object) -> dict[str, object]:
    return {"command": sys.executable, "args": ["-I", "-S", str(ODD), mode], **more}


@pytest.fixture
def config(folder: Path) -> Path:
    home = folder / "home"
    home.mkdir()
    path = home / "mcp.json"
    servers = {"odd": entry(), "down": entry("no_start"), "web": {"url": "https://docs.example/mcp?key=secret"}}
    path.write_text(json.dumps({"mcpServers": servers}))
    return path


def test_servers_are_listed_and_none_is_started(wakeful: Wakeful, config: Path) -> None:
    done = wakeful("mcp")
    assert (done.code, done.err) == (0, "")
    assert [line.split()[:3] for line in done.out.splitlines()[1:]] == [
        ["odd", "stdio", Path(sys.executable).name],
        ["down", "stdio", Path(sys.executable).name],
        ["web", "http", "https://docs.example/mcp"],
    ]
    assert done == wakeful("mcp", "list")
    states = json.loads(wakeful("mcp", "list", "--json").out)
    assert [each["name"] for each in states] == ["odd", "down", "web"]
    assert "secret" not in done.out + str(states)


def test_a_file_in_the_folder_is_not_looked_at(wakeful: Wakeful, folder: Path) -> None:
    for name in ("mcp.json", ".mcp.json"):
        (folder / name).write_text(json.dumps({"mcpServers": {"evil": entry()}}))
    assert "no MCP servers" in wakeful("mcp").out
    assert "evil" in wakeful("mcp", "list", "--config", ".mcp.json").out


def test_tools_are_shown_as_an_agent_would_get_them(wakeful: Wakeful, config: Path) -> None:
    done = wakeful("mcp", "tools", "odd")
    assert (done.code, done.err) == (0, "")
    lines = {line.split()[0]: line for line in done.out.splitlines()[1:]}
    assert lines["mcp.odd/reads"].split()[1:4] == ["offered", "network", "pure"]
    assert lines["mcp.odd/pays"].split()[1:4] == ["offered", "external_write", "irreversible"]
    states = {each["name"]: each for each in json.loads(wakeful("mcp", "tools", "odd", "--json").out)}
    assert states["mcp.odd/reads"]["permission_class"] == "network"


def test_a_server_that_is_down_is_a_failure_and_one_that_is_not_there_a_wrong_request(
    wakeful: Wakeful, config: Path
) -> None:
    down = wakeful("mcp", "tools", "down")
    assert down.code == 1
    assert "unavailable" in down.out
    missing = wakeful("mcp", "tools", "od")
    assert (missing.code, missing.out) == (2, "")
    assert "names no MCP server 'od'" in missing.err and "did you mean odd?" in missing.err
    never_seen = wakeful("mcp", "approve", "od")
    assert (never_seen.code, never_seen.out) == (2, "")
    assert "no tool of an MCP server 'od' was ever seen" in never_seen.err
    config.unlink()
    assert "there is no file" in wakeful("mcp", "tools", "odd").err


def test_a_change_waits_for_the_owner_and_is_accepted_once(wakeful: Wakeful, config: Path) -> None:
    wakeful("mcp", "tools", "odd")
    pins = config.parent / "mcp" / "pins.json"
    data = json.loads(pins.read_text())
    data["servers"]["odd"]["reads"]["fingerprint"] = "sha256:of-another-time"
    pins.write_text(json.dumps(data))
    parked = wakeful("mcp", "tools", "odd")
    assert "its description or schema changed" in parked.out
    assert "changed      reads: wakeful mcp approve odd" in wakeful("mcp").out
    accepted = wakeful("mcp", "approve", "odd")
    assert accepted.code == 0
    assert accepted.out.startswith("accepted     reads")
    assert "Reads." in accepted.out
    assert wakeful("mcp", "approve", "odd").out == "nothing of odd waits to be accepted\n"
    assert "offered" in next(line for line in wakeful("mcp", "tools", "odd").out.splitlines() if "odd/reads" in line)


def test_a_server_without_a_login_says_so(wakeful: Wakeful, config: Path) -> None:
    done = wakeful("mcp", "login", "odd", "--no-browser")
    assert done.code == 2
    assert "has no login" in done.err
