"""The boundary: everything concrete comes from the host, and nothing else is touched."""

import sys
from pathlib import Path
from typing import Any

import pytest

from kit.hosts.loop_host import Host, calling, search
from wakeful import hosts

MECHANICS = {
    "message-envelope normalisation": {"Message", "normalise", "normalise_all"},
    "conversation request and result models": {"ConversationRequest", "ConversationResult"},
    "execution-principal context": {"ExecutionPrincipal"},
    "optional transcript compaction": {
        *("compact", "Compaction", "CompactionItem", "TranscriptCompactionPolicy"),
        *("split_markdown", "join_markdown", "split_markdown_overflow", "summarise_section", "point_to_section"),
    },
    "multi-turn loop sequencing": {"ConversationLoop"},
    "tool-call validation and mediation": {
        *("ToolExecutionCore", "ToolCall", "ToolExecutor", "ToolResultTruncator", "ToolSourceRegistry", "mediate_turn"),
        *("ToolPolicy", "ToolPolicyFilter", "ToolAccessPolicy", "Tiers", "tiered"),
        *("runtime_tool_policy", "runtime_local_declarations", "resolve_principal"),
        *("ActionPolicy", "ActionPolicyProvider", "ActionPolicyResolver"),
    },
    "completion-policy and iteration-budget stops": {
        *("CompletionPolicy", "CompletionDecision", "IterationBudget", "SpinDetector", "IdenticalFailureTracker")
    },
    "transcript persister and transcript lock contracts": {
        *("TranscriptPersister", "ConversationLock", "MemoryConversationLock")
    },
}
"""What a host finds. The lifecycle events are told by the loop itself, to `on_event` and the hook `loop_event`."""

WATCHED = (
    "open",
    "os.",
    "socket.connect",
    "socket.bind",
    "socket.send",
    "socket.getaddrinfo",
    "sqlite3.",
    "subprocess.",
)
_seen: list[str] | None = None


def _note(event: str, arguments: tuple[Any, ...]) -> None:
    if _seen is not None and event.startswith(WATCHED):
        _seen.append(f"{event} {arguments[:1]}")


def _touch_disk() -> None:
    Path(__file__).read_bytes()


async def _whole_run() -> None:
    host = Host(calling(search("a"), search("b")), calling(search("c")), {"content": "done"})
    result = await host.mediated()
    assert (result.completed, len(host.calls), host.names[-1]) == (True, 3, "completed")


@pytest.mark.spec("API-BND-01")
async def test_the_loop_offers_its_mechanics_and_nothing_else() -> None:
    named = [name for names in MECHANICS.values() for name in names]
    of_the_loop = {name for name in hosts.__all__ if ".hosts.loop." in getattr(hosts, name).__module__}
    assert of_the_loop <= set(named) <= set(hosts.__all__)
    host = Host({"content": "x"})
    await host.run()
    assert host.names == ["turn_started", "completed"], "and its lifecycle events"


@pytest.mark.spec("API-BND-02")
async def test_a_whole_loop_runs_on_fakes_alone_without_network_or_disk() -> None:
    global _seen
    await _whole_run()  # what is imported when it is first needed is read from disk
    sys.addaudithook(_note)
    _seen = []
    try:
        await _whole_run()
        touched = list(_seen)
        _touch_disk()
        assert len(_seen) > len(touched), "the watch sees nothing, so it shows nothing"
    finally:
        _seen = None
    assert touched == []
