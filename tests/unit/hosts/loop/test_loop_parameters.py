"""Parameters, capabilities and executors in a run of the loop: what reaches the executor, and what does not."""

import json
from typing import Any

import pytest

from kit.hosts.loop_host import CLOCK, SEARCH, Host, calling, search
from wakeful.contracts.errors import InvalidConfig, InvalidValue
from wakeful.contracts.principals import CapabilityCeiling, ConversationOwner, ExecutionPrincipal
from wakeful.hosts import ConversationLoop, ToolExecutionCore
from wakeful.hosts.loop.conversation_request import ConversationRequest
from wakeful.hosts.ports import ToolCall, ToolCallMetadata
from wakeful.hosts.tools.declaration_reader import normalize_for_conversation_request

LOOK: dict[str, Any] = {
    "name": "ability/look",
    "source": "abilities",
    "description": "Looks somebody up.",
    "parameters": {
        "type": "object",
        "properties": {
            "q": {"type": "string"},
            "customer": {"type": "string"},
            "account": {"type": "string"},
            "page": {"type": "string"},
            "n": {"type": "integer", "enum": [1, 2]},
            "deep": {"type": "object", "properties": {"x": {"type": "array", "items": {"type": "integer"}}}},
        },
        "required": ["q", "customer"],
        "additionalProperties": False,
    },
    "parameter_bindings": {
        "customer": {"source": "context", "path": "customer.id", "authoritative": True},
        "account": {"source": "caller_context", "path": "account", "sensitive": True},
    },
    "client_context_bindings": ["page"],
    "parameter_defaults": {"n": 1},
}


def look(**parameters: Any) -> dict[str, Any]:
    return {"name": "ability/look", "parameters": parameters}


def principal(**more: Any) -> dict[str, Any]:
    return {"effective_agent_id": "helper", "auth_source": "user", "request_context": "chat", **more}


async def looked(host: Host, **options: Any) -> dict[str, Any]:
    """The result of the first call of a run in which the model looks somebody up."""
    tools = {"ability/look": LOOK, **options.pop("tools", {})}
    result = await host.run(tool_executor=host, tool_declarations=tools, max_turns=3, **options)
    assert result.completed
    found: dict[str, Any] = result.tool_execution_results[0]
    return found


async def test_the_executor_gets_everybodys_parameters_and_nothing_of_it_is_shown() -> None:
    host = Host(calling(look(q="x", customer="somebody else")), {"content": "done"})
    entry = await looked(
        host,
        context={"customer": {"id": "cust-seven"}, "client_context": {"page": "/orders"}},
        request={"messages": [], "principal": principal(caller_context={"account": "DE123"})},
    )
    assert host.calls[0].parameters == {
        "q": "x",
        "customer": "cust-seven",
        "account": "DE123",
        "page": "/orders",
        "n": 1,
    }
    assert entry["result"]["success"]
    assert entry["parameters"] == {"q": "x", "customer": "somebody else"}
    log = json.dumps([recorded.fact.event.model_dump(mode="json") for recorded in await host.log()])
    assert "DE123" not in log and "cust-seven" not in log


async def test_a_bound_parameter_that_is_not_there_is_missing() -> None:
    host = Host(calling(look(q="x", customer="mine")), {"content": "done"})
    entry = await looked(host, context={"customer_id": "cust-seven"})
    assert entry["result"]["metadata"]["error_type"] == "missing_required_parameters"
    assert entry["result"]["metadata"]["missing_parameters"] == ["customer"]
    assert not host.calls


