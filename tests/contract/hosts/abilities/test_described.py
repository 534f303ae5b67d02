"""The abilities of a host as a client reads them, before it calls one."""

from pathlib import Path

import pytest

from wakeful.hosts import Ability, ExecutionPrincipal, HookRegistry, open_host

ANN = ExecutionPrincipal.user_session("ann", "support")


@pytest.mark.spec("API-TDS-02")
async def test_a_host_says_which_of_its_abilities_change_things_and_which_may_be_repeated(tmp_path: Path) -> None:
    async with open_host(tmp_path / "shop.db", principal=ANN, hooks=HookRegistry(find=list)) as host:
        own = Ability(
            "shop/look", lambda given: given, lambda given: True, "Looks.", {"type": "object"}, category="shop"
        )
        host.abilities.register(own)
        described = {each["name"]: each for each in host.abilities.described()}
    marks = {name.removeprefix("agents/"): each["annotations"] for name, each in described.items()}
    assert marks["run_task"] == {"destructive": True, "idempotent": False}
    assert marks["list_execution_targets"] == marks["get_task_run"] == {"destructive": False, "idempotent": True}
    assert marks["cancel_task_run"] == {"destructive": True, "idempotent": True}
    assert described["shop/look"] == {
        "name": "shop/look",
        "description": "Looks.",
        "category": "shop",
        "input_schema": {"type": "object"},
        "output_schema": None,
        "annotations": {},
    }
