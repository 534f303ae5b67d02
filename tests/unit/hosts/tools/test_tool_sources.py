"""A host's declarations are read by one function, wherever they come in."""

from typing import Any

import pytest

from kit.hosts.loop_host import CLOCK, SEARCH, Host
from wakeful.contracts.errors import InvalidConfig, InvalidValue
from wakeful.hosts import ToolSourceRegistry
from wakeful.hosts.loop.conversation_request import ConversationRequest
from wakeful.hosts.loop.options import read_options
from wakeful.hosts.tools.declaration_reader import normalize_for_server
from wakeful.hosts.tools.tool_declaration import RuntimeToolDeclaration
from wakeful.hosts.tools.tool_sources import Declarations

RAW = {**SEARCH, "executor": "my_queue", "runtime": {"api_key": "sk-1", "worker": 3}, "vendor": {"a": 1}}
READ = normalize_for_server(RAW)
UNFIT = {**CLOCK, "source": "Not A Slug"}


async def gathered(*entries: Any) -> Declarations:
    registry = ToolSourceRegistry()
    registry.register("shelf", lambda context: list(entries))
    return await registry.gather()


async def shown(*entries: Any) -> list[dict[str, Any]]:
    """The tools of the request that a provider's adapter gets."""
    host, asked = Host(), []

    def adapter(request: dict[str, Any]) -> dict[str, Any]:
        asked.append(request["tool_declarations"])
        return {"content": "done"}

    host.turn_runner = None  # type: ignore[method-assign, assignment]
    named = {f"t{place}": entry for place, entry in enumerate(entries)}
    await host.run(provider_turn_adapter=adapter, tool_executor=host, tool_declarations=named)
    tools: list[dict[str, Any]] = asked[0]
    return tools


@pytest.mark.spec("API-SRV-01")
async def test_a_server_declaration_is_read_the_same_everywhere() -> None:
    assert (READ.executor, READ.scope, READ.runtime["api_key"]) == ("host", "run", "[redacted]")
    assert ConversationRequest.normalise({"messages": [], "tools": [RAW]}).tools == (READ,)
    assert (await gathered(RAW)).accepted == (READ,)
    assert read_options({"tool_declarations": {"ability/search": RAW}}).tools.declarations.accepted == (READ,)
    (asked,) = await shown(RAW)
    dumped = READ.model_dump(mode="json", exclude_none=True)
    unlike = {name for name in asked if asked[name] != dumped.get(name)}
    assert unlike <= {"parameters", "provider_aliases"} and asked["vendor"] == {"a": 1}


@pytest.mark.spec("API-SRV-01")
async def test_what_is_no_server_declaration_comes_in_nowhere() -> None:
    made = RuntimeToolDeclaration.model_validate({**UNFIT, "executor": "host"})
    for unfit in (UNFIT, made):
        with pytest.raises(InvalidValue, match="source"):
            normalize_for_server(unfit)
        with pytest.raises(InvalidValue, match=r"tools\[0\].*source"):
            ConversationRequest.normalise({"messages": [], "tools": [unfit]})
        for found in (
            await gathered(unfit, RAW),
            read_options({"tool_declarations": {"a": unfit, "ability/search": RAW}}).tools.declarations,
        ):
            assert (found.accepted, len(found.rejected)) == ((READ,), 1)
        assert [tool["name"] for tool in await shown(unfit, RAW)] == ["ability/search"]


async def test_sources_stand_beside_each_other_and_one_that_fails_takes_nothing_from_the_others() -> None:
    async def later(context: dict[str, Any]) -> dict[str, Any]:
        return {"clock": {**CLOCK, "source": context["who"]}}

    def broken(context: dict[str, Any]) -> Any:
        raise OSError("gone")

    registry = ToolSourceRegistry()
    registry.register("shelf", lambda context: [{**SEARCH, "source": "mine"}, {"name": "a/b", "description": "B."}])
    registry.register("broken", broken)
    registry.register("later", later)
    registry.register("again", lambda context: [SEARCH])
    found = await registry.gather({"who": "abilities"})
    assert {tool.name: tool.source for tool in found.accepted} == {
        "ability/search": "mine",
        "a/b": "shelf",
        "ability/clock": "abilities",
    }
    assert [(each.name, each.reason) for each in found.rejected] == [
        ("broken", "the source raised OSError: gone"),
        ("ability/search", "name 'ability/search' is declared twice"),
    ]
    with pytest.raises(InvalidConfig, match="'shelf' is registered already"):
        registry.register("shelf", broken)
