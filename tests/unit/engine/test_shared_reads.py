"""Reads that many callers need at the same moment."""

import asyncio

from wakeful.engine.run_request import SharedReads


async def test_callers_of_one_moment_share_a_read_and_the_next_moment_has_its_own() -> None:
    reads, done = SharedReads(), list[str]()

    async def read() -> int:
        done.append("read")
        return len(done)

    assert [await reads.get("ops", read), await reads.get("ops", read), await reads.get("other", read)] == [1, 1, 2]
    await asyncio.sleep(0)
    assert await reads.get("ops", read) == 3


async def test_what_was_written_here_is_read_at_once() -> None:
    reads, state = SharedReads(), ["running"]

    async def read() -> str:
        return state[-1]

    assert await reads.get("ops", read) == "running"
    state.append("stopped")
    reads.forget()
    assert await reads.get("ops", read) == "stopped"


async def test_a_refusal_is_not_kept() -> None:
    reads, there = SharedReads(), list[str]()

    async def read() -> str:
        return there[0]

    for _ in range(2):
        try:
            await reads.get("ops", read)
        except IndexError:
            there.append("ops")
    assert await reads.get("ops", read) == "ops"
