"""Logging in to servers, against an authorization server on this machine."""

import asyncio
import json
import logging
import time
import urllib.request
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from pytest_httpserver import HTTPServer

from kit.mcp_peers.asking import QUICK, ctx, named, names
from kit.mcp_peers.gate import Gate
from kit.wires.loopback import free_port
from wakeful.contracts.errors import InvalidConfig, ToolReported
from wakeful.tools.mcp.failures import NotReached
from wakeful.tools.mcp.login import in_a_browser, log_in
from wakeful.tools.mcp.oauth import BrowserGrant
from wakeful.tools.mcp.servers import HttpServer, OAuth
from wakeful.tools.mcp.source import McpSource, from_mcp


@pytest.fixture
def gate(httpserver: HTTPServer) -> Gate:
    return Gate(httpserver)


@pytest.fixture
def port() -> int:
    return free_port()


@pytest.fixture
async def source(gate: Gate, tmp_path: Path, port: int) -> AsyncIterator[McpSource]:
    made = again(gate, tmp_path, port)
    yield made
    await made.close()


def again(gate: Gate, folder: Path, port: int) -> McpSource:
    """As another process would have it."""
    return from_mcp(
        "gate",
        url=gate.url,
        oauth=OAuth(redirect_port=port),
        pins=folder / "pins.json",
        tokens=folder / "tokens",
        limits=QUICK,
        protocol="2025-11-25",
    )


def names_below(folder: Path) -> list[str]:
    return [path.name for path in folder.rglob("*")]


def grants(gate: Gate) -> Any:
    async def ask(url: str) -> BrowserGrant:
        return gate.authorize(url)

    return ask


async def test_a_server_nobody_logged_in_to_says_how(source: McpSource) -> None:
    offer = await source.offer()
    assert offer.tools == ()
    assert "wakeful mcp login gate" in offer.withheld[0].reason


async def test_after_a_login_calls_carry_the_token(source: McpSource, gate: Gate) -> None:
    await log_in(source, grants(gate))
    tool = named(await source.offer(), "mcp.gate/whose")
    assert await tool.invoke(ctx(), {}) == "access-secret-1"
    assert gate.grants == ["authorization_code"]


async def test_tokens_are_kept_by_principal_in_files_of_their_owner(
    source: McpSource, gate: Gate, tmp_path: Path
) -> None:
    await log_in(source, grants(gate))
    tool = named(await source.offer(), "mcp.gate/whose")
    with pytest.raises(ToolReported, match="wakeful mcp login gate --principal ada"):
        await tool.invoke(ctx(principal="ada"), {})
    await log_in(source, grants(gate), "ada")
    assert await tool.invoke(ctx(principal="ada"), {}) == "access-secret-2"
    assert await tool.invoke(ctx(), {}) == "access-secret-1"
    files = [path for path in (tmp_path / "tokens").iterdir() if path.suffix == ".json"]
    assert sorted(json.loads(path.read_text())["principal"] for path in files) == ["ada", "owner"]
    assert {path.stat().st_mode & 0o777 for path in files} == {0o600}
    assert (tmp_path / "tokens").stat().st_mode & 0o077 == 0


async def test_a_token_that_ended_is_renewed_by_a_process_that_never_saw_the_login(
    source: McpSource, gate: Gate, tmp_path: Path, port: int
) -> None:
    await log_in(source, grants(gate))
    (file,) = (path for path in (tmp_path / "tokens").iterdir() if path.suffix == ".json")
    kept = json.loads(file.read_text())
    file.write_text(json.dumps({**kept, "expires_at": time.time() - 5}))
    gate.valid.clear()
    other = again(gate, tmp_path, port)
    tool = named(await other.offer(), "mcp.gate/whose")
    assert await tool.invoke(ctx(), {}) == "access-secret-2"
    await other.close()
    assert gate.grants == ["authorization_code", "refresh_token"]
    assert json.loads(file.read_text())["tokens"]["refresh_token"] == "refresh-secret-2"


async def test_no_token_is_in_a_log_an_error_or_a_name(
    source: McpSource, gate: Gate, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    await log_in(source, grants(gate))
    offer = await source.offer()
    gate.valid.clear()  # taken back by the server: the next call has to log in again, and nobody is there
    with pytest.raises(ToolReported) as failed:
        await named(offer, "mcp.gate/whose").invoke(ctx(), {})
    said = [str(failed.value), repr(failed.value.error), repr(source), *names_below(tmp_path)]
    said += [record.getMessage() + str(record.exc_text) for record in caplog.records if record.name != "werkzeug"]
    assert [text for text in said if "secret" in text] == []
    assert failed.value.error.kind == "server_unavailable"
    assert "wakeful mcp login gate" in failed.value.error.message


async def test_a_login_that_is_refused_leaves_nothing_behind(source: McpSource, gate: Gate, tmp_path: Path) -> None:
    async def refuse(url: str) -> BrowserGrant:
        return gate.authorize(url, granted=False)

    with pytest.raises(NotReached, match="the login failed"):
        await log_in(source, refuse)
    assert names(await source.offer()) == []
    assert "access" not in "".join(path.read_text() for path in (tmp_path / "tokens").iterdir())


async def test_an_answer_that_belongs_to_another_login_is_refused(source: McpSource, gate: Gate) -> None:
    async def swapped(url: str) -> BrowserGrant:
        return BrowserGrant(gate.authorize(url).code, "another-state")

    with pytest.raises(NotReached, match="the login failed"):
        await log_in(source, swapped)
    assert gate.grants == []


async def test_the_browser_brings_the_answer_to_this_machine(source: McpSource, gate: Gate, port: int) -> None:
    assert isinstance(source.server, HttpServer)
    shown: list[str] = []
    pages: list[str] = []

    def go(url: str) -> None:
        shown.append(url)
        granted = gate.authorize(url)
        back = f"http://127.0.0.1:{port}"

        def visit() -> None:
            for path in ("/favicon.ico", f"/granted?code={granted.code}&state={granted.state}"):
                try:
                    with urllib.request.urlopen(back + path) as answer:
                        pages.append(answer.read().decode())
                except urllib.error.HTTPError as error:
                    pages.append(str(error.code))
                    error.close()

        visits.append(asyncio.get_running_loop().run_in_executor(None, visit))

    visits: list[asyncio.Future[None]] = []
    await log_in(source, in_a_browser(source.server, go))
    await asyncio.gather(*visits)
    assert pages[0] == "404"
    assert "You can close this window" in pages[1]
    assert parse_qs(urlsplit(shown[0]).query)["redirect_uri"] == [f"http://127.0.0.1:{port}/granted"]
    assert names(await source.offer()) == ["mcp.gate/whose"]


async def test_a_server_without_oauth_has_no_login() -> None:
    with pytest.raises(InvalidConfig, match="has no login"):
        await log_in(from_mcp("x", command=["x"]), grants(None))  # type: ignore[arg-type]
