"""`wakeful run`: the answer alone on stdout, the documented JSON for programs, and what stays behind in the store."""

import json
import os
import pty
import select
import signal
import subprocess
import time
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from kit.surfaces.command_line import Wakeful, command_line

REFUND = ("run", "Refund A17.", "--model", "scripted:refund.yaml", "--tools", "shop:both")


def test_the_answer_alone_is_on_stdout_and_escapes_in_it_are_shown_as_text(wakeful: Wakeful) -> None:
    done = wakeful(*REFUND)
    assert (done.code, done.out) == (0, "Done \\x1b[31mred.\n")
    assert done.err == "looking up A17\n", "what tools print is not the answer, and nobody watches"


def test_without_any_option_the_demo_script_answers_and_the_home_keeps_the_run(wakeful: Wakeful, folder: Path) -> None:
    done = wakeful("run", "hello")
    assert done.code == 0
    assert done.out.startswith("This answer comes from a script that ships with wakeful")
    assert (folder / "home/wakeful.db").is_file()
    assert "hello" in wakeful("events").out


@pytest.mark.spec("HOL-TOK-06")
def test_json_is_one_document_with_the_use_of_tokens_at_its_top(wakeful: Wakeful) -> None:
    done = wakeful(*REFUND, "--json")
    document = json.loads(done.out)
    used = document["token_usage"]
    assert (used["input_tokens"], used["output_tokens"], used["total_tokens"]) == (10, 5, 15)
    assert (done.code, document["status"], document["output"]) == (0, "completed", "Done \x1b[31mred.")
    assert "failure_artifact" not in document
    assert "\x1b" not in done.out


@pytest.mark.spec("HOL-FAIL-07")
def test_json_of_a_failed_run_has_the_failure_in_the_words_of_the_stored_one(wakeful: Wakeful) -> None:
    done = wakeful("run", "hello", "--model", "scripted:fail.yaml", "--json")
    document = json.loads(done.out)
    assert (done.code, document["status"], document["stop_reason"]) == (1, "failed", "provider_error")
    artifact = document["failure_artifact"]
    assert artifact["category"] in ("transport", "protocol", "runtime", "task", "unknown")
    assert (artifact["kind"], artifact["status"], artifact["model_ref"]) == (
        "contract_error",
        400,
        "scripted:fail.yaml",
    )
    stored = wakeful("events", document["turn_id"], "--kind", "turn.failed", "--json")
    assert json.loads(stored.out)["payload"]["failure_artifact"] == artifact


@pytest.mark.spec("HOL-TROUBLE-09")
def test_json_shows_the_attempts_of_every_request_and_the_use_of_tokens(wakeful: Wakeful, folder: Path) -> None:
    (folder / "retried.yaml").write_text("- {text: Done., fail: [{kind: rate_limited, retry_after: 0}]}\n")
    document = json.loads(wakeful("run", "hello", "--model", "scripted:retried.yaml", "--json").out)
    (timeline,) = document["provider_attempt_timeline"]
    outcomes = [(each["attempt"], each["outcome"], each["failure_kind"]) for each in timeline["attempts"]]
    assert [outcome[0] for outcome in outcomes] == [1, 2]
    assert outcomes[0][2] == "rate_limited", outcomes
    assert outcomes[1][1] == "succeeded"
    assert "total_tokens" in document["token_usage"]
    failed = json.loads(wakeful("run", "hello", "--model", "scripted:fail.yaml", "--json").out)
    assert failed["provider_attempt_timeline"][-1]["attempts"][-1]["failure_kind"] == "contract_error"


@pytest.mark.spec("HOL-FAIL-06")
def test_a_failed_run_that_is_recalled_carries_the_same_failure(wakeful: Wakeful) -> None:
    first = json.loads(wakeful("run", "hello", "--model", "scripted:fail.yaml", "--json").out)
    again = wakeful("resume", first["turn_id"], "--json")
    assert again.code == 1
    assert json.loads(again.out)["failure_artifact"] == first["failure_artifact"] is not None


