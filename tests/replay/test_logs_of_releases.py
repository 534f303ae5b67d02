"""Old data is a contract: the log of every release loads, folds, replays and goes on."""

import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from wakeful import resume
from wakeful.service.replay import replay_turn
from wakeful.store.sqlite import SqliteStore

HERE = Path(__file__).parent
RELEASES = sorted(path.name for path in (HERE / "logs").iterdir() if path.is_dir())


@pytest.fixture
def shop(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(HERE))
    monkeypatch.delenv("CRASH", raising=False)
    import shop

    yield shop
    sys.modules.pop("shop")


@pytest.fixture(params=RELEASES)
def log(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return Path(shutil.copy(HERE / "logs" / request.param / "log.sqlite", tmp_path / "log.sqlite"))


async def test_a_log_is_whole_and_every_decision_in_it_comes_out_the_same(log: Path) -> None:
    store = await SqliteStore.open(log)
    try:
        assert await store.verify() == []
        rows = {row.key: row for row in await store.turns()}
        assert {key: row.state for key, row in rows.items()} == {
            "done": "completed",
            "cut-off": "running",
            "unknown": "completed",
            "cut-off-too": "running",
        }
        for row in rows.values():
            replayed = await replay_turn(store, row)
            assert replayed.identical, replayed.divergence
        assert [(row.tool_name, row.safe_args) for row in await store.unknown()] == [("write_letter", {"order": "B2"})]
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
