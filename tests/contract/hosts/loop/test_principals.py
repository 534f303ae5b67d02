"""For whom a run acts: what a request may say about that, what it decides, and what anybody may see of it."""

from typing import Any

import pytest
from pydantic import ValidationError

from kit.hosts.loop_host import SEARCH, Host, calling, search
from wakeful.contracts.errors import InvalidValue
from wakeful.hosts import CapabilityCeiling, ConversationLoop, ExecutionPrincipal

USER: dict[str, Any] = {"effective_agent_id": "helper", "auth_source": "user", "request_context": "chat"}


async def acts(principal: Any, **tool: Any) -> tuple[Host, Any]:
    """A run for somebody, in which the search tool is called."""
    host = Host(calling(search("x")), {"content": "done"})
    heard: list[Any] = []
    host.hooks.register("tool_capability_denied", heard.append)
    options = {
        "tool_executor": host,
        "tool_declarations": {"ability/search": {**SEARCH, **tool}},
        "request": {"messages": [], "principal": principal},
        "max_turns": 2,
    }
    loop = ConversationLoop(store=host.store, hooks=host.hooks)
    result = await loop.run([{"role": "user", "content": "go"}], host.turn_runner, options)
    (entry,) = result.tool_execution_results
    return host, {"error": entry["result"]["metadata"].get("error_type"), "heard": heard}


@pytest.mark.spec("API-PRI-01", "API-PRI-08")
async def test_a_principal_does_not_change_and_observers_see_its_safe_metadata_alone() -> None:
    who = ExecutionPrincipal.agent_token(
        "tok-1",
        "helper",
        request_metadata={"ip": "10.0.0.1"},
        workspace_id="w",
        client_id="c",
        capability_ceiling={"denied": ["edit"]},
        caller_context={"account": "DE1"},
        audience_claims={"email": "a@b"},
        owner_type="team",
        owner_key="key-1",
        binding={"sig": "xyz"},
    )
    with pytest.raises(ValidationError):
        who.acting_user_id = "u2"  # type: ignore[misc]
    host, seen = await acts(who, required_capability="edit")
    assert host.contexts[0]["principal"] == who
    (told,) = seen["heard"]
    assert told["principal"] == {
        "schema_version": 1,
        "effective_agent_id": "helper",
        "auth_source": "agent_token",
        "request_context": "rest",
        "acting_user_id": None,
        "workspace_id": "w",
        "client_id": "c",
        "audience_id": None,
        "owner_type": "team",
        "has_conversation_owner": True,
        "has_capability_ceiling": True,
        "has_caller_context": True,
    }


@pytest.mark.spec("API-PRI-02")
@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"effective_agent_id": ""}, "effective_agent_id"),
        ({"auth_source": " "}, "auth_source"),
        ({"request_context": ""}, "request_context"),
        ({"auth_source": "somebody"}, "auth_source"),
        ({"owner_type": "team"}, "owner_key"),
        ({"owner_key": "k"}, "owner_type"),
        ({"token": "x"}, "token"),
    ],
)
async def test_a_run_refuses_a_principal_and_names_the_field(fields: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidValue, match=r"^invalid_execution_principal: ") as refused:
        await acts({**USER, **fields})
    assert field in str(refused.value)
    _, seen = await acts(USER)
    assert seen["error"] is None


@pytest.mark.spec("API-PRI-03", "API-PRI-06", "API-PRI-07")
async def test_every_kind_of_principal_reaches_the_run_with_its_owner() -> None:
    for who, source, owner in (
        (ExecutionPrincipal.user_session("u1", "helper"), "user", ("user", "u1")),
        (ExecutionPrincipal.agent_token("t1", "helper"), "agent_token", ("token", "t1")),
        (ExecutionPrincipal.audience("public", "helper"), "audience", None),
        (ExecutionPrincipal.runtime("rt-1", "helper"), "runtime", ("runtime", "rt-1")),
        (ExecutionPrincipal.runtime("rt-1", "helper", owner_key="own"), "runtime", ("runtime", "own")),
        (ExecutionPrincipal.user_session("u1", "helper", owner_type="team", owner_key="k"), "user", ("team", "k")),
    ):
        host, _ = await acts(who)
        seen = host.call_contexts[0]["principal"]
        assert seen.auth_source == source
        found = seen.conversation_owner()
        assert (found and (found.type, found.key)) == owner
    assert (seen.acting_user_id, host.contexts[0]["principal"]) == ("u1", seen)


@pytest.mark.spec("API-PRI-09", "API-PRI-10")
async def test_a_principal_without_a_person_may_not_write_unless_its_host_set_a_ceiling() -> None:
    async def error(who: Any, capability: str) -> Any:
        _, seen = await acts(who, required_capability=capability)
        return seen["error"]

    runtime = ExecutionPrincipal.runtime("rt-1", "helper")
    token = ExecutionPrincipal.agent_token("t1", "helper")
    system = {**USER, "auth_source": "system"}
    for who in (runtime, token, system):
        for capability in ("edit_posts", "delete_posts", "upload_files", "manage_settings", "install_extensions"):
            assert await error(who, capability) == "capability_denied", capability
        assert await error(who, "posts.read") is None
    assert await error(USER, "edit_posts") is None
    permitted = ExecutionPrincipal.runtime(
        "rt-1", "helper", capability_ceiling=CapabilityCeiling(allowed=("edit_posts",))
    )
    assert await error(permitted, "edit_posts") is None
