"""A daemon notices that wakeful was replaced on the disk: it says so, once to people, and goes on as it is."""

import asyncio
import logging
import threading

from wakeful.contracts.envelope import MAIN_THREAD, Fact
from wakeful.contracts.errors import WakefulError
from wakeful.contracts.events import PackageReplaced
from wakeful.engine.run_request import Engine
from wakeful.runtime.parked_providers import append_to_runtime
from wakeful.sandbox.package_files import PackageFiles, held_package, hold_package, load_ahead

LOOK_SECONDS = 10.0
PAUSE_SECONDS = 0.005
"""Between two parts that are loaded: requests of the first seconds come first."""
_log = logging.getLogger("wakeful.serve")


def keep_to_package() -> None:
    """From here on this process loads nothing of another wakeful than the one that is installed now."""
    hold_package()


def package_problems() -> list[str]:
    """What a person should see to."""
    files = held_package()
    return [files.words()] if files is not None and files.changed() else []


async def watch_package(engine: Engine) -> None:
    """Load what may be needed, then look at the files until they are others, and tell. Until it is cancelled."""
    files = held_package()
    if files is None:
        return
    over = threading.Event()
    try:
        await asyncio.to_thread(_load_until, over)
    finally:
        over.set()
    is_logged = False
    while True:
        if await asyncio.to_thread(files.changed):
            if not is_logged:
                _log.warning("%s", files.words())
            is_logged = True
            if await _told(engine, files):
                return
        await asyncio.sleep(LOOK_SECONDS)


def _load_until(over: threading.Event) -> None:
    """A daemon that ends in its first seconds does not wait for what it would have needed later."""
    for _ in load_ahead():
        if over.wait(PAUSE_SECONDS):
            return


async def _told(engine: Engine, files: PackageFiles) -> bool:
    event = PackageReplaced(running=files.running, installed=files.installed())
    try:
        await append_to_runtime(engine, Fact(event, engine.clock.now(), thread_id=MAIN_THREAD))
    except WakefulError as problem:  # the store cannot be written now
        _log.warning("nobody can be told of it yet: %s", problem.message)
        return False
    return True
