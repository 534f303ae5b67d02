"""Options that several commands share, so that the same thing is spelled and explained the same everywhere."""

import re
from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from wakeful.surfaces.cli.problems import WrongRequest
from wakeful.surfaces.cli.shown_values import DAY, HOUR, MINUTE

StoreOption: TypeAlias = Annotated[
    Path | None,
    typer.Option("--store", metavar="FILE", help="The store. Default: $WAKEFUL_STORE, or your own database."),
]
ConnectOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--connect",
        metavar="WHERE",
        help="Ask this daemon: a URL, a socket, or a name in wakeful.toml.",
    ),
]
JsonOption: TypeAlias = Annotated[bool, typer.Option("--json", help="Print JSON, errors included.")]
WideOption: TypeAlias = Annotated[bool, typer.Option("--wide", help="Do not cut lines to fit the screen.")]
ToolsOption: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--tools",
        metavar="MODULE:NAME",
        help="Python code to use: a tool, a list of tools, an agent, or a plain function (irreversible). "
        "Modules are found in the current folder, too. Repeatable.",
    ),
]
AgentOption: TypeAlias = Annotated[
    Path | None, typer.Option("--agent", metavar="FILE", help="An agent's YAML or JSON file.")
]
AgentOrFileOption: TypeAlias = Annotated[
    Path | None,
    typer.Option("--agent", metavar="NAME|FILE", help="An agent of the daemon, or an agent's YAML or JSON file."),
]
WorkspaceOption: TypeAlias = Annotated[
    Path | None,
    typer.Option("--workspace", metavar="DIR", help="The folder to work in. Default: the current folder."),
]
NetworkOption: TypeAlias = Annotated[bool, typer.Option("--network", help="Allow commands to use the network.")]
ProfileOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--profile",
        metavar="coding|shell_first|chat",
        help="Built-in tools: files and commands, commands and patches, or none. Default: coding, or as the agent "
        "says.",
    ),
]
NoInputOption: TypeAlias = Annotated[
    bool,
    typer.Option("--no-input", help="Never ask at the terminal; calls that need approval stay pending."),
]
NoWaitOption: TypeAlias = Annotated[
    bool, typer.Option("--no-wait", help="With an agent of the daemon: print the run's id and leave it to the daemon.")
]
ApproveOption: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--approve", metavar="TOOL", help="Approve all calls of this tool in this run; * matches any text. Repeatable."
    ),
]
ModelArgument: TypeAlias = Annotated[
    str, typer.Argument(metavar="MODEL", help="PROVIDER:MODEL, such as openai:gpt-5.5.")
]
TimeoutOption: TypeAlias = Annotated[
    float | None, typer.Option("--timeout", min=0.1, help="Seconds to wait for an answer. Default: 30.")
]
NamedTurn: TypeAlias = Annotated[
    str, typer.Argument(metavar="TURN", help="The turn's id, the beginning of its id, or its key.")
]
TurnArgument: TypeAlias = Annotated[
    str | None, typer.Argument(metavar="TURN", help="Id, beginning of the id, or key. Default: the newest turn.")
]
ApprovalArgument: TypeAlias = Annotated[
    str, typer.Argument(metavar="ID", help="The id or its beginning, or the key of a turn with one pending approval.")
]
RequestArgument: TypeAlias = Annotated[str, typer.Argument(metavar="ID", help="The request's id, or its beginning.")]
McpConfigOption: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--config",
        metavar="FILE",
        help="A file of MCP servers. Default: your mcp.json, and that of the workspace once trusted.",
    ),
]
McpOption: TypeAlias = Annotated[
    list[str] | None,
    typer.Option("--mcp", metavar="SERVER", help="Add the tools of this MCP server of your mcp.json. Repeatable."),
]
McpServerArgument: TypeAlias = Annotated[str, typer.Argument(metavar="SERVER", help="The server's name in mcp.json.")]
WorkflowArgument: TypeAlias = Annotated[
    str, typer.Argument(metavar="NAME", help="The workflow's name, its id, or the beginning of its id.")
]
GraphFileArgument: TypeAlias = Annotated[Path, typer.Argument(metavar="FILE", help="A workflow's graph, as JSON.")]

_SPAN = re.compile(r"^(\d+(?:\.\d+)?)(s|m|min|h|d|w)$")
_UNITS = {"s": 1, "m": MINUTE, "min": MINUTE, "h": HOUR, "d": DAY, "w": 7 * DAY}


def seconds_of(text: str) -> float:
    """The seconds that `--for` names. Raises WrongRequest."""
    found = _SPAN.match(text.strip().lower())
    if found is None or float(found[1]) == 0:
        raise WrongRequest(f"--for {text} is not a duration", "give a number and s, m, h, d or w: --for 7d")
    return float(found[1]) * _UNITS[found[2]]
