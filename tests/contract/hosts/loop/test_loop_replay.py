"""Whatever ends a run, its log holds to its schema and replays to the same decisions."""

from typing import Any

import pytest

from kit.hosts.loop_host import Host, calling, search
from wakeful.hosts import IterationBudget
from wakeful.service.queries.replay import replay_turn
from wakeful.testing.validating_store import ValidatingStore

FOLD = {"enabled": True, "max_messages": 2, "recent_messages": 1}


class Complete:
    """Has a word at first, and is done then."""

    def __init__(self) -> None:
        self.seen = 0

    def record_tool_result(self, *_: Any) -> dict[str, Any]:
        self.seen += 1
        return {"complete": self.seen > 1, "message": "more"}


def cancel(*_: Any) -> dict[str, Any]:
    return {"content": "stop", "metadata": {"action": "cancel"}}


@pytest.mark.parametrize(
    ("options", "status"),
    [
        ({"budgets": [IterationBudget("tool_calls", 1)]}, "budget_exceeded"),
        ({"budgets": [IterationBudget("turns", 2)]}, "budget_exceeded"),
        ({"spin_detector": {"threshold": 2}}, "stalled"),
        ({"interrupt_source": cancel}, "interrupted"),
        ({"interrupt_source": lambda *_: "nonsense"}, None),
        ({"completion_policy": Complete()}, None),
        ({"tool_result_truncator": {"max_bytes": 3}, "post_tool_result_diagnostics": lambda *_: {"a": 1}}, None),
        ({"identical_failure_tracker": True, "compaction_policy": FOLD, "summarizer": lambda *_: "s"}, None),
        ({"compaction_policy": FOLD, "summarizer": lambda *_: ""}, None),
    ],
)
async def test_a_run_can_be_told_again_from_its_log(options: dict[str, Any], status: str | None) -> None:
    host = Host(calling(search("x")), calling(search("x")), {"content": "done"})
    host.answers["x"] = {"success": False, "error": "no"} if "identical_failure_tracker" in options else {"n": 12345}
    checked = ValidatingStore(host.store)
    host.store = checked  # type: ignore[assignment]
    result = await host.mediated(**options)
    assert result.status == status
    (row,) = await checked.turns()
    report = await replay_turn(checked, row)
    assert report.divergence is None, report.divergence
