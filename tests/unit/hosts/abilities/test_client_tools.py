"""Abilities over requests to clients: for the run's owner and for managers, and for nobody else."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from kit.hosts.client_tools import agent
from wakeful import Principal, run
from wakeful.bootstrap.engines import new_engine
from wakeful.bootstrap.stores import opened_store
from wakeful.contracts.errors import InvalidValue
from wakeful.contracts.principals import CapabilityCeiling, ExecutionPrincipal
from wakeful.hosts.abilities.client_tools import MANAGE, RuntimeToolAbilities
from wakeful.hosts.abilities.registry import Abilities, AbilityRefused
from wakeful.service.hooks import HookRegistry

OWNER = ExecutionPrincipal.user_session("u1", "support")
OTHER = ExecutionPrincipal.user_session("u2", "support")
TOKEN = ExecutionPrincipal.agent_token("u1", "support")
MANAGER = ExecutionPrincipal.user_session("boss", "support", capability_ceiling=CapabilityCeiling(allowed=(MANAGE,)))
BOUNDLESS = ExecutionPrincipal.user_session("u3", "support", capability_ceiling=CapabilityCeiling())
NAMES = {
    "agents/list_runtime_tool_requests",
    "agents/get_runtime_tool_request",
    "agents/submit_runtime_tool_result",
    "agents/timeout_runtime_tool_request",
    "agents/cancel_runtime_tool_request",
}


class Host:
    """Abilities on a store, called by whoever is `caller` at the moment."""

    def __init__(self, system: Any) -> None:
        self.caller: ExecutionPrincipal | None = OWNER
        self.resumed: list[Any] = []
        hooks = HookRegistry(find=list)
        self.abilities = Abilities.on(system, hooks)
        RuntimeToolAbilities(system, lambda: self.caller, continuation=self.resume, hooks=hooks).register(
            self.abilities
        )

    def resume(self, request: Any, result: Any, context: dict[str, Any]) -> dict[str, Any]:
        self.resumed.append(request.request_id)
        return {"went": "on"}

    async def call(self, name: str, given: Any = None, caller: ExecutionPrincipal | None = OWNER) -> Any:
        self.caller = caller
        return await self.abilities.call(f"agents/{name}", {} if given is None else given)


@pytest.fixture
async def host(tmp_path: Path) -> AsyncIterator[Host]:
    async with opened_store(str(tmp_path / "store.db")) as store:
        yield Host(new_engine(store))


async def asked(tmp_path: Path, owner: str | None = "u1") -> str:
    principal = Principal(id=owner) if owner is not None else None
    waiting = await run(agent(), "go", store=str(tmp_path / "store.db"), principal=principal)
    return waiting.runtime_tools[0].request_id


@pytest.mark.spec("API-RTL-18")
async def test_owner_and_manager_list_get_submit_time_out_and_cancel_and_nobody_else_does(
    host: Host, tmp_path: Path
) -> None:
    assert set(host.abilities.names) == NAMES
    for caller in (OWNER, MANAGER):
        names = [await asked(tmp_path) for _ in range(3)]
        listed = await host.call("list_runtime_tool_requests", caller=caller)
        assert {request["request_id"] for request in listed["requests"]} == set(names)
        shown = await host.call("get_runtime_tool_request", {"request_id": names[0]}, caller)
        assert shown["request"]["parameters"]["folder"] == "/home"
        for stranger in (OTHER, TOKEN, BOUNDLESS, None):
            for name in sorted(NAMES - {"agents/list_runtime_tool_requests"}):
                with pytest.raises(AbilityRefused, match="ability_permission_denied"):
                    await host.call(name.removeprefix("agents/"), {"request_id": names[0]}, stranger)
            if stranger is not None:
                assert await host.call("list_runtime_tool_requests", caller=stranger) == {"requests": []}
        done = await host.call("submit_runtime_tool_result", {"request_id": names[0], "result": {"n": 1}}, caller)
        assert (done["status"], done["continuation_result"]) == ("runtime_tool_completed", {"went": "on"})
        late = await host.call("timeout_runtime_tool_request", {"request_id": names[1]}, caller)
        gone = await host.call("cancel_runtime_tool_request", {"request_id": names[2]}, caller)
        assert (late["status"], "cancelled" in late) == ("runtime_tool_timeout", False)
        assert (gone["status"], gone["cancelled"]) == ("runtime_tool_timeout", True)
        again = await host.call("submit_runtime_tool_result", {"request_id": names[1], "result": 1}, caller)
        assert again["duplicate"] is True
    assert len(host.resumed) == 6
    with pytest.raises(AbilityRefused, match="ability_permission_denied"):
        await host.call("list_runtime_tool_requests", caller=None)


async def test_a_run_of_nobody_is_a_managers_alone(host: Host, tmp_path: Path) -> None:
    name = await asked(tmp_path, owner=None)
    assert (await host.call("list_runtime_tool_requests"))["requests"] == []
    assert (await host.call("get_runtime_tool_request", {"request_id": name}, MANAGER))["request"]["request_id"] == name


async def test_a_request_that_is_not_there_is_refused_like_somebody_elses_and_a_manager_is_told(host: Host) -> None:
    given = {"request_id": "runtime-tool-nope"}
    with pytest.raises(AbilityRefused, match="ability_permission_denied"):
        await host.call("get_runtime_tool_request", given)
    for name in ("get_runtime_tool_request", "cancel_runtime_tool_request", "submit_runtime_tool_result"):
        with pytest.raises(InvalidValue, match="runtime_tool_request_not_found"):
            await host.call(name, given, MANAGER)
