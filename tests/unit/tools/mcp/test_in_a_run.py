"""Tools of a server in a run: through the gate, into the log."""

import json
from pathlib import Path
from typing import Any

import pytest

from kit.gates.hostile_model import everything
from kit.mcp_peers.asking import MakeOdd
from wakeful import Agent, Approval, RunResult, from_mcp, run, stream
from wakeful.contracts.errors import InvalidConfig
from wakeful.contracts.events import ToolCatalogResolved, ToolProgress, ToolResult
from wakeful.contracts.policies import GatePolicy
from wakeful.contracts.tool_catalog import ToolCatalog
from wakeful.decisions.policy.permissions import default_policy
from wakeful.store.memory import MemoryStore
from wakeful.testing import scripted
from wakeful.tools.mcp.servers import StdioServer, keys_of
from wakeful.views.run_stream_events import McpProgressEvent, ToolResultEvent

ALL = {"*": "external_write"}


def calling(*names: str, **arguments: Any) -> list[object]:
    given = arguments or {"text": "hello"}
    return [{"calls": [{"name": name, "arguments": given}]} for name in names]


async def agreed(approval: Approval) -> bool:
    return True


async def catalog_of(store: MemoryStore, result: RunResult[str]) -> ToolCatalog:
    (event,) = [one.fact.event for one in result.facts() if isinstance(one.fact.event, ToolCatalogResolved)]
    return ToolCatalog.model_validate_json(await store.get_blob(event.catalog_ref.digest))


async def test_a_call_goes_through_the_gate_and_its_result_to_the_model(odd: MakeOdd) -> None:
    asked: list[str] = []

    async def approver(approval: Approval) -> bool:
        asked.append(approval.tool)
        return True

    model = scripted([*calling("mcp.odd/reads", "mcp.odd/pays"), "Done."])
    result = await run(Agent("clerk", model, tools=[odd(classes=ALL).source]), "do it", approver=approver)
    assert result.output == "Done."
    assert [(call.tool, call.status) for call in result.calls()] == [
        ("mcp.odd/reads", "success"),
        ("mcp.odd/pays", "success"),
    ]
    assert asked == ["mcp.odd/reads", "mcp.odd/pays"], "what somebody else's program does needs a person"


async def test_a_server_that_dies_leaves_an_unknown_outcome_in_the_log(odd: MakeOdd) -> None:
    model = scripted([*calling("mcp.odd/pays"), "Nobody knows."])
    result = await run(Agent("clerk", model, tools=[odd("dies", classes=ALL).source]), "do it", approver=agreed)
    assert result.output == "Nobody knows."
    (call,) = result.unknown
    assert call.tool == "mcp.odd/pays"


@pytest.mark.spec("LOOP-BELT-04", "LOOP-BELT-06")
async def test_a_server_that_the_policy_does_not_name_contributes_nothing_and_its_tools_do_not_exist(
    odd: MakeOdd,
) -> None:
    store = MemoryStore()
    nobody = GatePolicy(tools=default_policy("library", allowed_mcp_servers=()))
    server = odd(classes=ALL)
    model = scripted([*calling("mcp.odd/pays", "mcp.odd/nothing_of_that_name"), "No."])
    result = await run(Agent("clerk", model, tools=[server.source], policy=nobody), "do it", store=store)
    filtered, unknown = result.calls()
    assert filtered.error is not None and unknown.error is not None
    assert filtered.error.replace("pays", "nothing_of_that_name") == unknown.error, "the same words as for no tool"
    assert "tools/call" not in server.methods()
    entries = {entry.tool_name: entry for entry in (await catalog_of(store, result)).entries}
    assert entries["mcp.odd/pays"].policy == "denied" and "did not allow" in entries["mcp.odd/pays"].policy_reason
    # Named, the same call reaches the server.
    model = scripted([*calling("mcp.odd/pays"), "Yes."])
    await run(Agent("clerk", model, tools=[server.source]), "do it", approver=agreed)
    assert "tools/call" in server.methods()


