"""An MCP server written with the SDK: `sdk_server.py stdio`, or `sdk_server.py http SOCKET`, one that listens."""

import asyncio
import logging
import socket
import sys

from mcp.server.mcpserver import Context, Image, MCPServer
from mcp_types import ToolAnnotations

logging.disable(logging.CRITICAL)
server = MCPServer("shop")
READS = ToolAnnotations(read_only_hint=True)
shelf = {"changed": False}


@server.tool(annotations=READS)
async def count(ctx: Context, to: int) -> int:
    """Count, and say how far it is."""
    for number in range(1, to + 1):
        await ctx.report_progress(number, to, f"at {number}")
    return to


@server.tool(annotations=READS)
async def wait(ctx: Context) -> str:
    """Wait until nobody waits any more."""
    try:
        await asyncio.sleep(600)
    except asyncio.CancelledError:
        shelf["changed"] = True
        raise
    return "nobody"


@server.tool(annotations=READS)
def was_cancelled() -> bool:
    """Whether a wait was given up."""
    return shelf["changed"]


@server.tool(annotations=READS)
def picture() -> Image:
    """One pixel."""
    return Image(data=b"\x89PNG\r\n\x1a\n", format="png")


@server.tool(annotations=READS)
async def grow(ctx: Context) -> str:
    """Get one more tool."""

    @server.tool(name="grown", annotations=READS)
    def grown() -> str:
        """It was not there before."""
        return "here"

    return "grown"


@server.tool()
def pay(cents: int) -> str:
    """Pay."""
    raise ValueError(f"no {cents} cents left")


if __name__ == "__main__":
    if sys.argv[1] == "stdio":
        server.run("stdio")
    else:
        import uvicorn

        app = server.streamable_http_app(json_response="json" in sys.argv)
        # A connection that idles is kept: a client that stands still for a while finds it as it left it.
        config = uvicorn.Config(app, log_level="critical", timeout_keep_alive=600)
        asyncio.run(uvicorn.Server(config).serve(sockets=[socket.socket(fileno=int(sys.argv[2]))]))
