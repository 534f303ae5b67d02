"""A host's completion policy: it sees every result, and says when the work is done."""

from typing import Any

import pytest

from kit.hosts.loop_host import CLIENTS, SEARCH, Host, calling, search
from wakeful.hosts import IterationBudget, RuntimeToolDeclaration, mediate_turn


class Policy:
    """Says what it was told to say, by the query of the call."""

    def __init__(self, **answers: Any) -> None:
        self.answers = answers
        self.seen: list[tuple[Any, ...]] = []

    def record_tool_result(
        self, tool_name: str, declaration: Any, tool_result: dict[str, Any], context: dict[str, Any], turn_count: int
    ) -> Any:
        self.seen.append((tool_name, declaration, tool_result, context, turn_count))
        answer = self.answers.get(f"n{len(self.seen)}", {"complete": False})
        if isinstance(answer, Exception):
            raise answer
        return answer


@pytest.mark.spec("API-CPL-01", "API-CPL-02", "API-RES-12")
async def test_a_policy_hears_of_a_result_and_its_word_completes_the_run() -> None:
    host = Host(calling(search("a")), {"content": "never"})
    policy = Policy(n1={"complete": True, "message": "found it", "context": {"score": 1}})
    result = await host.mediated(completion_policy=policy, context={"mine": 1})
    ((name, declaration, tool_result, context, turn),) = policy.seen
    assert (name, turn, context) == ("ability/search", 1, {"mine": 1, "turn": 1})
    assert isinstance(declaration, RuntimeToolDeclaration) and declaration.name == name
    assert (tool_result["success"], tool_result["result"]) == (True, {"n": 1})
    assert (result.completed, result.status, result.turn_count, len(host.seen)) == (True, None, 1, 1)
    assert result.run_outcome.stop_reason == "natural"
    stops = [event.metadata for event in result.events if event.type == "completion_policy_stop"]
    expected = {"tool_name": "ability/search", "turn": 1, "message": "found it", "context": {"score": 1}}
    assert stops == host.payloads("completion_policy_stop") == [expected]
    # The others that are completions, and the stops that are not.
    natural = await Host({"content": "x"}).run()
    ended = await Host({"content": "x"}).run(should_continue=lambda *_: False)
    mediated = Host(calling(search()), {"content": "never"})
    rejecting = {"action": "reject", "error": "done", "complete": True}
    by_mediator = await mediated.mediated(pre_tool_mediator=lambda context: rejecting)
    assert [each.completed for each in (natural, ended, by_mediator)] == [True] * 3
    asks = {"success": False, "status": "approval_required", "approval_required": _approval()}
    waiting = Host(calling(search()))
    waiting.answers["x"] = asks
    stops_short = {
        "budget_exceeded": await Host(calling(search())).mediated(max_turns=1),
        "stalled": await Host(*[calling(search())] * 2).mediated(spin_detector={"threshold": 2}),
        "interrupted": await Host(calling(search())).mediated(
            interrupt_source=lambda *_: {"content": "stop", "metadata": {"action": "cancel"}}
        ),
        "approval_required": await waiting.mediated(),
        "runtime_tool_pending": await Host(calling({"name": "client/pick", "parameters": {}})).run(
            tool_declarations={"client/pick": {"name": "client/pick", "description": "Pick.", "parameters": {}}},
            context=CLIENTS,
        ),
        "transcript_lock_contention": await Host().run(transcript_lock=_Taken(), session_id="s"),
        "failed": await Host(RuntimeError("no")).run(),
    }
    assert {name: (each.status, each.completed) for name, each in stops_short.items()} == {
        name: (name, False) for name in stops_short
    }


class _Taken:
    def acquire_session_lock(self, session_id: str, ttl_seconds: int = 300) -> None:
        return None

    def release_session_lock(self, session_id: str, token: str) -> bool:
        return False


def _approval() -> dict[str, Any]:
    return {"type": "approval_required", "role": "tool", "content": "may I?", "payload": {"action_id": "a1"}}


@pytest.mark.spec("API-CPL-03")
async def test_a_policy_with_nothing_to_say_changes_nothing() -> None:
    host, free = (Host(calling(search("a")), {"content": "done"}) for _ in range(2))
    result = await host.mediated(completion_policy=Policy())
    without = await free.mediated()
    assert (result.messages, result.completed, host.names) == (without.messages, True, free.names)


@pytest.mark.spec("API-CPL-04")
async def test_a_word_of_the_policy_goes_to_the_model_and_is_told() -> None:
    host = Host(calling(search("a")), {"content": "done"})
    policy = Policy(n1={"complete": False, "message": "Look further.", "context": {"missing": 2}})
    result = await host.mediated(completion_policy=policy)
    last = host.wire[-1]
    assert (last["schema"], last["type"], last["role"], last["content"]) == (
        "wakeful.message",
        "text",
        "user",
        "Look further.",
    )
    assert [message.type for message in result.messages] == ["text", "tool_call", "tool_result", "text", "text"]
    expected = {
        "tool_name": "ability/search",
        "turn": 1,
        "message": "Look further.",
        "context": {"missing": 2},
    }
    listed = [event.metadata for event in result.events if event.type == "completion_policy_continue"]
    assert listed == host.payloads("completion_policy_continue") == [expected]


