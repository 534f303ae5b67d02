"""Hooks: who is asked about a call, when, and what their word is worth."""

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest

from kit.runs.engine_runs import calls, check_ends, facts_of, of_kind
from wakeful import Agent, Approve, Edit, HookInput, HookVerdict, Reject, RunResult, hook, run, tool
from wakeful.contracts.envelope import published
from wakeful.contracts.errors import InvalidConfig
from wakeful.contracts.events import (
    ActionRequired,
    HookCompleted,
    HookFailed,
    HookStarted,
    PermissionEvaluated,
    ToolArgs,
    ToolFailed,
    ToolResult,
    ToolStarted,
    WarningIssued,
)
from wakeful.decisions.redaction import redact_event
from wakeful.service.queries.replay import replay_turn
from wakeful.store.memory import MemoryStore
from wakeful.testing import scripted


class Till:
    """A tool with an effect, and what it did."""

    def __init__(self) -> None:
        self.paid: list[tuple[str, int]] = []

        @tool(effect="keyed")
        async def refund(order: str, cents: int) -> str:
            """Give money back."""
            self.paid.append((order, cents))
            return f"refunded {cents} of {order}"

        self.tool = refund

    async def run(self, *hooks: Any, cents: int = 500, store: Any = None, **more: Any) -> RunResult[str]:
        model = scripted([calls(("refund", {"order": "A", "cents": cents})), "done"])
        agent = Agent("support", model, tools=[self.tool], hooks=hooks)
        return await run(agent, "go", store=store, **more)


async def replays(store: MemoryStore, result: RunResult[Any]) -> bool:
    row = await store.turn(result.turn_id)
    assert row is not None
    report = await replay_turn(store, row)
    assert report.divergence is None, report.divergence
    return report.identical


def no_more_than(most: int) -> Callable[[HookInput], HookVerdict | None]:
    def limit(call: HookInput) -> HookVerdict | None:
        return HookVerdict.deny(f"more than {most}") if call.arguments["cents"] > most else None

    return limit


async def test_a_plain_function_is_a_hook_before_every_call_and_is_told_all_about_it() -> None:
    seen: list[HookInput] = []
    till, store = Till(), MemoryStore()
    result = await till.run(lambda call: seen.append(call), store=store, context={"shop": "7"})
    (told,) = seen
    assert (told.point, told.tool, told.arguments) == ("pre_tool_use", "refund", {"order": "A", "cents": 500})
    assert (told.turn_id, told.agent, told.thread, told.effect) == (result.turn_id, "support", "main", "keyed")
    assert told.context == {"shop": "7"} and told.call_id
    assert till.paid == [("A", 500)] and await replays(store, result)


async def test_a_hook_that_denies_keeps_the_tool_from_running_and_the_model_reads_why() -> None:
    till, store = Till(), MemoryStore()
    result = await till.run(no_more_than(100), store=store)
    (failed,) = of_kind(result, ToolFailed)
    assert (failed.status, failed.error_category, failed.effects) == ("denied", "hook_blocked", "none")
    assert "more than 100" in failed.item.text
    (permission,) = of_kind(result, PermissionEvaluated)
    assert (permission.decision, permission.decision_source, permission.layer) == ("deny", "hook", "hooks")
    assert till.paid == [] and await replays(store, result)
    # The same without the hook: it is the hook that held it.
    assert (await till.run()).status == "completed" and till.paid == [("A", 500)]


@pytest.mark.parametrize("is_async", [True, False])
async def test_plain_and_async_hooks_are_asked_alike(is_async: bool) -> None:
    threads: list[int] = []

    async def later(call: HookInput) -> HookVerdict:
        return HookVerdict.deny("later")

    def now(call: HookInput) -> HookVerdict:
        threads.append(threading.get_ident())
        return HookVerdict.deny("now")

    till = Till()
    await till.run(later if is_async else now)
    assert till.paid == [] and threading.get_ident() not in threads


async def hangs(call: HookInput) -> HookVerdict:
    await asyncio.Event().wait()
    raise AssertionError


def raises(call: HookInput) -> HookVerdict:
    raise RuntimeError("no database")


def nonsense(call: HookInput) -> Any:
    return "fine by me"


def unknown_word(call: HookInput) -> Any:
    return {"decision": "sure"}


def unfit_arguments(call: HookInput) -> HookVerdict:
    return HookVerdict.rewrite({"order": "A", "cents": "many"})


