"""What the facts of a run keep about its calls, as a reader outside gets them."""

from typing import Any

import pytest

from kit.runs.engine_runs import calls
from kit.runs.whole_views import run_stream
from wakeful import (
    Agent,
    Approval,
    Approve,
    Budget,
    GatePolicy,
    Reject,
    Rule,
    RunContext,
    RunResult,
    ToolRetry,
    run,
    tool,
)
from wakeful.contracts.envelope import published
from wakeful.contracts.events import ToolFailed, ToolResult
from wakeful.store.memory import MemoryStore
from wakeful.testing import scripted
from wakeful.tools.results import ToolOutput
from wakeful.views.run_stream_events import ToolResultEvent


@tool(effect="pure")
def weigh(ctx: RunContext, order: str, password: str = "") -> str:
    """Weighs an order."""
    ctx.progress("on the scales", done=1, total=2, partial="4 kg so far")
    return f"{order} weighs 4 kg"


@tool(effect="pure")
def cite(order: str) -> Any:
    """Says where it found something."""
    found = [{"source": "wiki", "source_id": "page 7"}, {"source": "web", "source_url": "https://example.org/a"}]
    return ToolOutput("found", metadata={"citations": found})


@tool(effect="pure")
def long() -> str:
    """A long text."""
    return "line\n" * 50_000


@tool(effect="irreversible")
def ship(order: str) -> str:
    """Ships an order."""
    return f"{order} is on its way"


@tool(effect="pure")
def broken(order: str) -> str:
    """Knows what to do instead."""
    raise ToolRetry("look the order up first")


async def events(*said: Any, decision: Any = None, **options: Any) -> list[dict[str, Any]]:
    """Every event of a run whose model says this, published."""

    async def decide(asked: Approval) -> Any:
        return decision

    store = MemoryStore()
    agent = Agent("a", scripted([*said, "done"]), tools=[weigh, cite, long, ship, broken], **options)
    result: RunResult[Any] = await run(
        agent, "go", store=store, budget=Budget(tool_calls=3), approver=decide if decision else None
    )
    return [published(each, store.runtime_id).model_dump(mode="json") for each in result.facts()]


