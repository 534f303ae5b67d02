"""What a message means to an agent: every row of the table."""

import pytest

from wakeful.contracts.content import File, Text
from wakeful.contracts.conversation import UserItem
from wakeful.contracts.events import MessageAdmitted
from wakeful.contracts.messages import BriefBody, JsonBody, MessageKind
from wakeful.contracts.waking import ClosureDecision, ContinuationResolution
from wakeful.decisions.waking.continuation import (
    MATCHES,
    Trigger,
    is_contentful,
    resolve_continuation,
    trigger_from,
)

OPERATOR, TICK, TIMER = Trigger("operator_prompt", True), Trigger("system_tick"), Trigger("timer_tick")
EVENT, FOLLOW_UP = Trigger("webhook_event"), Trigger("internal_followup", True)
RESULT = Trigger("task_result", True, "task_1", task_is_over=True)
UNFINISHED = Trigger("task_result", True, "task_1")
FREE = [
    ClosureDecision(outcome="completed", runtime_posture="awake"),
    ClosureDecision(outcome="failed", runtime_posture="awake"),
]


def waiting(reason: str) -> ClosureDecision:
    return ClosureDecision.model_validate({"outcome": "waiting", "waiting_reason": reason, "runtime_posture": "awake"})


ON_OPERATOR, ON_TIMER = waiting("awaiting_operator_input"), waiting("awaiting_timer")
ON_TASK, ON_CHANGE = waiting("awaiting_task_result"), waiting("awaiting_external_change")


def resolved(prior: ClosureDecision, trigger: Trigger) -> ContinuationResolution:
    found = resolve_continuation(prior, trigger)
    assert found is not None
    assert found.model_visible == (found.continuation_class != "liveness_only")
    assert (found.prior_closure_outcome, found.prior_waiting_reason) == (prior.outcome, prior.waiting_reason)
    return found


def outcome(prior: ClosureDecision, trigger: Trigger) -> tuple[str, bool]:
    found = resolved(prior, trigger)
    return found.continuation_class, found.matched_waiting_reason


@pytest.mark.spec("HOL-CONT-01", "HOL-CONT-03")
def test_a_wait_is_matched_by_what_it_waits_for_and_by_nothing_else() -> None:
    triggers = {
        "operator_input": OPERATOR,
        "task_result": RESULT,
        "external_event": EVENT,
        "timer_fire": TIMER,
        "internal_followup": FOLLOW_UP,
        "system_tick": TICK,
    }
    for prior in (ON_OPERATOR, ON_TASK, ON_CHANGE, ON_TIMER):
        assert prior.waiting_reason is not None
        matched = {kind for kind, trigger in triggers.items() if resolved(prior, trigger).matched_waiting_reason}
        assert matched == MATCHES[prior.waiting_reason]
    assert {
        "awaiting_operator_input": {"operator_input"},
        "awaiting_task_result": {"task_result"},
        "awaiting_external_change": {"external_event", "system_tick"},
        "awaiting_timer": {"timer_fire"},
    } == MATCHES
    assert not any(resolved(prior, trigger).matched_waiting_reason for prior in FREE for trigger in triggers.values())


@pytest.mark.spec("HOL-CONT-04")
def test_the_awaited_operator_and_the_awaited_timer_resume() -> None:
    assert outcome(ON_OPERATOR, OPERATOR) == ("resume_expected_wait", True)
    assert outcome(ON_TIMER, TIMER) == ("resume_expected_wait", True)


@pytest.mark.spec("HOL-CONT-05")
def test_the_awaited_task_resumes_when_it_is_over() -> None:
    assert outcome(ON_TASK, RESULT) == ("resume_expected_wait", True)
    assert outcome(ON_TASK, UNFINISHED) == ("liveness_only", True)


@pytest.mark.spec("HOL-CONT-06")
@pytest.mark.parametrize("trigger", [EVENT, TICK])
def test_the_awaited_change_resumes_when_it_says_something(trigger: Trigger) -> None:
    assert outcome(ON_CHANGE, trigger._replace(is_contentful=True)) == ("resume_expected_wait", True)
    assert outcome(ON_CHANGE, trigger) == ("liveness_only", True)