@pytest.mark.parametrize("script", ["refund", "fail"])
def test_the_json_fits_the_published_schema(wakeful: Wakeful, script: str) -> None:
    schema = json.loads(wakeful("schema", "run-result").out)
    document = json.loads(wakeful(*REFUND[:2], "--model", f"scripted:{script}.yaml", *REFUND[4:], "--json").out)
    assert list(Draft202012Validator(schema).iter_errors(document)) == []
    assert list(Draft202012Validator(schema).iter_errors({**document, "surprise": 1})) != []


def test_a_failed_run_says_why_and_what_to_type_next(wakeful: Wakeful) -> None:
    done = wakeful("run", "hello", "--model", "scripted:fail.yaml", "--store", "my runs.db")
    assert (done.code, done.out) == (1, "")
    assert "failed (provider_error): scripted:fail.yaml: the field is wrong" in done.err
    turn = done.err.split("log: wakeful events ")[1].split()[0]
    assert done.err.endswith(f"log: wakeful events {turn} --store 'my runs.db'\n")


@pytest.mark.parametrize(
    ("limit", "reason"),
    [(("--max-steps", "1"), "max_steps"), (("--budget-calls", "2"), "llm_calls")],
)
def test_a_limit_ends_the_run_as_incomplete(wakeful: Wakeful, limit: tuple[str, str], reason: str) -> None:
    done = wakeful(*REFUND, *limit)
    assert (done.code, done.out) == (1, "")
    assert f"incomplete ({reason})" in done.err


def test_an_option_changes_that_limit_of_an_agents_budget_and_keeps_the_rest(wakeful: Wakeful, folder: Path) -> None:
    (folder / "clerk.yaml").write_text(
        "name: filed\nmodel: scripted:demo\n"
        "budget: {per_run: {usd: 0.5, model_calls: 40, minutes: 20}, per_day: {usd: 2}}\n"
    )
    done = wakeful("run", "x", "--agent", "clerk.yaml", "--budget-calls", "7", "--json")
    started = wakeful("events", json.loads(done.out)["turn_id"], "--kind", "turn.started", "--json")
    limits = json.loads(started.out)["payload"]["limits"]
    assert (limits["usd"], limits["model_calls"], limits["seconds"]) == ("0.5", 7, 1200.0)


