"""A key goes to the provider it is meant for, and nowhere else: not into a fact, an error, a log, a repr or a child.

Every provider here repeats the key it was sent wherever it can. Each search has its counterpart: what is not a key and
stands at the same place is found, so that the key's absence means something.
"""

import json
import logging
import os
import pickle
import subprocess
import sys
import traceback
from pathlib import Path

import pytest

from kit.surfaces.command_line import command_line
from kit.wires.model_requests import a_request, reply_of
from kit.wires.provider_server import EVENTS, JSON, Answer, ProviderServer, refusal
from wakeful import Agent, Retry, RunResult, doctor, run
from wakeful.bootstrap.keys import without_keys
from wakeful.bootstrap.models import try_model
from wakeful.bootstrap.stores import opened_store
from wakeful.contracts.errors import InvalidConfig, ModelFailure
from wakeful.providers.model_references import model_from_reference

KEY = "sk-canary-Zq83mX0dPw71"
MARK = "said-by-the-provider"
"""Stands beside the key in everything the provider says."""
ECHO = f"{MARK} you sent {KEY}, Bearer {KEY}"
MODELS = ("anthropic:claude-opus-4-7", "openai:gpt-5.5", "groq:llama-3.3-70b")


def stream_of(*events: dict[str, object]) -> Answer:
    return Answer(b"".join(f"data: {json.dumps(event)}\n\n".encode() for event in events), 200, EVENTS)


ANSWERS: dict[str, Answer] = {
    "401": refusal(401, "authentication_error", ECHO),
    "400": refusal(400, "invalid_request_error", ECHO),
    "500": refusal(500, "server_error", ECHO),
    "429 to come back much later": refusal(429, "rate_limit_error", ECHO, **{"retry-after": "900"}),
    "404": refusal(404, "model_not_found", ECHO),
    "redirect": Answer(b"", 302, {"location": f"http://127.0.0.1:1/{MARK}?key={KEY}"}),
    "no JSON": Answer(ECHO.encode(), 200, JSON),
    "no JSON and an error": Answer(ECHO.encode(), 400, {"content-type": "text/plain"}),
    "an error in the stream": stream_of(
        {"type": "error", "error": {"type": "server_error", "message": ECHO}, "code": "server_error", "message": ECHO}
    ),
    "garbage in the stream": Answer(f"data: {{{ECHO}\n\n".encode(), 200, EVENTS),
}
REPEATED = ("401", "400", "500", "429 to come back much later", "404", "no JSON and an error", "an error in the stream")
"""Answers whose words belong into the message."""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, provider: ProviderServer) -> Path:
    monkeypatch.setenv("WAKEFUL_HOME", str(tmp_path / "home"))
    for name in ("ANTHROPIC", "OPENAI", "GROQ"):
        monkeypatch.setenv(f"{name}_API_KEY", KEY)
        monkeypatch.setenv(f"{name}_BASE_URL", provider.url)
    return tmp_path


async def everything_stored(path: Path, result: RunResult[str]) -> str:
    """Every fact as it is published, and every byte of the store's files."""
    async with opened_store(str(path)) as store:
        facts = await store.read(result.agent_id)
    files = [each.read_bytes().decode("latin-1") for each in path.parent.glob(f"{path.name}*")]
    return "\n".join([*(repr(fact) for fact in facts), *files])


@pytest.mark.parametrize("reference", MODELS)
@pytest.mark.parametrize("answer", ANSWERS)
async def test_a_provider_that_repeats_the_key_gets_it_into_nothing(
    home: Path, provider: ProviderServer, caplog: pytest.LogCaptureFixture, reference: str, answer: str
) -> None:
    caplog.set_level(logging.DEBUG)
    provider.always = ANSWERS[answer]
    store = home / "runs.db"
    result = await run(Agent("a", reference, retry=Retry(patience=0)), "hello", store=str(store))
    assert result.status in ("failed", "waiting")
    assert any(KEY in value for asked in provider.asked for value in asked.headers.values()), "it was sent"
    probe = await try_model(reference)
    report = await doctor(store, live=[reference])
    shown = {
        "result": json.dumps(result.to_dict()),
        "message": result.message,
        "artifact": repr(result.failure_artifact),
        "store": await everything_stored(store, result),
        "log": "\n".join(f"{record.getMessage()} {record.args}" for record in caplog.records),
        "probe": probe.model_dump_json(),
        "doctor": report.model_dump_json(),
        "repr": repr(model_from_reference(reference)),
    }
    assert {where: KEY in text for where, text in shown.items()} == dict.fromkeys(shown, False)
    if answer in REPEATED:
        for where in ("result", "message", "store", "probe", "doctor"):
            assert MARK in shown[where], f"the provider's words reach {where}, so the search looks in the right place"


