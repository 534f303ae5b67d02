"""Commands against a real daemon: who acts, what is refused, what is followed.

`test_every_verb.py` has a journey for each command.
"""

import asyncio
import contextlib
import json
import os
import pty
import re
import subprocess
import threading
from base64 import urlsafe_b64decode
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from kit.surfaces.command_line import ME, Done, Wakeful, command_line
from kit.surfaces.same_moments import read_both
from kit.surfaces.served_home import ServedHome, served
from kit.surfaces.served_tokens import make_token
from wakeful.bootstrap.store_operations import perform
from wakeful.service.operations.operation import Operation
from wakeful.service.operations.runtime import LIST_AGENTS, AgentQuery
from wakeful.service.operations.tasks import LIST_TASKS, TaskQuery
from wakeful.service.operations.threads import LIST_THREADS, ThreadQuery
from wakeful.service.operations.turns import LIST_TURNS, TurnQuery
from wakeful.service.operations.work import LIST_WORK, WorkItemQuery
from wakeful.service.serving.daemon_client import DaemonAddress, DaemonClient
from wakeful.service.serving.options import ServeOptions
from wakeful.service.serving.remote_operations import ask_daemon


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedHome]:
    options = ServeOptions(port=0, tools=("kit.surfaces.verb_agents:agents",))
    with served(tmp_path_factory.mktemp("home"), options) as found:
        found.client.post("/agents", {"definition": {"name": "ops", "model": "scripted:demo"}})
        yield found


