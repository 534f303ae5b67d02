"""`wakeful why`, `approve N` and `reject N`: what waits, why, and the row of the list that is decided about."""

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

from kit.surfaces.command_line import ME, Wakeful
from kit.surfaces.served_home import ServedHome, served


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedHome]:
    with served(tmp_path_factory.mktemp("why") / "home") as home:
        calm = home.client.post("/agents/clerk/messages", {"text": "good day", "thread": "calm", "key": "calm"})
        home.client.until_ended(calm.body)
        yield home


@pytest.fixture
def here(folder: Path, running: ServedHome, monkeypatch: pytest.MonkeyPatch) -> ServedHome:
    monkeypatch.setenv("WAKEFUL_HOME", str(running.folder))
    monkeypatch.setenv("XDG_STATE_HOME", str(folder / "state"))
    return running


class Asked(NamedTuple):
    """A call that waits for somebody."""

    message: str
    turn: str


@contextmanager
def asking(home: ServedHome, key: str) -> Iterator[Asked]:
    """Once its turn rests. The block decides about it, and then the turn comes to its end."""
    with home.client.stream("/agents/clerk/chat", {"text": "refund 5", "thread": key}) as frames:
        seen = frames.until("turn_suspended")
        yield Asked(seen[0].data["message_id"], seen[-1].data["turn_id"])
        frames.until("turn_terminal")


def test_bare_why_tells_of_everything_that_is_not_at_rest(here: ServedHome, wakeful: Wakeful) -> None:
    with asking(here, "first") as asked:
        told = wakeful("why")
        assert told.code == 0
        assert "clerk (thread first) waits for a decision about refund (appr_" in told.out
        assert "keeper" not in told.out
        (life,) = json.loads(wakeful("why", "--json").out)
        assert (life["agent"], life["state"]) == ("clerk", "waiting")

        of_message = json.loads(wakeful("why", asked.message, "--json").out)
        assert (of_message["kind"], of_message["agent"], of_message["thread"]) == ("message", "clerk", "first")
        assert any("a decision about refund" in each for each in of_message["evidence"])
        of_turn = json.loads(wakeful("why", asked.turn, "--json").out)
        assert (of_turn["kind"], of_turn["next_command"]) == ("turn", "wakeful approvals")
        assert any("is pending: refund" in each for each in of_turn["evidence"])
        assert here.client.get(f"/why/{asked.message}").body["kind"] == "message"
        assert [each["agent"] for each in here.client.get("/why").body] == ["clerk"]

        listed = wakeful("approvals")
        assert listed.out.splitlines()[0].startswith("#  ID")
        assert wakeful("approve", "2").code == 2
        done = wakeful("approve", "1")
        assert done.code == 0, done.err
    (decided,) = [each for each in json.loads(wakeful("approvals", "--all", "--json").out) if each["thread"] == "first"]
    assert (decided["status"], decided["decided_by"]) == ("approved", ME)


def test_a_row_is_rejected_with_words(here: ServedHome, wakeful: Wakeful) -> None:
    with asking(here, "second"):
        rows = json.loads(wakeful("approvals", "--json").out)
        number = next(row for row, each in enumerate(rows, 1) if each["thread"] == "second")
        done = wakeful("reject", str(number), "ask", "for", "a", "photo")
        assert done.code == 0, done.err
    assert "ask for a photo" in str(json.loads(wakeful("approvals", "--all", "--json").out))


def test_a_timer_and_a_notice_say_where_they_are(here: ServedHome, wakeful: Wakeful) -> None:
    with asking(here, "third"):
        until = time.monotonic() + 60
        while not (notices := json.loads(wakeful("notices", "--json").out)):
            assert time.monotonic() < until, "nobody is told"
        told = wakeful("why", notices[0]["notice_id"])
        assert told.code == 0
        assert told.out.startswith("A notice about clerk (")
        assert "it follows from" in told.out
        (waiting,) = here.client.get("/approvals").body
        here.client.post(f"/approvals/{waiting['approval_id']}/decision", {"decision": "approved"})


def test_a_name_that_nothing_has_is_refused(here: ServedHome, wakeful: Wakeful) -> None:
    done = wakeful("why", "nothing-of-the-kind")
    assert done.code == 2
    assert "Hint:" in done.err
