"""Servers written with the SDK, over both transports and in both revisions of the protocol."""

import asyncio
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from kit.mcp_peers.asking import HERE, QUICK, Progress, ctx, named, names
from wakeful.contracts.content import Image
from wakeful.contracts.errors import ToolReported
from wakeful.tools.mcp.source import McpSource, from_mcp
from wakeful.tools.results import ToolOutput

REVISIONS = ["2025-11-25", "2026-07-28"]


@pytest.fixture(params=["stdio", "http"])
def where(request: pytest.FixtureRequest) -> dict[str, Any]:
    if request.param == "stdio":
        return {"command": [sys.executable, str(HERE / "sdk_server.py"), "stdio"]}
    return {"url": request.getfixturevalue("sdk_url")}


@pytest.fixture(params=REVISIONS)
async def shop(where: dict[str, Any], tmp_path: Path, request: pytest.FixtureRequest) -> AsyncIterator[McpSource]:
    classes = {"pay": "external_write"}
    source = from_mcp(
        "shop", **where, protocol=request.param, classes=classes, pins=tmp_path / "pins.json", limits=QUICK
    )
    yield source
    await source.close()
    assert [task for task in asyncio.all_tasks() if "wakeful-mcp" in task.get_name()] == []


async def test_a_server_of_the_sdk_is_served_whole(shop: McpSource) -> None:
    offer = await shop.offer()
    assert names(offer) == [f"mcp.shop/{name}" for name in ("count", "wait", "was_cancelled", "picture", "grow", "pay")]
    assert [tool.declaration.effect for tool in offer.tools] == ["pure"] * 5 + ["irreversible"]

    told: list[Progress] = []
    result = await named(offer, "mcp.shop/count").invoke(ctx(told), {"to": 3})
    assert result == ToolOutput("3", metadata={"structured_content": {"result": 3}})
    assert told == [("at 1", 1.0, 3.0, ""), ("at 2", 2.0, 3.0, ""), ("at 3", 3.0, 3.0, "")]

    picture = await named(offer, "mcp.shop/picture").invoke(ctx(), {})
    assert picture == [Image(data=b"\x89PNG\r\n\x1a\n", media_type="image/png")]

    with pytest.raises(ToolReported, match="Error executing tool pay"):
        await named(offer, "mcp.shop/pay").invoke(ctx(), {"cents": 5})


async def test_a_call_that_is_given_up_ends_at_the_server_too(shop: McpSource) -> None:
    offer = await shop.offer()
    waiting = named(offer, "mcp.shop/wait").start(ctx(), {})
    other = named(offer, "mcp.shop/was_cancelled")
    for _ in range(3):  # it has begun before it is given up: the server answers in between
        assert (await other.invoke(ctx(), {})).content == "false"
    waiting.result.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting.result
    while (await other.invoke(ctx(), {})).content == "false":
        pass  # every question gives the server time to notice


async def test_a_tool_that_comes_later_is_in_the_next_offer(shop: McpSource) -> None:
    offer = await shop.offer()
    assert "mcp.shop/grown" not in names(offer)
    await named(offer, "mcp.shop/grow").invoke(ctx(), {})
    assert "mcp.shop/grown" in names(await shop.offer())


async def test_without_a_class_what_does_not_only_read_asks(where: dict[str, Any], tmp_path: Path) -> None:
    source = from_mcp("shop", **where, pins=tmp_path / "pins.json")
    offer = await source.offer()
    await source.close()
    assert offer.withheld == ()
    classes = {tool.name: tool.declaration.permission for tool in offer.tools}
    assert classes.pop("mcp.shop/pay") == "external_write"
    assert set(classes.values()) == {"network"}
    assert {tool.declaration.leaves_machine for tool in offer.tools} == {True}
