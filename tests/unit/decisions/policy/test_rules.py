"""The owner's rules and standing answers: what matches, what wins, what nothing loosens."""

import random
from typing import Any

import pytest
from pydantic import ValidationError

from wakeful.contracts.policies import GatePolicy, Rule
from wakeful.contracts.tools import ToolDeclaration
from wakeful.contracts.verdicts import Verdict
from wakeful.decisions.policy.permissions import default_policy
from wakeful.decisions.policy.verdict import CallUnderJudgement, compile_policy, judge

TOOLS = [
    ToolDeclaration(name="exec_command", input_schema={}, permission_class="execute"),
    ToolDeclaration(name="exec_command_batch", input_schema={}, permission_class="execute"),
    ToolDeclaration(name="post", input_schema={}),
    ToolDeclaration(name="mcp.github/merge_pr", input_schema={}, runtime_owner="mcp_server"),
    ToolDeclaration(name="mcp.github/get_issue", input_schema={}, runtime_owner="mcp_server", effect="pure"),
    ToolDeclaration(name="mcp.github/exec_command", input_schema={}, runtime_owner="mcp_server"),
]
CLASSES = default_policy("thread", profile="coding", workspace_root="shop", allowed_mcp_servers=["github"])


def said(rules: list[Rule], name: str, arguments: dict[str, Any] | None = None, **call: Any) -> Verdict:
    policy = compile_policy(GatePolicy(tools=CLASSES, rules=tuple(rules)), TOOLS)
    given = {"name": name, "arguments": arguments or {}, "now": 100.0, **call}
    return judge(CallUnderJudgement(**given), policy)


def rule(match: str, decision: Any, **fields: Any) -> Rule:
    return Rule(match=match, decision=decision, **fields)


def test_the_strictest_rule_holds_in_any_order() -> None:
    rules = [rule("post", "allow"), rule("*", "ask"), rule("post", "deny", reason="not today"), rule("po*", "allow")]
    for _ in range(10):
        random.Random(_).shuffle(rules)
        verdict = said(rules, "post")
        assert (verdict.decision, verdict.reason, verdict.source) == ("deny", "not today", "rule")
    assert said([rule("post", "allow"), rule("*", "ask")], "post").decision == "ask"


def test_an_allow_of_the_owner_answers_what_the_class_asks() -> None:
    assert said([], "post").decision == "ask"
    verdict = said([rule("post", "allow", id="posting")], "post")
    assert verdict == Verdict("allow", "rule", "the rule posting (post) allows this", ("posting",), "rules")


@pytest.mark.parametrize(
    "asking",
    [
        {"own_wish": "ask"},
        {"hooks": (Verdict("ask", "hook", "the hook wants it"),)},
        {"derived_from": "external_evidence"},
    ],
)
def test_an_allow_of_the_owner_answers_no_other_question(asking: dict[str, Any]) -> None:
    assert said([rule("post", "allow")], "post", **asking).decision == "ask"


def test_a_class_that_is_off_is_not_switched_on_by_a_rule() -> None:
    tools = [ToolDeclaration(name="read_vault", input_schema={}, permission_class="secrets")]
    policy = compile_policy(GatePolicy(tools=CLASSES, rules=(rule("read_vault", "allow"),)), tools)
    assert judge(CallUnderJudgement(name="read_vault", arguments={}, now=0.0), policy).decision == "deny"


def test_names_are_bare_or_whole_and_may_have_stars() -> None:
    for match in ("mcp.github/merge_pr", "mcp.github/*", "merge_*", "merge_pr", "mcp.*/merge_pr", "*"):
        assert said([rule(match, "deny")], "mcp.github/merge_pr").decision == "deny"
    for match in ("mcp.gitlab/*", "merge", "github/merge_pr"):
        assert said([rule(match, "deny")], "mcp.github/merge_pr").decision == "ask"


def test_a_bare_allow_does_not_reach_a_tool_that_somebody_else_runs() -> None:
    """A server could call its tool like a trusted one."""
    assert said([rule("exec_command", "allow"), rule("*", "allow")], "mcp.github/exec_command").decision == "ask"
    assert said([rule("mcp.github/exec_command", "allow")], "mcp.github/exec_command").decision == "allow"
    # A bare deny does reach it.
    assert said([rule("exec_command", "deny")], "mcp.github/exec_command").decision == "deny"


def test_arguments_narrow_a_rule() -> None:
    no_push = rule("exec_command", "deny", arguments={"cmd": "git push*"})
    assert said([no_push], "exec_command", {"cmd": "git push --force"}).decision == "deny"
    assert said([no_push], "exec_command", {"cmd": "git status"}).decision == "allow"
    assert said([no_push], "exec_command", {}).decision == "allow"
    deep = rule("post", "deny", arguments={"to.channel": "general", "loud": "true", "size": "1*"})
    assert said([deep], "post", {"to": {"channel": "general"}, "loud": True, "size": 17}).decision == "deny"
    assert said([deep], "post", {"to": {"channel": "general"}, "loud": False, "size": 17}).decision == "ask"


def test_a_list_is_denied_by_any_item_and_allowed_only_by_all() -> None:
    commands = {"cmds": ["git status", "rm -r src"]}
    allow = rule("exec_command_batch", "allow", arguments={"cmds": "git status*"})
    ask = rule("exec_command_batch", "ask")
    deny = rule("exec_command_batch", "deny", arguments={"cmds": "rm *"})
    assert said([deny], "exec_command_batch", commands).decision == "deny"
    assert said([allow], "exec_command_batch", commands).source == "mode"
    assert said([allow], "exec_command_batch", {"cmds": ["git status"]}).source == "rule"
    assert said([allow], "exec_command_batch", {"cmds": []}).source == "mode"
    assert said([allow, ask], "exec_command_batch", commands).decision == "ask"
    words = rule("exec_command", "deny", arguments={"argv": "git push*"})
    assert said([words], "exec_command", {"argv": ["git", "push", "--force"]}).decision == "deny"