@pytest.mark.spec("HOL-CONT-07", "HOL-CONT-08", "HOL-CONT-16")
def test_only_the_operator_and_the_end_of_an_own_task_override_a_wait() -> None:
    for prior in (ON_TASK, ON_CHANGE, ON_TIMER):
        assert outcome(prior, OPERATOR) == ("resume_override", False)
    for prior in (ON_OPERATOR, ON_CHANGE, ON_TIMER):
        assert outcome(prior, RESULT) == ("resume_override", False)
        assert outcome(prior, RESULT._replace(task_is_own=False)) == ("liveness_only", False)
        assert outcome(prior, UNFINISHED) == ("liveness_only", False)


@pytest.mark.spec("HOL-CONT-09", "HOL-CONT-18")
@pytest.mark.parametrize("prior", [ON_OPERATOR, ON_TASK, ON_TIMER])
def test_a_tick_wakes_no_agent_that_waits_for_something_else(prior: ClosureDecision) -> None:
    assert outcome(prior, TICK._replace(is_contentful=True)) == ("liveness_only", False)


@pytest.mark.spec("HOL-CONT-10")
def test_nothing_else_wakes_an_agent_that_waits_for_something_else() -> None:
    for trigger in (EVENT._replace(is_contentful=True), FOLLOW_UP, TIMER):
        assert outcome(ON_OPERATOR, trigger) == ("liveness_only", False)


@pytest.mark.spec("HOL-CONT-11", "HOL-CONT-17")
@pytest.mark.parametrize("prior", FREE)
def test_the_operator_a_timer_and_a_follow_up_begin_a_turn_of_an_agent_that_waits_for_nothing(
    prior: ClosureDecision,
) -> None:
    for trigger in (OPERATOR, TIMER, FOLLOW_UP):
        assert outcome(prior, trigger) == ("local_continuation", False)


@pytest.mark.spec("HOL-CONT-12", "HOL-CONT-19")
@pytest.mark.parametrize("prior", FREE)
@pytest.mark.parametrize("trigger", [EVENT, TICK])
def test_an_event_or_a_tick_begins_a_turn_when_it_says_something(prior: ClosureDecision, trigger: Trigger) -> None:
    assert outcome(prior, trigger._replace(is_contentful=True)) == ("local_continuation", False)
    assert outcome(prior, trigger) == ("liveness_only", False)


@pytest.mark.spec("HOL-CONT-13")
@pytest.mark.parametrize("prior", FREE)
def test_a_task_begins_a_turn_when_it_is_over(prior: ClosureDecision) -> None:
    assert outcome(prior, RESULT) == ("local_continuation", False)
    assert outcome(prior, UNFINISHED) == ("liveness_only", False)


@pytest.mark.spec("HOL-CONT-14")
def test_the_evidence_names_trigger_content_task_and_rule() -> None:
    assert resolved(ON_TIMER, RESULT).evidence == (
        "trigger: task_result (task_result)",
        "contentful",
        "task task_1 is over, its own",
        "rule: the end of a task of its own overrides every wait",
    )
    assert resolved(ON_TIMER, TICK).evidence == (
        "trigger: system_tick (system_tick)",
        "without content",
        "rule: the agent waits for something else",
    )


@pytest.mark.spec("HOL-CONT-15", "HOL-MSG-07")
@pytest.mark.parametrize("kind", ["task_status", "control", "brief_ack", "brief_result"])
def test_messages_for_the_record_are_no_continuation(kind: MessageKind) -> None:
    for prior in (*FREE, ON_TASK, ON_CHANGE):
        assert resolve_continuation(prior, Trigger(kind, True, "task_1", task_is_over=True)) is None


@pytest.mark.spec("HOL-CONT-21")
def test_a_message_says_something_when_it_has_words_or_an_attachment() -> None:
    def said(*parts: object) -> MessageAdmitted:
        return MessageAdmitted(message_id="m", item=UserItem(parts=parts), message_kind="system_tick")  # type: ignore[arg-type]

    assert is_contentful(said(Text("the build is red")))
    assert is_contentful(said(Text(""), File(data=b"{}", media_type="application/json")))
    assert not is_contentful(said(Text(" \n")))
    assert is_contentful(said().model_copy(update={"body": JsonBody(value={})}))
    assert is_contentful(said().model_copy(update={"body": BriefBody(text="done")}))
    assert not is_contentful(said().model_copy(update={"body": BriefBody(text=" ")}))
    assert not is_contentful(said())
    assert trigger_from(said()) == TICK


def test_the_class_is_called_class_in_json() -> None:
    written = resolved(ON_TIMER, TIMER).model_dump(mode="json")
    assert written["class"] == "resume_expected_wait"
    assert ContinuationResolution.model_validate(written) == resolved(ON_TIMER, TIMER)
