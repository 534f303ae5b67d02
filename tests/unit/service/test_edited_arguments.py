"""New arguments for a call that waits: what a person typed, on top of what the model wrote."""

from pathlib import Path
from typing import Any

import pytest

from kit.runs.asked_runs import agent, asked, opened
from wakeful import HookVerdict, tool
from wakeful.bootstrap.engines import new_engine
from wakeful.service.commands.approvals import edited_arguments, kept_secrets
from wakeful.store.sqlite import SqliteStore


def pay(order: str, cents: int, password: str = "", tags: list[str] | None = None) -> str:
    """Pay somebody."""
    return "paid"


CALL = ("pay", {"order": "A17", "cents": 4200, "password": "hunter2", "why": "broken"})


@pytest.fixture
async def waiting(tmp_path: Path) -> Any:
    store = await opened(tmp_path)
    support = agent([tool(pay, effect="keyed", approval=True)], (CALL,), injected_tool_args={"why": "Why you call it."})
    (record,) = (await asked(support, store)).approvals
    yield store, record.id
    await store.close()


@pytest.mark.parametrize(
    ("whole", "changed", "expected"),
    [
        (None, {"cents": "7"}, {"order": "A17", "cents": 7, "password": "hunter2"}),
        (None, {"order": "7"}, {"order": "7", "cents": 4200, "password": "hunter2"}),
        (None, {"tags": '["a"]', "cents": "many"}, {**CALL[1], "tags": ["a"], "cents": "many"}),
        ({"order": "B", "password": "[redacted]"}, {}, {"order": "B", "password": "hunter2"}),
        ({"order": "B"}, {"cents": "1"}, {"order": "B", "cents": 1}),
    ],
)
async def test_single_fields_and_whole_objects(
    waiting: tuple[SqliteStore, str], whole: Any, changed: dict[str, str], expected: dict[str, Any]
) -> None:
    store, name = waiting
    expected.pop("why", None)  # the model's word for the record is no argument of the tool
    assert await edited_arguments(new_engine(store), name, whole, changed) == expected


async def test_what_a_hook_rewrote_is_what_is_edited(tmp_path: Path) -> None:
    """A person is shown what the hook wrote: changing one field of it must not bring the others back."""
    store = await opened(tmp_path)
    support = agent(
        [tool(pay, effect="keyed", approval=True)],
        (CALL,),
        injected_tool_args={"why": "Why you call it."},
        hooks=[lambda call: HookVerdict.rewrite({**call.arguments, "order": "SAFE"})],
    )
    (record,) = (await asked(support, store)).approvals
    assert record.arguments["order"] == "SAFE"
    changed = await edited_arguments(new_engine(store), record.id, None, {"cents": "7"})
    assert changed == {"order": "SAFE", "cents": 7, "password": "hunter2"}
    await store.close()


def test_a_secret_that_is_left_alone_stays_what_it_was_at_every_depth() -> None:
    real = {"a": {"token": "t"}, "list": [{"token": "u"}, 1]}
    given = {"a": {"token": "[redacted]", "b": 2}, "list": [{"token": "[redacted]"}, 2], "new": "[redacted]"}
    assert kept_secrets(given, real) == {
        "a": {"token": "t", "b": 2},
        "list": [{"token": "u"}, 2],
        "new": "[redacted]",
    }
