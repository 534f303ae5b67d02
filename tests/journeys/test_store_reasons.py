"""The store in Python says why, as the command line does: rules, trees, explanations, replay, status, limits."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from kit.surfaces.command_line import command_line
from wakeful import (
    Agent,
    Always,
    Budget,
    cancel,
    open_store,
    pause,
    resume,
    run,
    run_sync,
    tool,
)
from wakeful.errors import ApprovalNotFound, CallNotFound, InvalidConfig, InvalidRequest, NotEntitled, TurnNotFound
from wakeful.testing import scripted


@tool(effect="irreversible", approval=True)
def refund(order: str, cents: int, password: str = "") -> str:
    """Give the money back."""
    return f"refunded {cents} for {order}"


def clerk(*more: Any) -> Agent[None, str]:
    asked = {"calls": [{"name": "refund", "arguments": {"order": "A17", "cents": 4200, "password": "hunter2"}}]}
    return Agent("clerk", scripted([asked, "Done."], leftover="ignore"), tools=[refund, *more])


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("WAKEFUL_HOME", str(tmp_path / "home"))
    return tmp_path / "runs.db"


def command(place: Path, *arguments: str) -> Any:
    """What the command line prints as JSON."""
    done = subprocess.run(
        command_line(*arguments, "--json", "--store", str(place)), capture_output=True, text=True, timeout=240
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def always(place: Path, key: str) -> None:
    """Somebody approves for good."""
    run_sync(clerk(), "A17 is broken", store=place, key=key)
    store = open_store(place)
    (approval,) = store.approvals()
    store.decide(approval.approval_id, Always(scope="tool"), by="ann")


def test_rules_are_listed_and_once_revoked_calls_are_asked_about_again(place: Path) -> None:
    always(place, "t1")
    store = open_store(place)
    (rule,) = store.rules()
    assert (rule.agent, rule.added_by, rule.revoked_at) == ("clerk", "app:ann", None)
    assert rule.words.startswith("allow refund")
    assert command(place, "approvals", "rules") == [rule.model_dump(mode="json")]
    assert run_sync(clerk(), "again", store=store, key="t2").output == "Done."
    revoked = store.revoke(rule.rule_id[:12], by="ben")
    assert (revoked.rule_id, revoked.revoked_by) == (rule.rule_id, "app:ben")
    assert store.rules() == [] and store.rules("clerk", revoked=True) == [revoked]
    assert store.revoke(rule.rule_id, by="cleo") == revoked, "it is revoked once"
    assert run_sync(clerk(), "a third time", store=store, key="t3").status == "approval_required"
    with pytest.raises(ApprovalNotFound, match="there is no rule 'rule_x'"):
        store.revoke("rule_x", by="ann")


def test_a_call_is_explained_and_a_turn_is_drawn_as_on_the_command_line(place: Path) -> None:
    always(place, "t1")
    run_sync(clerk(), "A17 is broken", store=place, key="t1")
    store = open_store(place)
    told = store.why("t1/call_1_1")
    assert (told.tool, told.verdict, told.outcome) == ("refund", "allow", "succeeded")
    assert told.arguments == {"order": "A17", "cents": 4200, "password": "[redacted]"}
    assert [step.by for step in told.steps if step.kind == "answered"] == ["app:ann"]
    assert command(place, "why", "call_1_1") == told.model_dump(mode="json")
    with pytest.raises(CallNotFound):
        store.why("call_9_9")
    tree = store.tree("t1")
    assert [(node.name, node.is_error) for node in tree.nodes] == [("refund", False)]
    assert command(place, "tree", "t1") == tree.model_dump(mode="json")
    with pytest.raises(TurnNotFound):
        store.tree("t9")


def test_a_turn_is_replayed_from_its_log(place: Path) -> None:
    always(place, "t1")
    turn = run_sync(clerk(), "A17 is broken", store=place, key="t1").turn_id
    report = open_store(place).replay("t1")
    assert report.identical and report.decisions > 0
    assert (report.turn_id, report.agent, report.state) == (turn, "clerk", "completed")
    assert command(place, "replay", "t1") == report.to_dict()


def test_status_prompt_tools_context_latency_and_the_log_are_those_of_the_command_line(place: Path) -> None:
    run_sync(clerk(), "A17 is broken", store=place, key="t1")
    store = open_store(place)
    (status,) = store.status()
    assert (status.agent, status.open_turns, status.pending_actions) == ("clerk", 1, 1)
    with pytest.raises(InvalidConfig, match="there is no agent 'nobody'"):
        store.status("nobody")
    assert command(place, "status", "clerk")["agents"] == [status.model_dump(mode="json")]
    assert command(place, "debug", "prompt", "--turn", "t1") == store.prompt("t1").model_dump(mode="json")
    assert [tool.tool_name for tool in store.tools("t1").catalog.entries] == ["refund"]
    assert store.context("t1", 1) == command(place, "context", "t1", "--step", "1")
    assert store.latency("t1").model_dump(mode="json") == command(place, "debug", "latency", "t1")
    checked = store.check_log()
    assert len(checked) >= len(list(store.events("t1"))) and not any(each.problems for each in checked)


def test_a_limit_is_listed_and_raised(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    owner = place.with_name("owner.toml")
    owner.write_text('[budget]\nper_day = {usd = 5}\n[principals."ada"]\nper_hour = {usd = 1}\n')
    monkeypatch.setenv("WAKEFUL_CONFIG", str(owner))
    run_sync(Agent("any", scripted(["Done."])), "go", store=place)
    store = open_store(place)
    assert [(each.scope, each.window, each.limit_usd, each.spent_usd) for each in store.limits()] == [
        ("principal:ada", "hour", "1", "0"),
        ("runtime", "day", "5", "0"),
    ]
    more = store.grant(2, by="ann", reason="a launch")
    assert (more.scope, more.limit_usd, more.granted_usd) == ("runtime", "5", "2")
    assert store.grant("0.5", principal="ada", window="hour", by="ann").granted_usd == "0.5"
    assert more in store.limits()
    assert command(place, "budget") == [each.model_dump(mode="json") for each in store.limits()]
    for wrong in ({"agent": "a", "principal": "b"}, {"window": "week"}, {"by": " "}):
        with pytest.raises(InvalidRequest):
            store.grant(1, **{"by": "ann", **wrong})  # type: ignore[arg-type]
    with pytest.raises(InvalidConfig, match='window="day" in Python'):
        store.grant(1, agent="any", by="ann")
    with pytest.raises(InvalidConfig, match="a grant cannot be 0 dollars"):
        store.grant(0, by="ann")


def test_a_tool_may_neither_revoke_nor_grant_and_the_same_lines_outside_one_may(place: Path) -> None:
    always(place, "t1")
    (rule,) = open_store(place).rules()

    @tool(effect="pure")
    def attempt() -> list[str]:
        """Try both."""
        store, told = open_store(place), []
        for act in (lambda: store.revoke(rule.rule_id, by="ann"), lambda: store.grant(1, window="day", by="ann")):
            try:
                act()
            except NotEntitled as refused:
                told.append(refused.message)
        return told

    agent = Agent("sly", scripted([{"calls": [{"name": "attempt"}]}, "Done."]), tools=[attempt])
    (call,) = run_sync(agent, "go", store=place).calls()
    assert json.loads(call.result or "") == [
        f"a tool of an agent may not decide about {rule.rule_id}",
        "a tool of an agent may not decide about the spending limit of runtime",
    ]
    store = open_store(place)
    assert store.rules() == [rule] and store.limits() == []
    assert store.revoke(rule.rule_id, by="ann").revoked_by == "app:ann"  # the inversion
    assert store.grant(1, window="day", by="ann").granted_usd == "1"


async def test_a_turn_is_resumed_paused_and_cancelled_by_its_key(place: Path) -> None:
    async with open_store(place) as store:
        agent = Agent("any", scripted(["Done."]), budget=Budget(model_calls=1))
        done = await run(agent, "go", store=store, key="t1")
        assert (await resume(store, "t1", [agent])).output == done.output
        assert await cancel(store, "t1") is False and await pause(store, done.turn_id[:-2]) is False
        with pytest.raises(TurnNotFound, match="there is no turn 't9'"):
            await cancel(store, "t9")
