"""A result's history stands by itself: it can be given to a run on another store."""

from wakeful import Agent, Image, Text, run, tool
from wakeful.store.memory import MemoryStore
from wakeful.testing import scripted

PICTURE = b"\x89PNG" + b"x" * 100_000


async def test_large_parts_are_whole_in_the_history_and_reach_a_run_on_another_store() -> None:
    @tool(effect="pure")
    async def photograph() -> list[Text | Image]:
        """A picture."""
        return [Text("here"), Image(data=PICTURE)]

    script = [{"calls": [{"name": "photograph", "arguments": {}}]}, "seen"]
    first = await run(
        Agent("a", scripted(script), tools=[photograph]), ["look", Image(data=PICTURE)], store=MemoryStore()
    )
    held = [part for item in first.history() for part in item.parts if isinstance(part, Image)]
    assert [part.data for part in held] == [PICTURE, PICTURE]
    seen: list[int] = []

    def answer(request):  # type: ignore[no-untyped-def]
        seen.append(
            sum(len(part.data or b"") for item in request.history for part in item.parts if isinstance(part, Image))
        )
        return "again"

    second = await run(Agent("b", scripted(answer)), "and now?", history=first.history(), store=MemoryStore())
    assert second.output == "again" and seen == [2 * len(PICTURE)]
