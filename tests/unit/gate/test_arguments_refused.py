"""Arguments that fit the schema and not the function's own types."""

from typing import Annotated

from pydantic import AfterValidator

from wakeful import Agent, run, tool
from wakeful.contracts.events import ToolFailed
from wakeful.testing import scripted


def _even(n: int) -> int:
    if n % 2:
        raise ValueError("must be even")
    return n


async def test_what_the_types_refuse_is_invalid_parameters_and_nothing_has_run() -> None:
    ran: list[int] = []

    @tool(effect="irreversible")
    async def halve(n: Annotated[int, AfterValidator(_even)]) -> int:
        """Half of an even number."""
        ran.append(n)
        return n // 2

    script = [
        {"calls": [{"name": "halve", "arguments": {"n": 3}}]},
        {"calls": [{"name": "halve", "arguments": {"n": 4}}]},
        "2",
    ]
    result = await run(Agent("a", scripted(script), tools=[halve]), "go")
    (refused,) = [entry.fact.event for entry in result.facts() if isinstance(entry.fact.event, ToolFailed)]
    assert (refused.status, refused.effects, refused.tool_error.kind) == ("invalid", "none", "invalid_parameters")
    assert refused.tool_error.retryable and "must be even" in refused.message
    assert refused.tool_error.details is not None and refused.tool_error.details["field"] == "n"
    assert ran == [4] and not result.unknown