@pytest.mark.parametrize(
    ("broken", "category"),
    [(hangs, "timeout"), (raises, "raised"), (nonsense, "invalid_answer"), (unknown_word, "invalid_answer")],
)
async def test_a_hook_that_fails_has_denied_unless_it_only_reads(broken: Any, category: str) -> None:
    till, store = Till(), MemoryStore()
    closed = await till.run(hook("pre_tool_use", timeout=0.05)(broken), store=store)
    (failed,) = of_kind(closed, HookFailed)
    assert (failed.error_category, failed.fail_mode, failed.handler_ref) == (
        category,
        "closed",
        f"hook:{broken.__name__}",
    )
    assert till.paid == [] and not of_kind(closed, WarningIssued)
    assert await replays(store, closed)
    store = MemoryStore()
    open_ = await till.run(hook("pre_tool_use", timeout=0.05, read_only=True)(broken), store=store)
    (failed,) = of_kind(open_, HookFailed)
    (warning,) = of_kind(open_, WarningIssued)
    assert (failed.fail_mode, warning.code) == ("open", "hook_failed_open") and broken.__name__ in warning.message
    assert till.paid == [("A", 500)] and await replays(store, open_)


@pytest.mark.spec("STD-GOV-05")
async def test_the_facts_about_a_hook_say_where_who_how_long_and_what() -> None:
    @hook("pre_tool_use", timeout=3, name="caps")
    def cap(call: HookInput) -> HookVerdict:
        return HookVerdict.rewrite({**call.arguments, "cents": 100}, "capped")

    @hook("post_tool_use", name="looks", read_only=True)
    def look(call: HookInput) -> None:
        raise RuntimeError("blind")

    @hook("post_tool_use", name="guards")
    def guard(call: HookInput) -> None:
        raise RuntimeError("lost")

    result = await Till().run(cap, look, guard)
    before, *_ = of_kind(result, HookStarted)
    assert (before.point, before.handler_ref, before.timeout_ms) == ("pre_tool_use", "hook:caps", 3000)
    (completed,) = of_kind(result, HookCompleted)
    assert (completed.status, completed.decision, completed.reason) == ("completed", "continue", "capped")
    assert completed.duration_ms >= 0 and completed.updated_input_ref.startswith("sha256:")
    looked, kept = of_kind(result, HookFailed)
    assert (looked.error_category, looked.retryable, looked.fail_mode) == ("raised", False, "open")
    assert (kept.error_category, kept.retryable, kept.fail_mode) == ("raised", False, "closed")
    # The one that only reads left a warning and changed nothing; the other one could have changed it, and withheld it.
    (warning,) = of_kind(result, WarningIssued)
    assert "looks" in warning.message
    (done,) = of_kind(result, ToolResult)
    assert "withheld" in done.item.text and "refunded" not in done.item.text


async def test_a_hook_rewrites_arguments_and_what_it_wrote_is_run_and_on_record() -> None:
    till, store = Till(), MemoryStore()

    def cap(call: HookInput) -> HookVerdict:
        return HookVerdict.rewrite({**call.arguments, "cents": 100})

    result = await till.run(cap, store=store)
    assert till.paid == [("A", 100)]
    (changed,) = of_kind(result, ToolArgs)
    assert (changed.changed_by, changed.safe_args) == ("hook", {"order": "A", "cents": 100})
    (permission,) = of_kind(result, PermissionEvaluated)
    assert (await store.get_blob(permission.updated_input_ref)).decode() == '{"order": "A", "cents": 100}'
    kinds = [entry.fact.event.kind for entry in result.facts() if entry.fact.call_id]
    assert kinds == [
        "hook.started",
        "hook.completed",
        "permission.evaluated",
        "tool.started",
        "tool.args",
        "tool.result",
    ]
    assert await replays(store, result)


async def test_what_a_hook_wrote_has_to_fit_the_schema() -> None:
    till, store = Till(), MemoryStore()
    result = await till.run(unfit_arguments, store=store)
    (failed,) = of_kind(result, ToolFailed)
    assert "do not fit the schema" in failed.message and till.paid == []
    assert await replays(store, result)


async def test_rewritten_arguments_are_judged_again_by_hooks_that_spoke_before() -> None:
    def more(call: HookInput) -> HookVerdict:
        return HookVerdict.rewrite({**call.arguments, "cents": 9000})

    till = Till()
    result = await till.run(no_more_than(1000), more)
    assert till.paid == [] and "more than 1000" in of_kind(result, ToolFailed)[0].message
    await till.run(more)  # alone, nothing holds it
    assert till.paid == [("A", 9000)]


