"""What an owner says about a tool of another framework holds for it as for any other."""

from typing import Any

import pytest

from kit.runs.asked_runs import again, agent, asked, say
from wakeful import Approve, run, tool
from wakeful.contracts.errors import InvalidConfig
from wakeful.store.memory import MemoryStore
from wakeful.tools.tool import Tool

SENT: list[dict[str, Any]] = []


class SdkMcpTool:
    """An object as the Claude SDK makes them."""

    __module__ = "claude_agent_sdk"
    name, description, input_schema = "send", "Sends it.", {"to": str}

    async def handler(self, arguments: dict[str, Any]) -> dict[str, Any]:
        SENT.append(arguments)
        return {"content": [{"type": "text", "text": "sent"}]}


def adopted(**options: Any) -> Tool[Any]:
    SENT.clear()
    made: Tool[Any] = tool(SdkMcpTool(), **options)
    return made


@pytest.mark.parametrize("approval", [True, lambda call: call.arguments["to"] == "all"], ids=["always", "predicate"])
async def test_a_person_is_asked_before_it_runs(approval: Any) -> None:
    store = MemoryStore()
    support = agent([adopted(approval=approval)], (("send", {"to": "all"}),))
    (waiting,) = (await asked(support, store)).approvals
    assert SENT == []
    await say(store, waiting, Approve())
    assert (await again(support, store)).output == "done"
    assert SENT == [{"to": "all"}]


async def test_nobody_is_asked_where_nobody_said_so() -> None:
    done = await run(agent([adopted()], (("send", {"to": "all"}),)), "go", store=MemoryStore())
    assert (done.status, SENT) == ("completed", [{"to": "all"}])


def test_what_it_is_said_to_be_is_declared_and_what_would_be_lost_is_refused() -> None:
    said = adopted(permission_class="execute", duplicate_policy="repeatable").declaration
    assert (said.permission, said.duplicate_policy) == ("execute", "repeatable")
    for lost in ({"bind": {"to": "context.to"}}, {"external": True}):
        with pytest.raises(InvalidConfig, match="cannot be held to"):
            adopted(**lost)
