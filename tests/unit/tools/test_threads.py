"""Sync tools run on daemon threads whose late answers stay observable."""

import asyncio
import contextvars
import subprocess
import sys
import threading

import pytest

from wakeful.tools.threads import run_in_thread

COLOUR: contextvars.ContextVar[str] = contextvars.ContextVar("COLOUR")


async def test_the_context_of_the_caller_is_there() -> None:
    COLOUR.set("red")
    assert await run_in_thread(COLOUR.get) == "red"


async def test_an_idle_thread_is_used_again() -> None:
    first = await run_in_thread(threading.get_ident)
    for _ in range(100):
        # The thread is on the idle list a moment after its answer was handed over.
        if await run_in_thread(threading.get_ident) == first:
            break
        await asyncio.sleep(0)
    else:
        pytest.fail("every call got a new thread")


async def test_calls_that_wait_for_each_other_never_run_out_of_threads() -> None:
    width = 60
    barrier = threading.Barrier(width)
    await asyncio.gather(*(run_in_thread(barrier.wait) for _ in range(width)))


async def test_a_late_answer_arrives_after_the_wait_was_given_up() -> None:
    let_go = threading.Event()

    def slow() -> str:
        let_go.wait()
        return "late"

    result = run_in_thread(slow)
    done, _ = await asyncio.wait({result}, timeout=0)
    assert not done
    let_go.set()
    assert await result == "late"


async def test_an_exception_arrives_as_it_was_raised() -> None:
    error = ValueError("mine")

    def fail() -> None:
        raise error

    with pytest.raises(ValueError, match="mine") as raised:
        await run_in_thread(fail)
    assert raised.value is error


HUNG = """
import asyncio, threading
{how}
async def main():
    started = threading.Event()
    def hang():
        started.set()
        threading.Event().wait()
    begin(hang)
    started.wait()
    print("bye", flush=True)
asyncio.run(main())
"""
OURS = "from wakeful.tools.threads import run_in_thread as begin"
THEIRS = """
from concurrent.futures import ThreadPoolExecutor
pool = ThreadPoolExecutor()
def begin(fn):
    return asyncio.get_running_loop().run_in_executor(pool, fn)
"""


def test_a_hung_tool_does_not_hold_up_the_end_of_the_program() -> None:
    done = subprocess.run([sys.executable, "-c", HUNG.format(how=OURS)], capture_output=True, text=True, timeout=240)
    assert (done.returncode, done.stdout, done.stderr) == (0, "bye\n", "")


def test_with_a_standard_pool_it_would() -> None:
    with subprocess.Popen([sys.executable, "-c", HUNG.format(how=THEIRS)], stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None and child.stdout.readline() == "bye\n"
        try:
            with pytest.raises(subprocess.TimeoutExpired):
                child.wait(timeout=0.5)
        finally:
            child.kill()


FORKED = """
import asyncio, os, warnings
warnings.simplefilter("ignore")
from wakeful.tools.threads import run_in_thread
async def once():
    for _ in range(3):
        assert await run_in_thread(lambda: 1) == 1
        await asyncio.sleep(0.01)
asyncio.run(once())
child = os.fork()
if child == 0:
    asyncio.run(asyncio.wait_for(once(), 60))
    os._exit(0)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


def test_a_fork_starts_threads_of_its_own() -> None:
    done = subprocess.run([sys.executable, "-c", FORKED], capture_output=True, text=True, timeout=240)
    assert (done.stdout, done.stderr) == ("0\n", "")
