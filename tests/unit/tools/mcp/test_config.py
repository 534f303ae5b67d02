"""Servers as an owner writes them down; what is wrong is said before anything is started."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from wakeful import from_mcp, mcp_servers
from wakeful.contracts.errors import InvalidConfig
from wakeful.tools.mcp.servers import HttpServer, OAuth, StdioServer

FILE = {
    "mcpServers": {
        "github": {"command": "npx", "args": ["-y", "server-github"], "env": {"TOKEN": "${GH:-none}"}, "cwd": "sub"},
        "docs": {"type": "http", "url": "https://docs.example/mcp", "headers": {"Authorization": "Bearer ${KEY}"}},
        "off": {"command": "x", "disabled": True},
        "login": {
            "url": "https://l.example",
            "oauth": {"scopes": ["read"], "client_id": "me"},
            "protocol": "2026-07-28",
        },
    }
}


def test_a_file_its_owner_names_is_read(tmp_path: Path) -> None:
    path = tmp_path / "mcp.json"
    path.write_text(json.dumps(FILE))
    sources = mcp_servers(path, environ={"KEY": "k-secret"})
    assert [source.name for source in sources] == ["mcp.github", "mcp.docs", "mcp.login"]
    assert [source.server for source in sources] == [
        StdioServer(
            name="github", command=("npx", "-y", "server-github"), env={"TOKEN": "none"}, cwd=str(tmp_path / "sub")
        ),
        HttpServer(name="docs", url="https://docs.example/mcp", headers={"Authorization": "Bearer k-secret"}),
        HttpServer(
            name="login",
            url="https://l.example",
            oauth=OAuth(scopes=("read",), client_id="me"),
            protocol="2026-07-28",
        ),
    ]


def test_a_server_that_is_not_on_the_list_contributes_nothing() -> None:
    sources = mcp_servers(FILE, only=["github"], environ={})
    assert [source.name for source in sources] == ["mcp.github"]
    assert mcp_servers(FILE, only=[]) == []
    with pytest.raises(InvalidConfig, match="names no server 'gihub'"):
        mcp_servers(FILE, only=["gihub"])


def test_a_file_that_lies_in_the_folder_starts_nothing(tmp_path: Path) -> None:
    started = tmp_path / "started"
    entry = {"command": "touch", "args": [str(started)]}
    for name in (".mcp.json", "mcp.json", ".vscode-mcp.json"):
        (tmp_path / name).write_text(json.dumps({"mcpServers": {"evil": entry}}))
    program = "from wakeful import Agent, run_sync\nprint(run_sync(Agent('a', 'scripted:demo'), 'hello').status)"
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout == "completed\n"
    assert not started.exists()


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ([], "is a list, not an object"),
        ({}, "give command=.* or url="),
        ({"command": "x", "url": "https://x"}, "not both"),
        ({"command": "x", "autoApprove": ["*"]}, "autoApprove, which is not honoured"),
        ({"command": "x", "sandbox": True}, "unknown key 'sandbox'"),
        ({"type": "sse", "url": "https://x"}, "has type 'sse'"),
        ({"type": "stdio", "url": "https://x"}, "has type 'stdio'"),
        ({"command": "x", "args": "-y"}, "args is a str, not a list"),
        ({"command": "x", "env": {"A": 1}}, "env.A holds a int, not a text"),
        ({"command": "x", "env": {"A": "${NOT_SET}"}}, "wants the variable NOT_SET"),
        ({"command": "x", "classes": {"*": "anything"}}, "'anything' for '\\*' is not a permission class"),
        ({"url": "ftp://x"}, "no usable URL"),
        ({"url": "https://user:word@x"}, "holds a user or password"),
        ({"url": "https://x", "headers": {"A": "b\r\nC: d"}}, "cannot be sent"),
        ({"url": "https://x", "protocol": "2024-11-05"}, "no such revision"),
        ({"command": "x", "timeout": 0}, "not a number of seconds"),
    ],
)
def test_what_is_wrong_in_a_file_is_named(entry: Any, words: str) -> None:
    with pytest.raises(InvalidConfig, match=words):
        mcp_servers({"mcpServers": {"one": entry}}, environ={})


@pytest.mark.parametrize(
    ("text", "words"), [("{", "cannot be read as JSON"), ("[]", "holds a list"), ("{}", "mcpServers")]
)
def test_a_file_that_is_none_is_refused(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "mcp.json"
    with pytest.raises(InvalidConfig, match="there is no"):
        mcp_servers(path)
    path.write_text(text)
    with pytest.raises(InvalidConfig, match=words):
        mcp_servers(path)


@pytest.mark.parametrize("name", ["", "1st", "a/b", "a.b", "ü", "x" * 65, "a b"])
def test_a_name_after_which_no_tool_could_be_called_is_refused(name: str) -> None:
    with pytest.raises(InvalidConfig, match="cannot be the name of an MCP server"):
        from_mcp(name, command=["x"])


def test_a_command_is_a_list() -> None:
    with pytest.raises(InvalidConfig, match="command is a text"):
        from_mcp("x", command="npx -y server")


def test_what_a_server_is_given_shows_itself_nowhere() -> None:
    sources = [
        from_mcp("a", command=["x", "--key", "k-secret"], env={"TOKEN": "t-secret"}),
        from_mcp("b", url="https://x/mcp?key=q-secret", headers={"Authorization": "Bearer h-secret"}),
        from_mcp("c", url="https://x", oauth=OAuth(client_id="me", client_secret="c-secret")),
    ]
    shown = " ".join([*map(repr, sources), *(source.server.where for source in sources)])
    assert "secret" not in shown
    assert "env" not in repr(sources[0].server) and "c-secret" not in repr(sources[2].server)


def test_a_file_says_what_is_untrusted_and_what_is_free_text() -> None:
    entry = {"command": "mail", "untrusted": ["read_*"], "content": {"send_*": ["subject", "body"]}}
    rules = mcp_servers({"mcpServers": {"mail": entry}})[0].rules
    assert (rules.untrusted, rules.content) == (("read_*",), {"send_*": ("subject", "body")})
    with pytest.raises(InvalidConfig, match="untrusted is 'read_inbox'"):
        mcp_servers({"mcpServers": {"mail": {**entry, "untrusted": "read_inbox"}}})


@pytest.mark.parametrize(
    ("options", "private"),
    [
        ({"command": ["x"]}, True),
        ({"url": "https://x"}, False),
        ({"url": "https://x", "headers": {"a": "b"}}, True),
        ({"url": "https://x", "oauth": True}, True),
        ({"command": ["x"], "reads_private": False}, False),
    ],
)
def test_a_server_that_was_let_in_or_runs_here_counts_as_private(options: dict[str, Any], private: bool) -> None:
    assert from_mcp("x", **options).rules.reads_private is private


WITHOUT_MCP = """
import sys
class Without:
    def __init__(self, finder): self.finder = finder
    def find_spec(self, name, *more):
        return None if name.partition(".")[0] == "mcp" else self.finder.find_spec(name, *more)
sys.meta_path[:] = map(Without, sys.meta_path)
from wakeful import from_mcp
try:
    from_mcp("x", command=["x"])
except Exception as error:
    print(type(error).__name__, error.message, error.hint, sep="; ")
"""


def test_without_the_package_the_error_names_the_extra() -> None:
    done = subprocess.run([sys.executable, "-c", WITHOUT_MCP], capture_output=True, text=True, check=True)
    words = "MCP servers need the package mcp, which is not installed; pip install 'wakeful[mcp]'"
    assert done.stdout == f"InvalidConfig; {words}\n"


def test_naming_a_server_loads_no_sdk() -> None:
    program = "import sys\nfrom wakeful import from_mcp\nfrom_mcp('x', command=['x'])\nprint('mcp' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
