"""A call's way through the gate, told from facts made by hand."""

from wakeful.contracts.envelope import Fact, StoredFact
from wakeful.contracts.events import (
    ActionRequired,
    ActionResolved,
    AnyEvent,
    HookCompleted,
    HookFailed,
    PermissionEvaluated,
    SandboxApplied,
    SandboxViolation,
    ToolArgs,
    ToolDispatched,
    ToolStarted,
    UnknownResolved,
)
from wakeful.contracts.events.tools import Opinion
from wakeful.contracts.policies import Rule
from wakeful.views.explanation import explained, rule_words, rules_by_ref

STARTED = ToolStarted(
    tool_name="pay",
    safe_args={"cents": 42},
    args_sha256="x",
    policy="ask",
    is_read_only=False,
    is_concurrency_safe=False,
    is_destructive=True,
    batch_id="b",
    position=0,
    scheduling="serial",
    dispatched=False,
    effect="keyed",
    idempotency_key="k",
)
ASKED = ActionRequired(
    action_id="appr_1",
    tool_name="pay",
    prompt="Run pay?",
    reason="money is seen",
    decisions=("approve", "reject"),
    args_sha256="x",
    binding="b",
    approvers=("ana", "ben"),
    expires_at=1,
)


def told(*events: AnyEvent, rules: tuple[Rule, ...] = ()) -> list[tuple[str, str, str]]:
    facts = [
        StoredFact("a", place, Fact(event, place, "main", "turn_1", 1, "call_1")) for place, event in enumerate(events)
    ]
    explanation = explained("turn_1", "a", "call_1", facts, rules_by_ref(rules))
    assert explanation is not None
    return [(step.kind, step.by, step.words) for step in explanation.steps]


def test_each_voice_is_repeated_in_its_order() -> None:
    verdict = PermissionEvaluated(
        decision="ask",
        decision_source="rule",
        decision_reason="money is seen",
        layer="rules",
        said=(Opinion(by="approval predicate", decision="ask", reason="much"),),
    )
    assert told(
        HookCompleted(point="pre_tool_use", handler_ref="guard", duration_ms=1, decision="ask", reason="look twice"),
        HookFailed(point="pre_tool_use", handler_ref="slow", error_category="timeout", duration_ms=1, message="5 s"),
        verdict,
        STARTED,
        ASKED,
        ActionResolved(
            action_id="appr_1", tool_name="pay", status="approved", decision="always", resolver="ana", rule_id="rule_1"
        ),
        PermissionEvaluated(decision="allow", decision_source="human", decision_reason="approved by ana"),
        ToolArgs(changed_by="approver"),
        SandboxApplied(mode="not_enforced", cwd="/srv", reason="no bubblewrap"),
        ToolDispatched(attempt=1, cause="approval"),
        SandboxViolation(boundary="write", target="/etc/passwd"),
        UnknownResolved(call_id="call_1", tool_name="pay", happened=True, source="operator", resolved_by="ben"),
    ) == [
        ("hook", "guard", "pre_tool_use: ask: look twice"),
        ("hook", "slow", "pre_tool_use: timeout, which refuses the call: 5 s"),
        ("said", "approval predicate", "ask: much"),
        ("verdict", "rules", "ask: money is seen"),
        ("asked", "appr_1", "approval by ana, ben was requested: money is seen"),
        ("answered", "ana", "always, as the rule rule_1"),
        ("verdict", "human", "allow: approved by ana"),
        ("arguments", "approver", "the arguments were changed"),
        ("held", "sandbox", "not_enforced, in /srv, network none: no bubblewrap"),
        ("ran", "", "the call ran (attempt 1, after approval)"),
        ("held", "sandbox", "it tried what it may not: write /etc/passwd"),
        ("outcome", "ben", "it happened"),
    ]


def test_a_verdict_names_its_rules_in_words() -> None:
    rules = (
        Rule(match="look", decision="allow"),
        Rule(match="pay", decision="deny", arguments={"order": "A*"}, id="keep"),
        Rule(match="pay", decision="allow", origin="always", decided_by="ana", call_hash="h", id="rule_1"),
    )
    verdict = PermissionEvaluated(decision="deny", decision_reason="no", rule_refs=("keep", "gone", "owner:1"))
    facts = [StoredFact("a", 1, Fact(verdict, 1, "main", "turn_1", 1, "call_1"))]
    explanation = explained("turn_1", "a", "call_1", facts, rules_by_ref(rules))
    assert explanation is not None
    assert [(rule.ref, rule.text) for rule in explanation.steps[0].rules] == [
        ("keep", "deny pay where order like 'A*'"),
        ("gone", ""),
        ("owner:1", "allow look"),
    ]
    assert rule_words(rules[2]) == "allow pay with exactly these arguments (a standing answer of ana)"
    assert (explanation.verdict, explanation.outcome) == ("deny", "")


def test_facts_of_other_calls_are_left_out_and_a_call_nobody_made_is_none() -> None:
    other = [StoredFact("a", 1, Fact(STARTED, 1, "main", "turn_1", 1, "call_2"))]
    assert explained("turn_1", "a", "call_1", other, {}) is None
    assert told(STARTED) == [], "a call that waits has begun and was not run"
