"""Clients of chats: curl, a program of the standard library, fifty at once, two who decide, and a daemon that dies."""

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from kit.surfaces.chat_agents import FIRST, REST
from kit.surfaces.served_home import HomeClient, ServedHome, served
from wakeful import Approve, open_store
from wakeful.errors import AlreadyDecided
from wakeful.service.queries.schemas import chat_schema, run_result_schema
from wakeful.service.serving.options import ServeOptions
from wakeful.views.standard_form import standard_schema

AGENTS = ServeOptions(port=0, tools=("kit.surfaces.chat_agents:agents",))


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedHome]:
    with served(tmp_path_factory.mktemp("home"), AGENTS) as found:
        yield found


def test_curl_is_a_client(home: ServedHome) -> None:
    said = json.dumps({"text": "slow 0.1", "thread": "curl"})
    words = ["curl", "-sN", "--unix-socket", str(home.socket), "http://localhost/agents/clerk/chat", "--json", said]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=True)
    schema = Draft202012Validator(chat_schema())
    sent = [line.removeprefix("data: ") for line in done.stdout.splitlines() if line.startswith("data: ")]
    messages = [json.loads(each) for each in sent]
    for message in messages:
        schema.validate(message)
    assert [each["type"] for each in messages][-1] == "turn_terminal"
    assert done.stdout.startswith("retry: 1000\n\nid: ")


def test_the_example_is_a_whole_client(home: ServedHome, root: Path) -> None:
    program = root / "examples" / "http_chat.py"
    assert len(program.read_text().splitlines()) < 60
    scripts = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    for text, answered, shown in [
        ("refund 9", "y\n", "refunded 9"),
        ("refund 8", "n\n", "finished"),
        ("pick", "", "finished"),
        ("hello", "", "hello"),
    ]:
        agent = "teller" if text == "pick" else "clerk"
        done = subprocess.run(
            [sys.executable, str(program), agent, text],
            input=answered,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
            env={**home.environment, "PATH": scripts},
        )
        assert done.returncode == 0 and shown in done.stdout, done.stdout + done.stderr


def test_fifty_chats_at_the_same_time_end_in_order(client: HomeClient) -> None:
    def chat(number: int) -> tuple[str, str]:
        with client.stream("/agents/clerk/chat", {"text": f"chat {number}.", "thread": f"many-{number}"}) as frames:
            seen = frames.all()
        said = "".join(frame.data["content"] for frame in seen if frame.event == "chunk")
        return seen[-1].data["status"], said

    with ThreadPoolExecutor(50) as people:
        ended = list(people.map(chat, range(50)))
    assert all(status == "completed" and said.endswith(f"chat {n}.") for n, (status, said) in enumerate(ended))


def test_of_two_who_decide_at_once_one_wins_and_the_other_is_told(home: ServedHome, operator: HomeClient) -> None:
    """Over HTTP, and in the store of the same home, from another process."""
    with home.client.stream("/agents/clerk/chat", {"text": "refund 5", "thread": "race"}) as frames:
        asked = frames.until("approval_required")[-1].data["approval_id"]

        def over_http() -> str:
            answer = operator.post(f"/approvals/{asked}/decision", {"decision": "rejected", "reason": "no"})
            assert answer.status in (200, 409)
            return "won" if answer.status == 200 else str(answer.body["error"]["message"])

        def in_the_store() -> str:
            async def decide() -> str:
                async with open_store(home.folder / "wakeful.db") as store:
                    try:
                        await store.decide(asked, Approve(), by="ann")
                    except AlreadyDecided as refused:
                        return refused.message
                    return "won"

            return asyncio.run(decide())

        with ThreadPoolExecutor(2) as people:
            said = [each.result() for each in (people.submit(over_http), people.submit(in_the_store))]
        (told,) = (frame.data for frame in frames.all() if frame.event == "approval_resolved")
    assert said.count("won") == 1
    (loser,) = (each for each in said if each != "won")
    assert f"{told['status']} already by {told['decided_by']}" in loser


def test_a_reader_sees_no_real_arguments_and_a_foreign_cursor_is_refused(
    client: HomeClient, observer: HomeClient
) -> None:
    assert observer.post("/agents/clerk/chat", {"text": "hello"}).status == 403
    with client.stream("/agents/teller/chat", {"text": "unlock", "thread": "safe"}) as frames:
        asked = frames.until("client_tool_call")[-1].data
        assert asked["args"] == {"password": "hunter2-hunter2"}, "whoever may answer it gets what it is run with"
        with observer.stream(f"/turns/{asked['turn_id']}/chat") as others:
            seen = others.until("client_tool_call")
            assert "hunter2" not in str(seen) and "password" in seen[-1].data["args"]
        assert "hunter2" not in str(observer.get(f"/turns/{asked['turn_id']}/chat").body)
        for path in ("/requests", f"/requests/{asked['request_id']}"):
            assert (observer.get(path).status, client.get(path).status) == (403, 200), path
        client.post(f"/requests/{asked['request_id']}/result", {"error": "no such safe"})
        assert "hunter2" not in str(frames.all())
    wrong = client.post("/agents/clerk/chat", {"text": "hello"}, headers={"last-event-id": "yesterday"})
    assert (wrong.status, wrong.code) == (400, "invalid_cursor")
    assert client.post("/agents/nobody/chat", {"text": "hello"}).status == 404
    assert client.post("/agents/clerk/chat", {"text": "hello", "sender": "ann"}).status == 422
    assert client.get("/turns/nothing/chat", headers={"accept": "text/event-stream"}).status == 404
    assert client.get("/messages/nothing", headers={"accept": "text/event-stream"}).status == 404
    assert client.get("/messages/nothing").code == "message_not_found"