async def test_rewritten_arguments_are_judged_again_by_policy_and_by_the_tool_itself() -> None:
    ran: list[int] = []

    @tool(effect="keyed", approval=lambda call: call.arguments["cents"] > 1000)
    def refund(cents: int) -> str:
        """Give money back."""
        ran.append(cents)
        return "ok"

    def more(call: HookInput) -> HookVerdict:
        return HookVerdict.rewrite({"cents": 9000})

    store = MemoryStore()
    agent = Agent("a", scripted([calls(("refund", {"cents": 5})), "x"]), tools=[refund], hooks=[more])
    result = await run(agent, "go", store=store, key="k")
    assert (result.status, ran) == ("approval_required", [])
    (asked,) = of_kind(result, ActionRequired)
    assert asked.safe_args == {"cents": 9000}
    # What was approved is what the hook wrote; the model's own arguments are not run.
    approve = await run(agent, "go", store=store, key="k", approver=lambda approval: _said(Approve()))
    assert (approve.status, ran) == ("completed", [9000])
    assert await replays(store, approve)


async def _said(decided: Any) -> Any:
    return decided


async def test_no_hook_loosens_what_the_policy_says() -> None:
    ran: list[int] = []

    @tool(effect="keyed", approval=True)
    def refund(cents: int) -> str:
        """Give money back."""
        ran.append(cents)
        return "ok"

    def allows(call: HookInput) -> HookVerdict:
        return HookVerdict("allow", "I know them")

    agent = Agent("a", scripted([calls(("refund", {"cents": 5}))]), tools=[refund], hooks=[allows])
    result = await run(agent, "go", store=MemoryStore())
    assert (result.status, ran) == ("approval_required", [])


async def test_hooks_hold_what_a_person_edited_too() -> None:
    ran: list[int] = []

    @tool(effect="keyed", approval=True)
    def refund(cents: int) -> str:
        """Give money back."""
        ran.append(cents)
        return "ok"

    store = MemoryStore()
    agent = Agent("a", scripted([calls(("refund", {"cents": 5})), "x"]), tools=[refund], hooks=[no_more_than(100)])
    result = await run(agent, "go", store=store, approver=lambda approval: _said(Edit({"cents": 5000})))
    assert ran == [] and "more than 100" in of_kind(result, ToolFailed)[0].message
    assert await replays(store, result)
    store = MemoryStore()
    agent = Agent("a", scripted([calls(("refund", {"cents": 5})), "x"]), tools=[refund], hooks=[no_more_than(100)])
    result = await run(agent, "go", store=store, approver=lambda approval: _said(Edit({"cents": 50})))
    assert ran == [50] and await replays(store, result)


async def test_a_hook_may_say_no_in_the_place_of_the_person_who_would_be_asked() -> None:
    ran: list[int] = []

    @tool(effect="keyed", approval=lambda call: "large" if call.arguments["cents"] > 10 else False)
    def refund(cents: int) -> str:
        """Give money back."""
        ran.append(cents)
        return "ok"

    reasons: list[str] = []

    @hook("permission_request", match="refund")
    async def nobody_is_there(call: HookInput) -> HookVerdict:
        reasons.append(call.reason)
        return HookVerdict.deny("nobody is there at night")

    store = MemoryStore()
    script = scripted([calls(("refund", {"cents": 5})), calls(("refund", {"cents": 50})), "x"])
    result = await run(Agent("a", script, tools=[refund], hooks=[nobody_is_there]), "go", store=store)
    assert (result.status, ran, reasons) == ("completed", [5], ["large"])
    assert not of_kind(result, ActionRequired)
    assert "nobody is there at night" in of_kind(result, ToolFailed)[0].message
    assert await replays(store, result)


async def test_after_the_call_a_hook_replaces_what_the_model_reads_and_both_are_kept() -> None:
    seen: list[str | None] = []

    @hook("post_tool_use")
    def masks(call: HookInput) -> HookVerdict:
        seen.append(call.result)
        return HookVerdict.replace("refunded, amount hidden")

    till, store = Till(), MemoryStore()
    result = await till.run(masks, store=store)
    (done,) = of_kind(result, ToolResult)
    assert seen == ["refunded 500 of A"]
    assert (done.item.text, done.preview, done.redacted) == ("refunded, amount hidden",) * 2 + (True,)
    assert done.result_ref is not None
    assert (await store.get_blob(done.result_ref.digest)).decode() == "refunded 500 of A"
    (outcome,) = done.hook_outcomes
    assert (await store.get_blob(outcome.updated_output_ref)).decode() == "refunded, amount hidden"
    assert await replays(store, result)


