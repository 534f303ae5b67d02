"""What a host says about each call before it runs: mediator, rules, policies. Every call passes the one gate."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from kit.gates.tool_starters import check_one_door
from kit.hosts.loop_host import CLOCK, SEARCH, Host, calling, search
from wakeful.bootstrap.engines import new_engine
from wakeful.contracts.events import PermissionEvaluated, ToolCatalogResolved, ToolMediationFailed, ToolResult
from wakeful.contracts.tool_catalog import ToolCatalog
from wakeful.hosts import (
    Abilities,
    Ability,
    AbilityRefused,
    ConversationLoop,
    ConversationResult,
    IterationBudget,
    ToolPolicy,
    mediate_turn,
    tiered,
)
from wakeful.service.commands.interruption import cancel_turn
from wakeful.service.hooks import HookRegistry
from wakeful.service.queries.explanation import why_call
from wakeful.service.queries.replay import replay_turn

CLOCK_CALL: dict[str, Any] = {"name": "ability/clock", "parameters": {}}
DONE = {"content": "done"}


def errors(result: ConversationResult) -> list[str | None]:
    """The error type of each call, in model order; None for what succeeded."""
    return [entry["result"]["metadata"].get("error_type") for entry in result.tool_execution_results]


async def replayed(host: Host) -> None:
    """Whatever was decided comes out the same from the log alone."""
    (row,) = await host.store.turns()
    report = await replay_turn(host.store, row)
    assert report.divergence is None, report.divergence


class Mediator:
    """Says what it was told to say, one decision a call, and keeps what it saw."""

    def __init__(self, *decisions: Any) -> None:
        self.decisions = list(decisions)
        self.seen: list[dict[str, Any]] = []

    def __call__(self, context: dict[str, Any]) -> Any:
        self.seen.append(context)
        said = self.decisions.pop(0) if self.decisions else {"action": "proceed"}
        if isinstance(said, Exception):
            raise said
        return said


# --- the mediator ----------------------------------------------------------------------------------------------------


@pytest.mark.spec("API-PRE-01", "API-PRE-02")
async def test_the_mediator_is_asked_once_a_call_with_everything_about_it() -> None:
    order: list[str] = []
    mediator = Mediator()

    def asked(context: dict[str, Any]) -> Any:
        order.append(f"asked {context['tool_call_id']}")
        return mediator(context)

    host = Host(calling(search("a", id="c1"), content="let me look"), calling(search("b", id="c2"), CLOCK_CALL), DONE)
    execute = host.execute

    def executed(call: Any, declaration: Any, context: dict[str, Any]) -> Any:
        order.append(f"executed {call.metadata.tool_call_id}")
        return execute(call, declaration, context)

    host.execute = executed  # type: ignore[method-assign]
    result = await host.mediated(pre_tool_mediator=asked, context={"site": "7"})
    assert result.completed
    # Once a call, each before its own execution.
    assert order == [
        "asked c1",
        "executed c1",
        "asked c2",
        "executed c2",
        "asked tool-call-2-2",
        "executed tool-call-2-2",
    ]
    first, second, third = mediator.seen
    assert first.keys() == {
        "messages",
        "raw_tool_call",
        "prepared_tool_call",
        "tool_declaration",
        "tool_name",
        "parameters",
        "tool_call_id",
        "turn_context",
        "turn",
        "prior_tool_results",
        "prior_mediated_results",
    }
    assert [message["type"] for message in first["messages"]] == ["text", "text", "tool_call"]
    assert first["messages"][-1]["metadata"]["tool_call_id"] == "c1"
    assert first["raw_tool_call"] == {"name": "ability/search", "parameters": {"q": "a"}, "id": "c1"}
    assert first["prepared_tool_call"]["tool_name"] == first["tool_name"] == "ability/search"
    assert first["prepared_tool_call"]["parameters"] == first["parameters"] == {"q": "a"}
    assert first["tool_declaration"]["name"] == "ability/search" and first["tool_call_id"] == "c1"
    assert (first["turn"], first["turn_context"]["site"], first["turn_context"]["turn"]) == (1, "7", 1)
    assert first["prior_tool_results"] == first["prior_mediated_results"] == []
    assert [entry["tool_call_id"] for entry in second["prior_tool_results"]] == ["c1"]
    assert second["prior_mediated_results"] == []
    assert [entry["tool_call_id"] for entry in third["prior_mediated_results"]] == ["c2"]
    assert [entry["tool_call_id"] for entry in third["prior_tool_results"]] == ["c1", "c2"]
    await replayed(host)


@pytest.mark.spec("API-PRE-04")
async def test_proceed_goes_the_normal_way_also_for_a_call_that_could_not_be_prepared() -> None:
    mediator = Mediator()
    host = Host(calling(search("a"), {"name": "ability/nothing"}, {"name": "ability/search", "parameters": {}}), DONE)
    result = await host.mediated(pre_tool_mediator=mediator)
    assert errors(result) == [None, "tool_not_found", "missing_required_parameters"]
    fine, unknown, unfit = mediator.seen
    assert fine["prepared_tool_call"] is not None
    assert (unknown["prepared_tool_call"], unknown["tool_declaration"]) == (None, None)
    assert unknown["tool_name"] == "ability/nothing"
    assert unfit["prepared_tool_call"] is None and unfit["tool_declaration"]["name"] == "ability/search"
    assert len(host.calls) == 1
    await replayed(host)


@pytest.mark.spec("API-PRE-03", "API-PRE-05", "API-PRE-06")
async def test_a_mediator_rejects_or_gives_the_result_and_the_executor_is_not_called() -> None:
    mediator = Mediator(
        {"action": "proceed"},
        {"action": "reject", "error": "not today"},
        {"action": "reject", "error": "again?", "metadata": {"error_type": "duplicate_tool_call", "first": "c1"}},
        {"action": "replace_result", "result": {"success": True, "result": {"cached": 1}}},
    )
    host = Host(calling(search("a"), search("b"), search("c"), search("d", id="c4")), DONE)
    result = await host.mediated(pre_tool_mediator=mediator)
    assert [call.parameters["q"] for call in host.calls] == ["a"]
    assert errors(result) == [None, "pre_tool_mediation_rejected", "duplicate_tool_call", None]
    _, rejected, duplicate, given = [entry["result"] for entry in result.tool_execution_results]
    assert (rejected["success"], rejected["error"]) == (False, "not today")
    assert duplicate["metadata"]["first"] == "c1"
    assert (given["success"], given["tool_name"], given["result"]) == (True, "ability/search", {"cached": 1})
    # The model reads the same.
    answers = [message for message in host.wire if message["type"] == "tool_result"]
    assert [message["content"] for message in answers] == ['{"n":1}', "not today", "again?", '{"cached":1}']
    await replayed(host)


@pytest.mark.spec("API-PRE-07")
@pytest.mark.parametrize(
    "decision",
    [
        {"action": "replace_result", "result": {"success": True, "result": {"n": 0}}, "complete": True},
        {"action": "reject", "error": "enough", "complete": 1},
    ],
)
async def test_complete_ends_the_turn_after_this_call_and_the_rest_are_passed_over(decision: dict[str, Any]) -> None:
    mediator = Mediator({"action": "proceed"}, decision)
    host = Host(calling(search("a"), search("b"), search("c"), CLOCK_CALL))
    result = await host.mediated(pre_tool_mediator=mediator)
    assert (result.completed, result.status, result.turn_count) == (True, None, 1)
    assert [call.parameters["q"] for call in host.calls] == ["a"] and len(mediator.seen) == 2
    second = None if decision["action"] == "replace_result" else "pre_tool_mediation_rejected"
    assert errors(result) == [None, second, "sibling_skipped", "sibling_skipped"]
    skipped = result.tool_execution_results[2]["result"]
    assert (skipped["success"], skipped["metadata"]["reason"]) == (False, "complete")
    # Each has its message, its event and its audit entry.
    for kind in ("tool_call", "tool_result"):
        assert len([message for message in result.messages if message.type == kind]) == 4
    assert len([event for event in result.tool_events if event.type == "tool_result"]) == 4
    assert [audit.error_type for audit in result.tool_audit_events] == errors(result)
    await replayed(host)


async def left_over(stop: str) -> tuple[Host, ConversationResult]:
    """A batch of four calls that stops after, or at, its second."""
    host = Host(calling(*(search(name, id=name) for name in "abcd")), DONE)
    execute = host.execute

    async def executed(call: Any, declaration: Any, context: dict[str, Any]) -> Any:
        if stop == "interrupt" and call.parameters["q"] == "b":
            (row,) = await host.store.turns()
            await cancel_turn(new_engine(host.store), row.turn_id)
        return execute(call, declaration, context)

    host.execute = executed  # type: ignore[method-assign, assignment]
    options: dict[str, Any] = {}
    if stop == "complete":
        ends = {"action": "reject", "error": "enough", "complete": True}
        options["pre_tool_mediator"] = Mediator({"action": "proceed"}, ends)
    if stop == "budget":
        options["budgets"] = [IterationBudget("tool_calls", 1)]
    if stop == "approval":
        host.answers = {"b": ENVELOPE}
    if stop == "pending tool":
        options["pre_tool_mediator"] = Mediator({"action": "proceed"}, {"action": "pending"})
    return host, await host.mediated(**options)


@pytest.mark.spec("API-MED-05")
@pytest.mark.parametrize("stop", ["complete", "budget", "interrupt", "approval", "pending tool", None])
async def test_calls_left_over_when_a_batch_stops_are_not_run_and_say_why(stop: str | None) -> None:
    host, result = await left_over(stop or "")
    ran = [call.parameters["q"] for call in host.calls]
    skipped = [
        (entry["tool_call_id"], entry["result"]["success"], entry["result"]["metadata"]["reason"])
        for entry in result.tool_execution_results
        if entry["result"]["metadata"].get("error_type") == "sibling_skipped"
    ]
    if stop in ("complete", "budget", "interrupt"):
        assert skipped == [("c", False, stop), ("d", False, stop)]
        assert not {"c", "d"} & set(ran)
    else:
        # A pause holds nobody up: whoever waits is waited for when the others have run. Without a stop, all run.
        assert skipped == [] and {"a", "c", "d"} <= set(ran)
        waits = {"approval": "approval_required", "pending tool": "runtime_tool_pending"}
        assert result.status == waits.get(stop or "")
    await replayed(host)


async def test_without_complete_the_run_goes_on() -> None:
    """The inversion of the test before: it is `complete` that ends it."""
    mediator = Mediator({"action": "proceed"}, {"action": "reject", "error": "enough", "complete": False})
    host = Host(calling(search("a"), search("b"), search("c")), DONE)
    result = await host.mediated(pre_tool_mediator=mediator)
    assert (result.turn_count, len(host.calls)) == (2, 2)


async def _hangs(context: dict[str, Any]) -> Any:
    await asyncio.Event().wait()


async def _holds_on(context: Any) -> Any:
    """Does not stop when it is told to."""
    while True:
        try:
            await asyncio.sleep(0.5)
            return {"action": "proceed"}
        except asyncio.CancelledError:
            continue


def _raises(context: dict[str, Any]) -> Any:
    raise RuntimeError("no database")


@pytest.mark.spec("API-PRE-10")
@pytest.mark.parametrize(
    ("mediator", "words"),
    [
        (_raises, "no database"),
        (_holds_on, "did not answer within"),
        (_hangs, "did not answer"),
        (lambda context: None, "instead of an object"),
        (lambda context: "proceed", "instead of an object"),
        (lambda context: {"action": "go"}, "none of"),
        (lambda context: {}, "none of"),
        (lambda context: {"action": "replace_result"}, "without a result"),
        (lambda context: {"action": "replace_result", "result": "text"}, "not an object"),
        (lambda context: {"action": "replace_result", "result": {"x": object()}}, "not JSON"),
        (lambda context: {"action": "reject", "error": 3}, "not a text"),
    ],
)
@pytest.mark.parametrize("as_hook", [False, True])
async def test_a_mediator_or_hook_that_fails_has_denied_and_leaves_an_event(
    mediator: Any, words: str, as_hook: bool
) -> None:
    host = Host(calling(search("a", id="c1")), DONE)
    options: dict[str, Any] = {} if as_hook else {"pre_tool_mediator": mediator}
    if as_hook:
        asks = _hooked(mediator)
        host.hooks.register("pre_tool_call_decision", asks)
    loop = ConversationLoop(
        store=host.store, hooks=host.hooks, mediator_timeout=0.05 if mediator in (_hangs, _holds_on) else 30
    )
    result = await loop.run(
        [{"role": "user", "content": "hi"}],
        host.turn_runner,
        {
            "on_event": host.on_event,
            "tool_executor": host,
            "tool_declarations": {"ability/search": SEARCH},
            "max_turns": 3,
            **options,
        },
    )
    assert errors(result) == ["pre_tool_mediation_error"] and host.calls == []
    (payload,) = host.payloads("pre_tool_mediation_error")
    assert payload.keys() == {"turn", "tool_name", "tool_call_id", "reason"} and words in payload["reason"]
    assert (payload["turn"], payload["tool_name"], payload["tool_call_id"]) == (1, "ability/search", "c1")
    assert result.completed  # the call's affair, not the run's


def _hooked(mediator: Any) -> Any:
    if asyncio.iscoroutinefunction(mediator):

        async def later(decision: Any, context: dict[str, Any]) -> Any:
            return await mediator(context)

        return later
    return lambda decision, context: mediator(context)


@pytest.mark.spec("API-PRE-09")
async def test_rules_then_the_mediator_then_the_hook_and_none_is_less_strict_than_the_one_before() -> None:
    order: list[str] = []

    def hook(decision: dict[str, Any], context: dict[str, Any]) -> Any:
        if context["tool_name"] == "ability/clock":
            return decision
        order.append(f"hook {context['parameters']['q']} {decision['action']}")
        return said.get(context["parameters"]["q"], decision)

    def mediator(context: dict[str, Any]) -> Any:
        order.append(f"mediator {context['parameters']['q']}")
        return first.get(context["parameters"]["q"], {"action": "proceed"})

    given = {"action": "replace_result", "result": {"success": True, "result": {"given": True}}}
    first = {"rejected": {"action": "reject", "error": "no"}, "given": given}
    said = {
        "rejected": {"action": "proceed"},
        "given": {"action": "proceed"},
        "late": {"action": "reject", "error": "the hook said no"},
    }
    host = Host(
        calling(search("free"), search("rejected"), search("given"), search("late")),
        calling(CLOCK_CALL, search("limited")),
        DONE,
    )
    host.hooks.register("pre_tool_call_decision", hook)
    rules = [
        {
            "after_tool": "ability/clock",
            "limited_tools": ["ability/search"],
            "require_one_of": ["ability/x"],
            "gate_completion": False,
        }
    ]
    clock_is_free = Mediator()
    result = await host.mediated(
        pre_tool_mediator=lambda context: (
            mediator(context) if context["tool_name"] == "ability/search" else clock_is_free(context)
        ),
        tool_call_rules=rules,
    )
    assert errors(result)[:4] == [None, "pre_tool_mediation_rejected", None, "pre_tool_mediation_rejected"]
    assert result.tool_execution_results[2]["result"]["result"] == {"given": True}
    assert errors(result)[5] == "tool_call_gate_rejected"
    assert [call.parameters.get("q") for call in host.calls] == ["free", None]
    # A reject is final: the hook is not asked any more; and after the rules said no, nobody is.
    assert order == [
        "mediator free",
        "hook free proceed",
        "mediator rejected",
        "mediator given",
        "hook given replace_result",
        "mediator late",
        "hook late proceed",
    ]


async def test_hosts_see_decisions_in_the_transcript_the_results_and_the_events_and_no_other_record_is_kept() -> None:
    mediator = Mediator({"action": "reject", "error": "not today", "metadata": {"secret_note": "mine"}})
    host = Host(calling(search("a", id="c1")), DONE)
    result = await host.mediated(pre_tool_mediator=mediator)
    assert [message.content for message in result.messages if message.type == "tool_result"] == ["not today"]
    assert errors(result) == ["pre_tool_mediation_rejected"]
    (event,) = [event for event in result.tool_events if event.type == "tool_result"]
    assert (event.status, event.metadata["error_type"]) == ("rejected", "pre_tool_mediation_rejected")
    assert [audit.error_type for audit in result.tool_audit_events] == ["pre_tool_mediation_rejected"]
    assert {"tool_call", "tool_result"} <= set(host.names)
    # The log has the call's end and why; the decision itself, with what the host put into it, is nowhere.
    assert "secret_note" not in "".join(entry.fact.event.model_dump_json() for entry in await host.log())


# --- rules -----------------------------------------------------------------------------------------------------------


@pytest.mark.spec("API-GATE-04")
async def test_a_rejected_call_and_a_refused_completion_are_told_and_bounded_by_turns() -> None:
    rules = [
        {
            "id": "verify",
            "after_tool": "ability/clock",
            "limited_tools": ["ability/clock"],
            "max_calls": 1,
            "require_one_of": ["ability/search"],
        }
    ]
    host = Host(
        calling(CLOCK_CALL, CLOCK_CALL, CLOCK_CALL),
        {"content": "I am done"},
        calling(search("check")),
        {"content": "checked"},
    )
    result = await host.mediated(tool_call_rules=rules)
    assert errors(result) == [None, None, "tool_call_gate_rejected", None]
    # "I am done" was refused: the model was told in a user's message, and got another turn.
    (payload,) = host.payloads("tool_call_gate_completion_blocked")
    assert (payload["rule_id"], payload["turn"]) == ("verify", 2) and payload["counters"]["required"] == 1
    told = [message for message in result.messages if message.role == "user"][-1]
    assert (told.type, told.content) == ("text", payload["reason"]) and "ability/search" in told.content
    assert (result.completed, result.final_content, result.turn_count) == (True, "checked", 4)
    await replayed(host)
    # Bounded: whoever never does it runs out of turns, and is not completed.
    stubborn = Host(calling(CLOCK_CALL), *({"content": "done"} for _ in range(4)))
    result = await stubborn.mediated(tool_call_rules=rules)
    assert (result.completed, result.budget, result.turn_count) == (False, "turns", 5)
    # Without the rule nothing is refused.
    free = Host(calling(CLOCK_CALL, CLOCK_CALL, CLOCK_CALL), {"content": "I am done"})
    result = await free.mediated()
    assert errors(result) == [None, None, None] and (result.completed, result.turn_count) == (True, 2)


async def test_a_run_that_has_to_use_a_tool_does_not_end_before_it_did() -> None:
    host = Host({"content": "from memory"}, calling(search("a")), {"content": "looked up"})
    result = await host.mediated(tool_call_rules=[{"require_tool_use": True}])
    assert (result.final_content, result.turn_count) == ("looked up", 3)


# --- policies --------------------------------------------------------------------------------------------------------


@pytest.mark.spec("API-VIS-13")
async def test_a_tool_that_is_not_visible_in_a_run_is_not_found() -> None:
    host = Host(calling(search("a"), CLOCK_CALL), DONE)
    result = await host.mediated(context={"tool_policy": {"deny": ["ability/search"]}})
    assert errors(result) == ["tool_not_found", None]
    assert result.tool_execution_results[0]["result"]["error"] == "Tool 'ability/search' not found"
    assert [call.tool_name for call in host.calls] == ["ability/clock"]
    assert "ability/search" in result.metadata["hidden_tools"]
    # It is the turn's own catalogue that leaves it out, with the reason.
    (resolved,) = [each.fact.event for each in await host.log() if isinstance(each.fact.event, ToolCatalogResolved)]
    catalog = ToolCatalog.model_validate_json(await host.store.get_blob(resolved.catalog_ref.digest))
    assert {each.tool_name: each.policy for each in catalog.entries} == {
        "ability/clock": "allowed",
        "ability/search": "denied",
    }
    assert catalog.entries[1].policy_reason == result.metadata["hidden_tools"]["ability/search"]
    told = await why_call(host.store, result.tool_execution_results[0]["tool_call_id"])
    assert told.verdict == "deny" and catalog.entries[1].policy_reason in repr(told)
    # A host's hook hides as well; and without any policy the tool is there.
    hooked = Host(calling(search("a")), DONE)
    hooked.hooks.register(
        "resolved_tools", lambda tools, mode, context: {n: t for n, t in tools.items() if n != "ability/search"}
    )
    assert errors(await hooked.mediated()) == ["tool_not_found"] and hooked.calls == []
    free = Host(calling(search("a")), DONE)
    assert errors(await free.mediated()) == [None]


@pytest.mark.parametrize("name", ["resolved_tools", "tool_policy_providers"])
async def test_a_visibility_hook_that_raises_leaves_no_tool(name: str) -> None:
    def broken(*_: Any) -> Any:
        raise RuntimeError("no")

    host = Host(calling(search("a")), DONE)
    host.hooks.register(name, broken)
    result = await host.mediated()
    assert errors(result) == ["tool_not_found"] and result.metadata["tool_policy_diagnostics"]


async def test_a_provider_and_the_write_categories_of_the_registry_count() -> None:
    class Hides:
        def get_tool_policy(self, context: Any) -> Any:
            return {"deny": ["clock"]}

    host = Host(calling(search("a"), CLOCK_CALL), DONE)
    host.hooks.register("tool_policy_providers", lambda providers, context: [*providers, Hides()])
    assert errors(await host.mediated()) == [None, "tool_not_found"]
    host = Host(calling(search("a"), CLOCK_CALL), DONE)
    host.hooks.register("write_capable_categories", lambda categories, context: [*categories, "lookup"])
    tools = {"ability/search": {**SEARCH, "category": "lookup"}, "ability/clock": CLOCK}
    assert errors(await host.mediated(tool_declarations=tools)) == ["tool_not_found", None]


@pytest.mark.spec("API-VIS-14")
async def test_a_host_lists_a_few_tools_in_full_and_the_rest_is_found_by_searching_and_can_be_called() -> None:
    tools = {f"shop/tool_{n:02}": {**CLOCK, "name": f"shop/tool_{n:02}"} for n in range(40)}
    tools["shop/refund"] = {**CLOCK, "name": "shop/refund", "description": "Gives money back."}
    shown = ToolPolicy().resolve(tools, {"allow_write_tools": True})
    tiers = tiered(shown, preferred=["shop/tool_39"])
    assert len(tiers.first) == 15 and "shop/refund" not in tiers.first
    assert set(tiers.first) | set(tiers.rest) == set(shown) == set(tools)
    # Nobody lists more in full, and whatever is not listed is found by its own words.
    assert len(tiered(shown, limit=40).first) == 15
    assert all(name in tiers.search(name.rpartition("/")[2].replace("_", " "), limit=40) for name in tiers.rest)
    (found,) = tiers.search("money")
    host = Host(calling({"name": found, "parameters": {}}), DONE)
    result = await host.mediated(tool_declarations=tools)
    assert errors(result) == [None] and [call.tool_name for call in host.calls] == ["shop/refund"]


@pytest.mark.spec("API-ACT-07")
async def test_the_loop_itself_keeps_the_action_policy() -> None:
    tools = {
        "ability/search": {**SEARCH, "action_policy": "forbidden"},
        "ability/clock": {**CLOCK, "action_policy": "preview"},
        "ability/look": {**SEARCH, "name": "ability/look", "action_policy": "direct"},
    }
    look = {"name": "ability/look", "parameters": {"q": "x"}, "id": "c3"}
    host = Host(calling(search("a", id="c1"), {**CLOCK_CALL, "id": "c2"}, look))
    result = await host.mediated(tool_declarations=tools)
    # direct was executed although it stands after the one that waits; preview waits; forbidden has its failed result.
    assert [call.tool_name for call in host.calls] == ["ability/look"]
    assert errors(result) == ["action_forbidden", None]
    assert (result.status, result.completed, result.run_outcome.status) == (
        "approval_required",
        False,
        "approval_required",
    )
    envelope = result.approval_required
    assert envelope is not None and envelope.type == "approval_required"
    assert envelope.payload["apply_input"]["tool_name"] == "ability/clock"
    (payload,) = host.payloads("approval_required")
    assert payload == {
        "turn": 1,
        "tool_name": "ability/clock",
        "tool_call_id": "c2",
        "action_id": envelope.payload["action_id"],
    }
    # The action is staged: it is the approval record of the store, decided like any other.
    (row,) = await host.store.actions(pending_only=True)
    assert row.action_id == payload["action_id"]
    await replayed(host)


async def test_a_hook_on_the_action_policy_only_tightens_and_one_that_raises_forbids() -> None:
    def allows(policy: str, name: str, mode: str, context: Any) -> str:
        return "direct"

    def raises(*_: Any) -> str:
        raise RuntimeError("no")

    forbidden = {"ability/search": {**SEARCH, "action_policy": "forbidden"}}
    for hook, tools, kind in (
        (allows, forbidden, "action_forbidden"),
        (raises, {"ability/search": SEARCH}, "action_forbidden"),
        (allows, {"ability/search": {**SEARCH, "action_policy": "preview"}}, None),
    ):
        host = Host(calling(search("a")), DONE)
        host.hooks.register("tool_action_policy", hook)
        assert errors(await host.mediated(tool_declarations=tools)) == [kind]


@pytest.mark.spec("API-HOOK-05")
async def test_an_observer_that_raises_changes_nothing_and_a_decision_hook_that_raises_denies() -> None:
    def raises(*_: Any) -> Any:
        raise RuntimeError("no")

    host = Host(calling(search("a")), DONE)
    host.hooks.register("loop_event", raises)
    watched = await host.mediated()
    assert watched.completed and errors(watched) == [None] and watched.metadata["swallowed_failures"]
    for name, kind in (
        ("pre_tool_call_decision", "pre_tool_mediation_error"),
        ("tool_action_policy", "action_forbidden"),
        ("action_policy_providers", "action_forbidden"),
    ):
        host = Host(calling(search("a")), DONE)
        host.hooks.register(name, raises)
        assert errors(await host.mediated()) == [kind] and host.calls == []
    ran: list[Any] = []
    hooks = HookRegistry(find=list)
    hooks.register("ability_pre_execute_decision", raises)
    abilities = Abilities(hooks)
    abilities.register(Ability("shop/refund", ran.append, lambda given: True))
    with pytest.raises(AbilityRefused):
        await abilities.call("shop/refund", {})
    assert ran == []


# --- a tool that wants a person to decide ----------------------------------------------------------------------------


ENVELOPE: dict[str, Any] = {
    "type": "approval_required",
    "role": "tool",
    "content": "Publish the page?",
    "payload": {"action_id": "act-9", "kind": "publish", "summary": "Publish the page?", "extra": {"deep": [1]}},
    "metadata": {"ability_name": "ability/search"},
}


@pytest.mark.spec("API-PND-03")
async def test_a_tool_that_returns_an_approval_envelope_pauses_the_run() -> None:
    host = Host(calling(search("publish", id="c1"), search("b", id="c2")))
    host.answers = {"publish": ENVELOPE}
    result = await host.mediated()
    assert (result.status, result.completed) == ("approval_required", False)
    assert result.approval_required is not None and result.approval_required.payload == ENVELOPE["payload"]
    assert host.payloads("approval_required") == [
        {"turn": 1, "tool_name": "ability/search", "tool_call_id": "c1", "action_id": "act-9"}
    ]
    # It has no result yet; its sibling has run.
    assert [entry["tool_call_id"] for entry in result.tool_execution_results] == ["c2"]
    assert [message.tool_call_id for message in result.messages if message.type == "tool_call"] == ["c1", "c2"]
    assert [message.tool_call_id for message in result.messages if message.type == "tool_result"] == ["c2"]
    await replayed(host)


# --- one turn by itself ----------------------------------------------------------------------------------------------


@pytest.mark.spec("API-MED-10")
async def test_one_turn_is_mediated_by_itself_through_the_same_gate() -> None:
    host = Host()
    tools = {"ability/search": SEARCH, "ability/clock": {**CLOCK, "action_policy": "preview"}}
    options: dict[str, Any] = {"tool_executor": host, "tool_declarations": tools}
    mediated = await mediate_turn(
        [{"role": "user", "content": "hi"}], calling(search("a", id="c1"), CLOCK_CALL, content="one moment"), options
    )
    assert mediated.keys() == {
        "messages",
        "tool_execution_results",
        "tool_events",
        "tool_audit_events",
        "events",
        "conversation_complete",
        "exceeded_budget",
        "approval_required",
        "runtime_tool_pending",
    }
    assert [entry["tool_call_id"] for entry in mediated["tool_execution_results"]] == ["c1"]
    assert mediated["approval_required"]["payload"]["apply_input"]["tool_name"] == "ability/clock"
    assert (mediated["conversation_complete"], mediated["exceeded_budget"]) == (False, None)
    assert mediated["runtime_tool_pending"] is None and len(mediated["tool_audit_events"]) == 2
    assert [message["type"] for message in mediated["messages"]][:4] == ["text", "text", "tool_call", "tool_result"]
    plain = await mediate_turn([], calling(search("b")), {**options, "pre_tool_mediator": lambda context: 1})
    assert plain["tool_execution_results"][0]["result"]["metadata"]["error_type"] == "pre_tool_mediation_error"
    complete = {"action": "replace_result", "result": {"success": True, "result": {}}, "complete": True}
    ended = await mediate_turn([], calling(search("b")), {**options, "pre_tool_mediator": lambda context: complete})
    assert ended["conversation_complete"] is True and len(host.calls) == 1


# --- every call has one end ------------------------------------------------------------------------------------------


@pytest.mark.spec("API-MED-04", "API-AUD-07")
async def test_every_call_has_one_end_in_model_order_and_is_audited_whatever_became_of_it() -> None:
    tools = {
        "ability/search": SEARCH,
        "ability/clock": CLOCK,
        "ability/gone": {**CLOCK, "name": "ability/gone", "action_policy": "preview"},
    }
    mediator = Mediator(
        {"action": "proceed"},
        {"action": "reject", "error": "no"},
        {"action": "proceed"},
        {"action": "proceed"},
        {"action": "proceed"},
    )
    host = Host(
        calling(
            search("fine", id="c1"),
            search("rejected", id="c2"),
            "not a call",
            search("raises", id="c4"),
            {"name": "ability/gone", "id": "c5"},
            {"name": "ability/clock", "id": "c6"},
        )
    )
    host.answers = {"raises": RuntimeError("broken")}
    result = await host.mediated(tool_declarations=tools, pre_tool_mediator=mediator)
    ids = ["c1", "c2", "tool-call-1-3", "c4", "c6"]  # c5 caused the pause: its end comes when it is decided
    assert [entry["tool_call_id"] for entry in result.tool_execution_results] == ids
    assert [message.tool_call_id for message in result.messages if message.type == "tool_result"] == ids
    ends = [event.tool_call_id for event in result.tool_events if event.type == "tool_result"]
    assert sorted(ends) == sorted(ids)
    assert errors(result) == [None, "pre_tool_mediation_rejected", "invalid_tool_call", "executor_exception", None]
    # Rejected, invalid and failed ones are audited like those that ran; so is the one that pauses.
    audited = {audit.tool_call_id: audit.error_type for audit in result.tool_audit_events}
    assert audited == {**dict(zip(ids, errors(result), strict=True)), "c5": "approval_required"}
    # Passed over: the same, see `test_complete_ends_the_turn_after_this_call_and_the_rest_are_passed_over`.
    skipping = Host(calling(search("a", id="d1"), search("b", id="d2")))
    done = {"action": "reject", "error": "stop", "complete": True}
    passed = await skipping.mediated(pre_tool_mediator=Mediator(done))
    assert [(audit.tool_call_id, audit.error_type) for audit in passed.tool_audit_events] == [
        ("d1", "pre_tool_mediation_rejected"),
        ("d2", "sibling_skipped"),
    ]


@pytest.mark.spec("API-AUD-08")
async def test_observers_and_exports_get_hashes_and_not_results() -> None:
    host = Host(calling(search("a", api_key="sk-secret")), DONE)
    host.answers = {"a": {"success": True, "result": {"body": "very private"}}}
    observed: list[Any] = []
    host.hooks.register("loop_event", lambda name, payload: observed.append((name, payload)))
    result = await host.mediated()
    # What observers hear of a call holds neither its result nor its real parameters.
    assert "very private" not in str(observed) and "sk-secret" not in str(observed)
    assert {name for name, _ in observed} >= {"tool_call", "tool_result"}
    (audit,) = result.tool_audit_events
    exported = audit.model_dump_json()
    assert "very private" not in exported and "sk-secret" not in exported
    assert audit.result_sha256.startswith("sha256:") and audit.parameters_sha256.startswith("sha256:")
    assert "very private" in str(result.tool_execution_results)  # the caller's own, and nobody else's


async def check_nested(inner: str) -> None:
    """A call whose executor makes another one, by itself or in a loop of its own: both go through every step."""
    order: list[str] = []
    host = Host(calling(search("outer")), DONE)
    host.hooks.register("tool_action_policy", lambda policy, *_: (order.append("action policy"), policy)[1])

    def mediator(context: dict[str, Any]) -> Any:
        order.append("mediator")
        return {"action": "proceed"}

    async def begins(call: Any, declaration: Any, context: dict[str, Any]) -> Any:
        order.append(f"executed {call.parameters['q']}")
        if call.parameters["q"] == "inner":
            return {"success": True, "result": {"text": "x" * 60_000}}
        if inner == "nested tool":
            return await mediate_turn([], calling(search("inner")), options, loop=host.loop)
        below = iter([calling(search("inner")), DONE])
        return (await host.loop.run([], lambda *_: next(below), options)).to_wire()

    host.execute = begins  # type: ignore[method-assign, assignment]
    options: dict[str, Any] = {"tool_executor": host, "tool_declarations": {"ability/search": SEARCH}}
    options |= {"pre_tool_mediator": mediator, "max_turns": 2}
    await host.run(**options)
    assert order == [step for q in ("outer", "inner") for step in ("action policy", "mediator", f"executed {q}")]
    facts = [each.fact.event for agent_id in await host.store.agents() for each in await host.store.read(agent_id)]
    assert sum(isinstance(event, PermissionEvaluated) for event in facts) == 2
    results = [event for event in facts if isinstance(event, ToolResult)]
    assert len(results) == 2 and all(len(event.item.text) < 40_000 for event in results)


@pytest.mark.spec("API-MED-11")
async def test_the_steps_of_a_call_come_in_their_order_and_none_is_passed_by(root: Path) -> None:
    order: list[str] = []
    tools = {"ability/search": SEARCH}
    host = Host(calling({"name": "ability/search", "parameters": {}}, search("a"), search("b")), DONE)
    host.hooks.register(
        "tool_action_policy", lambda policy, name, mode, context: (order.append("action policy"), policy)[1]
    )

    def mediator(context: dict[str, Any]) -> Any:
        order.append("mediator" if context["prepared_tool_call"] else "mediator, not prepared")
        return {"action": "proceed"}

    execute = host.execute

    def executed(call: Any, declaration: Any, context: dict[str, Any]) -> Any:
        order.append("executed")
        return execute(call, declaration, context)

    host.execute = executed  # type: ignore[method-assign]
    host.answers = {"a": {"n": 1}, "b": {"success": True, "result": {"text": "x" * 60_000}}}
    result = await host.mediated(tool_declarations=tools, pre_tool_mediator=mediator)
    one = ["action policy", "mediator", "executed"]
    assert order == ["mediator, not prepared", *one, *one]
    # Normalised, cut for the model, recorded.
    unfit, plain, long = [entry["result"] for entry in result.tool_execution_results]
    assert unfit["metadata"]["error_type"] == "missing_required_parameters"
    assert plain == {"success": True, "tool_name": "ability/search", "metadata": {}, "result": {"n": 1}} | {
        "runtime": SEARCH["runtime"]
    }
    assert long["success"]
    answers = [message["content"] for message in host.wire if message["type"] == "tool_result"]
    assert len(answers[2]) < 40_000
    recorded = [type(entry.fact.event).__name__ for entry in await host.log()]
    assert [name for name in recorded if name in ("ToolStarted", "ToolFailed", "ToolResult")] == [
        *("ToolStarted", "ToolFailed"),
        *("ToolStarted", "ToolResult") * 2,
    ]
    # A tool or a sub-agent that an executor begins is begun as any other: nothing else of the runtime begins one.
    check_one_door(root)
    for inner in ("nested tool", "sub-agent"):
        await check_nested(inner)
    # The inversion: a step that says no stops what comes after it, inside as well as outside.
    forbidden = {"ability/search": {**SEARCH, "action_policy": "forbidden"}}
    stopped = await mediate_turn([], calling(search("inner")), {"tool_executor": host, "tool_declarations": forbidden})
    assert stopped["tool_execution_results"][0]["result"]["metadata"]["error_type"] == "action_forbidden"
    permissions = [e for e in await host.log() if isinstance(e.fact.event, PermissionEvaluated)]
    assert len(permissions) == 2


async def test_an_executor_gets_a_token_that_says_when_nobody_waits_any_more() -> None:
    host = Host(calling(search("a")), DONE)
    await host.mediated()
    (context,) = host.call_contexts
    assert context["cancelled"].is_set() is False


async def test_a_mediation_that_failed_is_a_fact() -> None:
    host = Host(calling(search("a")), DONE)
    await host.mediated(pre_tool_mediator=_raises)
    assert [e for e in await host.log() if isinstance(e.fact.event, ToolMediationFailed)]
