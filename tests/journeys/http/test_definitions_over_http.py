"""Agents made, read and changed over HTTP: the nine control fields, with the validation that code has."""

import asyncio
from pathlib import Path

import pytest

from kit.surfaces.served_home import HomeClient
from wakeful import Agent, Runtime
from wakeful.service.operations.inspection import LIST_AGENT_TOOLS, AgentTools
from wakeful.service.operations.operation import OpenStore
from wakeful.testing import scripted

CONTROL = {
    "planning_enabled": True,
    "planning_model": "scripted:plan.json",
    "planning_instructions": "Plan first.",
    "budget_awareness": "per-message",
    "hitl_tools": ["run_subtask"],
    "emit_mcp_progress": False,
    "injected_tool_args": {"why": "why the call is made"},
    "allow_parallel_subagents": True,
    "max_parallel_subagents": 4,
}
"""The nine of them, none with its default."""


def definition(name: str, **fields: object) -> dict[str, object]:
    return {"definition": {"name": name, "model": "scripted:demo", **fields}}


@pytest.mark.spec("CTL-WEB-01")
def test_control_fields_are_made_read_and_changed_with_the_same_names(operator: HomeClient) -> None:
    made = operator.post("/agents", definition("nine", subtasks=True, **CONTROL))
    assert made.status == 200, made
    stored = operator.get("/agents/nine/definition").body
    assert {name: stored.get(name) for name in CONTROL} == CONTROL
    changed = operator.ask("PATCH", "/agents/nine", {"changes": {"max_parallel_subagents": 2, "max_steps": 9}})
    assert changed.status == 200, changed
    again = operator.get("/agents/nine/definition").body
    assert (again["max_parallel_subagents"], again["max_steps"]) == (2, 9)
    assert len(operator.get("/agents/nine/revisions").body) == 2
    wrong = operator.post("/agents", definition("wrong", max_steps="many"))
    assert (wrong.status, "max_steps" in wrong.body["error"]["message"]) == (422, True)
    assert operator.get("/agents/wrong/status").status == 404, "nothing was made"


def test_a_revision_is_one_of_the_agent_and_nothing_else_that_is_stored(
    client: HomeClient, observer: HomeClient
) -> None:
    """Arguments of calls and configurations of turns are stored under names of the same kind, with their secrets."""
    client.post("/agents", definition("plain"))
    (row,) = client.get("/agents/plain/revisions").body
    for name in (row["revision"], row["revision"].removeprefix("sha256:")[:12]):
        assert observer.get(f"/agents/plain/definition?revision={name}").body["name"] == "plain"
    turn = client.until_ended(client.post("/agents/clerk/messages", {"text": "hi", "thread": "revisions"}).body)
    events = client.get(f"/turns/{turn['turn_id']}/events").body
    (config,) = [each["payload"]["config_ref"]["digest"] for each in events if each["type"] == "turn.started"]
    for other in (config, "/etc/passwd", "/../../../../etc/passwd", "a%00b"):
        refused = observer.get(f"/agents/plain/definition?revision={other}")
        assert (refused.status, refused.code) == (422, "invalid_request"), other
        assert "has no revision" in refused.body["error"]["message"], other


@pytest.mark.spec("CTL-WEB-04")
def test_a_person_cannot_be_asked_about_a_tool_that_is_not_there(operator: HomeClient) -> None:
    refused = operator.post("/agents", definition("asks", hitl_tools=["refnud"]))
    assert refused.status == 422, refused
    assert "refnud" in refused.body["error"]["message"]
    assert operator.get("/agents/asks/status").status == 404


@pytest.mark.spec("CTL-REJ-03")
def test_no_more_than_seven_children_work_at_once_wherever_it_is_said(operator: HomeClient) -> None:
    fields = {"subtasks": True, "allow_parallel_subagents": True}
    with pytest.raises(Exception, match="max_parallel_subagents"):
        Agent("eight", scripted(["x"]), max_parallel_subagents=8, **fields)  # type: ignore[arg-type]
    with pytest.raises(Exception, match="max_parallel_subagents"):
        Agent.from_dict({"name": "eight", "model": "scripted:x.json", "max_parallel_subagents": 8, **fields})
    created = operator.post("/agents", definition("eight", max_parallel_subagents=8, **fields))
    assert (created.status, "max_parallel_subagents" in created.body["error"]["message"]) == (422, True)
    operator.post("/agents", definition("seven", max_parallel_subagents=7, **fields))
    updated = operator.ask("PATCH", "/agents/seven", {"changes": {"max_parallel_subagents": 8}})
    assert updated.status == 422
    assert operator.get("/agents/seven/definition").body["max_parallel_subagents"] == 7


@pytest.mark.spec("CTL-WEB-05")
def test_an_agent_of_a_row_has_the_schemas_and_gates_of_one_in_code(operator: HomeClient, tmp_path: Path) -> None:
    fields = {"subtasks": True, "hitl_tools": ["run_subtask"], "max_steps": 4}
    operator.post("/agents", definition("row", **fields))
    live = operator.get("/agents/row/tools").body["catalog"]["entries"]

    code = Agent("row", "scripted:demo", **fields)  # type: ignore[arg-type]

    # The same agent in code, asked in the same words by a runtime in this process.
    async def in_code() -> list[dict[str, object]]:
        async with Runtime(tmp_path, agents=[code], public_url="http://127.0.0.1:7717") as rt:
            opened = OpenStore(rt._here.engine.store, lambda _: rt._here.engine, frozenset, rt._here)
            found = await LIST_AGENT_TOOLS.handler(opened, AgentTools("row"))
            entries: list[dict[str, object]] = found.model_dump(mode="json")["catalog"]["entries"]
            return entries

    same = ("tool_name", "input_schema", "policy", "policy_reason", "is_destructive")
    built = [{name: entry.get(name) for name in same} for entry in asyncio.run(in_code())]
    assert [{name: entry.get(name) for name in same} for entry in live] == built
    assert any(entry["tool_name"].endswith("run_subtask") for entry in live)


def test_an_agent_of_the_program_is_changed_there(operator: HomeClient) -> None:
    refused = operator.ask("PATCH", "/agents/clerk", {"changes": {"max_steps": 3}})
    assert refused.status in (409, 422)
    assert "defined in the program" in refused.body["error"]["message"]
