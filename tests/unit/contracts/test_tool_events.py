"""What the facts of a call keep: written to a store, read back, and shown as a reader outside gets them."""

import re
from pathlib import Path
from typing import Any, get_args

import pytest

from kit.runs.event_samples import (
    AGENT,
    TURN,
    fact,
    message,
    metadata,
    progress,
    tool_failed,
    tool_result,
    tool_started,
)
from wakeful.contracts.content import BlobRef
from wakeful.contracts.envelope import published
from wakeful.contracts.events import (
    BY_KIND,
    AnyEvent,
    PermissionEvaluated,
    ToolArgs,
    ToolDispatched,
    ToolFailed,
    ToolProgress,
    ToolResult,
    ToolStarted,
)
from wakeful.contracts.events.tools import HookOutcome
from wakeful.contracts.tools import FailedStatus
from wakeful.store.memory import MemoryStore

HOOKED = HookOutcome(hook_id="h", point="pre_tool_use", decision="continue", event_id="agent_1:2")
REFS = {
    "permission_ref": "agent_1:3",
    "approval_ref": "apr_1",
    "sandbox_ref": "agent_1:4",
    "hook_outcomes": (HOOKED,),
}
BLOB = BlobRef(digest="sha256:" + "1" * 64, size=90_000)


async def kept(*events: AnyEvent) -> list[dict[str, Any]]:
    """The events as they come out of a store again, published; what went in is asserted to be what came out."""
    store = MemoryStore()
    await store.admit(AGENT, [fact(message(), step=None)])
    claim = await store.claim(TURN)
    await store.append(claim, [fact(event) for event in events])
    stored = (await store.read(AGENT))[1:]
    assert [recorded.fact.event for recorded in stored] == list(events)
    return [published(recorded, store.runtime_id).model_dump(mode="json") for recorded in stored]


@pytest.mark.spec("STD-CALL-01")
async def test_every_event_of_a_call_carries_its_id_and_cannot_do_without() -> None:
    lifecycle = [
        PermissionEvaluated(decision="allow", decision_reason="pure"),
        tool_started(),
        ToolDispatched(attempt=2, cause="recovery"),
        ToolArgs(delta="{"),
        progress(),
        tool_result(),
    ]
    assert {event["tool_call_id"] for event in await kept(*lifecycle)} == {"call_1"}
    assert all("tool_call_id" in event.needs for event in (*lifecycle, tool_failed()))


@pytest.mark.spec("STD-CALL-02", "STD-CALL-03", "STD-CALL-07", "STD-CALL-08")
async def test_a_started_call_keeps_arguments_verdict_flags_hooks_and_refs() -> None:
    started = tool_started().model_copy(update={**REFS, "policy": "ask", "interrupt_behavior": "block"})
    by_ref = tool_started().model_copy(update={"safe_args": None, "args_ref": BLOB.digest})
    first, second = (event["payload"] for event in await kept(started, by_ref))
    assert first["safe_args"] == {"order": "A17"}
    assert (second.get("safe_args"), second["args_ref"]) == (None, BLOB.digest)
    assert (first["policy"], first["approval_ref"]) == ("ask", "apr_1")
    flags = ("is_concurrency_safe", "is_read_only", "is_destructive", "interrupt_behavior")
    assert [first[flag] for flag in flags] == [True, True, False, "block"]
    assert first["hook_outcomes"] == [HOOKED.model_dump(mode="json", exclude_none=True)]
    assert (first["permission_ref"], first["sandbox_ref"]) == ("agent_1:3", "agent_1:4")


@pytest.mark.spec("STD-CALL-04")
async def test_progress_and_partial_output_are_kept_in_order() -> None:
    notes = [
        ToolProgress(progress_seq=1, message="begun", elapsed_ms=3),
        ToolProgress(progress_seq=2, progress=1, total=2, partial_preview="half", partial_ref="sha256:2", elapsed_ms=9),
    ]
    first, second = (event["payload"] for event in await kept(*notes))
    assert (first["progress_seq"], first["message"], first["elapsed_ms"]) == (1, "begun", 3)
    assert (second["progress"], second["total"]) == (1, 2)
    assert (second["partial_preview"], second["partial_ref"]) == ("half", "sha256:2")


