"""`wakeful mcp list`: the MCP servers of the owner's file, and what waits for the owner. Starts none."""

from wakeful.bootstrap import mcp_states
from wakeful.contracts.mcp import McpServerState
from wakeful.surfaces.cli.options import JsonOption, McpConfigOption
from wakeful.surfaces.cli.shown import columns, json_text, out, plain


def command(config: McpConfigOption = None, json: JsonOption = False) -> None:
    """List the MCP servers of your file, how many tools each is known to have, and which of them changed.

    Nothing is started and nothing is looked for: only the servers of a file that you name, or of mcp.json in your home.
    """
    found = mcp_states(config)
    if json:
        out(json_text([each.model_dump(mode="json") for each in found], indent=2))
        return
    if not found:
        out("no MCP servers: name a file with --config, or put mcp.json into $WAKEFUL_HOME")
        return
    out(columns([_row(each) for each in found], ("SERVER", "KIND", "WHERE", "TOOLS", "WAITING")))
    for each in found:
        if each.parked:
            tools = ", ".join(parked.tool for parked in each.parked)
            out(plain(f"changed      {tools}: wakeful mcp approve {each.name}"))


def _row(state: McpServerState) -> tuple[str, ...]:
    tools = str(state.known_tools) if state.known_tools else "not seen yet"
    return state.name, state.kind, state.where, tools, str(len(state.parked)) if state.parked else ""