def of_kind(found: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    return [each for each in found if each["type"] == kind]


@pytest.mark.spec("STD-CALL-01", "STD-CALL-02", "STD-CALL-07")
async def test_every_event_of_a_call_has_its_id_and_its_start_keeps_safe_arguments_and_flags() -> None:
    found = await events(calls(("weigh", {"order": "A17", "password": "hunter2"})))
    of_calls = [each for each in found if each["type"].startswith(("tool.started", "tool.progress", "tool.result"))]
    (call_id,) = {each["tool_call_id"] for each in of_calls}
    assert call_id and len(of_calls) == 3
    (started,) = of_kind(found, "tool.started")
    assert started["payload"]["safe_args"] == {"order": "A17", "password": "[redacted]"}
    flags = ("is_concurrency_safe", "is_read_only", "is_destructive", "interrupt_behavior")
    assert all(flag in started["payload"] for flag in flags)
    assert (started["payload"]["is_read_only"], started["payload"]["is_destructive"]) == (True, False)


@pytest.mark.spec("STD-CALL-03")
async def test_a_call_keeps_what_policy_said_and_the_approval_it_waits_for() -> None:
    asks = Rule(match="ship", decision="ask")
    found = await events(calls(("ship", {"order": "A17"})), policy=policy_with(asks), decision=Approve())
    (started,) = of_kind(found, "tool.started")
    (asked,) = of_kind(found, "action.required")
    (ended,) = of_kind(found, "tool.result")
    assert started["payload"]["policy"] == "ask"
    assert ended["payload"]["approval_ref"] == asked["payload"]["action_id"]


def policy_with(*rules: Rule) -> GatePolicy:
    return GatePolicy(rules=rules)


@pytest.mark.spec("STD-CALL-04")
async def test_progress_and_partial_output_are_facts() -> None:
    found = await events(calls(("weigh", {"order": "A17"})))
    (note,) = of_kind(found, "tool.progress")
    payload = note["payload"]
    assert (payload["progress_seq"], payload["message"]) == (1, "on the scales")
    assert (payload["progress"], payload["total"], payload["partial_preview"]) == (1, 2, "4 kg so far")


@pytest.mark.spec("STD-CALL-05", "STD-CALL-09")
async def test_a_result_keeps_its_preview_where_the_whole_is_and_what_it_rests_on() -> None:
    said = calls(("weigh", {"order": "A17"}), ("cite", {"order": "A17"}), "long")
    named = {each["payload"]["tool_name"]: each for each in of_kind(await events(said), "tool.result")}
    short, cited, whole = (named[name] for name in ("weigh", "cite", "long"))
    assert short["payload"]["preview"] == "A17 weighs 4 kg"
    assert cited["payload"]["evidence_refs"] == ["page 7", "https://example.org/a"]
    payload = whole["payload"]
    assert payload["truncated"] and payload["artifact_refs"] == [payload["result_ref"]["digest"]]
    assert payload["preview"].startswith("line\nline")
    # Readable without the answer, whose text has none of it.
    assert short["payload"]["item"]["parts"][0]["text"] == "A17 weighs 4 kg"


@pytest.mark.spec("STD-CALL-06", "STD-CALL-11")
async def test_a_failure_keeps_its_category_whether_to_try_again_and_what_to_do() -> None:
    asks = policy_with(Rule(match="ship", decision="ask"))
    said = calls(("broken", {"order": "A"}), ("weigh", {"order": 7, "no": 1}), ("ship", {"order": "B"}))
    found = await events(said, policy=asks, decision=Reject("not today"))
    failed = {each["payload"]["tool_name"]: each["payload"] for each in of_kind(found, "tool.failed")}
    assert {name: each["status"] for name, each in failed.items()} == {
        "broken": "failed",
        "weigh": "invalid",
        "ship": "rejected",
    }
    assert failed["broken"]["error_category"] == "execution_failed"
    assert "look the order up first" in failed["broken"]["message"]
    assert failed["ship"]["error_category"] == "approval_rejected" and failed["ship"]["retryable"] is False
    assert failed["weigh"]["error_category"] in ("invalid_arguments", "schema_validation_failed")
    assert all(each["recovery_advice"] or each["message"] for each in failed.values())


@pytest.mark.spec("CTL-META-01", "CTL-META-08")
async def test_every_end_of_a_call_has_metadata_and_a_large_result_names_its_artifact() -> None:
    store = MemoryStore()
    agent = Agent("a", scripted([calls("long", ("broken", {"order": "A"})), "done"]), tools=[long, broken])
    result = await run(agent, "go", store=store)
    large, failed = result.tool_execution_results
    assert large.result["metadata"]["status"] == "success" and failed.result["metadata"]["status"] == "error"
    artifact = large.result["metadata"]["offloaded_artifact_id"]
    assert await store.get_blob(artifact) == b"line\n" * 50_000
    assert artifact not in large.result["result"] or len(large.result["result"]) < 60_000
    assert "offloaded_artifact_id" not in failed.result["metadata"]


@pytest.mark.spec("CTL-META-02", "CTL-META-09")
async def test_the_event_of_a_result_mirrors_its_metadata_and_its_flat_fields_agree() -> None:
    said = calls(("weigh", {"order": "A"}), ("broken", {"order": "A"}))
    agent = Agent("a", scripted([said, "done"]), tools=[weigh, broken])
    result = await run(agent, "go")
    ends = {each.fact.call_id: each.fact.event for each in result.facts()}
    shown = [each for each in run_stream(result.turn_id, result.facts()) if isinstance(each, ToolResultEvent)]
    assert len(shown) == 2
    for each in shown:
        event = ends[each.tool_call_id]
        assert isinstance(event, ToolResult | ToolFailed) and each.metadata == event.metadata
    for each in shown:
        assert each.success is (each.metadata.status == "success") is (each.error is None)
        assert each.duration_ms == each.metadata.execution_time_ms


@pytest.mark.spec("HOL-TURN-01", "HOL-TURN-05")
async def test_a_settled_turn_has_a_record_with_its_last_words() -> None:
    store = MemoryStore()
    said = {**calls(("weigh", {"order": "A17"})), "text": "I weigh it."}
    done = await run(Agent("a", scripted([said, "4 kg."]), tools=[weigh]), "go", store=store, thread="t")
    record = done.turn_record()
    assert record is not None
    assert (record.turn_index, record.kind, record.last_assistant_message) == (1, "completed", "4 kg.")
    assert record.duration_ms >= 0 and record.completed_at.endswith("Z")
    # A reply without words leaves the words before it.
    cut = await run(Agent("a", scripted([said, calls("long")]), tools=[weigh, long]), "go", budget=Budget(tool_calls=1))
    record = cut.turn_record()
    assert record is not None
    assert (cut.status, record.kind, record.last_assistant_message) == ("incomplete", "aborted", "I weigh it.")
    fails = {"fail": {"kind": "contract_error", "message": "wrong field"}}
    lost = await run(Agent("a", scripted([fails])), "go")
    record = lost.turn_record()
    assert record is not None and (record.kind, record.last_assistant_message) == ("aborted", None)
