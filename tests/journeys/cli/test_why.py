"""`wakeful why`, `approve N` and `reject N`: what waits, why, and the row of the list that is decided about."""

import asyncio
import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

from kit.surfaces.command_line import ME, Wakeful
from kit.surfaces.served_home import ServedHome, served
from wakeful import Agent, Retry, Runtime, run_sync
from wakeful.testing import ProviderServer


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
        assert json.loads(wakeful("why", asked.message[:20], "--json").out) == of_message, "as `send` shows it"
        assert here.client.get(f"/why/{asked.message[:20]}").body["id"] == asked.message
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
        listed = wakeful("notices").out.splitlines()
        shown = next(line.split()[0] for line in listed if notices[0]["notice_id"].startswith(line.split()[0]))
        assert wakeful("why", shown).out == told.out, "by as much of its id as the list has"
        (waiting,) = here.client.get("/approvals").body
        here.client.post(f"/approvals/{waiting['approval_id']}/decision", {"decision": "approved"})


def test_a_name_that_nothing_has_is_refused(here: ServedHome, wakeful: Wakeful) -> None:
    done = wakeful("why", "nothing-of-the-kind")
    assert done.code == 2
    assert "there is no agent, turn, message, timer or notice 'nothing-of-the-kind'" in done.err
    assert "clerk" in done.err.partition("Hint:")[2]
    call = wakeful("why", "call_of_nobody")
    assert (call.code, "there is no call 'call_of_nobody'" in call.err) == (2, True)


@pytest.fixture
def unattended(folder: Path) -> Path:
    """A home with an agent of a file, whose runtime has ended."""
    home = folder / "home"
    skill = folder / "skills" / "tidy" / "SKILL.md"
    (home / "agents").mkdir(parents=True)
    skill.parent.mkdir(parents=True)
    skill.write_text("---\nname: tidy\ndescription: How to tidy up.\n---\nPut it back.\n")
    wakes = (
        "[{name: dawn, cron: '0 7 * * *', timezone: UTC, say: Wake up.}, {name: dusk, cron: '0 19 * * *', say: Go.}]"
    )
    (home / "agents" / "porter.yaml").write_text(
        f"name: porter\nmodel: scripted:demo\nskills: [{skill.parent.parent}]\nwake: {wakes}\n"
    )

    async def once() -> None:
        async with Runtime(home):
            pass

    asyncio.run(once())
    return home


def test_where_no_daemon_runs_it_is_said_by_all_that_wait_for_one(unattended: Path, wakeful: Wakeful) -> None:
    words = "no daemon runs: wakeful daemon start"
    assert words in wakeful("status").out
    sent = wakeful("send", "porter", "hello")
    assert words in sent.out
    for told in (wakeful("why"), wakeful("why", "porter"), wakeful("why", sent.out.split()[0])):
        assert (told.code, words in told.out) == (0, True), told
    due = wakeful("timer", "run", "dawn")
    assert "dawn of agent porter is due now\n" in due.out and words in due.out
    assert "you" in wakeful("timer", "list").out.split()
    assert words not in wakeful("status", "--store", str(unattended / "wakeful.db")).out, "whose it is, is not known"


def test_a_timer_is_known_by_its_name(unattended: Path, wakeful: Wakeful) -> None:
    told = wakeful("why", "dusk")
    assert (told.code, told.out.startswith("Timer dusk of porter, by '0 19 * * *'")) == (0, True), told
    timers = {each["name"]: each["timer_id"] for each in json.loads(wakeful("timer", "list", "--json").out)}
    assert wakeful("why", timers["dusk"][:14]).out == told.out
    several = wakeful("why", "timer_")
    assert several.code == 2
    assert wakeful("timer", "cancel", "timer_of_nobody").err.count("wakeful timer list") == 1


def test_the_skills_of_an_agent_of_a_file_need_no_daemon(unattended: Path, wakeful: Wakeful) -> None:
    assert "How to tidy up." in wakeful("skills", "porter").out
    assert wakeful("skills", "show", "porter", "tidy").out.endswith("Put it back.\n")


def test_a_misspelt_agent_is_answered_with_those_that_had_no_turn_yet_too(unattended: Path, wakeful: Wakeful) -> None:
    for done in (wakeful("status", "portr"), wakeful("cost", "--agent", "portr")):
        assert (done.code, "did you mean porter?" in done.err) == (2, True), done


def test_a_turn_that_waits_for_a_provider_says_so_with_the_line_that_goes_on_with_it(
    folder: Path, wakeful: Wakeful
) -> None:
    with ProviderServer(["There you are."]) as server:
        server.weather.always("503")
        clerk = Agent("clerk", server.model("openai:gpt-5.5"))
        waits = run_sync(clerk, "Go.", store=folder / "runs.db", key="k", retry=Retry(patience=0))
        told = wakeful("why", "k", "--store", "runs.db")
        words = " ".join(told.out.split())
        assert "it waits for the provider openai; it is asked again at 20" in words
        assert "the last try: openai at 127.0.0.1:" in words and "answered 503" in words
        assert f"next: wakeful resume {waits.turn_id} --store runs.db" in words
        refused = wakeful("retry", "k", "--store", "runs.db")
        assert refused.code == 2 and f"go on with it: wakeful resume {waits.turn_id}" in refused.err
        costs = wakeful("cost", "--store", "runs.db").out
        assert "the true" not in costs, "requests that were refused have used nothing, and that is known"