def test_supersede_stops_what_the_thread_was_at(client: HomeClient) -> None:
    with client.stream("/agents/clerk/chat", {"text": "refund 2", "thread": "newer"}) as first:
        first.until("turn_suspended")
        newer = {"text": "never mind", "thread": "newer", "supersede": True, "key": "newer"}
        with client.stream("/agents/clerk/chat", newer) as second:
            assert second.all()[-1].data["status"] == "completed"
        ended = first.all()[-1].data
        assert (ended["status"], ended["stop_reason"]) == ("cancelled", "superseded")
    with client.stream("/agents/clerk/chat", newer) as again:
        assert again.all()[-1].data["status"] == "completed", "the same message stops nothing more"


def test_a_message_that_supersedes_stops_what_the_thread_was_at(client: HomeClient) -> None:
    with client.stream("/agents/clerk/chat", {"text": "refund 2", "thread": "dropped"}) as first:
        first.until("turn_suspended")
        newer = {"text": "never mind", "thread": "dropped", "supersede": True}
        assert client.post("/agents/clerk/messages", newer).status == 200
        ended = first.all()[-1].data
    assert (ended["status"], ended["stop_reason"]) == ("cancelled", "superseded")


def test_a_client_may_ask_that_its_turn_ends_with_it(client: HomeClient) -> None:
    with client.stream("/agents/clerk/chat?cancel_on_disconnect=true", {"text": "refund 1", "thread": "bye"}) as frames:
        turn = frames.until("turn_suspended")[-1].data["turn_id"]
        early = client.get(f"/turns/{turn}/result")
        assert (early.status, early.code) == (409, "not_completed")
    with client.stream(f"/turns/{turn}/chat") as frames:
        assert frames.all()[-1].data["status"] == "cancelled"


@pytest.mark.spec("CTL-WEB-09", "LOOP-WIRE-08")
def test_a_kill_in_the_middle_of_a_streamed_turn_loses_nothing_and_repeats_nothing(tmp_path: Path) -> None:
    with served(tmp_path / "home", AGENTS) as home:
        said = {"text": "tell end", "key": "one"}
        with home.client.stream("/agents/teller/chat", said) as frames:
            seen = frames.until("chunk")
            assert seen[-1].id == "", "not stored yet"
            home.kill()
        home.start()
        (home.folder / "end").touch()
        last = next(frame.id for frame in reversed(seen) if frame.id)
        with home.client.stream("/agents/teller/chat", said, last=last) as frames:
            rest = frames.all()
        kept = [frame for frame in seen + rest if frame.id]
        numbers = [int(frame.id) for frame in kept]
        assert numbers == sorted(set(numbers)), "each once"
        assert next(frame.event for frame in rest if frame.id) == "turn_resumed"
        assert [frame.event for frame in kept].count("turn_terminal") == 1
        newest = max(frame.data["attempt"] for frame in rest if frame.event == "chunk")
        words = [frame.data for frame in rest if frame.event == "chunk" and frame.data["attempt"] == newest]
        assert "".join(each["content"] for each in words) == FIRST + REST
        assert len(home.client.get("/turns?agent=teller").body) == 1


@pytest.mark.spec("STD-MAP-01", "STD-MAP-06")
def test_the_draft_standards_form_is_a_variant_that_validates(client: HomeClient) -> None:
    said = {"text": "slow 0.1", "thread": "standard", "key": "standard"}
    with client.stream("/agents/clerk/chat?form=standard", said) as frames:
        streamed = frames.all()
    schema = Draft202012Validator(standard_schema())
    for frame in streamed:
        schema.validate(frame.data)
        assert (frame.event, int(frame.id)) == (frame.data["type"], frame.data["sequence"])
    turn = streamed[-1].data["turnId"]
    listed = client.get(f"/turns/{turn}/events?form=standard&limit=1000").body
    assert listed == [frame.data for frame in streamed], "as a page and as a stream"
    ours = client.get(f"/turns/{turn}/events?limit=1000").body
    assert [each["event_id"] for each in ours] == [each["eventId"] for each in listed]
    with client.stream("/agents/clerk/chat", said) as frames:
        told = frames.all()[-1].data
    assert (told["status"], told["event_seq"]) == (listed[-1]["payload"]["status"], listed[-1]["sequence"])
    assert client.get(f"/turns/{turn}/events?form=other").status == 422
    result = client.get(f"/turns/{turn}/result").body
    Draft202012Validator(run_result_schema()).validate(result)
    assert (result["turn_id"], result["status"], result["final_content"]) == (turn, "completed", "finished")