async def counted(url: str, folder: Path, *, emit: bool, to: int = 3) -> tuple[list[Any], RunResult[str]]:
    """A run in which a server counts aloud, as a client sees it, and its result."""
    source = from_mcp("shop", url=url, classes=ALL, reads_private=False, pins=folder / "pins.json")
    agent = Agent(
        "clerk", scripted([*calling("mcp.shop/count", to=to), "Three."]), tools=[source], emit_mcp_progress=emit
    )
    async with stream(agent, "count", approver=agreed) as events:
        return [event async for event in events], await events.result()


@pytest.mark.spec("CTL-MCP-01", "CTL-MCP-07")
async def test_progress_of_a_server_is_told_by_default_before_the_result(sdk_url: str, tmp_path: Path) -> None:
    events, result = await counted(sdk_url, tmp_path, emit=True)
    notes = [event for event in events if isinstance(event, McpProgressEvent)]
    assert notes
    last = notes[-1]
    assert (last.tool_name, last.agent_name, last.progress, last.total) == ("mcp.shop/count", "clerk", 3.0, 3.0)
    assert last.message == "at 3" and last.tool_call_id == result.calls()[0].call_id
    (ended,) = [event for event in events if isinstance(event, ToolResultEvent)]
    assert events.index(last) < events.index(ended)


@pytest.mark.spec("CTL-MCP-02", "CTL-CFG-07")
async def test_without_it_only_the_telling_is_left_out(sdk_url: str, tmp_path: Path) -> None:
    assert Agent("clerk", "a:b").emit_mcp_progress is True
    with pytest.raises(InvalidConfig):
        Agent("clerk", "a:b", emit_mcp_progress="yes")  # type: ignore[arg-type]
    _, told = await counted(sdk_url, tmp_path, emit=True)
    events, silent = await counted(sdk_url, tmp_path, emit=False)
    assert not [event for event in events if isinstance(event, McpProgressEvent)]
    assert not [one for one in silent.facts() if isinstance(one.fact.event, ToolProgress)]

    def without_progress(result: RunResult[str]) -> list[str]:
        return [one.fact.event.kind for one in result.facts() if not isinstance(one.fact.event, ToolProgress)]

    assert without_progress(silent) == without_progress(told)

    def metadata(result: RunResult[str]) -> list[Any]:
        ends = [one.fact.event for one in result.facts() if isinstance(one.fact.event, ToolResult)]
        own = {"started_at", "completed_at", "execution_time_ms", "approval_id"}
        return [(end.item, end.details, end.metadata.model_dump(exclude=own)) for end in ends]

    assert metadata(silent) == metadata(told) != []
    for one, other in zip(silent.calls(), told.calls(), strict=True):
        assert (one.tool, one.arguments, one.status, one.result) == (
            other.tool,
            other.arguments,
            other.status,
            other.result,
        )


@pytest.mark.spec("CTL-MCP-03")
@pytest.mark.parametrize("emit", [True, False])
async def test_every_note_of_a_server_is_taken_in_whether_or_not_it_is_told(
    sdk_url: str, tmp_path: Path, emit: bool
) -> None:
    """A server that counts further than any buffer on the way holds comes to its end only when somebody reads."""
    many = 4_000
    events, result = await counted(sdk_url, tmp_path, emit=emit, to=many)
    (call,) = result.calls()
    assert (call.status, result.output) == ("success", "Three.") and str(many) in call.result
    notes = [event for event in events if isinstance(event, McpProgressEvent)]
    facts = [one for one in result.facts() if isinstance(one.fact.event, ToolProgress)]
    # All of them came through the tool: the last is there, and its number says how many came before it.
    assert bool(notes) is bool(facts) is emit
    if emit:
        assert (facts[-1].fact.event.progress_seq, facts[-1].fact.event.progress) == (many, many)  # type: ignore[union-attr]