async def test_after_a_failure_a_hook_is_told_what_went_wrong() -> None:
    @tool(effect="pure")
    def look() -> str:
        """Look."""
        raise RuntimeError("secret-host:5432 refused")

    kinds: list[str] = []

    @hook("post_tool_failure")
    def masks(call: HookInput) -> HookVerdict:
        assert call.error is not None
        kinds.append(call.error.kind)
        return HookVerdict.replace("the lookup failed")

    store = MemoryStore()
    result = await run(Agent("a", scripted([calls("look"), "x"]), tools=[look], hooks=[masks]), "go", store=store)
    (failed,) = of_kind(result, ToolFailed)
    assert kinds == ["executor_exception"] and failed.item.text == "the lookup failed"
    assert await replays(store, result)


async def test_match_says_which_tools_a_hook_is_asked_about() -> None:
    asked: list[str] = []

    @tool(effect="pure")
    def look() -> str:
        """Look."""
        return "seen"

    till = Till()
    script = scripted([calls("look", ("refund", {"order": "A", "cents": 1})), "x"])

    @hook("pre_tool_use", match="ref*")
    def only_refunds(call: HookInput) -> None:
        asked.append(call.tool)

    await run(Agent("a", script, tools=[look, till.tool], hooks=[only_refunds]), "go")
    assert asked == ["refund"]


async def test_hooks_of_an_agent_are_asked_before_those_of_a_run() -> None:
    order: list[str] = []
    till = Till()
    await till.run(lambda call: order.append("agent"), hooks=[lambda call: order.append("run")])
    assert order == ["agent", "run"]
    held = await till.run(lambda call: HookVerdict.deny("no"), hooks=[lambda call: order.append("not asked")])
    assert of_kind(held, ToolFailed) and order == ["agent", "run"]


async def test_what_a_hook_does_to_its_input_changes_nothing() -> None:
    def meddles(call: HookInput) -> None:
        call.arguments["cents"] = 1  # type: ignore[index]

    till = Till()
    await till.run(meddles)
    assert till.paid == [("A", 500)]


@pytest.mark.spec("STD-GOV-06", "STD-CALL-08")
async def test_every_reference_in_a_tool_event_leads_to_an_event_or_a_record() -> None:
    @hook("post_tool_use")
    def masks(call: HookInput) -> HookVerdict:
        return HookVerdict.replace("hidden")

    ran: list[int] = []

    @tool(effect="keyed", approval=lambda call: call.arguments["cents"] > 100)
    def refund(cents: int) -> str:
        """Give money back."""
        ran.append(cents)
        return "ok"

    store = MemoryStore()
    script = scripted([calls(("refund", {"cents": 5}), ("refund", {"cents": 500}), ("refund", {"cents": 7000})), "x"])
    agent = Agent("a", script, tools=[refund], hooks=[lambda call: None, no_more_than(5000), masks])
    result = await run(agent, "go", store=store, approver=lambda approval: _said(Approve()))
    assert ran == [5, 500]
    recorded = await facts_of(store, result.turn_id)
    events = {entry.event_id: published(entry, "rt") for entry in recorded}
    actions = {row.action_id for row in await store.actions(pending_only=False)}
    looked = 0
    for event in events.values():
        if not event.type.startswith("tool."):
            continue
        if (ref := event.payload.get("permission_ref")) is not None:
            assert events[ref].type == "permission.evaluated" and events[ref].tool_call_id == event.tool_call_id
        if (ref := event.payload.get("approval_ref")) is not None:
            assert ref in actions
        for outcome in event.payload.get("hook_outcomes", ()):
            named = events[outcome["event_id"]]
            assert named.type == "hook.completed" and named.tool_call_id == event.tool_call_id
            assert named.payload["handler_ref"] == outcome["hook_id"]
            looked += 1
            for kind in ("updated_input_ref", "updated_output_ref"):
                if kind in outcome:
                    assert await store.get_blob(outcome[kind])
    assert looked > 6
    ends = [event for event in events.values() if event.type in ("tool.result", "tool.failed")]
    assert len(ends) == 3 and all(event.payload.get("permission_ref") for event in ends)
    assert all(event.payload["hook_outcomes"] for event in ends)
    check_ends(recorded)


async def test_secrets_that_a_hook_writes_are_redacted_for_readers() -> None:
    @tool(effect="pure")
    def look(api_key: str) -> str:
        """Look."""
        return "seen"

    def signs(call: HookInput) -> HookVerdict:
        return HookVerdict.rewrite({"api_key": "sk-very-secret"})

    store = MemoryStore()
    agent = Agent("a", scripted([calls(("look", {"api_key": "?"})), "x"]), tools=[look], hooks=[signs])
    result = await run(agent, "go", store=store)
    for entry in await facts_of(store, result.turn_id):
        assert "very-secret" not in redact_event(published(entry, "rt")).model_dump_json()


