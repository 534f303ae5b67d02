"""The programs in `examples/`, run as they stand by a person in an empty folder, with a provider on this machine."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from kit.wires.loopback import nobody_listens
from kit.wires.provider_server import (
    ProviderServer,
    chat_call,
    chat_words,
    messages_call,
    messages_words,
    refusal,
    responses_call,
    responses_words,
)

KEY = "sk-canary-0123456789abcdef"
TEA = "There are twelve of tea, and no coffee."


def run(root: Path, folder: Path, program: str, *arguments: str, **env: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, root / "examples" / program, *arguments],
        cwd=folder,
        env={**os.environ, "WAKEFUL_HOME": str(folder / "home"), **env},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )


def test_with_a_key_of_anthropic_the_agent_looks_up_and_answers_and_the_next_run_is_free(
    root: Path, tmp_path: Path, provider: ProviderServer
) -> None:
    provider.answers = [lambda asked: messages_call(asked, {"item": "tea"}), messages_words(TEA)]
    env = {"ANTHROPIC_API_KEY": KEY, "ANTHROPIC_BASE_URL": provider.url}
    done = run(root, tmp_path, "with_a_key.py", **env)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[0] == TEA
    assert "2 model calls" in done.stdout
    assert "cost $0." in done.stdout
    first, second = provider.asked
    assert (first.path, first.headers["x-api-key"], first.body["model"]) == ("/v1/messages", KEY, "claude-haiku-4-5")
    result = second.body["messages"][-1]["content"][0]
    assert (result["type"], result["tool_use_id"]) == ("tool_result", "toolu_1")
    assert "12" in str(result["content"])

    again = run(root, tmp_path, "with_a_key.py", **env)
    assert (again.returncode, again.stdout) == (0, done.stdout), again.stderr
    assert len(provider.asked) == 2, "the answer came from the log"


def test_with_a_key_of_openai_the_same_program_speaks_the_other_format(
    root: Path, tmp_path: Path, provider: ProviderServer
) -> None:
    provider.answers = [lambda asked: responses_call(asked, {"item": "tea"}), responses_words(TEA)]
    done = run(root, tmp_path, "with_a_key.py", OPENAI_API_KEY=KEY, OPENAI_BASE_URL=f"{provider.url}/v1")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[0] == TEA
    first, second = provider.asked
    assert (first.path, first.headers["authorization"]) == ("/v1/responses", f"Bearer {KEY}")
    outputs = [item for item in second.body["input"] if item.get("type") == "function_call_output"]
    assert "12" in str(outputs[0]["output"])


def test_without_a_key_it_says_which_to_set_and_what_works_without_one(root: Path, tmp_path: Path) -> None:
    done = run(root, tmp_path, "with_a_key.py")
    assert (done.returncode, done.stdout) == (1, "")
    assert "Set one of ANTHROPIC_API_KEY or OPENAI_API_KEY" in done.stderr
    assert "wakeful demo crash" in done.stderr
    assert "Traceback" not in done.stderr


def test_with_a_wrong_key_it_names_the_variable_and_not_the_key(
    root: Path, tmp_path: Path, provider: ProviderServer
) -> None:
    provider.always = refusal(401, "authentication_error", f"invalid x-api-key {KEY}")
    done = run(root, tmp_path, "with_a_key.py", ANTHROPIC_API_KEY=KEY, ANTHROPIC_BASE_URL=provider.url)
    assert (done.returncode, done.stdout) == (1, "")
    assert f"anthropic at 127.0.0.1:{provider.port} refused the key in ANTHROPIC_API_KEY" in done.stderr
    assert "wakeful models test anthropic:claude-haiku-4-5" in done.stderr
    assert "Traceback" not in done.stderr
    assert KEY not in done.stderr
    assert len(provider.asked) == 1, "a wrong key is not tried again"


@pytest.mark.parametrize("by", ["argument", "variable"])
def test_a_local_server_is_found_by_its_address_and_gets_no_key(
    root: Path, tmp_path: Path, provider: ProviderServer, by: str
) -> None:
    provider.answers = [lambda asked: chat_call(asked, {"a": 17, "b": 25}), chat_words("42")]
    address = f"{provider.url}/v1"
    given = ["qwen3:8b", address] if by == "argument" else ["qwen3:8b"]
    env = {} if by == "argument" else {"BASE_URL": address}
    done = run(root, tmp_path, "local_server.py", *given, OPENAI_API_KEY=KEY, **env)
    assert (done.returncode, done.stdout) == (0, "42\n"), done.stderr
    first, second = provider.asked
    assert (first.path, first.body["model"]) == ("/v1/chat/completions", "qwen3:8b")
    assert "authorization" not in first.headers, "a key that is meant for another server stays here"
    assert second.body["messages"][-1] == {"role": "tool", "tool_call_id": "call_1", "content": "42"}


def test_a_local_server_that_wants_a_key_gets_the_one_that_is_meant_for_it(
    root: Path, tmp_path: Path, provider: ProviderServer
) -> None:
    provider.answers = [chat_words("42")]
    done = run(root, tmp_path, "local_server.py", "qwen3", f"{provider.url}/v1", SERVER_KEY=KEY)
    assert (done.returncode, done.stdout) == (0, "42\n"), done.stderr
    assert provider.asked[0].headers["authorization"] == f"Bearer {KEY}"


def test_where_nothing_listens_it_says_so(root: Path, tmp_path: Path) -> None:
    with nobody_listens() as port:
        done = run(root, tmp_path, "local_server.py", "qwen3", f"http://127.0.0.1:{port}/v1")
    assert (done.returncode, done.stdout) == (1, "")
    assert f"127.0.0.1:{port} cannot be reached: nothing listens there" in done.stderr
    assert "Is a server running at" in done.stderr
    assert "Traceback" not in done.stderr


def test_research_splits_into_subtasks_and_a_second_run_is_free(root: Path, tmp_path: Path) -> None:
    done = run(root, tmp_path, "research.py")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[-2:] == [
        "Lisbon has the most inhabitants: Lisbon 567131, Porto 248769, Braga 201583",
        "8 model calls, 6 tool calls, in one budget",
    ]
    assert sorted(lines[:-2]) == sorted(
        f"  {line}"
        for city in ("Lisbon", "Porto", "Braga")
        for line in (
            f"subtask {city} started",
            "tool_call inhabitants",
            "tool_result inhabitants",
            f"subtask {city} completed",
        )
    )
    again = run(root, tmp_path, "research.py")
    assert (again.returncode, again.stdout.splitlines()[-2:]) == (0, lines[-2:]), again.stderr
    tree = subprocess.run(
        [Path(sys.executable).with_name("wakeful"), "tree", "--store", "research.db"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert tree.returncode == 0, tree.stderr
    assert all(city in tree.stdout for city in ("Lisbon", "Porto", "Braga")), tree.stdout


def test_coding_changes_the_project_and_runs_its_test(root: Path, tmp_path: Path) -> None:
    done = run(root, tmp_path, "coding.py")
    assert done.returncode == 0, done.stderr
    assert "sum(prices)\n" in (tmp_path / "shop" / "prices.py").read_text()
    assert "1 passed" in done.stdout, done.stdout
    log = ["git", "-C", str(tmp_path / "shop"), "log", "--format=%s"]
    committed = subprocess.run(log, capture_output=True, text=True, timeout=60, check=True).stdout
    assert committed.splitlines() == ["Count the first price", "Start"]


def test_the_support_bot_continues_when_another_process_has_approved(root: Path, tmp_path: Path) -> None:
    asked = run(root, tmp_path, "support_bot.py", "ask")
    assert asked.stdout == "A colleague has to approve: python support_bot.py decide\n", asked.stderr
    decided = run(root, tmp_path, "support_bot.py", "decide")
    assert decided.stdout.splitlines() == ["refund {'order': 'A17', 'cents': 4200}", "approved by app:ann"], (
        decided.stderr
    )
    answered = run(root, tmp_path, "support_bot.py", "ask")
    assert answered.stdout == "Your money is on its way back. Sorry about the broken cup!\n", answered.stderr
    assert run(root, tmp_path, "support_bot.py", "decide").stdout == "", "nothing is pending any more"


def test_the_agent_with_an_mcp_server_reads_and_asks_before_it_writes(root: Path, tmp_path: Path) -> None:
    done = run(root, tmp_path, "notes_server.py")
    assert done.stdout.splitlines() == [
        "approving mcp.notes/write_note {'day': 'tuesday', 'text': 'Call the bank.'}",
        "On Monday: water the plants. I wrote down the bank for Tuesday.",
    ], done.stderr


def test_a_budget_stops_a_run_with_an_answer_where_there_is_room_for_one(root: Path, tmp_path: Path) -> None:
    done = run(root, tmp_path, "budgeted.py")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0] == "four replies: completed (natural) after 4 replies"
    assert lines[1] == "  Read 3 pages of 99; the figures so far rise by 7 a page. The rest is not read."
    assert lines[2] == "two pages: incomplete (tool_calls) after 3 replies"
    assert lines[4].startswith("no money for a model without a price: failed (routing_not_possible)")


def test_an_agent_wakes_in_the_morning_asks_and_repairs(root: Path, tmp_path: Path) -> None:
    done = run(root, tmp_path, "morning_check.py", "rehearse")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "asks for start_backup {'name': 'photos'}",
        "result: The backup of the photos was missing; I made it again.",
    ]


def test_an_agent_is_woken_by_a_signed_webhook_once(root: Path, tmp_path: Path) -> None:
    done = run(root, tmp_path, "webhook_agent.py", "rehearse")
    assert done.returncode == 0, done.stderr
    assert [line.strip() for line in done.stdout.splitlines()] == [
        "accepted",
        "duplicate",
        "refused signature_invalid",
        "Build 7 is red: the tests fail.",
    ]


def test_an_agent_works_on_a_repository_for_days_and_leaves_it_merged(root: Path, tmp_path: Path) -> None:
    done = run(root, tmp_path, "repository_worker.py")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "Day 1 is done.",
        "Day 2 is done.",
        "Day 3 is done.",
        "3 days are merged, 0 left",
    ]