@pytest.mark.spec("API-PRM-09")
@pytest.mark.parametrize(
    ("parameters", "path"),
    [({"n": "one"}, "n"), ({"n": 3}, "n"), ({"deep": {"x": [1, "2"]}}, "deep.x[1]"), ({"q": 3}, "q")],
    ids=["type", "enum", "nested", "a required one"],
)
async def test_parameters_that_do_not_fit_never_reach_the_executor(parameters: dict[str, Any], path: str) -> None:
    host = Host(calling(look(**{"q": "x", **parameters})), {"content": "done"})
    entry = await looked(host, context={"customer": {"id": "cust-seven"}})
    assert (entry["result"]["metadata"]["error_type"], entry["result"]["metadata"]["paths"]) == (
        "invalid_parameters",
        [path],
    )
    assert not host.calls
    core = ToolExecutionCore([normalize_for_conversation_request(LOOK)], host)
    result = await core.execute("ability/look", {"q": "x", **parameters}, context={"customer": {"id": "cust-seven"}})
    assert result["metadata"] == {"error_type": "invalid_parameters", "paths": [path]}
    assert not host.calls


async def test_a_value_from_a_context_is_held_to_the_schema_too() -> None:
    host = Host(calling(look(q="x")), {"content": "done"})
    entry = await looked(host, context={"customer": {"id": 7}})
    assert (entry["result"]["metadata"]["error_type"], host.calls) == ("invalid_parameters", [])


# --- capabilities ----------------------------------------------------------------------------------------------------

EDIT = {**SEARCH, "required_capability": " edit_posts "}


async def edited(who: dict[str, Any] | None, tool: dict[str, Any] = EDIT) -> tuple[Host, dict[str, Any], list[Any]]:
    host, denied = Host(calling(search("x")), {"content": "done"}), []
    host.hooks.register("tool_capability_denied", denied.append)
    request = {"request": {"messages": [], "principal": who}} if who is not None else {}
    result = await host.run(
        tool_executor=host, tool_declarations={"ability/search": tool}, **{"max_turns": 3, **request}
    )
    return host, result.tool_execution_results[0]["result"], denied


@pytest.mark.spec("API-SRV-11")
@pytest.mark.parametrize(
    "who",
    [
        principal(capability_ceiling={"denied": ["edit_posts"]}),
        principal(capability_ceiling={"allowed": ["read_posts"]}),
        principal(auth_source="system"),
        None,
    ],
    ids=["denied", "not allowed", "autonomous", "nobody"],
)
async def test_a_capability_beyond_the_ceiling_keeps_the_tool_from_running(who: dict[str, Any] | None) -> None:
    host, result, denied = await edited(who)
    assert (result["success"], result["metadata"]["error_type"]) == (False, "capability_denied")
    assert not host.calls
    (payload,) = denied
    assert (payload["tool_name"], payload["required_capability"]) == ("ability/search", "edit_posts")
    for fine in (principal(), principal(capability_ceiling={"allowed": ["edit_posts"]})):
        host, result, denied = await edited(fine)
        assert (result["success"], len(host.calls), denied) == (True, 1, [])
    host, result, denied = await edited(who, {**SEARCH, "required_capability": "  "})
    assert (result["success"], len(host.calls), denied) == (True, 1, [])


# --- executor targets ------------------------------------------------------------------------------------------------


@pytest.mark.spec("API-SRV-12")
async def test_a_tool_goes_to_the_executor_of_its_target_and_to_no_other() -> None:
    host, gpu = Host(calling(search("x")), {"content": "done"}), Host()
    tool = {**SEARCH, "runtime": {"executor_target": "gpu"}}
    loop = ConversationLoop(hooks=host.hooks, executor_targets={"gpu": gpu})
    options = {"tool_executor": host, "tool_declarations": {"ability/search": tool}, "max_turns": 3}
    result = await loop.run([{"role": "user", "content": "hi"}], host.turn_runner, options)
    assert result.tool_execution_results[0]["result"]["success"]
    assert (len(gpu.calls), host.calls) == (1, [])

    lost = Host(calling(search("x")), {"content": "done"})
    missing = await lost.run(**{**options, "tool_executor": lost})
    failed = missing.tool_execution_results[0]["result"]
    assert failed["metadata"]["error_type"] == "executor_target_unavailable"
    assert "'gpu', which is not registered" in failed["error"]
    assert not lost.calls


def test_an_executor_target_that_executes_nothing_is_refused() -> None:
    with pytest.raises(InvalidConfig, match="'gpu'"):
        ConversationLoop(executor_targets={"gpu": object()})  # type: ignore[dict-item]


