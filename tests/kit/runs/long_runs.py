"""Conversations that grow too long, and runs that plan first: models that note what they were asked."""

from collections.abc import Callable, Sequence
from typing import Any

from wakeful import RunResult, tool
from wakeful.contracts.conversation import AssistantItem, ToolItem, UserItem
from wakeful.ports import ModelRequest
from wakeful.providers.scripted import ScriptedModel
from wakeful.testing import scripted

WINDOW = 4_000
PLAN = "~plan"
Item = UserItem | AssistantItem | ToolItem


class Seen:
    """One request, as it was sent."""

    def __init__(self, request: ModelRequest) -> None:
        self.level = request.level
        self.step = request.step
        self.answered = request.answered
        self.instructions = request.instructions
        self.items: list[Item] = list(request.history)
        self.tools = [declared.name for declared in request.tools]

    @property
    def is_summary(self) -> bool:
        return self.level is not None and "~compaction:" in self.level

    @property
    def text(self) -> str:
        return "\n".join(item.text for item in self.items)


class Asked(list[Seen]):
    """All requests of a test, in order."""

    def model(self, answer: Callable[[ModelRequest], Any], **options: Any) -> ScriptedModel:
        def noted(request: ModelRequest) -> Any:
            self.append(Seen(request))
            if self[-1].is_summary and not options.get("raw"):
                return f"SUMMARY {sum(seen.is_summary for seen in self)}"
            return answer(request)

        return scripted(noted, context_window=options.get("window", WINDOW), usage=options.get("usage"))

    def of(self, level: str | None) -> list[Seen]:
        return [seen for seen in self if seen.level == level]

    @property
    def summaries(self) -> list[Seen]:
        return [seen for seen in self if seen.is_summary]


@tool(effect="pure")
def look(x: str) -> str:
    """Look."""
    return f"saw {x} " + "lorem " * 200


def looking(rounds: int, end: str = "the end") -> Callable[[ModelRequest], Any]:
    """Looks so many times, then answers."""

    def answer(request: ModelRequest) -> Any:
        if request.answered < rounds:
            return {"calls": [{"name": "look", "arguments": {"x": str(request.answered)}}]}
        return end

    return answer


def events_of(result: RunResult[Any], *kinds: type[Any]) -> list[Any]:
    return [entry.fact.event for entry in result.facts() if isinstance(entry.fact.event, kinds)]


def has_whole_pairs(items: Sequence[Item]) -> bool:
    """Every call has its result, and every result its call, in order."""
    open_calls: list[str] = []
    for item in items:
        if isinstance(item, AssistantItem):
            if open_calls:
                return False
            open_calls = [part.call_id for part in item.calls]
        elif isinstance(item, ToolItem):
            if item.call_id not in open_calls:
                return False
            open_calls.remove(item.call_id)
    return not open_calls
