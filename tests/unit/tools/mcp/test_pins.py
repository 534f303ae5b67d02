"""A tool that changed is parked: first sight pins, a difference waits for somebody, and the file is the truth."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from kit.mcp_peers.asking import MakeOdd, ctx, named, names, reasons
from wakeful.contracts.errors import InvalidConfig, ToolReported
from wakeful.tools.mcp.pins import Pins
from wakeful.tools.mcp.tool_list import ListedTool, fingerprint


def listed(name: str, words: str = "Reads.", **hints: bool) -> ListedTool:
    schema = {"type": "object"}
    return ListedTool(name, words, schema, fingerprint(words, schema, hints))


def test_the_first_sight_pins_and_the_same_again_is_fine(tmp_path: Path) -> None:
    pins = Pins(tmp_path / "deep" / "pins.json")
    assert pins.check("docs", [listed("a"), listed("b")]) == {}
    assert Pins(pins.path).check("docs", [listed("b"), listed("a")]) == {}
    assert [pin.tool for pin in pins.known("docs")] == ["a", "b"]


@pytest.mark.parametrize("later", [listed("a", "Reads everything."), listed("a", readOnlyHint=True)])
def test_a_change_parks_the_tool_until_it_is_approved(tmp_path: Path, later: ListedTool) -> None:
    pins = Pins(tmp_path / "pins.json")
    pins.check("docs", [listed("a"), listed("b")])
    for _ in range(2):
        assert list(pins.check("docs", [later, listed("b")])) == ["a"]
    assert [(each.tool, each.description) for each in pins.parked("docs")] == [("a", later.description)]
    assert pins.approve("other") == []
    assert pins.approve("docs", ["b"]) == []
    assert [each.tool for each in pins.approve("docs")] == ["a"]
    assert pins.check("docs", [later, listed("b")]) == {}
    assert list(pins.check("docs", [listed("a")])) == ["a"]  # and back is a change, too


def test_what_is_approved_is_what_was_seen_and_nothing_newer(tmp_path: Path) -> None:
    pins = Pins(tmp_path / "pins.json")
    pins.check("docs", [listed("a")])
    pins.check("docs", [listed("a", "second")])
    pins.approve("docs")
    assert list(pins.check("docs", [listed("a", "third")])) == ["a"]


def test_a_tool_that_goes_back_to_what_it_was_waits_for_nobody(tmp_path: Path) -> None:
    pins = Pins(tmp_path / "pins.json")
    pins.check("docs", [listed("a")])
    pins.check("docs", [listed("a", "second")])
    assert pins.check("docs", [listed("a")]) == {}
    assert pins.parked("docs") == []


@pytest.mark.parametrize(
    "text", ["", "[]", "{", '{"version": 2, "servers": {}}', '{"version": 1, "servers": {"x": 1}}']
)
def test_pins_that_cannot_be_read_hold_everything_up(tmp_path: Path, text: str) -> None:
    path = tmp_path / "pins.json"
    path.write_text(text)
    with pytest.raises(InvalidConfig):
        Pins(path).check("docs", [listed("a")])
    assert path.read_text() == text


async def test_a_server_whose_pins_cannot_be_read_offers_nothing(odd: MakeOdd) -> None:
    peer = odd()
    peer.pins.write_text("{")
    offer = await peer.source.offer()
    assert offer.tools == ()
    assert "cannot be read" in offer.withheld[0].reason


def test_the_file_is_its_owners_alone(tmp_path: Path) -> None:
    pins = Pins(tmp_path / "pins.json")
    pins.check("docs", [listed("a")])
    assert pins.path.stat().st_mode & 0o077 == 0


PIN_ONE = """
import sys
from pathlib import Path
from wakeful.tools.mcp.pins import Pins
from wakeful.tools.mcp.tool_list import ListedTool, fingerprint
schema = {"type": "object"}
tools = [ListedTool(f"tool{each}", "Reads.", schema, fingerprint("Reads.", schema, {})) for each in range(20)]
Pins(Path(sys.argv[1])).check(f"server{sys.argv[2]}", tools)
"""


def test_many_processes_pin_at_once_and_none_loses_anothers(tmp_path: Path) -> None:
    path = tmp_path / "pins.json"
    workers = [subprocess.Popen([sys.executable, "-c", PIN_ONE, str(path), str(number)]) for number in range(4)]
    assert [worker.wait() for worker in workers] == [0, 0, 0, 0]
    kept = json.loads(path.read_text())["servers"]
    assert {server: len(tools) for server, tools in kept.items()} == {f"server{number}": 20 for number in range(4)}


async def test_a_tool_that_changes_between_the_offer_and_the_call_is_not_called(odd: MakeOdd) -> None:
    peer = odd("changes")
    tool = named(await peer.source.offer(), "mcp.odd/reads")
    assert await tool.invoke(ctx(), {"text": "first"}) == "reads: first"  # and with that it changes
    with pytest.raises(ToolReported) as failed:
        await tool.invoke(ctx(), {"text": "second"})
    assert failed.value.error.kind == "tool_changed"
    called = [message for message in peer.heard() if message.get("method") == "tools/call"]
    assert [call["params"]["arguments"]["text"] for call in called] == ["first"]


async def test_a_list_that_changed_is_seen_by_the_next_offer_and_parked_until_approved(odd: MakeOdd) -> None:
    peer = odd("changes")
    tool = named(await peer.source.offer(), "mcp.odd/reads")
    await tool.invoke(ctx(), {"text": "first"})
    offer = await peer.source.offer()
    assert "mcp.odd/reads" not in names(offer)
    withheld = reasons(offer)["mcp.odd/reads"]
    assert withheld.status == "denied"
    assert withheld.reason.startswith("its description or schema changed since 20")
    assert "`wakeful mcp approve odd` to accept" in withheld.reason
    assert withheld.description == "Reads, and sends everything to me."
    peer.source.pins.approve("odd")
    assert "mcp.odd/reads" in names(await peer.source.offer())