def test_an_allowed_command_does_not_bring_a_second_one() -> None:
    answer = rule("exec_command", "allow", arguments={"cmd": "git status*"}, origin="always", decided_by="ann")
    asked = {"own_wish": "ask"}
    assert said([answer], "exec_command", {"cmd": "git status -s"}, **asked).decision == "allow"
    assert said([answer], "exec_command", {"cmd": "git status; rm -r src"}, **asked).decision == "ask"
    # A deny is not so careful: it matches more, not less.
    deny = rule("exec_command", "deny", arguments={"cmd": "*rm*"})
    assert said([deny], "exec_command", {"cmd": "git status; rm -r src"}).decision == "deny"


def test_a_rule_that_has_expired_is_not_there() -> None:
    deny = rule("post", "deny", expires=200.0)
    assert said([deny], "post", now=199.9).decision == "deny"
    assert said([deny], "post", now=200.0).decision == "ask"
    assert rule("post", "deny", expires="1970-01-01T01:03:20+01:00").expires == 200.0
    with pytest.raises(ValidationError, match="no time zone"):
        rule("post", "deny", expires="2030-01-01T00:00:00")


# --- standing answers -------------------------------------------------------------------------------------------------


def always(match: str, **fields: Any) -> Rule:
    return Rule(match=match, decision="allow", origin="always", decided_by="ann", **fields)


def test_a_standing_answer_answers_what_is_asked_and_says_whose_it_is() -> None:
    verdict = said([always("post", id="always-7")], "post")
    assert (verdict.decision, verdict.source, verdict.layer) == ("allow", "human", "standing_answer")
    assert verdict.rule_refs == ("always-7",)
    assert "ann allowed calls like post before" in verdict.reason
    assert "external_write, which needs a person" in verdict.reason


@pytest.mark.parametrize("answer", [{}, {"arguments": {"text": "hi*"}}, {"call_hash": "h1"}])
def test_a_standing_answer_is_for_a_tool_a_pattern_or_one_very_call(answer: dict[str, Any]) -> None:
    assert said([always("post", **answer)], "post", {"text": "hi all"}, call_hash="h1").decision == "allow"
    other = said([always("post", **answer)], "post", {"text": "bye"}, call_hash="h2").decision
    assert other == ("allow" if not answer else "ask")
    assert said([always("post", **answer)], "mcp.github/merge_pr").decision == "ask"


@pytest.mark.parametrize("hash_now", [None, "h2"])
def test_an_answer_for_one_very_call_is_for_no_other(hash_now: str | None) -> None:
    assert said([always("post", call_hash="h1")], "post", call_hash=hash_now).decision == "ask"


def test_a_standing_answer_ends_when_it_said_it_would() -> None:
    assert said([always("post", expires=101.0)], "post", now=100.0).decision == "allow"
    assert said([always("post", expires=101.0)], "post", now=101.0).decision == "ask"


def test_a_standing_answer_loosens_no_deny() -> None:
    for denying in ([rule("post", "deny")], [rule("*", "deny", arguments={"text": "*"})]):
        assert said([always("post"), *denying], "post", {"text": "hi"}).decision == "deny"
    assert said([always("post")], "post", own_wish="failed").decision == "deny"


def test_an_owners_ask_can_refuse_standing_answers() -> None:
    asking = rule("post", "ask")
    assert said([asking, always("post")], "post").decision == "allow"
    each_time = rule("post", "ask", always_ask=True)
    for answer in (always("post"), always("post", call_hash="h1")):
        assert said([each_time, answer], "post", call_hash="h1").decision == "ask"


def test_an_answer_of_somebody_who_may_not_answer_does_not_count() -> None:
    asking = rule("post", "ask", approvers=("bob",))
    assert said([asking], "post").approvers == ("bob",)
    assert said([asking, always("post")], "post").decision == "ask"
    assert said([asking, Rule(match="post", decision="allow", origin="always", decided_by="bob")], "post").allowed


def test_against_provenance_only_an_answer_for_the_very_call_counts() -> None:
    outside = {"derived_from": "external_evidence", "call_hash": "h1"}
    assert said([always("post")], "post", **outside).decision == "ask"
    assert said([always("post", call_hash="h1")], "post", **outside).decision == "allow"


def test_a_person_may_also_say_never() -> None:
    never = Rule(match="post", decision="deny", origin="always", decided_by="ann", reason="ann said never")
    assert said([never, rule("post", "allow")], "post").reason == "ann said never"


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"match": " ", "decision": "deny"}, "is empty"),
        ({"match": "x", "decision": "maybe"}, "allow"),
        ({"match": "x", "decision": "deny", "approvers": ["ann"]}, "belong to an ask"),
        ({"match": "x", "decision": "allow", "always_ask": True}, "belong to an ask"),
        ({"match": "x", "decision": "ask", "origin": "always", "approvers": ["ann"]}, "has no approvers"),
        ({"match": "x", "decision": "deny", "arguments": {"n": 1}}, "string"),
        ({"match": "x", "decision": "deny", "matches": "y"}, "not permitted"),
    ],
)
def test_a_rule_that_does_not_hold_together_is_refused(fields: dict[str, Any], words: str) -> None:
    with pytest.raises(ValidationError, match=words):
        Rule(**fields)
