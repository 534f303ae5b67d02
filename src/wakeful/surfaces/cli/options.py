"""Options that several commands share, so that the same thing is spelled and explained the same everywhere."""

from pathlib import Path
from typing import Annotated, TypeAlias

import typer

StoreOption: TypeAlias = Annotated[
    Path | None,
    typer.Option("--store", metavar="FILE", help="The store. Left out: the database in $WAKEFUL_HOME."),
]
JsonOption: TypeAlias = Annotated[bool, typer.Option("--json", help="JSON on stdout, for programs.")]
ToolsOption: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--tools",
        metavar="MODULE:NAME",
        help="Code to use: a tool, a list of tools, an agent, or a function (which counts as irreversible). "
        "May be given several times; the current folder is importable.",
    ),
]
AgentOption: TypeAlias = Annotated[
    Path | None, typer.Option("--agent", metavar="FILE", help="An agent's YAML or JSON file.")
]
WorkspaceOption: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--workspace", metavar="DIR", help="The folder to work in. Left out: the current one, unless chatting."
    ),
]
NetworkOption: TypeAlias = Annotated[
    bool, typer.Option("--network", help="Let commands reach the network. Without it they cannot.")
]
ProfileOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--profile",
        metavar="coding|shell_first|chat",
        help="Which built-in tools: files and commands, commands and patches, or none. Left out: coding, or what the "
        "named agent says.",
    ),
]
NoInputOption: TypeAlias = Annotated[
    bool,
    typer.Option("--no-input", help="Ask nothing here, also at a terminal: the run rests on what a person decides."),
]
ApproveOption: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--approve", metavar="TOOL", help="Say yes to this tool in this run, whatever it is given. * is allowed."
    ),
]
ModelArgument: TypeAlias = Annotated[
    str, typer.Argument(metavar="MODEL", help="PROVIDER:MODEL, such as openai:gpt-5.5.")
]
TimeoutOption: TypeAlias = Annotated[
    float | None, typer.Option("--timeout", min=0.1, help="Seconds to wait for an answer. Left out: 30.")
]
TurnArgument: TypeAlias = Annotated[str | None, typer.Argument(metavar="TURN", help="Left out: the newest turn.")]
RequestArgument: TypeAlias = Annotated[
    str, typer.Argument(metavar="ID", help="The request's id, or as much of it as means one request.")
]
McpConfigOption: TypeAlias = Annotated[
    Path | None,
    typer.Option("--config", metavar="FILE", help="Your file of MCP servers. Left out: mcp.json in $WAKEFUL_HOME."),
]
McpServerArgument: TypeAlias = Annotated[str, typer.Argument(metavar="SERVER", help="The server's name in that file.")]
WorkflowArgument: TypeAlias = Annotated[str, typer.Argument(metavar="NAME", help="The workflow's name, or its id.")]
GraphFileArgument: TypeAlias = Annotated[Path, typer.Argument(metavar="FILE", help="A workflow's graph, as JSON.")]
