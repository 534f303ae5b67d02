"""Which of a host's tools a run has, through the loop: what a policy has to name is hidden where nobody gave one."""

from typing import Any

import pytest

from kit.hosts.loop_host import SEARCH, Host, calling, search
from wakeful.hosts import ConversationRequest, ExecutionPrincipal

DONE = {"content": "done"}
ASK = [{"type": "text", "role": "user", "content": "go"}]
PICK: dict[str, Any] = {"name": "client/pick", "description": "Lets the person pick.", "parameters": {"type": "object"}}
DELETES: dict[str, Any] = {**SEARCH, "mutating": True}
PRINCIPALS: dict[str, ExecutionPrincipal | None] = {
    "a schedule": ExecutionPrincipal(effective_agent_id="a", auth_source="system", request_context="cron"),
    "nobody that is named": ExecutionPrincipal(effective_agent_id="a", auth_source="user", request_context="chat"),
    "not known": None,
}
ANN = ExecutionPrincipal(effective_agent_id="a", acting_user_id="ann", auth_source="user", request_context="chat")
SAYS_NOTHING: dict[str, Any] = {"the context is empty": {"context": {}}, "there is none": {}}


async def deletes(principal: ExecutionPrincipal | None, tool: dict[str, Any] = DELETES, **options: Any) -> Any:
    """A run whose model calls the tool: how often it was executed, and what the model was told."""
    host = Host(calling(search("x")), DONE)
    request = ConversationRequest(messages=ASK, principal=principal)
    result = await host.mediated(ASK, tool_declarations={"ability/search": tool}, request=request, **options)
    (entry,) = result.tool_execution_results
    return len(host.calls), entry["result"]["metadata"].get("error_type"), result.metadata.get("hidden_tools", {})


@pytest.mark.spec("API-VIS-09")
@pytest.mark.parametrize("said", SAYS_NOTHING)
@pytest.mark.parametrize("who", PRINCIPALS)
async def test_without_a_person_and_without_a_policy_nothing_that_writes_is_executed(who: str, said: str) -> None:
    calls, error, hidden = await deletes(PRINCIPALS[who], **SAYS_NOTHING[said])
    assert (calls, error) == (0, "tool_not_found")
    assert hidden == {"ability/search": "it writes, no person is behind this run, and no policy names it"}


@pytest.mark.parametrize("who", PRINCIPALS)
async def test_inversion_a_policy_that_names_it_or_a_person_behind_the_run_lets_the_same_call_through(who: str) -> None:
    named = {"context": {"tool_policy": {"runtime_tools": ["ability/search"]}}}
    freed = {"context": {"allow_write_tools": True}}
    assert [(await deletes(PRINCIPALS[who], **more))[0] for more in (named, freed)] == [1, 1]
    assert await deletes(ANN) == (1, None, {})
    assert await deletes(PRINCIPALS[who], SEARCH) == (1, None, {}), "it writes nothing"


@pytest.mark.spec("API-VIS-02")
@pytest.mark.parametrize("said", SAYS_NOTHING)
@pytest.mark.parametrize("who", [*PRINCIPALS, "a person"])
async def test_what_the_caller_brought_is_hidden_until_a_policy_names_it(who: str, said: str) -> None:
    async def asked(**options: Any) -> Any:
        host = Host(calling({"name": "client/pick", "parameters": {}}), DONE)
        request = ConversationRequest(messages=ASK, principal=PRINCIPALS.get(who, ANN))
        result = await host.run(ASK, tool_declarations={"client/pick": PICK}, max_turns=3, request=request, **options)
        return result.run_outcome.status, result.metadata.get("hidden_tools", {})

    hidden = {"client/pick": "the caller brought it, and no policy names it"}
    assert await asked(**SAYS_NOTHING[said]) == ("completed", hidden)
    # The inversion: named, the client is asked.
    named = {"tool_policy": {"runtime_tools": ["client/pick"]}}
    assert await asked(context=named) == ("runtime_tool_pending", {})
