"""What the suites about MCP share: sources for servers that misbehave, and calls outside a run."""

import json
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

from wakeful.contracts.tools import Principal
from wakeful.tools.context import RunContext
from wakeful.tools.mcp.servers import ServerLimits
from wakeful.tools.mcp.source import McpSource, from_mcp
from wakeful.tools.source import Offer, WithheldTool
from wakeful.tools.tool import Tool

HERE = Path(__file__).resolve().parent
QUICK = ServerLimits(retry_seconds=(0.0,), idle_seconds=0.0)
Progress = tuple[str, float | None, float | None, str]


class Odd:
    """A source for `odd_server.py`, with what the server heard."""

    def __init__(self, folder: Path, mode: str, **options: Any) -> None:
        self.heard_file = folder / f"heard-{mode}"
        self.pins = folder / "pins.json"
        command = [sys.executable, "-I", "-S", str(HERE / "odd_server.py"), mode, str(self.heard_file)]
        self.source: McpSource = from_mcp(
            "odd", **{"command": command, "pins": self.pins, "limits": QUICK, "protocol": "2025-11-25", **options}
        )

    def heard(self) -> list[dict[str, Any]]:
        if not self.heard_file.exists():
            return []
        return [json.loads(line) for line in self.heard_file.read_text().splitlines() if line.endswith("}")]

    def methods(self) -> list[str]:
        return [message["method"] for message in self.heard() if "method" in message]


MakeOdd = Callable[..., Odd]


def named(offer: Offer, name: str) -> Tool[Any]:
    return next(tool for tool in offer.tools if tool.name == name)


def names(offer: Offer) -> list[str]:
    return [tool.name for tool in offer.tools]


def reasons(offer: Offer) -> dict[str, WithheldTool]:
    return {each.name: each for each in offer.withheld}


def ctx(
    progress: list[Progress] | None = None, deadline: datetime | None = None, principal: str | None = None
) -> RunContext[None]:
    sink = None if progress is None else lambda *told: progress.append(told)
    return RunContext(None, progress=sink, deadline=deadline, principal=Principal(id=principal) if principal else None)


@contextmanager
def running_sdk_server(*options: str) -> Iterator[str]:
    """`sdk_server.py` at a URL on this machine, ended with the block."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        command = [sys.executable, str(HERE / "sdk_server.py"), "http", str(listener.fileno()), *options]
        process = subprocess.Popen(command, stderr=subprocess.DEVNULL, pass_fds=[listener.fileno()])
    try:
        asked = HTTPConnection("127.0.0.1", port, timeout=200)
        asked.request("GET", "/")
        asked.getresponse().read()
        asked.close()
        yield f"http://127.0.0.1:{port}/mcp"
    finally:
        process.kill()
        process.wait()