@pytest.mark.spec("CTL-MCP-04")
@pytest.mark.parametrize("emit", [True, False])
async def test_a_server_is_asked_for_progress_whether_or_not_it_is_told(odd: MakeOdd, emit: bool) -> None:
    server = odd(classes=ALL)
    model = scripted([*calling("mcp.odd/reads"), "Done."])
    agent = Agent("clerk", model, tools=[server.source], emit_mcp_progress=emit)
    await run(agent, "do it", approver=agreed)
    (asked,) = [message["params"] for message in server.heard() if message.get("method") == "tools/call"]
    assert "progressToken" in asked["_meta"]


async def test_a_tool_that_says_nothing_of_itself_is_offered_and_a_person_is_asked(odd: MakeOdd) -> None:
    asked: list[str] = []

    async def approver(approval: Approval) -> bool:
        asked.append(approval.tool)
        return True

    server = odd()
    model = scripted([*calling("mcp.odd/silent"), "Done."], leftover="ignore")
    result = await run(Agent("clerk", model, tools=[server.source]), "do it")
    assert (result.status, "tools/call" in server.methods()) == ("approval_required", False)
    agent = Agent("clerk", scripted([*calling("mcp.odd/silent"), "Done."]), tools=[server.source])
    result = await run(agent, "do it", approver=approver)
    assert (result.status, asked, "tools/call" in server.methods()) == ("completed", ["mcp.odd/silent"], True)


async def test_with_a_class_that_does_not_ask_the_same_call_runs_unasked(odd: MakeOdd) -> None:
    server = odd(classes={"silent": "network"}, reads_private=False)
    result = await run(Agent("clerk", scripted([*calling("mcp.odd/silent"), "Done."]), tools=[server.source]), "do it")
    assert (result.status, "tools/call" in server.methods()) == ("completed", True)


async def test_a_server_none_of_whose_tools_are_offered_is_warned_about(
    odd: MakeOdd, caplog: pytest.LogCaptureFixture
) -> None:
    policy = GatePolicy(tools=default_policy("library"))
    agent = Agent("clerk", scripted(["Done.", "Done."], leftover="ignore"), tools=[odd().source], policy=policy)
    for _ in range(2):
        assert (await run(agent, "do it")).output == "Done."
    told = [record.getMessage() for record in caplog.records if record.name == "wakeful.tools"]
    assert len(told) == 2, "once each"
    assert "policy= replaces the default policy and leaves out 4 of its tools: mcp.odd/reads" in told[0]
    assert told[1].startswith("Agent 'clerk': no tool of the MCP server 'odd' is offered (mcp.odd/")
    caplog.clear()
    await run(Agent("clerk", scripted(["Done."]), tools=[odd().source]), "do it")
    assert caplog.records == []


@pytest.mark.parametrize("text", ["hello", "fail"])
async def test_a_key_that_a_server_was_given_is_in_nothing_it_says(odd: MakeOdd, text: str, tmp_path: Path) -> None:
    key, store = "canary key/with=signs-9f8e7d", tmp_path / "runs.db"
    server = odd("blabs", env={"TOKEN": key, "MODE_NAME": "production"})
    agent = Agent("clerk", scripted([*calling("mcp.odd/reads", text=text), "Done."]), tools=[server.source])
    result = await run(agent, "do it", store=store, approver=agreed)
    (call,) = result.calls()
    seen = await everything(result, store)
    assert call.status == ("error" if text == "fail" else "success") and "[redacted]" in seen
    assert key not in seen and json.dumps(key)[1:-1] not in seen
    assert "production" in seen, "a setting is no key"


def test_a_key_is_known_by_its_name_or_by_its_looks() -> None:
    env = {"TOKEN": "a-real-key", "LEVEL": "a-real-key-not", "OTHER": "0123456789abcdef0123", "DIR": "/home/ada/a1"}
    keys = keys_of(StdioServer(name="odd", command=("x",), env=env))
    assert keys.hide_keys(" ".join(env.values())) == "[redacted] [redacted]-not [redacted] /home/ada/a1"
