"""The reference MCP server of its own project, over both transports."""

import asyncio
import os
import shutil
import subprocess
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from kit.mcp_peers.asking import QUICK, Progress, ctx, named, names
from kit.wires.loopback import free_port
from wakeful.contracts.content import Image, Text
from wakeful.tools.mcp.source import McpSource, from_mcp
from wakeful.tools.results import ToolOutput


@pytest.fixture
def program(root: Path) -> list[str]:
    path = root / ".peers/node_modules/@modelcontextprotocol/server-everything/dist/index.js"
    if shutil.which("node") is None:
        pytest.skip("needs node 20 or newer to run server-everything")
    if not path.is_file():
        pytest.skip("needs server-everything, which is not installed; run: make peers")
    return ["node", str(path)]


@pytest.fixture(params=["stdio", "http"])
def where(request: pytest.FixtureRequest, program: list[str]) -> Iterator[dict[str, Any]]:
    if request.param == "stdio":
        yield {"command": [*program, "stdio"]}
        return
    port = free_port()
    process = subprocess.Popen(
        [*program, "streamableHttp"],
        env={**os.environ, "PORT": str(port)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    assert process.stderr is not None
    try:
        while b"listening" not in (line := process.stderr.readline()):
            assert line, "the server ended before it listened"
        yield {"url": f"http://localhost:{port}/mcp"}
    finally:
        process.kill()
        process.communicate()


@pytest.fixture
async def everything(where: dict[str, Any], tmp_path: Path) -> AsyncIterator[McpSource]:
    source = from_mcp("everything", **where, pins=tmp_path / "pins.json", limits=QUICK)
    yield source
    await source.close()


async def test_the_reference_server_is_served_whole(everything: McpSource) -> None:
    offer = await everything.offer()
    assert {"mcp.everything/echo", "mcp.everything/get-sum", "mcp.everything/get-tiny-image"} <= set(names(offer))
    assert {tool.declaration.permission for tool in offer.tools} == {"network", "external_write"}
    assert named(offer, "mcp.everything/toggle-simulated-logging").declaration.permission == "external_write"

    async def call(tool: str, told: list[Progress] | None = None, **arguments: Any) -> Any:
        return await named(offer, f"mcp.everything/{tool}").invoke(ctx(told), arguments)

    assert await call("echo", message="hello") == "Echo: hello"
    picture = await call("get-tiny-image")
    assert [type(part) for part in picture] == [Text, Image, Text]
    weather = await call("get-structured-content", location="New York")
    assert isinstance(weather, ToolOutput)
    assert set(weather.metadata["structured_content"]) == {"temperature", "conditions", "humidity"}
    told: list[Progress] = []
    await call("trigger-long-running-operation", told, duration=0.2, steps=4)
    assert told == [("", float(step), 4.0, "") for step in (1, 2, 3, 4)]


async def test_a_call_to_the_reference_server_can_be_given_up(everything: McpSource) -> None:
    offer = await everything.offer()
    told: list[Progress] = []
    long = named(offer, "mcp.everything/trigger-long-running-operation")
    running = long.start(ctx(told), {"duration": 600, "steps": 6000})
    while not told:  # noqa: ASYNC110 - it happens in another process
        await asyncio.sleep(0.01)
    running.result.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running.result
    assert await named(offer, "mcp.everything/echo").invoke(ctx(), {"message": "still here"}) == "Echo: still here"
