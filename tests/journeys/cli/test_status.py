"""`wakeful status`: how agents stand, and what they have used."""

import json
from pathlib import Path
from typing import Any

import pytest

from kit.surfaces.command_line import Wakeful


def used(usage: Any) -> tuple[int, int, int]:
    return usage["input_tokens"], usage["output_tokens"], usage["total_tokens"]


@pytest.mark.spec("HOL-TOK-07")
def test_use_is_shown_as_a_whole_and_for_the_last_turn_that_completed_and_reported_it(
    wakeful: Wakeful, folder: Path
) -> None:
    scripts = {
        "one": "- text: One.\n  usage: {input_tokens: 10, output_tokens: 5, total_tokens: 15}\n",
        "two": "- text: Two.\n  usage: {input_tokens: 1, output_tokens: 2, total_tokens: 3}\n",
        "silent": "- Nothing was counted.\n",
        "lost": "- fail: {kind: contract_error, message: the key is wrong, status: 400}\n",
    }
    for name, script in scripts.items():
        (folder / f"{name}.yaml").write_text(script)
        wakeful("run", "hello", "--model", f"scripted:{name}.yaml", "--profile", "chat")
    (listed,) = json.loads(wakeful("status", "--json").out)["agents"]
    (agent,) = json.loads(wakeful("status", listed["agent"], "--json").out)["agents"]
    summary = agent["token_usage"]
    assert (used(summary["total"]), used(summary["last_turn"])) == ((11, 7, 18), (1, 2, 3))
    assert summary["total_model_rounds"] == 3
    told = wakeful("status", agent["agent"])
    assert told.code == 0
    assert "tokens     18 (11 in, 7 out), in 3 rounds" in told.out
    assert "last turn  3 (1 in, 2 out)" in told.out


def test_what_is_open_is_counted_and_a_name_that_is_none_says_which_there_are(wakeful: Wakeful, folder: Path) -> None:
    (folder / "silent.yaml").write_text("- Nothing was counted.\n")
    assert wakeful("run", "hello", "--model", "scripted:silent.yaml", "--profile", "chat").code == 0
    name = wakeful("status").out.splitlines()[1].split()[0]
    assert "open       0 turns, 0 pending, 0 unknown outcomes" in wakeful("status", name).out
    wrong = wakeful("status", "nobody")
    assert wrong.code != 0 and "there is no agent 'nobody'" in wrong.err and name in wrong.err
