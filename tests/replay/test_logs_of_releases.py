"""Old data is a contract: the log of every release loads, folds, replays and goes on.

`logs/0.2.0-dev` is what was written before 0.2.0 by the code that its goldens in `tests/pins` were recorded with.
"""

import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from wakeful import Approve, pending_requests, resume, run, submit_result
from wakeful.bootstrap.engines import new_engine
from wakeful.bootstrap.stores import opened_store
from wakeful.service.commands.approvals import approvals, decide
from wakeful.service.queries.replay import replay_turn
from wakeful.store.sqlite import SqliteStore
from wakeful.store.sqlite.reader import SqliteReader
from wakeful.testing.crash_rows import find_misfits

HERE = Path(__file__).parent
RELEASES = sorted(path.name for path in (HERE / "logs").iterdir() if path.is_dir())
FIRST = {"done": "completed", "cut-off": "running", "unknown": "completed", "cut-off-too": "running"}
"""The turns of every log, and how they stand."""
LATER = {
    "approved": "completed",
    "needs-approval": "suspended",
    "needs-a-client": "suspended",
    "read": "completed",
    "read-again": "completed",
    "tree": "completed",
    "tree-cut-off": "running",
}
"""The turns of every log but the first."""
LATER_RELEASES = [name for name in RELEASES if name != "0.1.0"]


@pytest.fixture
def shop(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(HERE))
    monkeypatch.delenv("CRASH", raising=False)
    import shop

    yield shop
    sys.modules.pop("shop")


@pytest.fixture(params=LATER_RELEASES)
def later_log(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return Path(shutil.copy(HERE / "logs" / request.param / "log.sqlite", tmp_path / "log.sqlite"))


@pytest.fixture(params=RELEASES)
def log(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return Path(shutil.copy(HERE / "logs" / request.param / "log.sqlite", tmp_path / "log.sqlite"))


async def test_a_log_is_whole_and_every_decision_in_it_comes_out_the_same(log: Path) -> None:
    store = await SqliteStore.open(log)
    try:
        assert await store.verify() == []
        rows = {row.key: row for row in await store.turns()}
        assert {key: row.state for key, row in rows.items()} in (FIRST, FIRST | LATER)
        for row in rows.values():
            replayed = await replay_turn(store, row)
            assert replayed.identical, replayed.divergence
        assert [(row.tool, row.arguments) for row in await store.unknown()] == [("write_letter", {"order": "B2"})]
    finally:
        await store.close()


@pytest.mark.parametrize("how", [SqliteStore, SqliteReader], ids=["written", "only read"])
async def test_tables_that_a_release_did_not_have_are_made_from_its_log(log: Path, how: type[SqliteReader]) -> None:
    if how is SqliteReader:
        log.chmod(0o400)
    store = await how.open(log)
    try:
        assert await find_misfits(store) == []
        states = {row.key: await store.queued(row.agent_id, row.thread_id) for row in await store.turns()}
        assert set(states) >= set(FIRST) and not any(states.values()), "whatever is open has begun"
        resting = {row.key for row in await store.turns() if await store.wake(row.agent_id, row.thread_id, row.turn_id)}
        assert resting == {row.key for row in await store.turns() if row.state == "suspended"}
    finally:
        await store.close()


async def test_what_a_release_left_unfinished_is_finished_today(log: Path, tmp_path: Path, shop: Any) -> None:
    store = await SqliteStore.open(log)
    rows = {row.key: row for row in await store.turns(open_only=True)}
    await store.close()
    agents = [shop.agent("shop"), shop.agent("letters")]
    book = tmp_path / "book.txt"
    refunded = await resume(str(log), rows["cut-off"].turn_id, agents, deps=book)
    assert refunded.output == "Order A17 is refunded."
    assert len(book.read_text().splitlines()) == 1, "a keyed call is run again, with its key"
    sent = await resume(str(log), rows["cut-off-too"].turn_id, agents, deps=book)
    assert sent.output == "The letter is on its way."
    assert [unknown.tool for unknown in sent.unknown] == ["write_letter"]
    assert len(book.read_text().splitlines()) == 1, "an irreversible call is not"


async def unfinished(log: Path) -> dict[str, str]:
    """The turns that are open, by their keys."""
    store = await SqliteStore.open(log)
    rows = {str(row.key): row.turn_id for row in await store.turns(open_only=True)}
    await store.close()
    return rows


def test_every_log_but_the_first_holds_the_later_turns() -> None:
    assert LATER_RELEASES


async def test_what_somebody_had_to_do_for_a_release_can_be_done_today(
    later_log: Path, tmp_path: Path, shop: Any
) -> None:
    place, book, turns = str(later_log), tmp_path / "book.txt", await unfinished(later_log)
    agents = [shop.agent(name) for name in ("cashier", "picker")]
    async with opened_store(place) as store:
        (asked,) = await approvals(new_engine(store))
        assert (asked.tool, asked.arguments) == ("pay", {"order": "C3", "cents": 700})
        assert asked.turn_id == turns["needs-approval"]
        await decide(new_engine(store), asked.approval_id, Approve(), by="ada")
    paid = await resume(place, turns["needs-approval"], agents, deps=book)
    assert paid.output == "C3 is paid."
    assert [line.split()[1:] for line in book.read_text().splitlines()] == [["C3", "700"]]

    (request,) = await pending_requests(place, turns["needs-a-client"])
    assert (request.tool_name, request.parameters) == ("client/pick_file", {"folder": "docs"})
    await submit_result(place, request.request_id, {"file": "a.txt"})
    picked = await resume(place, turns["needs-a-client"], agents, deps=book)
    assert picked.output == "You picked it."
    assert "a.txt" in str(picked.calls("pick_file"))


async def test_a_tree_that_a_release_left_is_finished_today_and_pays_once(
    later_log: Path, tmp_path: Path, shop: Any
) -> None:
    book, turns = tmp_path / "book.txt", await unfinished(later_log)
    done = await resume(str(later_log), turns["tree-cut-off"], [shop.agent("team")], deps=book)
    assert done.output == "All of it is done."
    assert len(book.read_text().splitlines()) == 1


async def test_a_thread_that_a_release_folded_goes_on_from_its_summary(
    later_log: Path, tmp_path: Path, shop: Any
) -> None:
    book = tmp_path / "book.txt"
    done = await run(shop.agent("reader"), "and again?", deps=book, store=str(later_log), thread="book")
    assert done.output == "It says lorem, as I said."
    (first, *_) = done.history()
    assert "The pages say lorem." in first.text