@pytest.mark.spec("API-CPL-05")
async def test_after_a_complete_decision_the_rest_of_the_batch_runs_and_nothing_is_added() -> None:
    host = Host(calling(search("a"), search("b"), search("c")), {"content": "never"})
    more = {"complete": False, "message": "more"}
    policy = Policy(n1=more, n2={"complete": True}, n3=more)
    result = await host.mediated(completion_policy=policy)
    assert [call.parameters["q"] for call in host.calls] == ["a", "b", "c"]
    assert len(policy.seen) == 3
    assert (result.completed, result.turn_count) == (True, 1)
    assert "completion_policy_continue" not in host.names
    assert host.names.count("completion_policy_stop") == 1
    assert [message.type for message in result.messages[1:]] == ["tool_call", "tool_result"] * 3


@pytest.mark.spec("API-CPL-06")
async def test_what_a_policy_says_is_nowhere_but_in_transcript_result_and_log() -> None:
    host = Host(calling(search("a")), {"content": "done"})
    kept: list[Any] = []

    class Persister:
        def persist(self, messages: Any, request: Any, result: Any) -> str:
            kept.append((messages, request, result))
            return "t1"

    def audited(safe: Any, *_: Any) -> Any:
        kept.append(safe)
        return safe

    host.hooks.register("tool_audit_parameters", audited)
    policy = Policy(n1={"complete": False, "message": "MARK", "context": {"note": "MARK"}})
    result = await host.mediated(completion_policy=policy, transcript_persister=Persister())
    wire = result.to_wire()
    found = {name for name, value in wire.items() if "MARK" in repr(value)}
    assert found == {"messages", "events"}
    facts = [entry.fact.event.kind for entry in await host.log() if "MARK" in repr(entry.fact.event)]
    assert facts == ["transcript.completion.continued"]
    (audited, (messages, request, given)) = kept
    assert "MARK" not in repr(audited) + repr(request)
    assert given.messages == messages == result.messages


@pytest.mark.spec("API-CPL-07")
@pytest.mark.parametrize("broken", [ValueError("no idea"), None, "yes", {"complete": "perhaps"}, {"done": True}])
async def test_a_policy_that_cannot_say_completes_nothing_and_leaves_a_trace(broken: Any) -> None:
    host = Host(calling(search("a")), {"content": "done"})
    result = await host.mediated(completion_policy=Policy(n1=broken))
    assert (result.completed, result.turn_count, result.final_content) == (True, 2, "done"), "by itself, not by policy"
    (trace,) = host.payloads("observer_failed")
    assert trace["surface"] == "completion_policy" and trace["error"]
    assert not {"completion_policy_stop", "completion_policy_continue"} & set(host.names)
    assert [message.type for message in result.messages] == ["text", "tool_call", "tool_result", "text"]


@pytest.mark.spec("API-TURN-03")
async def test_results_of_a_turn_runner_that_runs_its_own_tools_are_seen_by_the_policy() -> None:
    done = [{"tool_name": "own/a", "result": {"success": True, "result": n}} for n in (1, 2)]
    host = Host({"content": "x", "tool_execution_results": done}, {"content": "y"}, {"content": "z"})
    policy = Policy(n2={"complete": True, "message": "enough"})
    result = await host.run(completion_policy=policy, should_continue=lambda *_: True, max_turns=3)
    assert [(seen[0], seen[1], seen[2]["result"], seen[4]) for seen in policy.seen] == [
        ("own/a", None, 1, 1),
        ("own/a", None, 2, 1),
    ]
    assert (result.completed, result.turn_count) == (True, 1)
    assert host.payloads("completion_policy_stop")[0]["message"] == "enough"


async def test_a_single_turn_that_the_policy_completes_is_complete() -> None:
    host = Host()
    tools = {"tool_executor": host, "tool_declarations": {"ability/search": SEARCH}}
    hello = [{"role": "user", "content": "x"}]
    for policy, complete in ((Policy(n1={"complete": True}), True), (Policy(), False)):
        ran = await mediate_turn(hello, calling(search("a")), {**tools, "completion_policy": policy})
        assert (ran["conversation_complete"], len(ran["tool_execution_results"])) == (complete, 1)
    cut = await mediate_turn(
        hello, calling(search("a"), search("b")), {**tools, "budgets": [IterationBudget("tool_calls", 1)]}
    )
    assert (cut["conversation_complete"], cut["exceeded_budget"]) == (False, "tool_calls")
