"""What a run came to, told to a person."""

import pytest

from wakeful.contracts.envelope import Fact, StoredFact
from wakeful.contracts.events import SandboxApplied
from wakeful.contracts.models import TokenUsage
from wakeful.service.run_result import RunResult
from wakeful.surfaces.cli.outcomes import tell
from wakeful.surfaces.cli.places import StoreAddress


def result(*held: SandboxApplied) -> RunResult[str]:
    facts = [StoredFact("a", place, Fact(event, 0)) for place, event in enumerate(held, start=1)]
    return RunResult(
        turn_id="turn_1",
        agent="a",
        agent_id="a",
        thread="main",
        status="completed",
        stop_reason="natural",
        retryable=False,
        final_content="done",
        output="done",
        usage=TokenUsage(),
        facts=lambda: facts,
    )


def test_commands_that_nothing_held_are_said_once_with_the_reason(capsys: pytest.CaptureFixture[str]) -> None:
    bare = SandboxApplied(mode="not_enforced", cwd="/srv", reason="no bubblewrap\x1b[2J")
    tell(result(bare, bare), [], StoreAddress("runs.db", False), quiet=True)
    shown = capsys.readouterr()
    assert shown.out == "done\n"
    assert shown.err == "commands ran without a sandbox: not_enforced (no bubblewrap\\x1b[2J)\n"


def test_commands_that_were_held_need_no_word(capsys: pytest.CaptureFixture[str]) -> None:
    tell(result(SandboxApplied(mode="bubblewrap", cwd="/srv")), [], StoreAddress("runs.db", False), quiet=True)
    assert capsys.readouterr().err == ""
