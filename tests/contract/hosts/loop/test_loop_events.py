"""Events of the loop: facts of the log, told in its order, to whoever listens."""

from typing import Any

import pytest

from kit.hosts.loop_host import CLIENTS, Host, calling, search
from wakeful.contracts.envelope import SCHEMA_VERSION, event_id, iso

REPEATED = {"tool_name", "parameters_hash", "signature_hash", "turn", "repeat_count", "threshold"}
FOLDED = {"policy", "total_messages", "compact_count", "retained_count", "boundary"}
DECIDED = {"tool_name", "turn", "message", "context"}
KEYS = {
    "turn_started": {"turn", "max_turns", "message_count"},
    "tool_call": {"turn", "tool_name", "tool_call_id", "parameters", "parameters_sha256", "parameters_redacted"},
    "tool_result": {"turn", "tool_name", "tool_call_id", "success"},
    "tool_result_truncated": {
        *("turn", "tool_name", "tool_call_id", "original_bytes", "excerpt_bytes", "citations_dropped")
    },
    "tool_result_diagnostics": {"tool_name", "tool_call_id", "turn", "host_key"},
    "runtime_tool_pending": {"turn", "tool_name", "tool_call_id", "request_id"},
    "approval_required": {"turn", "tool_name", "tool_call_id", "action_id"},
    "budget_exceeded": {"budget", "dimension", "current", "ceiling"},
    "loop_stalled": REPEATED,
    "identical_failure_nudged": REPEATED | {"error_code", "message"},
    "completion_policy_continue": DECIDED,
    "completion_policy_stop": DECIDED,
    "continuation_message_added": {"turn", "role"},
    "tool_call_gate_completion_blocked": {
        *("turn", "rule_id", "reason", "counters"),
        *("require_tool_use", "min_tool_calls", "require_one_of"),
    },
    "interrupt_received": {"turn", "action", "message", "source"},
    "interrupt_ignored": {"reason", "turn"},
    "tool_declarations_rejected": {"rejected", "rejected_count", "accepted_count"},
    "tool_mediation_disabled": {"reason", "rejected", "rejected_count"},
    "pre_tool_mediation_error": {"turn", "tool_name", "tool_call_id", "reason"},
    "transcript_lock_contention": {"session_id"},
    "compaction_started": FOLDED,
    "compaction_completed": FOLDED | {"provenance", "conservation", "summarizer", "summary_preview"},
    "compaction_failed": FOLDED | {"error"},
    "compaction_overflow_archived": FOLDED | {"provenance", "conservation", "archive_id", "archived_count"},
    "observer_failed": {"surface", "error"},
    "transcript_persist_failed": {"surface", "error"},
    "transcript_lock_release_failed": {"surface", "error"},
    "failed": {"turn", "error"},
    "completed": {"turn", "message_count", "tool_results", "run_outcome"},
}


class Broken:
    """A lock and a persister that fail at every turn, and a lock that is never free."""

    def __init__(self, token: str | None = "t") -> None:
        self.token = token

    def acquire_session_lock(self, session_id: str, ttl_seconds: int = 300) -> str | None:
        return self.token

    def release_session_lock(self, session_id: str, token: str) -> bool:
        raise OSError("lock server gone")

    def persist(self, messages: Any, request: Any, result: Any) -> str:
        raise OSError("disk full")


async def everything_told() -> list[tuple[str, dict[str, Any]]]:
    """Runs that between them tell every event there is."""
    more = {"role": "user", "content": "on"}

    def grumpy(name: str, payload: dict[str, Any]) -> None:
        if name == "turn_started":
            raise ValueError("not now")

    rejecting = Host({"content": "x"})
    await rejecting.run(tool_executor=rejecting, tool_declarations={"x": {"name": "x"}})
    full = Host({**calling(search()), "continuation_messages": [more]})
    full.hooks.register("loop_event", grumpy)
    broken = Broken()
    await full.mediated(max_turns=1, transcript_lock=broken, transcript_persister=broken, session_id="s")
    contended = Host()
    await contended.run(transcript_lock=Broken(None), session_id="s")
    failing = Host(RuntimeError("no"))
    await failing.run()
    hosts = [rejecting, full, contended, failing, *await _with_guards(), *await _with_pauses(), *await _folding()]
    return [event for host in hosts for event in host.told]