@pytest.fixture(autouse=True)
def at_home(home: ServedHome, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The commands of a test find the daemon of the module."""
    monkeypatch.setenv("WAKEFUL_HOME", str(home.folder))


@pytest.fixture
def file(home: ServedHome) -> tuple[str, str]:
    return "--store", str(home.folder / "wakeful.db")


def ok(done: Done) -> str:
    assert (done.code, done.err) == (0, ""), done
    return done.out


def told(done: Done) -> Any:
    return json.loads(ok(done))


def a_turn(wakeful: Wakeful) -> dict[str, Any]:
    """A finished turn with a call, an approval and a message."""
    found: dict[str, Any] = json.loads(wakeful("run", "hello", "--agent", "clerk", "--json").out)
    return found


def test_a_message_may_stop_the_turn_before_it(wakeful: Wakeful, home: ServedHome) -> None:
    with home.client.stream("/agents/clerk/chat", {"text": "refund 5", "thread": "dropped"}) as first:
        first.until("turn_suspended")
        ok(wakeful("send", "clerk", "never mind", "--thread", "dropped", "--supersede"))
        ended = first.all()[-1].data
    assert (ended["status"], ended["stop_reason"]) == ("cancelled", "superseded")


def test_a_run_of_an_agent_is_run_by_the_daemon_and_printed_as_here(wakeful: Wakeful, home: ServedHome) -> None:
    done = wakeful("run", "good morning", "--agent", "clerk")
    assert done.code == 0 and done.out.endswith("\ngood morning\n"), done
    found = a_turn(wakeful)
    assert (found["agent"], found["status"], found["output"]) == ("clerk", "completed", found["final_content"])
    [turn] = [each for each in home.client.get("/turns?agent=clerk").body if each["turn_id"] == found["turn_id"]]
    assert turn["thread"] == "main"
    failed = wakeful("run", "fail", "--agent", "clerk")
    assert failed.code == 1 and failed.err.startswith("failed (")
    same = [wakeful("run", "once", "--agent", "clerk", "--key", "k1").out for _ in range(2)]
    assert same[0] == same[1] and same[0].endswith("\nonce\n"), "the same key is the same message"


def test_what_only_a_run_in_this_process_could_keep_is_refused(wakeful: Wakeful, folder: Path) -> None:
    for options in (("--model", "scripted:demo"), ("--budget-usd", "1"), ("--tools", "shop:refund"), ("--plan",)):
        refused = wakeful("run", "x", "--agent", "clerk", *options)
        assert (refused.code, refused.out) == (2, "")
        assert "is for a run in this process, and the daemon runs agent clerk" in refused.err
    assert wakeful("run", "x", "--agent", "nobody").code == 2


def test_send_is_stored_by_the_daemon_in_the_name_of_its_peer(wakeful: Wakeful, home: ServedHome) -> None:
    sent = told(wakeful("send", "clerk", "to you", "--thread", "letters", "--json"))
    assert (sent["agent"], sent["thread"]) == ("clerk", "letters")
    found = [each for each in home.client.get("/agents/clerk/events?limit=1000").body if "to you" in str(each)]
    assert ME in str(found[0]), "the origin names the user at the other end of the socket"
    assert "is stored for agent clerk" in ok(wakeful("send", "clerk", "again", "--thread", "letters"))


def test_a_chat_says_once_what_it_waits_for(process: Wakeful) -> None:
    told = process("chat", "clerk", "--thread", "asked", stdin="refund 5\n").err.splitlines()
    assert told[0].startswith("approval_required: the turn waits for appr_"), told
    (named,) = [line.split()[4] for line in told if line.strip().startswith("reject:")]
    assert process("reject", named).code == 0


@pytest.mark.journey("chat", "chat --json")
def test_a_chat_is_a_line_and_its_answer(process: Wakeful) -> None:
    done = process("chat", "clerk", "--thread", "talk", stdin="one\n\ntwo\n")
    assert done.code == 0 and done.out.splitlines()[1::2] == ["one", "two"], done
    lines = process("chat", "clerk", "--json", stdin="three\n").out.splitlines()
    assert [json.loads(line)["output"].splitlines()[-1] for line in lines] == ["three"]
    refused = process("chat", "clerk", "--store", "runs.db", stdin="one\n")
    assert (refused.code, refused.out) == (2, "") and "talks to a daemon, not to a file" in refused.err
    missing = process("chat", "nobody", stdin="one\n")
    assert (missing.code, missing.out) == (2, "") and "no agent 'nobody'" in missing.err


@pytest.mark.journey("stop", "stop --json", "stop --store")
def test_everything_is_stopped_and_runs_again(
    wakeful: Wakeful, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with served(tmp_path / "own") as own:
        monkeypatch.setenv("WAKEFUL_HOME", str(own.folder))
        assert "--all was not given" in wakeful("stop").err
        for way in ((), ("--json",), ("--store", str(own.folder / "wakeful.db"))):
            stopped = ok(wakeful("stop", "--all", "--reason", "wrong prices", *way))
            assert json.loads(stopped)["control"] == "stopped" if way == ("--json",) else "stopped" in stopped
            refused = wakeful("send", "clerk", "hello")
            assert refused.code != 0 and "stopped" in refused.err, refused
            ok(wakeful("resume", "--all"))
            ok(wakeful("send", "clerk", "hello"))


@pytest.mark.spec("CTL-WEB-07")
def test_an_approval_is_decided_through_the_daemon_by_who_typed_it(wakeful: Wakeful, home: ServedHome) -> None:
    waits = wakeful("run", "refund 5", "--agent", "clerk", "--thread", "money")
    assert waits.code == 3 and "wakeful approvals approve" in waits.err
    assert "wakeful resume" not in waits.err, "the daemon goes on by itself"
    [record] = told(wakeful("approvals", "--json"))
    shown = told(wakeful("approvals", "show", record["approval_id"], "--json"))
    assert {name: shown[name] for name in record} == record, "and what stands round it"
    done = ok(wakeful("approvals", "approve", record["approval_id"], "--note", "fine"))
    assert "approved by you" in done
    late = wakeful("approvals", "reject", record["approval_id"], "no")
    assert late.code == 1 and "was decided before: approved by you" in late.err
    [decided] = [
        each for each in told(wakeful("approvals", "--all", "--json")) if each["approval_id"] == record["approval_id"]
    ]
    assert (decided["decided_by"], decided["note"]) == (ME, "fine")

    wakeful("run", "refund 6", "--agent", "clerk", "--thread", "money2")
    [second] = told(wakeful("approvals", "--json"))
    edited = ok(wakeful("approvals", "edit", second["approval_id"], "cents=7"))
    assert "was  refund(cents=6)" in edited and "now  refund(cents=7)" in edited
    wakeful("run", "refund 8", "--agent", "clerk", "--thread", "money3")
    [third] = told(wakeful("approvals", "--json"))
    kept = ok(wakeful("approvals", "always", third["approval_id"], "--for", "1h"))
    assert "new rule: clerk: allow refund" in kept
    [rule] = told(wakeful("approvals", "rules", "--json"))
    assert "was revoked by you" in ok(wakeful("approvals", "revoke", rule["rule_id"]))


def test_agents_are_made_changed_paused_and_deleted_through_the_daemon(wakeful: Wakeful, file: tuple[str, str]) -> None:
    assert ok(wakeful("agent", "create", "desk", "--model", "scripted:demo")).startswith("agent desk is created\n")
    assert ok(wakeful("agent", "pause", "desk", "--reason", "tea")).endswith("to resume: wakeful agent resume desk\n")
    [desk] = told(wakeful("agent", "list", "desk", "--json"))
    assert (desk["control"], desk["changed_by"], desk["reason"]) == ("paused", ME, "tea")
    assert ok(wakeful("agent", "resume", "desk")) == "agent desk is running\n"
    assert "refuses messages" in ok(wakeful("agent", "stop", "desk"))
    refused = wakeful("send", "desk", "hello", "--json")
    assert refused.code == 2 and json.loads(refused.out)["error"]["type"] == "AgentStopped"
    assert json.loads(wakeful("send", "desk", "hello", "--json", *file).out)["error"]["type"] == "AgentStopped"
    ok(wakeful("agent", "resume", "desk"))
    assert "(override of " in ok(wakeful("agent", "model", "desk", "scripted:demo"))
    assert "(of its definition)" in ok(wakeful("agent", "model", "desk", "--clear"))
    ok(wakeful("agent", "archive", "desk"))
    ok(wakeful("agent", "delete", "desk"))
    assert wakeful("agent", "show", "desk").code == 2


def test_timers_triggers_memory_and_workspaces_are_changed_through_the_daemon(
    wakeful: Wakeful, home: ServedHome, folder: Path
) -> None:
    assert ok(wakeful("trigger", "create", "ops", "ci", "--say", "A build.")).startswith("trigger ops/ci is active")
    assert "/callbacks/enqueue/" in ok(wakeful("trigger", "url", "ops/ci"))
    assert "has a new address" in ok(wakeful("trigger", "rotate", "ops/ci"))
    assert "ops/ci" in ok(wakeful("trigger", "revoke", "ops/ci"))
    (folder / "there").mkdir()
    ok(wakeful("workspace", "attach", "ops", str(folder / "there")))
    assert str(folder / "there") in ok(wakeful("workspace", "list", "ops"))
    (folder / "here").mkdir()
    ok(wakeful("workspace", "attach", "ops", "here"))
    assert str(folder / "here") in ok(wakeful("workspace", "list", "ops")), "from the folder of whoever types"
    ok(wakeful("workspace", "use", "ops", "--path", "there"))
    assert f"works in {folder / 'there'}" in ok(wakeful("workspace", "list", "ops"))
    ok(wakeful("workspace", "use", "ops", "agent_home"))
    held = told(wakeful("pause", "--all", "--reason", "tea", "--json"))
    assert (held["control"], held["changed_by"]) == ("paused", ME)
    ok(wakeful("resume", "--all"))
    ok(wakeful("reload"))
    ok(wakeful("notify", "test", "clerk"))


def test_work_is_queued_and_skills_are_shown_through_the_daemon(
    wakeful: Wakeful, home: ServedHome, file: tuple[str, str]
) -> None:
    skill = home.folder / "tricks" / "tidy" / "SKILL.md"
    skill.parent.mkdir(parents=True)
    skill.write_text("---\nname: tidy\ndescription: How to tidy up.\n---\nBegin with the attic.\n")
    definition = {"name": "maid", "model": "scripted:demo", "work_items": True, "skills": [str(skill.parent.parent)]}
    home.client.post("/agents", {"definition": definition})
    added = told(wakeful("work", "add", "maid", "Make the beds.", "--json"))
    words = ok(wakeful("work", "maid"))
    assert words.splitlines()[0].split() == ["ITEM", "STATE", "AGE", "OBJECTIVE", "BLOCKED", "BY"]
    assert "Make the beds." in words
    assert [each["id"] for each in told(wakeful("work", "maid", "--json", *file))] == [added["id"]]
    assert ok(wakeful("work", "maid", "--completed")) == "no work items\n"
    assert wakeful("work", "add", "ops", "Rest.").code == 2, "an agent without work items"
    (found,) = (each for each in told(wakeful("skills", "maid", "--json")) if each["name"] == "tidy")
    assert "How to tidy up." in ok(wakeful("skills", "maid"))
    assert ok(wakeful("skills", "show", "maid", "tidy")) == skill.read_text()
    assert found["entrypoint_path"] == str(skill)
    assert told(wakeful("skills", "maid", "--json", *file)) == told(wakeful("skills", "maid", "--json"))
    assert wakeful("skills", "show", "maid", "no-such-skill").code == 2


def test_a_turn_is_steered_and_followed_through_the_daemon(wakeful: Wakeful, home: ServedHome) -> None:
    turn = _held(home, told(wakeful("send", "clerk", "hold steered", "--thread", "slow", "--json")))
    assert "reads it with its next model request" in ok(wakeful("interject", turn, "hurry"))
    followed: list[Done] = []
    reader = threading.Thread(target=lambda: followed.append(Done(0, _stream(home, turn), "")))
    reader.start()
    assert f"turn {turn[:21]}" in ok(wakeful("cancel", turn))
    reader.join(60)
    assert "turn.interrupt.applied" in followed[0].out
    events = [json.loads(line) for line in ok(wakeful("events", turn, "--json")).splitlines()]
    assert [each["payload"]["requested_by"] for each in events if each["type"] == "turn.interrupt.requested"] == [ME]
    after = [json.loads(line) for line in ok(wakeful("events", turn, "--json", "--after", "3")).splitlines()]
    assert after == [each for each in events if int(each["event_id"].rpartition(":")[2]) > 3]
    assert "has ended already" in ok(wakeful("cancel", turn))
    (home.folder / "steered").touch()


@pytest.mark.parametrize("view", ["stream", "transcript", "wire"])
def test_a_turn_has_the_same_lines_of_the_daemon_and_of_the_file(
    wakeful: Wakeful, file: tuple[str, str], home: ServedHome, view: str
) -> None:
    turn = told(wakeful("run", "slow 0", "--agent", "clerk", "--thread", "lines", "--json"))["turn_id"]
    command = ("events", turn, "--as", view)
    for options in ((), ("--json",), ("--after", "3", "--json"), ("--follow", "--json")):
        assert ok(wakeful(*command, *options)) == ok(wakeful(*command, *options, *file))
    whole = home.client.get(f"/turns/{turn}/lines?view={view}").body
    first = home.client.get(f"/turns/{turn}/lines?view={view}&limit=1")
    assert whole and first.body == [line for line in whole if line["event_seq"] == whole[0]["event_seq"]]
    assert f"after={whole[0]['event_seq']}" in first.headers["link"]
    with home.client.stream(f"/turns/{turn}/lines?view={view}") as frames:
        assert [frame.data for frame in frames.all()] == whole
    wrong = home.client.get(f"/turns/{turn}/lines?view=nothing")
    assert wrong.status == 422


def test_an_artifact_is_printed_and_written_through_the_daemon(
    wakeful: Wakeful, file: tuple[str, str], folder: Path
) -> None:
    turn = told(wakeful("run", "log 5000", "--agent", "clerk", "--thread", "logs", "--json"))["turn_id"]
    [artifact] = told(wakeful("artifacts", turn, "--json"))
    name = artifact["artifact_id"].removeprefix("sha256:")[:12]
    printed = ok(wakeful("artifacts", "show", name))
    assert printed == ok(wakeful("artifacts", "show", name, *file)) and "line 4999" in printed
    assert f"out.txt: {len(printed) / 1000:.0f}"[:9] == ok(wakeful("artifacts", "show", name, "-o", "out.txt"))[:9]
    assert (folder / "out.txt").read_text() == printed
    record = told(wakeful("artifacts", "show", name, "--json"))
    assert record == told(wakeful("artifacts", "show", name, "--json", *file))
    assert urlsafe_b64decode(record["data"]).decode() == printed
    both = wakeful("artifacts", "show", name, "--json", "-o", "again.txt")
    assert both.code == 2 and not (folder / "again.txt").exists()
    assert wakeful("artifacts", "show", "nothing").code == 2


def test_a_client_call_is_ended_once_through_the_daemon(wakeful: Wakeful, home: ServedHome) -> None:
    for command, status in (
        (("submit", '{"file": "a.txt"}'), "runtime_tool_completed"),
        (("timeout",), "runtime_tool_timeout"),
        (("cancel",), "runtime_tool_timeout"),
    ):
        waits = wakeful("run", "pick", "--agent", "picker", "--thread", command[0])
        assert waits.code == 3, waits
        [request] = told(wakeful("requests", "--json"))
        name = request["request_id"]
        ended = told(wakeful("requests", command[0], name, *command[1:], "--json"))
        assert (ended["request_id"], ended["status"], ended["ahead"]) == (name, status, None), "the daemon goes on"
        again = wakeful("requests", "cancel", name)
        assert again.code == 1 and f"(client/pick_file) {status}: " in again.err and again.out == ""
    assert wakeful("requests", "submit", "nothing", "1").code == 2


def test_a_phone_is_added_and_removed_by_the_daemon_in_the_name_of_its_peer(
    wakeful: Wakeful, home: ServedHome, file: tuple[str, str]
) -> None:
    added = told(
        wakeful("channel", "add", "ntfy", "pocket", "--server", "http://127.0.0.1:9", "--allow-private", "--json")
    )
    assert added["channel"] == "pocket" and added["subscribe"].startswith("http://127.0.0.1:9/")
    # The daemon tries to reach its server meanwhile, and a record says how that went.
    listed, read = told(wakeful("channel", "--json")), told(wakeful("channel", "list", "--json", *file))
    assert [each["channel"] for each in listed] == [each["channel"] for each in read] == ["pocket"]
    assert "is open for pairing" in ok(wakeful("channel", "pair", "pocket"))
    assert wakeful("channel", "pair", "pocket", "AAAA-AAAA").code == 2
    assert wakeful("channel", "test", "pocket").code == 2, "no phone is paired"
    assert "is removed" in ok(wakeful("channel", "remove", "pocket"))
    assert wakeful("channel", "add", "pigeon").code == 2


def test_at_a_terminal_the_turn_of_the_daemon_is_watched_while_it_goes_on(home: ServedHome, folder: Path) -> None:
    terminal, end = pty.openpty()
    command = command_line("run", "slow 0.1", "--agent", "clerk", "--thread", "seen")
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=end, stdin=subprocess.DEVNULL, cwd=folder) as child:
        os.close(end)
        shown = b""
        with contextlib.suppress(OSError):  # how the end of a terminal is told
            while piece := os.read(terminal, 10_000):
                shown += piece
        os.close(terminal)
        assert child.stdout is not None
        assert (child.stdout.read(), child.wait(60)) == (b"finished\n", 0)
    words = re.sub(r"\x1b\[[0-9;]*m", "", shown.decode())
    assert "→ work_slowly(seconds=0.1)" in words and "✓ work_slowly" in words
    assert "finished" not in words, "the answer stands once, on stdout"


def test_the_lines_of_the_person_who_reads_are_hers(wakeful: Wakeful, home: ServedHome, file: tuple[str, str]) -> None:
    told(wakeful("run", "good evening", "--agent", "clerk", "--thread", "evening", "--json"))
    for more in ((), file):
        shown = ok(wakeful("tail", "clerk", "--display", "verbose", *more))
        assert "message from you: good evening" in shown
        assert len(shown.splitlines()) <= 21, "the newest twenty, below their day"


def _held(home: ServedHome, message: dict[str, Any]) -> str:
    """The turn that took a message, once it is in its tool."""
    with home.client.stream(f"/messages/{message['message_id']}") as frames:
        return str(frames.until("tool_call_update")[-1].data["turn_id"])


def _stream(home: ServedHome, turn: str) -> str:
    with home.client.stream(f"/turns/{turn}/events") as frames:
        return " ".join(frame.event for frame in frames.all())


def test_a_name_with_a_slash_is_one_name(wakeful: Wakeful) -> None:
    found = a_turn(wakeful)
    missing = wakeful("why", f"{found['turn_id']}/call_9")
    assert missing.code == 2 and "call_9" in missing.err, "the route was found, and the call was not"
    assert "there is nothing at" not in missing.err


def test_over_the_network_the_token_says_who_acts(
    wakeful: Wakeful, home: ServedHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = f"http://127.0.0.1:{home.port}"
    monkeypatch.setenv("WAKEFUL_TOKEN", make_token(home.folder, "laptop", ("operate",)))
    paused = ok(wakeful("agent", "pause", "ops", "--connect", place))
    assert paused.endswith(f"to resume: wakeful agent resume ops --connect {place}\n")
    [ops] = told(wakeful("agent", "list", "ops", "--json"))
    assert ops["changed_by"] == "token:laptop"
    monkeypatch.setenv("WAKEFUL_CONNECT", place)
    ok(wakeful("agent", "resume", "ops"))
    over_network, over_socket = read_both(
        lambda: told(wakeful("status", "--json")),
        lambda: told(wakeful("status", "--json", "--connect", str(home.socket))),
    )
    assert over_network == over_socket
    both = wakeful("status", "--connect", place, "--store", "x.db")
    assert both.code == 2 and "--store and --connect were both given" in both.err
    here = wakeful("store", "export", "logs.jsonl")
    assert here.code == 2 and "it writes a file of the machine that runs it" in here.err


def test_a_name_of_the_owners_file_has_the_address_and_the_token(
    wakeful: Wakeful, home: ServedHome, folder: Path
) -> None:
    token = folder / "office.token"
    token.write_text(make_token(home.folder, "office", ("observe",)) + "\n")
    token.chmod(0o644)
    config = folder / "elsewhere.toml"
    config.write_text(f'[connect.office]\naddress = "http://127.0.0.1:{home.port}"\ntoken_file = "office.token"\n')
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("WAKEFUL_CONFIG", str(config))
        open_to_all = wakeful("agent", "--connect", "office")
        assert open_to_all.code == 2 and f"chmod 600 {token}" in open_to_all.err
        token.chmod(0o600)
        assert "clerk" in ok(wakeful("agent", "--connect", "office"))
        refused = wakeful("agent", "pause", "ops", "--connect", "office", "--json")
        told_so = json.loads(refused.out)["error"]
        assert (refused.code, told_so["type"]) == (2, "NotEntitled") and "needs the scope `operate`" in told_so[
            "message"
        ]
        unknown = wakeful("agent", "--connect", "offce")
        assert unknown.code == 2 and "There are: office." in unknown.err


def test_lists_are_read_to_their_end(wakeful: Wakeful, home: ServedHome, file: tuple[str, str]) -> None:
    store = Path(file[1])
    for number in range(3):
        home.client.until_ended(home.client.post("/agents/clerk/messages", {"text": "hi", "thread": f"p{number}"}).body)
    lists: list[tuple[Operation[Any, list[Any]], Any]] = [
        (LIST_THREADS, ThreadQuery(limit=50)),
        (LIST_TURNS, TurnQuery(limit=50)),
        (LIST_AGENTS, AgentQuery(limit=50)),
        (LIST_WORK, WorkItemQuery("clerk")),
        (LIST_TASKS, TaskQuery()),
    ]
    with closing(DaemonClient(DaemonAddress(str(home.socket), home=str(home.folder)))) as client:
        for operation, asked in lists:
            whole, by_pages = read_both(
                lambda operation=operation, asked=asked: asyncio.run(perform(operation, asked, store)),
                lambda operation=operation, asked=asked: ask_daemon(client, operation, asked, page=1),
            )
            assert by_pages == whole, operation.name
            assert len(whole) > 1 or operation in (LIST_WORK, LIST_TASKS)
    by_daemon, by_file = read_both(
        lambda: told(wakeful("approvals", "--all", "--json")),
        lambda: told(wakeful("approvals", "--all", "--json", *file)),
    )
    assert by_daemon == by_file


def test_no_option_says_who_acts(wakeful: Wakeful) -> None:
    for command in (("agent", "pause", "ops"), ("approvals", "approve", "x"), ("budget", "grant", "--usd", "1")):
        refused = wakeful(*command, "--as", "ana")
        assert refused.code == 2 and "no such option: --as" in refused.err


def test_another_store_of_the_environment_is_not_the_daemons(
    wakeful: Wakeful, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WAKEFUL_STORE", str(folder / "mine.db"))
    assert "there is no store" in wakeful("status").err


def test_an_agent_that_had_no_turn_has_a_status_and_costs(wakeful: Wakeful, home: ServedHome) -> None:
    home.client.post("/agents", {"definition": {"name": "fresh", "model": "scripted:demo"}})
    assert ok(wakeful("status", "fresh")).startswith("fresh owes nothing.\nfresh\n  open       0 turns")
    assert "no model requests" in ok(wakeful("cost", "--agent", "fresh"))
    assert wakeful("status", "frsh").code == 2