async def test_a_crash_between_intent_and_result_runs_what_the_hook_wrote() -> None:
    """The log holds what is run, so that whoever takes the turn up runs the same."""
    till, store = Till(), MemoryStore()

    def cap(call: HookInput) -> HookVerdict:
        return HookVerdict.rewrite({**call.arguments, "cents": 100})

    result = await till.run(cap, store=store)
    (permission,) = of_kind(result, PermissionEvaluated)
    (said,) = permission.said
    assert said.arguments == {"order": "A", "cents": 100} and said.by == f"hook:{cap.__qualname__}"


async def test_without_hooks_nothing_waits_at_the_gate() -> None:
    till = Till()
    result = await till.run()
    kinds = [entry.fact.event.kind for entry in result.facts() if entry.fact.call_id]
    assert kinds == ["permission.evaluated", "tool.started", "tool.result"]
    (started,) = of_kind(result, ToolStarted)
    assert started.hook_outcomes == ()


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (lambda: Agent("a", "scripted:x", hooks=["deny"]), "function"),
        (lambda: hook("before_tool")(print), "no such point"),  # type: ignore[call-overload]
        (lambda: hook("pre_tool_use", timeout=0)(print), "timeout"),
        (lambda: hook("pre_tool_use", match=" ")(print), "match"),
        (lambda: Agent("a", "scripted:x", hooks=print), "list"),
    ],
)
def test_what_is_no_hook_is_refused_when_the_agent_is_made(wrong: Any, words: str) -> None:
    with pytest.raises(InvalidConfig, match=words):
        wrong()


async def test_a_rejected_call_is_not_changed_by_hooks_after_it() -> None:
    asked: list[str] = []

    @hook("post_tool_use")
    def after(call: HookInput) -> None:
        asked.append(call.tool)

    @tool(effect="keyed", approval=True)
    def refund(cents: int) -> str:
        """Give money back."""
        return "ok"

    agent = Agent("a", scripted([calls(("refund", {"cents": 5})), "x"]), tools=[refund], hooks=[after])
    result = await run(agent, "go", store=MemoryStore(), approver=lambda approval: _said(Reject("no")))
    assert result.status == "completed" and asked == []


async def gives_itself_up(call: HookInput) -> HookVerdict:
    raise asyncio.CancelledError


@pytest.mark.parametrize("point", ["pre_tool_use", "post_tool_use"])
@pytest.mark.parametrize("category", ["raised", "timeout"])
async def test_no_hook_can_hold_a_turn_up_for_ever(category: str, point: Any) -> None:
    till, store, over = Till(), MemoryStore(), asyncio.Event()

    async def holds_on(call: HookInput) -> HookVerdict:
        while not over.is_set():
            try:
                await over.wait()
            except asyncio.CancelledError:
                continue
        return HookVerdict.deny("too late")

    stuck = gives_itself_up if category == "raised" else holds_on
    result = await asyncio.wait_for(till.run(hook(point, timeout=0.05)(stuck), store=store), 60)
    over.set()
    (failed,) = of_kind(result, HookFailed)
    assert (failed.error_category, failed.fail_mode, result.output) == (category, "closed", "done")
    assert till.paid == ([] if point == "pre_tool_use" else [("A", 500)])
    assert await replays(store, result)


async def test_a_hooks_own_timeout_error_is_its_own() -> None:
    async def slow_service(call: HookInput) -> None:
        raise TimeoutError("the ledger did not answer")

    result = await Till().run(slow_service)
    (failed,) = of_kind(result, HookFailed)
    assert failed.error_category == "raised" and "the ledger did not answer" in failed.message


@pytest.mark.parametrize("how", ["raises", "denies", "predicate"])
async def test_a_key_of_the_runtime_in_what_a_hook_says_goes_neither_to_the_log_nor_to_the_model(how: str) -> None:
    store = MemoryStore()
    key = store.secret.hex()

    def leaks(call: Any) -> HookVerdict:
        if how == "denies":
            return HookVerdict.deny(f"the key is {key}")
        raise RuntimeError(f"refused with {key}")

    @tool(effect="keyed", approval=leaks if how == "predicate" else False)
    def refund(order: str) -> str:
        """Give money back."""
        raise AssertionError

    model = scripted([calls(("refund", {"order": "A"})), "done"])
    hooks = [] if how == "predicate" else [leaks]
    result = await run(Agent("support", model, tools=[refund], hooks=hooks), "go", store=store)
    (failed,) = of_kind(result, ToolFailed)
    assert failed.status == "denied" and result.output == "done"
    assert key not in "".join(entry.fact.event.model_dump_json() for entry in result.facts())
    assert await replays(store, result)
