"""How much of one result a model reads: what the owner set, within the cap, and nothing but that one result."""

import json
import math
from pathlib import Path
from typing import Any

import pytest

from wakeful import Agent, run
from wakeful.contracts.conversation import ToolItem, UserItem
from wakeful.providers.scripted import ScriptedModel
from wakeful.tools.local.output_budget import OutputBudget
from wakeful.tools.results import BYTES_PER_TOKEN

NUMBERS = "".join(f"{n}\n" for n in range(1, 20_001))
SETTINGS = ("WAKEFUL_DEFAULT_TOOL_OUTPUT_TOKENS", "WAKEFUL_MAX_TOOL_OUTPUT_TOKENS")
BIGGEST = 50_000
"""Bytes: no result is longer, whatever its budget."""


@pytest.fixture(autouse=True)
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The owner's settings, empty, and nothing in the environment."""
    for name in SETTINGS:
        monkeypatch.delenv(name, raising=False)
    file = tmp_path / "wakeful.toml"
    file.write_text("")
    monkeypatch.setenv("WAKEFUL_CONFIG", str(file))
    return file


async def seen(folder: Path, *commands: dict[str, Any], prompt: str = "go", **options: Any) -> list[Any]:
    """The conversation that a model reads after these commands."""
    root = folder / "work"
    root.mkdir(exist_ok=True)
    read: list[Any] = []

    def answer(request: Any) -> Any:
        read[:] = list(request.history)
        if request.answered:
            return "done"
        return {"calls": [{"name": "wakeful/exec_command", "arguments": each} for each in commands]}

    result = await run(Agent("a", ScriptedModel(answer), workspace=root, **options), prompt)
    assert result.status == "completed", result.message
    return read


def results(items: list[Any]) -> list[str]:
    return [item.text for item in items if isinstance(item, ToolItem)]


def sequence(**more: Any) -> dict[str, Any]:
    return {"cmd": "seq 1 20000", "login": False, **more}


@pytest.mark.spec("HOL-REPO-08")
async def test_a_model_reads_eight_thousand_tokens_unless_it_asks_for_more_up_to_the_cap(tmp_path: Path) -> None:
    budget = OutputBudget()
    assert (budget.tokens(None), budget.tokens(12_000), budget.tokens(10**6)) == (8_000, 12_000, 64_000)
    plain, more, most = results(
        await seen(
            tmp_path, sequence(), sequence(max_output_tokens=12_000), {"cmd": "seq 1 99999", "max_output_tokens": 10**6}
        )
    )
    for text, tokens in ((plain, 8_000), (more, 12_000)):
        assert 0.9 * tokens * BYTES_PER_TOKEN < len(text.encode()) <= tokens * BYTES_PER_TOKEN
        assert json.loads(text)["truncated"] is True, "whole JSON: nobody cut it a second time"
    assert 0.9 * BIGGEST < len(most.encode()) <= BIGGEST, "64,000 tokens, and never more than any result may have"
    assert json.loads(most)["truncated"] is True


@pytest.mark.spec("HOL-REPO-09")
async def test_default_and_cap_are_the_owners_and_the_environment_beats_the_file(
    tmp_path: Path, settings: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def tokens() -> list[int]:
        texts = results(await seen(tmp_path, sequence(), sequence(max_output_tokens=10**6)))
        # An envelope keeps some room for what is beside the previews: what is shown is a little less than the budget.
        return [math.ceil(len(text.encode()) / BYTES_PER_TOKEN / 500) * 500 for text in texts]

    settings.write_text("[runtime]\ndefault_tool_output_tokens = 2000\nmax_tool_output_tokens = 9000\n")
    assert await tokens() == [2_000, 9_000]
    monkeypatch.setenv("WAKEFUL_DEFAULT_TOOL_OUTPUT_TOKENS", "3000")
    assert await tokens() == [3_000, 9_000]
    monkeypatch.setenv("WAKEFUL_MAX_TOOL_OUTPUT_TOKENS", "4000")
    assert await tokens() == [3_000, 4_000]
    settings.write_text("")
    monkeypatch.delenv("WAKEFUL_DEFAULT_TOOL_OUTPUT_TOKENS")
    assert await tokens() == [4_000, 4_000], "the cap holds for the default, too"


@pytest.mark.spec("HOL-REPO-12")
async def test_the_budget_is_for_one_result_and_nothing_else_of_the_conversation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:

    prompt = "read this: " + NUMBERS
    wide = await seen(tmp_path, *[sequence()] * 5, prompt=prompt)
    assert sum(len(text) for text in results(wide)) > 4 * 8_000 * BYTES_PER_TOKEN, "each has it; they do not share it"
    monkeypatch.setenv("WAKEFUL_DEFAULT_TOOL_OUTPUT_TOKENS", "500")
    narrow = await seen(tmp_path, *[sequence()] * 5, prompt=prompt)
    assert [len(text) <= 500 * BYTES_PER_TOKEN for text in results(narrow)] == [True] * 5
    assert [type(item) for item in narrow] == [type(item) for item in wide], "nothing was left out or summarised"
    (said,) = [item.text for item in narrow if isinstance(item, UserItem)]
    assert said == prompt, "longer than any budget"
