"""Tools of a server in a run: through the gate, into the log."""

from mcp_peers.asking import MakeOdd
from wakeful import Agent, run
from wakeful.testing import scripted

ALL = {"*": "external_write"}


def calling(*names: str) -> list[object]:
    return [{"calls": [{"name": name, "arguments": {"text": "hello"}}]} for name in names]


async def test_a_call_goes_through_the_gate_and_its_result_to_the_model(odd: MakeOdd) -> None:
    offer = await odd(classes=ALL).source.offer()
    model = scripted([*calling("mcp.odd/reads", "mcp.odd/pays"), "Done."])
    result = await run(Agent("clerk", model, tools=list(offer.tools)), "do it")
    assert result.output == "Done."
    assert [(call.name, call.status) for call in result.calls()] == [
        ("mcp.odd/reads", "success"),
        ("mcp.odd/pays", "success"),
    ]


async def test_a_server_that_dies_leaves_an_unknown_outcome_in_the_log(odd: MakeOdd) -> None:
    offer = await odd("dies", classes=ALL).source.offer()
    model = scripted([*calling("mcp.odd/pays"), "Nobody knows."])
    result = await run(Agent("clerk", model, tools=list(offer.tools)), "do it")
    assert result.output == "Nobody knows."
    (call,) = result.unknown
    assert call.tool_name == "mcp.odd/pays"
