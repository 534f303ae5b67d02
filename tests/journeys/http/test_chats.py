"""Chats over HTTP: a message goes in, its turn comes out as a stream, whatever happens to the client or the daemon."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from kit.surfaces.chat_agents import FIRST, REST
from kit.surfaces.served_home import Frame, HomeClient, ServedHome, served
from wakeful.service.serving.options import ServeOptions

AGENTS = ServeOptions(port=0, tools=("kit.surfaces.chat_agents:agents",))


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedHome]:
    with served(tmp_path_factory.mktemp("home"), AGENTS) as found:
        yield found


def kinds(frames: list[Frame]) -> list[str]:
    return [frame.event for frame in frames]


def numbers(frames: list[Frame]) -> list[int]:
    return [int(frame.id) for frame in frames if frame.id]


def words(frames: list[Frame]) -> str:
    return "".join(frame.data["content"] for frame in frames if frame.event == "chunk")


def test_a_message_is_answered_on_its_own_connection(client: HomeClient) -> None:
    with client.stream("/agents/clerk/chat", {"text": "hello", "thread": "one"}) as frames:
        assert frames.answer.getheader("content-type", "").startswith("text/event-stream")
        assert frames.answer.getheader("x-accel-buffering") == "no"
        seen = frames.all()
    assert kinds(seen)[0] == "message_taken"
    assert kinds(seen)[-2:] == ["cost_summary", "turn_terminal"]
    assert words(seen).endswith("hello")
    assert seen[-1].data["status"] == "completed"
    assert numbers(seen) == sorted(set(numbers(seen))), "each stored message once, in the order of the log"


def test_words_are_seen_before_they_are_stored(client: HomeClient, folder: Path) -> None:
    with client.stream("/agents/teller/chat", {"text": "tell story", "thread": "story"}) as frames:
        seen: list[Frame] = []
        while words(seen) != FIRST:
            seen += frames.until("chunk")
        assert all(frame.id == "" for frame in seen if frame.event == "chunk"), "what is not stored has no id"
        turn = seen[-1].data["turn_id"]
        with client.stream(f"/turns/{turn}/chat") as late:
            other: list[Frame] = []
            while words(other) != FIRST:
                other += late.until("chunk")
            (folder / "story").touch()
            rest = frames.all()
            assert words(seen + rest) == words(other + late.all()) == FIRST + REST
    (last,) = (frame for frame in rest if frame.event == "chunk")
    assert last.data["done"] and last.data["content"] == REST and last.id


@pytest.mark.spec("LOOP-WIRE-09", "CTL-WEB-09")
def test_a_client_that_lost_its_stream_posts_again_and_begins_no_second_turn(client: HomeClient) -> None:
    said = {"text": "slow 0.5", "thread": "lost", "key": "lost-1"}
    with client.stream("/agents/clerk/chat", said) as frames:
        seen = frames.until("tool_call_update")
    with client.stream("/agents/clerk/chat", said, last=seen[-1].id) as frames:
        rest = frames.all()
    assert kinds(seen + rest).count("message_taken") == 1
    assert kinds(rest)[-1] == "turn_terminal"
    assert numbers(seen + rest) == sorted(set(numbers(seen + rest)))
    assert len(client.get("/turns?agent=clerk&thread=lost").body) == 1, "the message has its key"
    turn = rest[-1].data["turn_id"]
    whole = client.get(f"/turns/{turn}/chat").body
    assert whole["ended"] and [each["event_seq"] for each in whole["messages"] if each.get("event_seq")] == [
        number for number in numbers(seen + rest) if number != int(seen[0].id)
    ]
    with client.stream(f"/messages/{seen[0].data['message_id']}", last=seen[0].id) as frames:
        assert kinds(frames.all()) == kinds(seen[1:] + rest)


def test_a_place_that_the_log_does_not_reach_is_refused_before_anything_is_said(client: HomeClient) -> None:
    where = "/agents/clerk/chat"
    for form in ("chat", "standard"):
        said = {"text": f"never said {form}", "thread": f"ahead-{form}"}
        answer = client.post(f"{where}?form={form}", said, headers={"last-event-id": "100000"})
        assert (answer.status, answer.code) == (410, "cursor_gone")
        assert client.get(f"/turns?agent=clerk&thread=ahead-{form}").body == []


def test_client_tools_are_asked_and_answered_while_the_stream_goes_on(client: HomeClient, observer: HomeClient) -> None:
    with client.stream("/agents/teller/chat", {"text": "pick 2", "thread": "pick"}) as frames:
        seen = frames.until("turn_suspended")
        asked = [frame.data for frame in seen if frame.event == "client_tool_call"]
        assert [each["args"] for each in asked] == [{"folder": "/home/0"}, {"folder": "/home/1"}]
        assert all(0 < each["timeout_ms"] <= 60_000 and each["name"] == "pick_file" for each in asked)
        first, second = (f"/requests/{each['request_id']}" for each in asked)
        assert observer.post(f"{first}/result", {"result": "a.txt"}).status == 403
        given = client.post(f"{first}/result", {"result": {"file": "a.txt"}})
        assert (given.status, given.body["status"], given.body["success"]) == (200, "runtime_tool_completed", True)
        twice = client.post(f"{first}/result", {"result": {"file": "b.txt"}})
        assert (twice.status, twice.code) == (409, "already_decided")
        assert twice.body["error"]["details"]["result"] == {"file": "a.txt"}, "with what it ended with"
        ended = client.post(f"{second}/cancel", {})
        assert ended.body["cancelled"] and not ended.body["success"]
        assert client.post(f"{second}/timeout").status == 409
        rest = frames.all()
    assert kinds(rest).count("client_tool_ended") == 2
    assert {frame.data["status"] for frame in rest if frame.event == "client_tool_ended"} == {"completed", "cancelled"}
    assert kinds(rest)[-1] == "turn_terminal" and words(rest) == "finished", "the turn went on by itself"
    both = client.post(f"{first}/result", {"result": 1, "error": "no"})
    assert (both.status, both.code) == (422, "invalid_result")
    assert client.post("/requests/nothing/result", {"result": 1}).status == 404
    turn = rest[-1].data["turn_id"]
    with client.stream(f"/turns/{turn}/chat") as frames:
        again = frames.all()
    assert "client_tool_call" not in kinds(again), "there is nothing to run any more"


@pytest.mark.spec("LOOP-WIRE-01", "LOOP-WIRE-05")
def test_what_happens_in_a_subtask_is_nested(client: HomeClient) -> None:
    with client.stream("/agents/teller/chat", {"text": "nest", "thread": "nest"}) as frames:
        seen = frames.all()
    calls = [frame.data for frame in seen if frame.event == "tool_call_update"]
    (outer,) = (each for each in calls if each["status"] == "start" and each["name"].endswith("run_subtask"))
    inner = [each for each in calls if each["name"] == "look"]
    assert [each["status"] for each in inner] == ["start", "end"], calls
    assert {(each["parent_id"], each["depth"]) for each in inner} == {(outer["tool_call_id"], 1)}
    assert (outer.get("parent_id"), outer["depth"]) == (None, 0)
    assert words([frame for frame in seen if frame.data.get("depth") == 0]) == "finished"


def test_an_approval_is_decided_by_somebody_else_and_the_stream_goes_on(
    client: HomeClient, operator: HomeClient
) -> None:
    with client.stream("/agents/clerk/chat", {"text": "refund 7", "thread": "decide"}) as frames:
        asked = frames.until("approval_required")[-1].data
        assert (asked["name"], asked["args"]) == ("refund", {"cents": 7})
        decided = operator.post(f"/approvals/{asked['approval_id']}/decision", {"decision": "approved"})
        assert decided.status == 200
        rest = frames.all()
    (told,) = (frame.data for frame in rest if frame.event == "approval_resolved")
    assert (told["status"], told["decided_by"]) == ("approved", "token:operator")
    assert [frame.data["result"] for frame in rest if frame.data.get("status") == "end"] == ["refunded 7"]


def test_a_turn_is_cancelled_paused_and_spoken_to_while_it_streams(
    client: HomeClient, operator: HomeClient, folder: Path
) -> None:
    with client.stream("/agents/clerk/chat", {"text": "hold steered", "thread": "steer"}) as frames:
        turn = frames.until("tool_call_update")[-1].data["turn_id"]
        assert operator.post(f"/turns/{turn}/pause").status == 200
        assert operator.post(f"/turns/{turn}/messages", {"text": "hurry"}).status == 200
        (folder / "steered").touch()
        rests = frames.until("turn_suspended")
        (said,) = (frame.data for frame in rests if frame.event == "interjected")
        assert (said["content"], said["said_by"]) == ("hurry", "token:operator")
        assert rests[-1].data["reason"] == "paused"
        assert operator.post(f"/turns/{turn}/resume").status == 200
        rest = frames.all()
        assert kinds(rest)[0] == "turn_resumed" and kinds(rest)[-1] == "turn_terminal"
    with client.stream("/agents/clerk/chat", {"text": "refund 3", "thread": "steer"}) as frames:
        turn = frames.until("turn_suspended")[-1].data["turn_id"]
        assert operator.post(f"/turns/{turn}/cancel").status == 200
        assert frames.all()[-1].data["status"] == "cancelled"
    requested = [event for event in client.get(f"/turns/{turn}/events").body if "interrupt" in event["type"]]
    assert requested[0]["payload"]["requested_by"] == "token:operator", "who asked is who was authenticated"
    late = operator.post(f"/turns/{turn}/messages", {"text": "wait"})
    assert (late.status, late.code) == (409, "turn_over")