@pytest.mark.parametrize("reference", MODELS)
@pytest.mark.parametrize("key", [f"{KEY}\nX-Evil: 1", f"{KEY}…"])
async def test_a_key_that_no_header_can_hold_is_not_shown_either(
    home: Path, monkeypatch: pytest.MonkeyPatch, provider: ProviderServer, reference: str, key: str
) -> None:
    variable = f"{reference.partition(':')[0].upper()}_API_KEY"
    monkeypatch.setenv(variable, key)
    try:
        probe = await try_model(reference)
    except InvalidConfig as problem:
        assert KEY not in str(problem)
        return
    assert not probe.ok
    assert KEY not in probe.model_dump_json()
    assert provider.asked == []


@pytest.mark.parametrize("reference", MODELS)
def test_a_model_neither_shows_its_key_nor_carries_it_into_another_process(home: Path, reference: str) -> None:
    model = model_from_reference(reference)
    assert KEY not in repr(model) + str(model)
    try:
        carried = pickle.dumps(model)
    except Exception:
        carried = b""
    assert KEY.encode() not in carried


@pytest.mark.parametrize("reference", MODELS)
async def test_a_failure_and_what_caused_it_hold_no_key_even_in_a_traceback_with_locals(
    home: Path, provider: ProviderServer, reference: str
) -> None:
    provider.always = ANSWERS["401"]
    with pytest.raises(ModelFailure) as caught:
        await reply_of(model_from_reference(reference), a_request())
    error = caught.value
    told = "".join(traceback.TracebackException.from_exception(error, capture_locals=True).format())
    assert KEY not in told + repr(error) + str(error) + repr(vars(error))
    assert error.__cause__ is None and error.__context__ is None, "a cause would hold the request, and that the key"
    assert MARK in str(error)


def test_an_environment_for_a_child_has_no_key_of_any_provider_built_in_or_configured(home: Path) -> None:
    (home / "home").mkdir()
    (home / "home/wakeful.toml").write_text('[providers.acme]\nbase_url = "http://a.test"\nkey_env = "ACME_TOKEN"\n')
    given = {**os.environ, "ACME_TOKEN": KEY, "PLAIN": "stays"}
    kept = without_keys(given)
    assert KEY not in kept.values()
    assert (kept["PLAIN"], kept["WAKEFUL_HOME"]) == ("stays", str(home / "home"))
    assert KEY in given.values()


SPY = """
import os
with open(os.environ["SEEN"], "a") as seen:
    seen.write(f"{os.getppid()} {'ANTHROPIC_API_KEY' in os.environ}\\n")
"""


@pytest.mark.slow
def test_the_demos_programs_do_not_see_the_key_that_the_command_sees(home: Path) -> None:
    (home / "spy").mkdir()
    (home / "spy/sitecustomize.py").write_text(SPY)
    env = {**os.environ, "PYTHONPATH": str(home / "spy"), "SEEN": str(home / "seen"), "ANTHROPIC_API_KEY": KEY}
    subprocess.run(command_line("demo", "crash", "--no-keep"), env=env, check=True, capture_output=True, timeout=240)
    command, *children = [line.split() for line in (home / "seen").read_text().splitlines()]
    assert command == [str(os.getpid()), "True"]
    assert len(children) > 2
    assert {saw for _, saw in children} == {"False"}


def test_importing_wakeful_loads_no_provider_and_naming_one_loads_no_http_library() -> None:
    program = """
import sys, wakeful
assert not [name for name in sys.modules if name.startswith(("wakeful.providers", "httpx"))], "import wakeful"
import wakeful.providers
assert not [name for name in sys.modules if name.startswith("wakeful.providers.")], "import wakeful.providers"
from wakeful.providers import AnthropicMessages, Gemini, ModelProfile, OpenAIChat, OpenAIResponses, Timeouts
vendors = ("httpx", "openai", "anthropic", "google.genai")
assert not [name for name in sys.modules if name.startswith(vendors)], "the classes"
assert OpenAIChat("qwen3", base_url="http://127.0.0.1:1/v1").ref == "openai-compatible:qwen3"
assert set(wakeful.providers.__all__) <= set(dir(wakeful.providers))
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=240)
