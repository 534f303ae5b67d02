"""Streams of events: from the log, then live, nothing twice and nothing lost, whoever is killed or goes away."""

from pathlib import Path

import pytest

from kit.surfaces.served_home import HomeClient, served


@pytest.mark.spec("CTL-WEB-09", "HOL-REPLAY-05")
def test_a_client_that_went_away_comes_back_with_its_last_event(client: HomeClient) -> None:
    sent = client.post("/agents/clerk/messages", {"text": "slow 0.3", "thread": "away"}).body
    with client.stream("/agents/clerk/events", last=str(sent["position"])) as frames:
        seen = frames.until("turn.started")
    turn = client.until_ended(sent)
    assert turn["state"] == "completed", "a client that goes away stops nothing"
    with client.stream("/agents/clerk/events", last=seen[-1].id) as frames:
        seen += frames.until("turn.completed")
    numbers = [int(frame.id) for frame in seen]
    assert numbers == list(range(numbers[0], numbers[-1] + 1)), "each once, in order, no gap"
    stored = client.get(f"/agents/clerk/events?after={sent['position']}&limit=1000").body
    names = [event["envelope"]["event_id"] for event in stored]
    assert names[: len(seen)] == [frame.data["envelope"]["event_id"] for frame in seen]


def test_a_turn_has_a_stream_that_ends_with_it(client: HomeClient) -> None:
    sent = client.post("/agents/clerk/messages", {"text": "hello", "thread": "short"}).body
    with client.stream("/agents/clerk/events", last=str(sent["position"])) as frames:
        turn = frames.until("turn.started")[-1].data["envelope"]["turn_id"]
    with client.stream(f"/turns/{turn}/events") as frames:
        kinds = [frame.event for frame in frames.all()]
    assert kinds[-1] == "turn.completed"


@pytest.mark.parametrize("view", ["stream", "wire", "transcript"])
def test_whoever_comes_back_to_the_lines_of_a_turn_misses_none(client: HomeClient, view: str) -> None:
    """An event may be several lines: the last of them has its number."""
    sent = client.post("/agents/clerk/messages", {"text": "slow 0", "thread": f"lines-{view}"}).body
    path = f"/turns/{client.until_ended(sent)['turn_id']}/lines?view={view}"
    with client.stream(path) as frames:
        whole = frames.all()
    assert whole[-1].id and len({frame.id for frame in whole if frame.id}) == sum(bool(frame.id) for frame in whole)
    for cut in range(len(whole) + 1):
        known = [place for place, frame in enumerate(whole[:cut], 1) if frame.id]
        upto = known[-1] if known else 0
        with client.stream(path, last=whole[upto - 1].id if upto else None) as frames:
            assert frames.all() == whole[upto:]


def test_the_feed_over_all_agents_goes_on_after_its_cursor(client: HomeClient) -> None:
    sent = client.post("/agents/clerk/messages", {"text": "one", "thread": "feed"}).body
    with client.stream("/agents/clerk/events", last=str(sent["position"])) as frames:
        frames.until("turn.completed")
    before = client.get("/feed?limit=1000").body
    client.post("/agents/keeper/messages", {"text": "two", "thread": "feed"})
    with client.stream("/feed", last=before[-1]["cursor"]) as frames:
        second = frames.until("brief")
    assert {frame.data["envelope"]["agent_id"] for frame in second} == {"keeper"}
    assert not {entry["cursor"] for entry in before} & {frame.id for frame in second}, "each once"
    page = client.get("/feed?display=info&limit=1000").body
    assert {entry["presentation"]["category"] for entry in page} >= {"brief"}
    gone = client.get("/feed?after=feed-00000000-7")
    assert (gone.status, gone.code) == (410, "cursor_gone")
    assert "without a cursor" in gone.body["error"]["hint"]
    assert client.get("/feed", headers={"accept": "text/event-stream", "last-event-id": "nonsense"}).status == 410


def test_a_cursor_that_is_none_is_refused(client: HomeClient) -> None:
    assert client.get("/agents/clerk/events", headers={"last-event-id": "yesterday"}).code == "invalid_cursor"
    assert client.get("/agents/nobody/events", headers={"accept": "text/event-stream"}).status == 404


def test_a_kill_of_the_process_loses_no_event_and_no_message(tmp_path: Path) -> None:
    with served(tmp_path / "home") as home:
        sent = home.client.post("/agents/clerk/messages", {"text": "slow 0.5", "key": "k"}).body
        with home.client.stream("/agents/clerk/events") as frames:
            seen = frames.until("tool.started")
        home.kill()
        home.start()
        again = home.client.post("/agents/clerk/messages", {"text": "slow 0.5", "key": "k"}).body
        assert again["message_id"] == sent["message_id"], "what was acknowledged is there"
        with home.client.stream("/agents/clerk/events", last=seen[-1].id) as frames:
            seen += frames.until("turn.completed")
        numbers = [int(frame.id) for frame in seen]
        assert numbers == list(range(1, len(numbers) + 1))


def test_a_drain_ends_streams_and_leaves_turns_for_the_next_start(tmp_path: Path) -> None:
    with served(tmp_path / "home") as home:
        client = home.client
        with client.stream("/agents/clerk/events") as frames:
            client.post("/agents/clerk/messages", {"text": "hello"})
            frames.until("turn.completed")
            assert home.end() == 0
            assert frames.all() == [], "the stream ended in order"
        home.start()
        assert home.client.get("/agents/clerk/status").body["control"] == "running", "a drain stops no agent"