def test_a_run_may_be_given_money_tokens_subtasks_and_a_planner(
    wakeful: Wakeful, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DEEPSEEK_API_KEY", "a-key-that-is-never-sent")
    done = wakeful("run", "x", "--budget-usd", "0.50", "--budget-tokens", "9000", "--subtasks", "--plan", "--json")
    turn = json.loads(done.out)["turn_id"]
    limits = json.loads(wakeful("events", turn, "--kind", "turn.started", "--json").out)["payload"]["limits"]
    assert (limits["usd"], limits["tokens"]) == ("0.5", 9000)
    cheap = wakeful("run", "x", "--profile", "chat", "--budget-usd", "0.01", "--json")
    assert json.loads(cheap.out)["status"] == "completed", "nobody is paid for a script"
    unpriced = wakeful("run", "x", "--model", "deepseek:unheard-of", "--budget-usd", "0.01", "--json")
    assert json.loads(unpriced.out)["stop_reason"] == "routing_not_possible", (
        "nobody knows what it costs: it is not asked"
    )
    free = json.loads(wakeful("run", "x", "--profile", "chat", "--subtasks", "--plan", "--json").out)
    planned = wakeful("events", free["turn_id"], "--kind", "planning.completed", "--json")
    assert json.loads(planned.out)["payload"]["plan"]["steps"]
    assert "run_subtask" in wakeful("tools", "--turn", free["turn_id"]).out
    wrong = wakeful("run", "x", "--budget-usd", "much")
    assert wrong.code == 2
    assert "usd" in wrong.err and "--budget-usd 0.50" in wrong.err


def test_the_prompt_may_come_from_stdin(process: Wakeful) -> None:
    assert process("run", "-", stdin="what is this?\n").code == 0
    assert "what is this?" in process("events").out


def test_the_same_key_gives_the_stored_answer_and_another_prompt_is_refused(wakeful: Wakeful) -> None:
    assert wakeful(*REFUND, "--key", "k").code == 0
    again = wakeful(*REFUND, "--key", "k")
    assert (again.code, again.out, again.err) == (0, "Done \\x1b[31mred.\n", ""), "no tool ran"
    other = wakeful("run", "Something else.", "--key", "k")
    assert other.code == 2
    assert "key 'k' belongs to another run" in other.err


def test_a_thread_goes_on_with_its_conversation(wakeful: Wakeful) -> None:
    first = json.loads(wakeful("run", "one", "--thread", "t", "--json").out)
    second = json.loads(wakeful("run", "two", "--thread", "t", "--json").out)
    assert [item["role"] for item in second["history"]] == ["user", "assistant", "user", "assistant"]
    assert wakeful("replay", first["turn_id"]).code == wakeful("replay", second["turn_id"]).code == 0


def test_words_come_whole_when_they_are_not_streamed(wakeful: Wakeful) -> None:
    done = wakeful("run", "hello", "--no-stream", "--json")
    turn = json.loads(done.out)["turn_id"]
    started = wakeful("events", turn, "--kind", "turn.started", "--json")
    assert json.loads(started.out)["payload"].get("stream") is False


def test_an_agent_from_a_file_or_a_module_is_run_with_what_is_said_on_top(wakeful: Wakeful, folder: Path) -> None:
    (folder / "clerk.yaml").write_text("name: filed\nmodel: scripted:refund.yaml\ntools: [look_up, refund]\n")
    filed = json.loads(wakeful("run", "x", "--agent", "clerk.yaml", "--tools", "shop:both", "--json").out)
    assert (filed["agent"], filed["tool_calls"]) == ("filed", 2)
    module = json.loads(wakeful("run", "x", "--tools", "shop:clerk", "--model", "scripted:demo", "--json").out)
    assert (module["agent"], module["status"]) == ("clerk", "completed")
    both = wakeful("run", "x", "--tools", "shop:clerk", "--tools", "shop:other")
    assert both.code == 2
    assert "several were named: clerk, other" in both.err


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (("--model", "opena:gpt"), "no provider 'opena'"),
        (("--model", "openai:gpt-5.5"), "OPENAI_API_KEY is not set"),
        (("--model", "scripted:nope.yaml"), "there is no such script"),
        (("--budget-seconds", "0"), "give a positive number of seconds"),
        (("--agent", "nope.yaml"), "cannot be read"),
    ],
)
def test_what_cannot_be_run_is_refused_before_anything_is_stored(
    wakeful: Wakeful, options: tuple[str, ...], complaint: str
) -> None:
    done = wakeful("run", "hello", "--store", "runs.db", *options)
    assert (done.code, done.out) == (2, "")
    assert complaint in done.err
    assert "Traceback" not in done.err
    assert not Path("runs.db").exists()


def test_a_malformed_script_is_told_with_its_line(wakeful: Wakeful, folder: Path) -> None:
    (folder / "bad.yaml").write_text("- text: fine\n- txt: hello\n")
    done = wakeful("run", "hello", "--model", "scripted:bad.yaml")
    assert done.code == 2
    assert "bad.yaml: line 2, step 2: unknown key 'txt'; did you mean 'text'?" in done.err


def test_an_empty_prompt_is_refused(wakeful: Wakeful) -> None:
    done = wakeful("run", "  ")
    assert (done.code, done.err) == (2, 'Error: the prompt is empty\nHint: say something: wakeful run "hello"\n')


def test_text_that_is_piped_in_joins_the_prompt(process: Wakeful, wakeful: Wakeful) -> None:
    def admitted(*arguments: str, stdin: str) -> str:
        done = process("run", *arguments, "--profile", "chat", "--json", stdin=stdin)
        assert done.code == 0, done.err
        message = json.loads(done.out)["history"][0]
        return "".join(part["text"] for part in message["parts"])

    assert admitted("what failed?", stdin="line 1\nline 2\n") == "what failed?\n\nline 1\nline 2\n"
    assert admitted(stdin="only this\n") == "only this\n"
    assert admitted("-", stdin="all of it") == "all of it"
    assert admitted("nothing piped", stdin="") == "nothing piped"


