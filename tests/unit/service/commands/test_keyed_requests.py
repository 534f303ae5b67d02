"""Requests with keys: what is kept, for how long, and what is said when it is not known what became of one."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from wakeful.bootstrap.engines import new_engine
from wakeful.bootstrap.stores import opened_store
from wakeful.contracts.errors import InvalidRequest, KeyReused, RequestUndecided, StoreFull
from wakeful.contracts.retention import Retention
from wakeful.engine.run_request import Engine
from wakeful.ports.keyed_requests import KEYED_REQUESTS
from wakeful.runtime.retention import RetentionPass
from wakeful.service.commands.keyed_requests import MAX_ANSWER, GivenAnswer, KeyedRequest, OncePerKey
from wakeful.testing import FixedClock

DAY = 86_400.0


class Till:
    """Something with an effect."""

    def __init__(self, error: Exception | None = None, body: str = '{"paid": 5}') -> None:
        self.error = error
        self.body = body
        self.paid = 0

    async def pay(self) -> GivenAnswer:
        if self.error is not None:
            raise self.error
        self.paid += 1
        return GivenAnswer(200, self.body)


def asked(key: str = "k", digest: str = "sha256:1", **fields: object) -> KeyedRequest:
    return KeyedRequest("ada", key, "POST /pay", digest, look="GET /paid")._replace(**fields)


@pytest.fixture
async def engine(tmp_path: Path) -> AsyncIterator[Engine]:
    async with opened_store(tmp_path / "runs.db") as store:
        yield new_engine(store, clock=FixedClock())


async def test_an_unexpected_failure_leaves_it_open_and_a_refusal_leaves_the_key_free(engine: Engine) -> None:
    for error, told in ((StoreFull("full"), "outcome_unknown"), (RuntimeError("broken"), "outcome_unknown")):
        key, till = type(error).__name__, Till(error)
        with pytest.raises(type(error)):
            await OncePerKey(engine).carry_out(asked(key), till.pay)
        with pytest.raises(RequestUndecided) as found:
            await OncePerKey(engine).carry_out(asked(key), Till().pay)
        assert found.value.code == told and "GET /paid" in found.value.hint
        again = await OncePerKey(engine).carry_out(asked(key, repeatable=True), Till().pay)
        assert again == GivenAnswer(200, '{"paid": 5}')
    with pytest.raises(InvalidRequest):
        await OncePerKey(engine).carry_out(asked(), Till(InvalidRequest("no")).pay)
    till = Till()
    assert not (await OncePerKey(engine).carry_out(asked(digest="sha256:2"), till.pay)).is_again
    assert till.paid == 1


async def test_what_is_long_is_not_kept_and_not_done_again(engine: Engine) -> None:
    till, keys = Till(body='"' + "x" * MAX_ANSWER + '"'), OncePerKey(engine)
    await keys.carry_out(asked(), till.pay)
    with pytest.raises(RequestUndecided) as found:
        await keys.carry_out(asked(), till.pay)
    assert (found.value.code, till.paid) == ("answer_not_kept", 1)


async def test_one_that_takes_long_is_waited_for_and_then_told(engine: Engine) -> None:
    begun, go = asyncio.Event(), asyncio.Event()
    keys, till = OncePerKey(engine, wait=0.01), Till()

    async def slowly() -> GivenAnswer:
        begun.set()
        await go.wait()
        return await till.pay()

    first = asyncio.create_task(keys.carry_out(asked(), slowly))
    await begun.wait()
    with pytest.raises(RequestUndecided) as found:
        await keys.carry_out(asked(), till.pay)
    assert found.value.code == "request_under_way"
    with pytest.raises(KeyReused):
        await keys.carry_out(asked(digest="sha256:2"), till.pay)
    go.set()
    assert (await first).status == 200
    assert (await keys.carry_out(asked(), till.pay)).is_again
    assert till.paid == 1


async def test_inversion_without_its_begin_a_request_that_was_cut_off_is_done_twice(engine: Engine) -> None:
    till = Till()

    async def cut_off() -> GivenAnswer:
        await till.pay()
        raise RuntimeError("killed")

    for key in ("first", "second"):  # the second key stands for a begin that nobody wrote
        with pytest.raises(RuntimeError):
            await OncePerKey(engine).carry_out(asked(key), cut_off)
    assert till.paid == 2
    with pytest.raises(RequestUndecided):
        await OncePerKey(engine).carry_out(asked("first"), till.pay)
    assert till.paid == 2, "where the begin is known, it is not"


async def test_keys_of_a_day_go_together_after_a_week(tmp_path: Path) -> None:
    clock, path = FixedClock(), tmp_path / "runs.db"
    async with opened_store(path) as store:
        keys, till = OncePerKey(new_engine(store, clock=clock)), Till()
        await keys.carry_out(asked("old"), till.pay)
        clock.advance(2 * DAY)
        await keys.carry_out(asked("new"), till.pay)
        clock.advance(6.5 * DAY)
        assert (await RetentionPass(store, clock, Retention(request_keys=0)).run()).streams == 0
        assert (await RetentionPass(store, clock, Retention(), dry=True).run()).streams == 1
        assert (await RetentionPass(store, clock, Retention()).run()).streams == 1
        assert await store.count_rows(KEYED_REQUESTS) == 1
        assert await store.keyed_request("ada", "old") is None
        assert (await keys.carry_out(asked("new"), till.pay)).is_again
        assert not (await keys.carry_out(asked("old"), till.pay)).is_again, "it is a new request"
        clock.advance(9 * DAY)
        assert (await RetentionPass(store, clock, Retention()).run()).streams == 2
        assert (await RetentionPass(store, clock, Retention(), everything=True).run()).streams == 0
    async with opened_store(path) as store:
        assert await store.oldest_keyed_request() is None
