"""An agent with an MCP server: the same file is the server (`serve`) and the program that uses it.

    pip install 'wakeful[mcp]'
    python examples/notes_server.py

The server says which of its tools only read. Calls of the other one need approval: here a function approves.
For a real model put `"anthropic:claude-haiku-4-5"` in the place of `scripted(...)`.
"""

import sys

from wakeful import Agent, Approval, from_mcp, run_sync
from wakeful.testing import scripted

NOTES = {"monday": "Water the plants."}


def serve() -> None:
    from mcp.server.mcpserver import MCPServer
    from mcp_types import ToolAnnotations

    server = MCPServer("notes")

    @server.tool(annotations=ToolAnnotations(read_only_hint=True, open_world_hint=False))
    def read_note(day: str) -> str:
        """The note of a day."""
        return NOTES.get(day, "nothing")

    @server.tool(annotations=ToolAnnotations(open_world_hint=False))
    def write_note(day: str, text: str) -> str:
        """Write the note of a day."""
        NOTES[day] = text
        return "written"

    server.run()


def approve(approval: Approval) -> bool:
    print(f"approving {approval.tool} {dict(approval.arguments)}")
    return True


def main() -> None:
    notes = from_mcp("notes", command=[sys.executable, __file__, "serve"])
    script = [
        {"calls": [{"name": "read_note", "arguments": {"day": "monday"}}]},
        {"calls": [{"name": "write_note", "arguments": {"day": "tuesday", "text": "Call the bank."}}]},
        "On Monday: water the plants. I wrote down the bank for Tuesday.",
    ]
    secretary = Agent("secretary", scripted(script), tools=[notes])
    prompt = "What is on Monday? And note the bank for Tuesday."
    result = run_sync(secretary, prompt, store="notes.db", approver=approve)
    print(result.output if result.completed else f"{result.status}: {result.message}")


if __name__ == "__main__":
    serve() if sys.argv[1:] == ["serve"] else main()