@pytest.mark.parametrize("stdin", ["</dev/null", "<&-", "<nothing.txt"])
def test_a_stdin_with_nothing_in_it_changes_no_run(folder: Path, stdin: str) -> None:
    (folder / "nothing.txt").touch()
    typed = ["sh", "-c", f'"$@" {stdin}', "sh", *command_line("run", "hello", "--profile", "chat", "--json")]
    done = subprocess.run(typed, cwd=folder, capture_output=True, text=True, timeout=240, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert [part["text"] for part in json.loads(done.stdout)["history"][0]["parts"]] == ["hello"]


def test_a_pipe_that_stays_open_and_silent_does_not_hold_a_prompt_up(folder: Path) -> None:
    reads, writes = os.pipe()
    typed = command_line("run", "hello", "--profile", "chat", "--json")
    done = subprocess.run(typed, cwd=folder, stdin=reads, capture_output=True, text=True, timeout=240, check=False)
    os.close(reads)
    os.close(writes)
    assert done.returncode == 0
    assert "Nothing was piped in for 10 seconds. The run goes on without it." in done.stderr
    assert [part["text"] for part in json.loads(done.stdout)["history"][0]["parts"]] == ["hello"]


def test_bytes_that_are_no_text_are_refused_as_a_prompt(folder: Path) -> None:
    typed = command_line("run", "what is it?")
    done = subprocess.run(typed, cwd=folder, input=b"\x89PNG\r\n", capture_output=True, timeout=240, check=False)
    assert (done.returncode, done.stdout) == (2, b"")
    assert b"Error: the piped input is not text\nHint: attach it: --image" in done.stderr


def test_pictures_and_files_are_attached(wakeful: Wakeful, folder: Path) -> None:
    (folder / "photo.png").write_bytes(b"\x89PNG\r\n\x1a\n")
    (folder / "notes.md").write_text("# Notes")
    done = wakeful("run", "look", "--profile", "chat", "--json", "--image", "photo.png", "--file", "notes.md")
    assert done.code == 0, done.err
    parts = json.loads(done.out)["history"][0]["parts"]
    assert [(part["type"], part.get("media_type")) for part in parts] == [
        ("text", None),
        ("image", "image/png"),
        ("file", "text/markdown"),
    ]


def test_ctrl_c_says_how_to_go_on_and_that_goes_on(process: Wakeful, folder: Path) -> None:
    child = subprocess.Popen(
        command_line("run", "wait", "--model", "scripted:wait.yaml", "--tools", "shop:everything"),
        stdin=subprocess.DEVNULL,
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # A suite that was started in the background ignores the key, and so would its children.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    while not (folder / "waiting").exists():
        assert child.poll() is None
        time.sleep(0.01)
    child.send_signal(signal.SIGINT)
    out, err = child.communicate(timeout=240)
    assert (child.returncode, out) == (130, "")
    typed = err.split("Interrupted. To continue: wakeful ")[1].split()
    assert typed[0] == "resume"
    (folder / "go").touch()
    done = process(*typed)
    assert (done.code, done.out) == (0, "Now it is there.\n"), done.err


def test_somebody_at_a_terminal_sees_the_steps_with_secrets_hidden(folder: Path) -> None:
    ours, theirs = pty.openpty()
    child = subprocess.Popen(
        command_line(*REFUND),
        stdin=subprocess.DEVNULL,
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=theirs,
        env={**os.environ, "TERM": "xterm"},
    )
    os.close(theirs)
    seen = b""
    while select.select([ours], [], [], 120)[0]:
        try:
            piece = os.read(ours, 65536)
        except OSError:  # the other end is closed
            break
        if not piece:
            break
        seen += piece
    assert child.stdout is not None
    out = child.stdout.read()
    child.stdout.close()
    assert child.wait(timeout=240) == 0
    os.close(ours)
    shown = seen.decode()
    assert out == b"Done \\x1b[31mred.\n"
    assert "I will look." in shown
    assert 'password="[redacted]"' in shown
    assert "hunter2" not in shown
    assert "refunded \\x1b[31mred" in shown, "what a tool says is shown and not obeyed"
    assert "\x1b[31mred" not in shown
