"""Approvals over HTTP: found by status and turn, decided once, by whoever was authenticated."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from kit.surfaces.served_home import Answer, HomeClient


def ask_for_money(client: HomeClient, thread: str, cents: int = 500) -> dict[str, str]:
    """An approval that is pending."""
    sent = client.post("/agents/clerk/messages", {"text": f"refund {cents}", "thread": thread})
    assert sent.status == 200, sent
    with client.stream("/agents/clerk/events", last=str(sent.body["position"])) as frames:
        required = frames.until("action.required")[-1]
    found: list[dict[str, str]] = client.get(
        f"/approvals?status=pending&run_id={required.data['envelope']['turn_id']}"
    ).body
    assert len(found) == 1
    return found[0]


@pytest.mark.spec("CTL-WEB-07", "CTL-WEB-08")
def test_a_decision_is_made_once_in_the_name_of_the_caller(operator: HomeClient) -> None:
    asked = ask_for_money(operator, "once")
    where = f"/approvals/{asked['approval_id']}"
    assert operator.get(where).body["status"] == "pending"
    for wrong in ("maybe", "approve", None):
        refused = operator.post(f"{where}/decision", {"decision": wrong})
        assert refused.status == 422, refused
    named = operator.post(f"{where}/decision", {"decision": "approved", "by": "somebody", "resolver": "somebody"})
    assert named.status == 422, "who decides is no field of the body"
    assert operator.get(where).body["status"] == "pending", "nothing of that left a trace"
    done = operator.post(f"{where}/decision", {"decision": "approved", "reason": "fine"})
    assert (done.status, done.body["approval"]["decided_by"]) == (200, "token:operator")
    assert operator.get("/approvals/apr_nothing").status == 404


def test_the_second_decision_is_told_who_was_first(operator: HomeClient, client: HomeClient) -> None:
    asked = ask_for_money(operator, "twice")
    where = f"/approvals/{asked['approval_id']}/decision"
    assert operator.post(where, {"decision": "rejected", "reason": "too much"}).status == 200
    assert operator.post(where, {"decision": "rejected"}).body["duplicate"] is True, "the same word again"
    other = client.post(where, {"decision": "approved"})
    assert (other.status, other.code) == (409, "already_decided")
    assert "token:operator" in other.body["error"]["message"]
    assert operator.get(f"/approvals/{asked['approval_id']}").body["status"] == "rejected"


def test_of_two_who_decide_at_once_one_wins_and_the_other_is_told(operator: HomeClient, client: HomeClient) -> None:
    for number in range(5):
        asked = ask_for_money(operator, f"race-{number}")
        where = f"/approvals/{asked['approval_id']}"
        together = threading.Barrier(2)

        def decide(who: HomeClient, word: str, where: str = where, together: threading.Barrier = together) -> Answer:
            together.wait(30)
            return who.post(f"{where}/decision", {"decision": word})

        with ThreadPoolExecutor(2) as both:
            answers = [both.submit(decide, operator, "approved"), both.submit(decide, client, "rejected")]
            by_token, by_socket = (each.result(60) for each in answers)
        assert sorted((by_token.status, by_socket.status)) == [200, 409]
        won, lost = (by_token, by_socket) if by_token.status == 200 else (by_socket, by_token)
        decided = won.body["approval"]
        assert lost.code == "already_decided" and decided["decided_by"] in lost.body["error"]["message"]
        assert operator.get(where).body["decided_by"] == decided["decided_by"]


def test_an_edit_and_an_answer_have_ways_of_their_own(operator: HomeClient) -> None:
    edited = ask_for_money(operator, "edited")
    edit = f"/approvals/{edited['approval_id']}/edit"
    done = operator.post(edit, {"arguments": {"cents": 5}})
    assert (done.status, done.body["arguments"]) == (200, {"cents": 5})
    answered = ask_for_money(operator, "answered")
    answer = f"/approvals/{answered['approval_id']}/answer"
    done = operator.post(answer, {"answer": "paid by hand"})
    assert done.body["approval"]["decision"] == "answer"
    for where, same, other in (
        (edit, {"arguments": {"cents": 5}}, {"arguments": {"cents": 500}}),
        (answer, {"answer": "paid by hand"}, {"answer": "not paid"}),
    ):
        assert operator.post(where, same).body["duplicate"] is True
        late = operator.post(where, other)
        assert (late.status, late.code) == (409, "already_decided"), "something else is no repetition"


def test_a_rule_for_always_can_be_listed_and_revoked(operator: HomeClient) -> None:
    asked = ask_for_money(operator, "always", 7)
    done = operator.post(f"/approvals/{asked['approval_id']}/always", {"scope": "call", "for_seconds": 3600})
    rule = done.body["rule_id"]
    assert rule in [each["rule_id"] for each in operator.get("/approvals/rules").body]
    gone = operator.ask("DELETE", f"/approvals/rules/{rule}")
    assert (gone.status, gone.body["revoked_by"]) == (200, "token:operator")


@pytest.mark.spec("CTL-APPR-05", "CTL-APPR-09")
def test_cancelling_a_run_decides_its_approvals_and_they_are_decided_once(operator: HomeClient) -> None:
    asked = ask_for_money(operator, "cancelled", 9)
    where = f"/approvals/{asked['approval_id']}"
    assert operator.post(f"/turns/{asked['turn_id']}/cancel").status == 200
    until = [operator.get(where).body for _ in range(1)]
    while until[-1]["status"] == "pending":
        until.append(operator.get(where).body)
    found = until[-1]
    assert (found["status"], found["decided_by"], found["note"]) == ("rejected", "runtime", "run_cancelled")
    late = operator.post(f"{where}/decision", {"decision": "approved"})
    assert (late.status, late.code) == (409, "already_decided")
    assert operator.get(where).body == found, "a second decision changes nothing"
    first = ask_for_money(operator, "once-more", 8)
    again = [operator.post(f"/approvals/{first['approval_id']}/decision", {"decision": "approved"}) for _ in range(2)]
    assert [each.body["duplicate"] for each in again] == [False, True]
    assert again[0].body["approval"] == again[1].body["approval"]