class Policy:
    """Not done at first, then done."""

    def __init__(self) -> None:
        self.seen = 0

    def record_tool_result(self, *_: Any) -> dict[str, Any]:
        self.seen += 1
        return {"complete": self.seen > 1, "message": "more"}


async def _with_guards() -> list[Host]:
    cited = [{"source": "s", "excerpt": "x" * 50} for _ in range(3)]
    stalled = Host(*[calling(search("x"))] * 2)
    stalled.answers["x"] = {"success": True, "result": "x" * 99, "metadata": {"citations": cited}}
    await stalled.mediated(
        spin_detector={"threshold": 2},
        tool_result_truncator={"max_bytes": 70},
        post_tool_result_diagnostics=lambda *_: {"host_key": 1},
    )
    nudged = Host(*[calling(search("x"))] * 2, {"content": "done"})
    nudged.answers["x"] = {"success": False, "error": "no"}
    await nudged.mediated(identical_failure_tracker=True)
    decided = Host(*[calling(search("x"))] * 2)
    await decided.mediated(completion_policy=Policy())
    note = {"content": "hey", "metadata": {"source": "phone"}}
    answers: list[Any] = ["nonsense", note]
    interrupted = Host(*[calling(search("x"))] * 2, {"content": "done"})
    await interrupted.mediated(interrupt_source=lambda *_: answers.pop(0) if answers else None)
    return [stalled, nudged, decided, interrupted]


async def _with_pauses() -> list[Host]:
    client = {"name": "client/pick", "description": "Pick.", "parameters": {"type": "object", "properties": {}}}
    waiting = Host(calling({"name": "client/pick", "parameters": {}}))
    await waiting.run(tool_declarations={"client/pick": client}, context=CLIENTS, max_turns=2)
    asking = Host(calling(search("x")))
    envelope = {"type": "approval_required", "content": "may I?", "payload": {"action_id": "a"}}
    asking.answers["x"] = {"success": False, "status": "approval_required", "approval_required": envelope}
    await asking.mediated()
    blocked = Host({"content": "done"}, calling(search("x")), {"content": "done"})
    await blocked.mediated(tool_call_rules=[{"require_tool_use": True}], pre_tool_mediator=lambda context: "what?")
    return [waiting, asking, blocked]


async def _folding() -> list[Host]:
    policy = {"enabled": True, "max_messages": 2, "recent_messages": 1}
    hosts = []
    for more in ({"summarizer": lambda *_: "s"}, {"summarizer": lambda *_: ""}, {}):
        host = Host({"content": "ok"})
        overflow = {} if more else {"overflow_archive_enabled": True, "overflow_threshold_bytes": 1}
        given = [{"role": "user", "content": str(number)} for number in range(3)]
        await host.run(given, compaction_policy={**policy, **overflow}, **more)
        hosts.append(host)
    return hosts


@pytest.mark.spec("API-EVT-02")
async def test_every_event_there_is_has_its_name_and_keys() -> None:
    told = await everything_told()
    assert {name for name, _ in told} == set(KEYS)
    for name, payload in told:
        assert set(payload) == KEYS[name], name


@pytest.mark.spec("API-RES-11")
async def test_the_result_lists_every_lifecycle_event_with_its_place_in_the_log() -> None:
    answers: list[Any] = [{"content": "hey"}]
    host = Host(*[calling(search("x"))] * 2, {"content": "done"})
    host.answers["x"] = {"success": True, "result": "x" * 99}
    given = [{"role": "user", "content": str(number)} for number in range(3)]
    result = await host.mediated(
        given,
        interrupt_source=lambda *_: answers.pop(0) if answers else None,
        tool_result_truncator={"max_bytes": 10},
        completion_policy=Policy(),
        compaction_policy={"enabled": True, "max_messages": 2, "recent_messages": 1},
        summarizer=lambda *_: "s",
    )
    listed = [(event.type, event.metadata) for event in result.events]
    assert listed == host.told[:-1], "everything that was told, but `completed`"
    assert {
        *("interrupt_received", "tool_result_truncated", "completion_policy_stop", "completion_policy_continue"),
        *("compaction_started", "compaction_completed"),
    } <= {event.type for event in result.events}
    log = {recorded.event_id: recorded for recorded in await host.log()}
    for event in result.events:
        recorded = log[event.event_id or ""]
        assert (event.event_seq, event.created_at) == (recorded.seq, iso(recorded.fact.at))
        assert event.type in recorded.fact.event.aliases
        assert (event.schema_version, event.session_id) == (SCHEMA_VERSION, recorded.agent_id)


