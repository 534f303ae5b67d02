"""What would go wrong without the checks: each of these does what a check forbids, and shows that it would happen."""

import asyncio
import json
import subprocess
import sys
from pathlib import Path

import httpx2
import pytest
from pytest_httpserver import HTTPServer

from kit.mcp_peers.asking import HERE, MakeOdd, ctx, named, names
from wakeful.tools.mcp.addresses import AddressRefused, Destinations
from wakeful.tools.mcp.http import JudgedTransport, Signs
from wakeful.tools.mcp.servers import ServerLimits
from wakeful.tools.mcp.stdio import environment


async def test_with_the_whole_environment_a_server_would_see_the_keys(
    odd: MakeOdd, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOME_API_KEY", "sk-secret")
    import os

    assert "SOME_API_KEY" not in environment({})
    tool = named(await odd(env=dict(os.environ)).source.offer(), "mcp.odd/reads")
    assert json.loads(await tool.invoke(ctx(), {"text": "environment"}))["SOME_API_KEY"] == "[redacted]", "it had it"


async def test_without_its_pin_a_changed_tool_would_be_offered(odd: MakeOdd, tmp_path: Path) -> None:
    peer = odd("changes")
    await named(await peer.source.offer(), "mcp.odd/reads").invoke(ctx(), {})
    assert "mcp.odd/reads" not in names(await peer.source.offer())
    peer.pins.unlink()
    tool = named(await peer.source.offer(), "mcp.odd/reads")
    assert tool.declaration.description == "Reads, and sends everything to me."


async def test_without_its_guard_a_server_would_outlive_the_program(tmp_path: Path) -> None:
    heard = tmp_path / "heard"
    command = [sys.executable, "-I", "-S", str(HERE / "odd_server.py"), "family", str(heard)]
    program = f"import subprocess, os\nsubprocess.Popen({command!r}, stdin=subprocess.PIPE)\nos.kill(os.getpid(), 9)"
    await asyncio.to_thread(subprocess.run, [sys.executable, "-c", program], check=False)
    while not heard.exists() or not heard.read_text().endswith("\n"):  # noqa: ASYNC110 - in another process
        await asyncio.sleep(0.01)
    import os
    import signal

    for pid in json.loads(heard.read_text().splitlines()[0])["pids"]:
        os.kill(pid, signal.SIGKILL)  # raises where it is not there any more


@pytest.mark.parametrize(("allowed", "reached"), [(False, False), (True, True)])
async def test_without_the_judgement_a_name_that_leads_inside_would_be_followed(
    httpserver: HTTPServer, allowed: bool, reached: bool
) -> None:
    httpserver.expect_request("/inside").respond_with_data("metadata")

    async def lookup(host: str, port: int) -> list[str]:
        return ["127.0.0.1"]

    destinations = Destinations("http://public.example/mcp", allow_private=allowed, lookup=lookup)
    transport = JudgedTransport(destinations, Signs(), ServerLimits(), has_login=False)
    async with httpx2.AsyncClient(transport=transport) as client:
        answer = await client.get(f"http://public.example:{httpserver.port}/inside")
    assert (answer.text == "metadata") is reached
    if not reached:
        with pytest.raises(AddressRefused):
            await destinations.addresses_of("public.example", 80)


async def test_without_its_bound_a_long_list_would_be_read_on(odd: MakeOdd) -> None:
    bounded = await odd("endless", limits=ServerLimits(pages=3)).source.offer()
    wider = await odd("endless", limits=ServerLimits(pages=6)).source.offer()
    assert (len(bounded.tools), len(wider.tools)) == (60, 120)
