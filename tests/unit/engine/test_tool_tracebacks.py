"""A tool's exception leaves its traceback in the log, for people: redacted, bounded, and not shown to the model."""

import logging
from pathlib import Path
from typing import Any

import pytest

from kit.runs.engine_runs import calls, of_kind
from wakeful import Agent, ToolRetry, run, tool
from wakeful.bootstrap.stores import opened_store
from wakeful.contracts.events import ToolFailed
from wakeful.gate.call_failures import MAX_CHARS
from wakeful.service.queries.explanation import why_call
from wakeful.testing import scripted

KEY = "sk-live-0123456789abcdef0123456789"


def failing(raised: BaseException) -> Any:
    @tool(effect="pure")
    def act() -> str:
        raise raised

    return act


async def failure(raised: BaseException, **options: Any) -> ToolFailed:
    result = await run(Agent("any", scripted([calls("act"), "done"]), tools=[failing(raised)]), "go", **options)
    (failed,) = of_kind(result, ToolFailed)
    assert "Traceback" not in failed.item.text, "the model is told what happened, not where"
    return failed


async def test_the_traceback_of_a_tool_is_in_the_log_without_the_runtimes_own_frames(tmp_path: Path) -> None:
    failed = await failure(ValueError("no such order"), store=tmp_path / "runs.db")
    assert failed.traceback is not None
    assert failed.traceback.startswith("Traceback (most recent call last):")
    assert failed.traceback.endswith("ValueError: no such order")
    assert f'File "{__file__}"' in failed.traceback and "raise raised" in failed.traceback
    assert "wakeful/tools" not in failed.traceback


async def test_a_key_in_it_is_hidden_and_a_long_one_keeps_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    failed = await failure(RuntimeError(f"refused with {KEY}"))
    assert failed.traceback is not None and KEY not in failed.traceback and "refused with" in failed.traceback
    long = await failure(RuntimeError("x" * 50_000 + " the end"))
    assert long.traceback is not None and len(long.traceback) <= MAX_CHARS + 6 and long.traceback.endswith("the end")


@pytest.mark.parametrize("given", ["hunter2-by-name", "x" * 30_000 + "hunter2-by-name"], ids=["short", "long"])
async def test_what_the_call_was_given_as_a_secret_or_looks_like_one_is_hidden_for_every_reader(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, given: str
) -> None:
    @tool(effect="pure")
    def log_in(user: str, password: str) -> str:
        raise ValueError(f"{user} was refused with {password} and {KEY}")

    store = tmp_path / "runs.db"
    model = scripted([calls(("log_in", {"user": "ann", "password": given})), "done"])
    with caplog.at_level(logging.WARNING, logger="wakeful"):
        result = await run(Agent("any", model, tools=[log_in]), "go", store=store)
    (failed,) = of_kind(result, ToolFailed)
    async with opened_store(store) as opened:
        told = await why_call(opened, f"{result.turn_id}/{result.calls()[0].call_id}")
    shown = {"log": failed.traceback or "", "why": told.model_dump_json(), "logging": caplog.text}
    assert {place: "hunter2" in text or KEY in text for place, text in shown.items()} == dict.fromkeys(shown, False)
    assert all("ValueError" in text for text in shown.values())


async def test_what_a_tool_says_on_purpose_has_none() -> None:
    assert (await failure(ToolRetry("try B"))).traceback is None


async def test_the_log_of_the_process_is_told(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, logger="wakeful"):
        await failure(ValueError("no such order"))
    (record,) = caplog.records
    assert record.name == "wakeful.tools" and "tool act raised" in record.message and "raise raised" in record.message