@pytest.mark.spec("STD-CALL-05", "STD-CALL-08", "STD-CALL-09")
async def test_a_result_is_a_fact_of_its_own_with_refs_preview_images_artifacts_and_evidence() -> None:
    result = tool_result().model_copy(
        update={
            **REFS,
            "result_ref": BLOB,
            "images": ("sha256:3",),
            "artifact_refs": ("artifact_1",),
            "evidence_refs": ("evidence_1",),
            "truncated": True,
        }
    )
    (event,) = await kept(result)
    payload = event["payload"]
    assert payload["result_ref"]["digest"] == BLOB.digest
    assert (payload["preview"], payload["truncated"]) == ("4200", True)
    assert (payload["images"], payload["artifact_refs"], payload["evidence_refs"]) == (
        ["sha256:3"],
        ["artifact_1"],
        ["evidence_1"],
    )
    assert (payload["permission_ref"], payload["approval_ref"], payload["sandbox_ref"]) == (
        "agent_1:3",
        "apr_1",
        "agent_1:4",
    )
    assert payload["hook_outcomes"] == [HOOKED.model_dump(mode="json", exclude_none=True)]
    # Readable without any answer text: this log has none.
    assert payload["item"]["parts"][0]["text"] == "4200"


@pytest.mark.spec("STD-CALL-06", "STD-CALL-11")
@pytest.mark.parametrize("status", get_args(FailedStatus))
async def test_a_failure_keeps_its_category_retryability_and_advice_under_each_status(status: str) -> None:
    (event,) = await kept(tool_failed(status=status))
    assert event["payload"]["status"] == status
    assert event["payload"]["error_category"] == "execution_failed"
    assert event["payload"]["retryable"] is False
    assert event["payload"]["recovery_advice"] == "look the order up first"


@pytest.mark.spec("STD-CALL-11")
async def test_a_partial_success_is_a_result_and_no_failure_can_call_itself_a_success() -> None:
    (event,) = await kept(tool_result().model_copy(update={"status": "partial"}))
    assert (event["type"], event["payload"]["status"]) == ("tool.result", "partial")
    words = ["failed", "denied", "rejected", "timed_out", "cancelled", "interrupted", "skipped", "invalid"]
    assert set(get_args(FailedStatus)) == set(words)
    for status in ("succeeded", "partial"):
        with pytest.raises(ValueError, match="status"):
            ToolFailed(**{**tool_failed().model_dump(), "status": status})
    with pytest.raises(ValueError, match="status"):
        ToolResult(**{**tool_result().model_dump(), "status": "failed"})


def test_the_payloads_of_the_lifecycle_have_every_field_of_the_rules_block(shared: Path) -> None:
    text = (shared / "spec" / "runtime-standard.md").read_text()
    blocks = {
        "ToolStartedPayload": ToolStarted,
        "ToolArgsPayload": ToolArgs,
        "ToolProgressPayload": ToolProgress,
        "ToolResultPayload": ToolResult,
        "ToolFailedPayload": ToolFailed,
        "HookOutcome": HookOutcome,
    }
    for name, ours in blocks.items():
        block = re.search(rf"class {name}\(BaseModel\):[^\n]*\n((?:    .*\n)+)", text)
        assert block is not None, name
        fields = set(re.findall(r"^    (\w+):", block[1], re.M))
        assert fields, name
        assert fields <= set(ours.model_fields), name


@pytest.mark.spec("CTL-META-01")
@pytest.mark.parametrize("kind", ["tool.result", "tool.failed"])
def test_no_terminal_fact_of_a_call_can_be_made_without_metadata(kind: str) -> None:
    event = {"tool.result": tool_result(), "tool.failed": tool_failed()}[kind]
    assert event.metadata.model_dump().keys() == metadata().model_dump().keys()
    with pytest.raises(ValueError, match="metadata"):
        BY_KIND[kind].model_validate({**event.model_dump(exclude={"metadata"})})
