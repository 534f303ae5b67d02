"""Requests begin as the one before began, down to the bytes that are sent: in every format, with everything on."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from kit.runs.long_runs import look
from wakeful import Agent, Budget, run, tool
from wakeful.contracts.tools import ToolDeclaration
from wakeful.ports import ModelRequest
from wakeful.providers.anthropic.encode import AnthropicEncoder
from wakeful.providers.openai_chat.encode import ChatEncoder
from wakeful.providers.openai_responses.encode import ResponsesEncoder
from wakeful.providers.profiles import profile_of
from wakeful.providers.wire.names import WireNames
from wakeful.store.memory import MemoryStore
from wakeful.testing import scripted
from wakeful.testing.prefixes import shared_prefix, stability

ROUNDS = 60
GUIDE = "Serve the shop. " * 200
ENCODERS: dict[str, Callable[[Sequence[ToolDeclaration]], Any]] = {
    "chat": lambda tools: ChatEncoder("gpt-5.5", profile_of("gpt-5.5"), WireNames(tools)),
    "responses": lambda tools: ResponsesEncoder("gpt-5.5", profile_of("gpt-5.5"), WireNames(tools)),
    "anthropic": lambda tools: AnthropicEncoder("claude-opus-4-7", profile_of("claude-opus-4-7"), tools),
}


@tool(effect="pure")
def weigh(order: str, unit: str = "g") -> int:
    """Weigh an order."""
    return 7


class Sent(list[bytes]):
    """The bodies that a provider would have been sent."""

    def __init__(self, wire: str, spoil: Any = None) -> None:
        self._make = ENCODERS[wire]
        self._encoder: Any = None
        self._spoil = spoil

    def answer(self, request: ModelRequest) -> Any:
        if request.level is None:
            if self._spoil is not None:
                self._spoil(request)
            self._encoder = self._encoder or self._make(request.tools)
            self.append(b"".join(self._encoder.body(request)))
        elif request.level == "~plan":
            return "1. look"
        if request.answered < ROUNDS:
            name = "look" if request.answered % 3 else "weigh"
            given = {"x": str(request.answered)} if name == "look" else {"order": "A17"}
            return {"text": "I look.", "calls": [{"name": name, "arguments": given}]}
        return "done"


def agent(sent: Sent) -> Agent[Any, str]:
    return Agent(
        "clerk",
        scripted(sent.answer, context_window=1_000_000),
        GUIDE,
        tools=[look, weigh],
        planning_enabled=True,
        subtasks=True,
        budget_awareness="per-message",
        budget=Budget(tokens=100_000_000),
    )


@pytest.mark.parametrize("wire", ENCODERS)
async def test_a_request_begins_with_nearly_all_of_the_one_before(wire: str) -> None:
    sent = Sent(wire)
    result = await run(agent(sent), "go", store=MemoryStore())
    assert result.status == "completed" and len(sent) == ROUNDS + 1
    found = stability(sent)
    assert found.share > 0.95, "of all bytes, this share stood in the request before"
    assert found.kept > 0.99, "of each request, this share is what the next begins with"
    assert found.worst_kept > 0.97, "and no request left more than its end behind"


@pytest.mark.parametrize("wire", ENCODERS)
async def test_a_prompt_that_changes_would_be_found(wire: str) -> None:
    """The inversion: with the round's number in the instructions nothing after them can be used again."""

    def spoil(request: ModelRequest) -> None:
        object.__setattr__(request, "instructions", f"Round {request.step}. {request.instructions}")
        object.__setattr__(request, "frame", None)

    sent = Sent(wire, spoil)
    await run(agent(sent), "go", store=MemoryStore())
    assert stability(sent).share < 0.5


def test_what_two_requests_share_is_counted_to_the_byte() -> None:
    for before, after, shared in ((b"", b"a", 0), (b"abc", b"abd", 2), (b"abc", b"abc", 3), (b"abc", b"abcdef", 3)):
        assert shared_prefix(before, after) == shared
    found = stability([b"ab", b"abcd", b"abXX"])
    assert (found.sent, found.again, found.before, found.worst_kept) == (8, 4, 6, 0.5)
    assert (found.share, found.kept) == (4 / 8, 4 / 6)
    assert stability([b"one"]).share == 1.0