async def test_a_call_that_was_prepared_for_another_tool_is_not_run() -> None:
    host = Host()
    tools = [normalize_for_conversation_request(raw) for raw in (SEARCH, CLOCK)]
    call = ToolCall(
        tool_name="ability/search",
        metadata=ToolCallMetadata(source="s", provider_tool_name="x", tool_call_id="c1"),
    )
    result = await ToolExecutionCore(tools, host).run(call, tools[1], {})
    assert (result["metadata"]["error_type"], host.calls) == ("invalid_prepared_tool_call", [])


# --- records ---------------------------------------------------------------------------------------------------------


class Persister:
    """Keeps the request it was given."""

    def __init__(self) -> None:
        self.requests: list[ConversationRequest] = []

    def persist(self, messages: Any, request: ConversationRequest, result: Any) -> str:
        self.requests.append(request)
        return "t1"


@pytest.mark.spec("API-SRV-10")
async def test_the_record_of_a_request_has_every_tool_the_model_could_call() -> None:
    keep = Persister()
    host = Host({"content": "done"})
    request = {"messages": [], "tools": [{"name": "client/pick"}, SEARCH]}
    await host.mediated(request=request, transcript_persister=keep)
    assert [(tool.name, tool.executor) for tool in keep.requests[0].tools] == [
        ("client/pick", "client"),
        ("ability/search", "host"),
        ("ability/clock", "host"),
    ]
    again = ConversationRequest.normalise(json.loads(keep.requests[0].model_dump_json()))
    assert [tool.name for tool in again.tools] == ["client/pick", "ability/search", "ability/clock"]
    weakened = {**request, "tools": [{"name": "client/pick", "executor": "host"}]}
    with pytest.raises(InvalidValue, match="executor"):
        await Host({"content": "x"}).mediated(request=weakened)


async def test_a_principal_reaches_the_turn_runner_and_stays_what_it_was() -> None:
    host = Host({"content": "done"})
    await host.run(request={"messages": [], "principal": principal(acting_user_id="u1")})
    assert host.contexts[0]["principal"] == ExecutionPrincipal.user_session("u1", "helper")


# --- runtime metadata and citations ----------------------------------------------------------------------------------


@pytest.mark.spec("API-RTM-05")
async def test_the_runtime_vocabulary_is_recorded_and_decides_nothing() -> None:
    for place in ("control_plane", "runtime_local"):
        runtime = {"environment": place, "capability_scope": place, "completion_signal": "progress", "own": [1]}
        host = Host(calling(search("x")), {"content": "done"})
        result = await host.run(
            tool_executor=host, tool_declarations={"ability/search": {**SEARCH, "runtime": runtime}}, max_turns=3
        )
        assert len(host.calls) == 1
        assert result.tool_execution_results[0]["runtime"] == runtime


async def test_what_an_executor_says_about_its_runtime_is_cleaned_like_a_declaration() -> None:
    host = Host(calling(search("x")), {"content": "done"})
    host.answers = {"x": {"success": True, "result": 1, "runtime": {"api_key": "s", "worker": 3, "handle": object()}}}
    result = await host.mediated()
    assert result.tool_execution_results[0]["runtime"] == {
        "completion_signal": "progress",
        "api_key": "[redacted]",
        "worker": 3,
    }


async def test_citations_of_a_mediated_result_are_normalised() -> None:
    host = Host(calling(search("x")), {"content": "done"})
    cited = [{"source": " wiki ", "token_id": "t1", "score": "high"}, "no object"]
    host.answers = {"x": {"success": True, "result": 1, "metadata": {"citations": cited, "took": 3}}}
    result = await host.mediated()
    assert result.tool_execution_results[0]["result"]["metadata"] == {"citations": [{"source": "wiki"}], "took": 3}


async def test_inversion_without_a_schema_a_wrong_type_reaches_the_executor() -> None:
    """Taken out: a declaration that only says which names are required checks presence, and nothing else."""
    host = Host(calling(look(q="x", n="1")), {"content": "done"})
    blind = {**LOOK, "parameters": {"required": ["q"]}}
    await looked(host, tools={"ability/look": blind}, context={"customer": {"id": "cust-seven"}})
    assert host.calls[0].parameters["n"] == "1"


