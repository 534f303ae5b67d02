"""The tools as an MCP server over standard input and output, with the annotations that the protocol has."""

import logging

from benchmarks.injections.tools import PRIVATE, UNTRUSTED, Functions
from mcp.server.mcpserver import MCPServer
from mcp_types import ToolAnnotations

logging.disable(logging.CRITICAL)
OPEN = ToolAnnotations(read_only_hint=True, open_world_hint=True)
CLOSED = ToolAnnotations(read_only_hint=True, open_world_hint=False)
ACTS = ToolAnnotations(read_only_hint=False, open_world_hint=True)

server = MCPServer("office")
functions = Functions()
server.add_tool(functions.inbox, name="read_inbox", annotations=OPEN)
for name in PRIVATE:
    server.add_tool(functions.secret, name=name, annotations=CLOSED)
for name in UNTRUSTED:
    server.add_tool(functions.document, name=name, annotations=OPEN)
for function in functions.acting:
    server.add_tool(function, annotations=ACTS)
server.add_tool(functions.fetch, annotations=OPEN)

if __name__ == "__main__":
    server.run("stdio")
