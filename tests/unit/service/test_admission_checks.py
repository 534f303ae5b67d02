"""What can be wrong with a request is wrong before its message is admitted."""

import pytest

from wakeful import Agent, run, tool
from wakeful.contracts.errors import UnknownProvider
from wakeful.store.memory import MemoryStore
from wakeful.testing import scripted


async def test_a_model_nobody_can_ask_leaves_no_turn_behind() -> None:
    store = MemoryStore()
    with pytest.raises(UnknownProvider, match="nobody"):
        await run(Agent("a", "nobody:model"), "hello", store=store)
    assert await store.turns() == []


async def test_a_fallback_nobody_can_ask_leaves_no_turn_behind() -> None:
    store = MemoryStore()
    with pytest.raises(UnknownProvider, match="nobody"):
        await run(Agent("a", scripted(["hi"]), fallbacks=["nobody:model"]), "hello", store=store)
    assert await store.turns() == []


@pytest.mark.spec("API-AUD-02")
async def test_two_equal_runs_are_audited_alike() -> None:
    @tool(effect="pure")
    async def double(n: int) -> int:
        """Twice n."""
        return n * 2

    script = [{"calls": [{"name": "double", "arguments": {"n": 2}}]}, "four"]
    audits = [(await run(Agent("a", scripted(script), tools=[double]), "go")).tool_audit_events for _ in range(2)]
    assert audits[0] == audits[1]
    (entry,) = audits[0]
    assert entry.success
    assert not ({"parameters", "result"} & entry.model_dump().keys())
