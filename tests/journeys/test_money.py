"""A limit on money is what its page says: tools are called, work is done, and never a cent more is spent.

At list prices, on a good day and on one on which the first stream is cut: the provider is paid for that one, too.
"""

import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from wakeful import Agent, Budget, RunResult, SpendWindow, open_store, run, run_sync, stream, tool
from wakeful.contracts.events import ModelRequested, SubagentCompleted
from wakeful.events import StatusEvent, WarningEvent
from wakeful.service.queries.replay import replay_turn
from wakeful.store.memory import MemoryStore
from wakeful.testing.provider_server.server import ProviderServer
from wakeful.testing.provider_server.wire_requests import WireRequest

MODELS = ("openai:gpt-5.5", "anthropic:claude-opus-4-7", "anthropic:claude-haiku-4-5", "gemini:gemini-2.5-pro")
LONGEST = 32_000
"""Tokens of an answer that the request does not limit, where the model answers as long as it may."""
Start: TypeAlias = Callable[[Callable[[WireRequest], Any]], ProviderServer]


@pytest.fixture(params=MODELS)
def model(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(params=["good", "cut"])
def serve(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Start]:
    """Have a provider at list prices, until the test ends."""
    running: list[ProviderServer] = []

    def start(plays: Callable[[WireRequest], Any]) -> ProviderServer:
        server = ProviderServer(plays).__enter__()
        running.append(server)
        if request.param == "cut":
            server.weather.next("cut")
        (tmp_path / "owner.toml").write_text(server.settings(*MODELS))
        monkeypatch.setenv("WAKEFUL_CONFIG", str(tmp_path / "owner.toml"))
        monkeypatch.setenv("WAKEFUL_HOME", str(tmp_path / "home"))
        for name, value in server.environment().items():
            monkeypatch.setenv(name, value)
        monkeypatch.chdir(tmp_path)
        return server

    yield start
    for server in running:
        server.__exit__(None, None, None)


def call(name: str, **arguments: Any) -> dict[str, Any]:
    return {"name": name, "arguments": arguments}


def most_of(body: dict[str, Any]) -> int | None:
    """What the request says of the length of its answer, in whatever format."""
    named = [body.get(name) for name in ("max_tokens", "max_completion_tokens", "max_output_tokens")]
    named.append(body.get("generationConfig", {}).get("maxOutputTokens"))
    return next((each for each in named if each is not None), None)


def requests_of(result: RunResult[Any]) -> list[ModelRequested]:
    return [entry.fact.event for entry in result.facts() if isinstance(entry.fact.event, ModelRequested)]


def was_cut(server: ProviderServer) -> bool:
    return any(request.weather == "cut" for request in server.requests)


def typed(folder: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    """A command, in a process of its own."""
    line = [str(Path(sys.executable).with_name("wakeful")), *arguments]
    return subprocess.run(line, cwd=folder, capture_output=True, text=True, timeout=240, check=False)


def as_long_as_it_may(step: dict[str, Any], asked: WireRequest) -> dict[str, Any]:
    output = asked.most or LONGEST
    return {**step, "usage": {"input_tokens": 100, "output_tokens": output, "total_tokens": output + 100}}


def test_the_program_of_the_readme_refunds_at_a_quarter_of_a_dollar(
    root: Path, tmp_path: Path, serve: Start, model: str
) -> None:
    def plays(asked: WireRequest) -> Any:
        if asked.results:
            return "Order A17 is refunded."
        return {"calls": [call("refund", order="A17", cents=900)]}

    server = serve(plays)
    block = re.search(r"^```python\n(.*?)^```$", (root / "README.md").read_text(), re.S | re.M)
    assert block is not None
    program = re.sub(r"model=scripted\(\[.*?\]\),", f'model="{model}",', block[1], flags=re.S)
    assert model in program and "usd=0.25" in program
    (tmp_path / "refund.py").write_text(program)
    done = subprocess.run(
        [sys.executable, "refund.py"], cwd=tmp_path, capture_output=True, text=True, timeout=240, check=False
    )
    assert (done.returncode, done.stdout.strip()) == (0, "Order A17 is refunded."), done.stderr
    assert (tmp_path / "bank.txt").read_text().endswith(" A17 900\n")
    assert server.spent <= 0.25


def test_the_program_of_the_guide_about_money_ends_with_its_answer(
    root: Path, tmp_path: Path, serve: Start, model: str
) -> None:
    """A stream that was cut is one of its four calls, so the model searches once less."""
    server = serve(restless)
    page = (root / "docs" / "guides" / "budgets-and-cost.md").read_text()
    block = re.search(r"^```python\n(.*?)^```$.*?^```text\n(.*?)^```$", page, re.S | re.M)
    assert block is not None
    program, printed = block[1].replace("scripted(restless)", repr(model)), block[2].replace(" in the archive", "")
    assert model in program and "usd=0.10" in program
    (tmp_path / "archive.py").write_text(program)
    done = subprocess.run(
        [sys.executable, "archive.py"], cwd=tmp_path, capture_output=True, text=True, timeout=240, check=False
    )
    assert done.stdout == (printed.replace("3 tool", "2 tool") if was_cut(server) else printed), done.stderr
    assert server.spent <= 0.10


@tool(effect="pure")
def search(query: str) -> str:
    """Search the archive."""
    return f"nothing about {query}"


def restless(asked: WireRequest) -> Any:
    """Searches for as long as it may call."""
    if asked.choice == "none":
        return "I found nothing."
    return {"calls": [call("search", query=f"attempt {asked.rounds}")]}


@pytest.mark.parametrize("limit", [0.10, 0.25, 0.50])
def test_the_limits_of_the_guides_are_spent_on_tools(serve: Start, model: str, limit: float) -> None:
    server = serve(restless)
    agent = Agent("archivist", model, tools=[search])
    result = run_sync(agent, "When was the bridge built?", budget=Budget(usd=limit, model_calls=5))
    assert (result.status, result.final_content) == ("completed", "I found nothing."), result.message
    assert (result.model_calls, result.tool_calls) == (5, 3 if was_cut(server) else 4)
    assert result.warnings == ()
    for sent, written in zip(server.requests, requests_of(result), strict=True):
        assert most_of(sent.body) == written.reserved_output, "the vendor is held to what was reserved"
    assert server.spent <= limit


async def test_an_agent_works_until_its_money_is_enough_for_one_answer_and_says_so(serve: Start, model: str) -> None:
    """It answers as long as it may: every request costs all that was reserved for it."""

    def plays(asked: WireRequest) -> Any:
        step = restless(asked)
        return as_long_as_it_may({"text": step} if isinstance(step, str) else step, asked)

    server, store = serve(plays), MemoryStore()
    result = await run(Agent("archivist", model, tools=[search]), "go", budget=Budget(usd=0.2), store=store)
    assert (result.status, result.final_content) == ("completed", "I found nothing."), result.message
    *before, last = requests_of(result)
    assert last.final and not any(each.final for each in before)
    assert len(before) >= 3 and result.tool_calls >= 2
    assert {each.shortened_by for each in requests_of(result)} == {"the budget of 0.2 USD"}
    (warning,) = result.warnings
    assert "USD are left of the budget of 0.2 USD, and the next request needs up to" in warning
    assert warning.endswith("the model was asked for its final answer, and could call no more tools")
    assert 0.1 < server.spent <= 0.2
    row = await store.turn(result.turn_id)
    assert row is not None and (await replay_turn(store, row)).identical


def test_a_final_answer_for_want_of_money_is_said_in_the_command_and_by_why(serve: Start, tmp_path: Path) -> None:
    serve(lambda asked: as_long_as_it_may({"text": "As far as I see, none."}, asked)).weather.clear()
    words = "the model was asked for its final answer, and could call no more tools"
    line = ["run", "go", "--model", "openai:gpt-5.5", "--profile", "chat"]
    done = typed(tmp_path, *line, "--budget-usd", "0.05", "--store", "runs.db")
    assert (done.returncode, done.stdout) == (0, "As far as I see, none.\n"), done.stderr
    assert "warning: 0.05 USD are left of the budget of 0.05 USD, and the next request needs up to 0.06" in done.stderr
    assert words in done.stderr
    (turn,) = open_store(tmp_path / "runs.db").turns()
    why = typed(tmp_path, "why", turn.turn_id, "--store", "runs.db")
    assert words in why.stdout.replace("\n", " "), why.stderr


async def test_a_final_answer_for_want_of_money_is_said_in_the_stream(serve: Start) -> None:
    serve(lambda asked: "As far as I see, none.").weather.clear()
    async with stream(Agent("a", "openai:gpt-5.5"), "go", budget=Budget(usd=0.05)) as running:
        events = [event async for event in running]
    (warning,) = [event for event in events if isinstance(event, WarningEvent)]
    assert warning.code == "final_answer_for_money" and "final answer" in warning.message
    assert isinstance(events[-1], StatusEvent) and events[-1].status == "completed"


def test_three_subtasks_of_one_dollar_all_run(serve: Start, model: str) -> None:
    def plays(asked: WireRequest) -> Any:
        if "dig here" in asked.prompt:
            return "dug"
        if asked.results:
            return "All three are done."
        return {"calls": [call("run_subtask", title=f"part {n}", instructions=f"dig here: {n}") for n in range(3)]}

    server = serve(plays)
    result = run_sync(Agent("boss", model, subtasks=True), "fan out", budget=Budget(usd=1))
    assert (result.status, result.final_content) == ("completed", "All three are done."), result.message
    done = [entry.fact.event for entry in result.facts() if isinstance(entry.fact.event, SubagentCompleted)]
    assert len(done) == 3 and result.warnings == ()
    assert server.spent <= 1


def test_a_window_of_two_dollars_sends(serve: Start, tmp_path: Path, model: str) -> None:
    server = serve(lambda asked: "hello")
    agent = Agent("ops", model, spend_windows=[SpendWindow("day", 2)])
    result = run_sync(agent, "hi", store=tmp_path / "runs.db")
    assert (result.status, result.final_content) == ("completed", "hello"), result.message
    for sent, written in zip(server.requests, requests_of(result), strict=True):
        assert most_of(sent.body) in (None, written.reserved_output)
    if model == "openai:gpt-5.5":
        assert requests_of(result)[0].shortened_by.startswith("the day of agent ops, which turns at ")


def test_a_window_of_five_dollars_is_spent_before_it_stops_anybody(serve: Start, tmp_path: Path, model: str) -> None:
    server = serve(lambda asked: as_long_as_it_may({"text": "as long as I may"}, asked))
    agent = Agent("ops", model, spend_windows=[SpendWindow("day", 5)])
    for number in range(200):
        result = run_sync(agent, f"message {number}", store=tmp_path / "runs.db")
        if result.status != "completed":
            break
    assert (result.status, result.stop_reason) == ("waiting", "cost")
    assert re.match(r"0\.0\d+ USD are left of the day of agent ops, which turns at .*, and the next", result.message)
    assert 4.5 < server.spent <= 5
    (row,) = open_store(tmp_path / "runs.db").limits()
    assert row.scope == "agent:ops"


def test_a_coding_agent_of_one_dollar_makes_the_test_pass(serve: Start, tmp_path: Path) -> None:
    def plays(asked: WireRequest) -> Any:
        if asked.results:
            return "The test passes."
        name = next(name for name in asked.tools if name.endswith("edit_file"))
        fields = asked.tools[name]["properties"]
        return {"calls": [call(name, **{each: CHANGE[each] for each in fields if each in CHANGE})]}

    server = serve(plays)
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "sums.py").write_text("def add(a, b):\n    return a - b\n")
    (folder / "test_sums.py").write_text("from sums import add\n\n\ndef test_add():\n    assert add(1, 2) == 3\n")
    done = typed(folder, "run", "make the tests pass", "--model", "openai:gpt-5.5", "--budget-usd", "1")
    assert done.returncode == 0, done.stderr
    assert (folder / "sums.py").read_text() == "def add(a, b):\n    return a + b\n", done.stderr
    checked = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_sums.py"], cwd=folder, check=False
    )
    assert checked.returncode == 0
    assert server.spent <= 1


CHANGE = {"path": "sums.py", "old_text": "a - b", "new_text": "a + b", "old": "a - b", "new": "a + b"}
"""Of the fields of `edit_file`, those that it has."""