@pytest.mark.spec("API-EVT-01")
async def test_both_surfaces_hear_the_same_and_cannot_change_it() -> None:
    host = Host(calling(search("x")), {"content": "done"})
    heard: list[tuple[str, dict[str, Any]]] = []

    def meddler(name: str, payload: dict[str, Any]) -> None:
        payload.clear()
        payload["parameters"] = "mine"

    host.hooks.register("loop_event", meddler, priority=1)
    host.hooks.register("loop_event", lambda name, payload: heard.append((name, payload)))
    result = await host.mediated(on_event=lambda name, payload: (host.on_event(name, dict(payload)), payload.clear()))
    assert heard == host.told
    assert [name for name, _ in heard] == ["turn_started", "tool_call", "tool_result", "turn_started", "completed"]
    assert [event.metadata for event in result.events] == [payload for _, payload in heard[:-1]]


@pytest.mark.spec("API-EVT-03", "API-EVT-04")
async def test_every_event_is_a_fact_of_the_log_and_told_in_its_order() -> None:
    host = Host(calling(search("a"), search("b")), {"content": "done"})
    result = await host.mediated()
    log = {recorded.event_id: recorded for recorded in await host.log()}
    kinds = {"turn_started": "model.requested", "tool_call": "tool.started", "tool_result": "tool.result"}
    for event in result.events:
        recorded = log[event.event_id or ""]
        fact = recorded.fact
        assert event.type in fact.event.aliases
        assert fact.event.kind == kinds[event.type]
        assert (event.event_seq, event.created_at) == (recorded.seq, iso(fact.at))
        assert event.event_id == event_id(recorded.agent_id, recorded.seq)
        assert (event.schema_version, event.run_id, event.session_id) == (
            SCHEMA_VERSION,
            fact.turn_id,
            recorded.agent_id,
        )
    order = [event.event_seq for event in result.events]
    assert order == sorted(set(order))
    assert host.names == [*(event.type for event in result.events), "completed"]
    assert "completed" in (await host.log())[-1].fact.event.aliases


async def test_a_host_that_names_run_and_session_finds_its_names_on_the_events() -> None:
    result = await Host({"content": "x"}).run(run_id="r", session_id="s")
    assert {(event.run_id, event.session_id) for event in result.events} == {("r", "s")}


@pytest.mark.spec("API-EVT-05")
async def test_events_hold_redacted_parameters_only() -> None:
    host = Host(calling(search("shown", api_key="sk-secret")), {"content": "done"})
    result = await host.mediated()
    (payload,) = host.payloads("tool_call")
    assert payload["parameters"] == {"q": "shown", "api_key": "[redacted]"}
    assert payload["parameters_redacted"] is True
    assert "sk-secret" not in repr(host.told) + repr(result.events)
    assert "sk-secret" in repr(host.calls), "the executor itself must have got it, or this test shows nothing"


@pytest.mark.spec("API-EVT-06")
async def test_completed_is_told_once_and_last_unless_the_run_failed() -> None:
    done = Host(calling(search()), {"content": "done"})
    await done.mediated()
    cut = Host(calling(search()), calling(search()))
    await cut.mediated(max_turns=2)
    for host, status in ((done, "completed"), (cut, "budget_exceeded")):
        assert host.names.count("completed") == 1 and host.names[-1] == "completed"
        (payload,) = host.payloads("completed")
        assert payload["run_outcome"]["status"] == status
        assert (payload["turn"], payload["tool_results"]) == (2, 1 if host is done else 2)
        assert payload["message_count"] == (4 if host is done else 5)
    failed = Host(RuntimeError("no"))
    await failed.run()
    assert "completed" not in failed.names and failed.names[-1] == "failed"


@pytest.mark.spec("API-OUT-06")
async def test_every_run_ends_in_exactly_one_terminal_outcome() -> None:
    hosts = [Host({"content": "x"}), Host(RuntimeError("no")), Host("junk"), Host({"content": "x"})]
    for host, options in zip(hosts, ({}, {}, {}, {"should_continue": lambda *_: True}), strict=True):
        await host.run(**options)
        kinds = [recorded.fact.event.kind for recorded in await host.log()]
        assert sum(kind in ("turn.completed", "turn.failed") for kind in kinds) == 1
        assert kinds.count("transcript.closed") == 1 and kinds[-1] == "transcript.closed"