@pytest.mark.spec("API-PRI-11")
async def test_who_a_run_acts_for_is_said_by_the_hosts_hook_where_the_request_does_not() -> None:
    asked: list[Any] = []

    def known(found: Any, request_context: dict[str, Any]) -> Any:
        asked.append((found, request_context))
        return request_context["says"]

    async def run_as(says: Any, who: dict[str, Any] | None = None) -> tuple[Host, dict[str, Any]]:
        host = Host(calling(search("x")), {"content": "done"})
        host.hooks.register("execution_principal", known)
        request = {"request": {"messages": [], "principal": who}} if who is not None else {}
        tools = {"ability/search": EDIT}
        result = await host.run(
            tool_executor=host, tool_declarations=tools, context={"says": says}, **{"max_turns": 3, **request}
        )
        return host, result.tool_execution_results[0]["result"]

    # A dict and a principal are one; what the tool needs is held to the one who was named.
    for says in (principal(), ExecutionPrincipal.normalise(principal())):
        host, result = await run_as(says)
        assert result["success"] and len(host.calls) == 1
        assert host.call_contexts[0]["principal"] == ExecutionPrincipal.normalise(principal())
    assert asked[0] == (None, {"says": principal()})
    for said in (None, principal(capability_ceiling={"denied": ["edit_posts"]})):
        host, result = await run_as(said)
        assert (result["metadata"]["error_type"], host.calls) == ("capability_denied", [])
    # Whom the request names is not asked for again.
    asked.clear()
    host, result = await run_as(principal(capability_ceiling={"denied": ["edit_posts"]}), principal())
    assert result["success"] and asked == []
    # Anything else is an error, and nothing was run.
    for wrong in ("user", ["user"], True, 7, {"auth_source": "user"}):
        with pytest.raises(InvalidValue, match=r"^invalid_execution_principal: "):
            await run_as(wrong)


@pytest.mark.spec("API-PRI-05")
async def test_the_host_attests_the_runtime_names_its_owner_and_says_what_it_may() -> None:
    bare = ExecutionPrincipal.runtime("rt-1", "agent-7")
    assert not bare.audience_claims and bare.conversation_owner() == ConversationOwner("runtime", "rt-1")
    host_ceiling = {"allowed": ["edit_posts"]}
    attested = ExecutionPrincipal.runtime(
        "rt-1",
        "agent-7",
        owner_key="tenant/9",
        audience_claims={"runtime_type": "browser"},
        capability_ceiling=host_ceiling,
    )
    # The owner key and the claim are what the host said, and nothing is made up beside them.
    assert attested.conversation_owner() == ConversationOwner("runtime", "tenant/9")
    assert attested.audience_claims == {"runtime_type": "browser"}

    async def run_as(who: ExecutionPrincipal, client: dict[str, Any]) -> tuple[Host, dict[str, Any]]:
        host = Host(calling(search("x", principal=client)), {"content": "done"})
        host.hooks.register("execution_principal", lambda found, context: who)
        schema = {**EDIT["parameters"], "properties": {**EDIT["parameters"]["properties"], "principal": {}}}
        result = await host.run(
            tool_executor=host,
            tool_declarations={"ability/search": {**EDIT, "parameters": schema}},
            context={"client_context": {"principal": client}},
            max_turns=3,
        )
        return host, result.tool_execution_results[0]["result"]

    # What a client or a model says about itself is no attestation: what counts is the one whom the host named.
    forged = {**principal(), "capability_ceiling": host_ceiling}
    host, result = await run_as(attested, {})
    assert result["success"] and host.call_contexts[0]["principal"] == attested
    for less in (bare, attested.model_copy(update={"capability_ceiling": CapabilityCeiling(denied=("edit_posts",))})):
        host, result = await run_as(less, forged)
        assert (result["metadata"]["error_type"], host.calls) == ("capability_denied", [])
