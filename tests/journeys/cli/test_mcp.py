"""`wakeful mcp`: servers of the owner's file, their tools, and changes that wait for the owner."""

import json
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest
from pytest_httpserver import HTTPServer

from kit.mcp_peers.asking import running_sdk_server
from kit.mcp_peers.gate import Gate
from kit.surfaces.command_line import Wakeful, command_line
from kit.wires.loopback import free_port

ODD = Path(__file__).resolve().parents[2] / "kit" / "mcp_peers" / "odd_server.py"
SDK = ODD.with_name("sdk_server.py")


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
        ["odd", "stdio", "-"],
        ["down", "stdio", "-"],
        ["web", "http", "-"],
    ]
    assert done == wakeful("mcp", "list")
    states = json.loads(wakeful("mcp", "list", "--json").out)
    assert [each["name"] for each in states] == ["odd", "down", "web"]
    assert "secret" not in done.out + str(states)


def test_a_file_in_the_folder_starts_nothing_until_it_is_trusted_and_again_when_it_changes(
    wakeful: Wakeful, folder: Path
) -> None:
    run = ("run", "x", "--model", "scripted:reads.yaml", "--mcp", "shop")
    (folder / "reads.yaml").write_text("- calls: [{name: mcp.shop/reads, arguments: {text: hi}}]\n- Read.\n")
    file, started = folder / ".mcp.json", folder / "heard"
    server = entry()
    server["args"] = [*server["args"], str(started)]  # type: ignore[misc]
    file.write_text(json.dumps({"mcpServers": {"shop": server}}))
    listed = wakeful("mcp")
    assert "no MCP servers" in listed.out and "wakeful trust .mcp.json" in listed.err
    refused = wakeful(*run)
    assert refused.code == 2 and "which is not trusted yet" in refused.err
    assert not started.exists(), "nothing was started"
    assert wakeful("trust", ".mcp.json").code == 0
    assert "shop" in wakeful("mcp").out
    assert wakeful(*run).out == "Read.\n"
    assert started.exists()
    file.write_text(file.read_text() + "\n")
    assert wakeful(*run).code == 2, "another content has to be trusted again"
    assert "shop" in wakeful("mcp", "list", "--config", ".mcp.json").out


def test_a_run_uses_a_server_by_name_asks_and_is_resumed_without_naming_it_again(
    wakeful: Wakeful, config: Path, folder: Path
) -> None:
    script = "- calls: [{name: mcp.odd/pays, arguments: {text: hi}}]\n- Paid.\n"
    (folder / "pays.yaml").write_text(script)
    rested = wakeful("run", "x", "--model", "scripted:pays.yaml", "--mcp", "odd", "--key", "bill-7")
    assert rested.code == 3, rested.err
    (pending,) = json.loads(wakeful("approvals", "--json").out)
    assert pending["tool"] == "mcp.odd/pays", "a tool without annotations is offered, and asks"
    assert wakeful("approvals", "approve", "bill-7").code == 0
    done = wakeful("resume", "bill-7")
    assert (done.code, done.out) == (0, "Paid.\n"), done.err
    assert wakeful("replay", "bill-7").code == 0


@pytest.mark.parametrize("transport", ["stdio", "http"])
def test_an_agent_file_names_servers_written_with_the_sdk(wakeful: Wakeful, folder: Path, transport: str) -> None:
    (folder / "home").mkdir()
    (folder / "count.yaml").write_text("- calls: [{name: mcp.sdk/count, arguments: {to: 3}}]\n- Counted.\n")
    (folder / "ops.yaml").write_text("name: ops\nmodel: scripted:count.yaml\nmcp: [sdk]\n")
    with running_sdk_server() as url:
        server = {"command": sys.executable, "args": [str(SDK), "stdio"]} if transport == "stdio" else {"url": url}
        (folder / "home" / "mcp.json").write_text(json.dumps({"mcpServers": {"sdk": server}}))
        done = wakeful("run", "count", "--agent", "ops.yaml", "--json")
        assert done.code == 0, done.err
        assert json.loads(done.out)["output"] == "Counted."
        listed = wakeful("tools", "--agent", "ops.yaml").out
    assert "mcp.sdk/count" in listed and "mcp.sdk/pay" in listed


def test_a_server_none_of_whose_tools_are_offered_is_a_warning(wakeful: Wakeful, config: Path) -> None:
    done = wakeful("run", "x", "--mcp", "down", "--profile", "chat")
    assert done.code == 0, done.err
    assert "warning: " in done.err and "down" in done.err


@pytest.mark.journey("mcp tools", "mcp tools --json")
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
    assert "there is no MCP server 'od' in" in missing.err and "did you mean odd?" in missing.err
    never_seen = wakeful("mcp", "approve", "od")
    assert (never_seen.code, never_seen.out) == (2, "")
    assert "no tool of an MCP server 'od' was ever seen" in never_seen.err
    config.unlink()
    assert "there is no MCP server 'odd' in" in wakeful("mcp", "tools", "odd").err


@pytest.mark.journey("mcp approve", "mcp approve --json")
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
    assert wakeful("mcp", "approve", "odd").out == "no tools of odd have changed\n"
    assert json.loads(wakeful("mcp", "approve", "odd", "--json").out) == []
    assert "offered" in next(line for line in wakeful("mcp", "tools", "odd").out.splitlines() if "odd/reads" in line)


@pytest.mark.journey("mcp login")
def test_a_person_logs_in_with_the_browser_and_is_remembered(
    wakeful: Wakeful, folder: Path, httpserver: HTTPServer
) -> None:
    gate, port = Gate(httpserver), free_port()
    server = {"type": "http", "url": gate.url, "allow_private": True, "oauth": {"redirect_port": port}}
    (folder / "gate.json").write_text(json.dumps({"mcpServers": {"gate": server}}))
    config = ("--config", "gate.json")
    line = command_line("mcp", "login", "gate", *config, "--no-browser")
    with subprocess.Popen(line, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as child:
        assert child.stderr is not None
        granted = gate.authorize(child.stderr.readline().removeprefix("open ").strip())
        back = f"http://127.0.0.1:{port}/granted?code={granted.code}&state={granted.state}"
        with urllib.request.urlopen(back) as page:
            assert "You can close this window" in page.read().decode()
        said, problems = child.communicate(timeout=60)
    assert (child.returncode, said) == (0, "logged in to gate\n"), problems
    assert "mcp.gate/whose" in wakeful("mcp", "tools", "gate", *config).out


def test_a_server_without_a_login_says_so(wakeful: Wakeful, config: Path) -> None:
    done = wakeful("mcp", "login", "odd", "--no-browser")
    assert done.code == 2
    assert "has no login" in done.err
