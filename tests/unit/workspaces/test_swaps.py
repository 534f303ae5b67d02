"""Somebody swaps a folder for a link to the outside while calls are under way. Nothing outside is read or written.

The same storm runs against a check of the resolved path before an ordinary open, which is what the workspace does not
do: there it finds the way out.
"""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

import pytest

from wakeful.contracts.errors import ToolReported
from wakeful.workspaces import Workspace
from wakeful.workspaces.rooted_paths import kernel_resolves

CALLS = 3_000
MOST_CALLS = 200_000
"""For what has to happen at least once: how often depends on who gets the processor."""


class World:
    """A root with a folder `d`, and a folder outside of the same shape."""

    def __init__(self, place: Path) -> None:
        self.root, self.outside = place / "root", place / "outside"
        (self.root / "d" / "sub").mkdir(parents=True)
        (self.outside / "sub").mkdir(parents=True)
        (self.root / "d" / "sub" / "file").write_text("inside")
        (self.outside / "sub" / "file").write_text("OUTSIDE")
        (self.root / "link").symlink_to("../outside")
        (self.root / "a").symlink_to("d")
        self.untouched = self.outside_now()

    def outside_now(self) -> dict[str, bytes]:
        return {
            str(path.relative_to(self.outside)): path.read_bytes() for path in self.outside.rglob("*") if path.is_file()
        }

    def swap(self) -> None:
        """`d` is the folder, is gone, is a link to the outside, is gone, is the folder ..."""
        folder, link, kept = self.root / "d", self.root / "link", self.root / "kept"
        for old, new in ((folder, kept), (link, folder), (folder, link), (kept, folder)):
            old.rename(new)

    def relink(self) -> None:
        """`a` is a link to `d`, and in the same moment a link to the outside: it is there all the time."""
        for target in ("../outside", "d"):
            (self.root / "next").symlink_to(target)
            (self.root / "next").rename(self.root / "a")

    @contextmanager
    def stormy(self, change: Callable[[], None]) -> Iterator[None]:
        over = threading.Event()

        def work() -> None:
            while not over.is_set():
                change()

        thread = threading.Thread(target=work)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


WAYS = [pytest.param(False, id="walked")]
if kernel_resolves():
    WAYS.append(pytest.param(True, id="kernel"))


@pytest.mark.parametrize("path", ["d/sub/file", "a/sub/file"])
@pytest.mark.parametrize("kernel", WAYS)
def test_nothing_outside_is_ever_read(world: World, kernel: bool, path: str) -> None:
    workspace = replace(Workspace.at(world.root), kernel=kernel)
    seen: set[bytes] = set()
    with world.stormy(world.swap if path.startswith("d") else world.relink):
        for number in range(MOST_CALLS):
            with suppress(ToolReported):
                seen.add(workspace.read(path).data)
            if number >= CALLS and seen:
                break
    assert seen == {b"inside"}


def test_nothing_outside_is_ever_written_made_or_deleted(world: World) -> None:
    workspace = Workspace.at(world.root)
    done = [0, 0, 0]
    with world.stormy(world.relink):
        for number in range(MOST_CALLS // 3):
            if number >= CALLS // 3 and all(done):
                break
            with suppress(ToolReported):
                workspace.write("a/sub/file", b"inside")
                done[0] += 1
            with suppress(ToolReported):
                workspace.write(f"a/new{number % 10}/file", b"inside")
                done[1] += 1
            with suppress(ToolReported):
                workspace.delete("a/sub/file")
                done[2] += 1
    assert all(done), "the storm was so strong that nothing was done at all"
    assert world.outside_now() == world.untouched
    assert sorted(path.name for path in world.outside.iterdir()) == ["sub"]


# --- the same without the handles -------------------------------------------------------------------------------------


def found(world: World, change: Callable[[], None], escaped: Callable[[], bool], attempt: Callable[[], None]) -> bool:
    with world.stormy(change):
        for _ in range(MOST_CALLS):
            with suppress(OSError):
                attempt()
            if escaped():
                return True
    return False


def test_a_check_of_the_resolved_path_before_an_open_lets_reads_out(world: World) -> None:
    seen: set[str] = set()

    def attempt() -> None:
        path = world.root / "d/sub/file"
        if path.resolve().is_relative_to(world.root):
            time.sleep(0.0001)  # whoever swaps gets a turn sooner; it would get one anyway
            seen.add(path.read_text())

    assert found(world, world.swap, lambda: "OUTSIDE" in seen, attempt)


def test_a_check_of_the_resolved_path_before_an_open_lets_writes_out(world: World) -> None:
    def attempt() -> None:
        path = world.root / "a/sub/planted"
        if path.resolve().is_relative_to(world.root):
            time.sleep(0.0001)
            path.write_text("x")

    assert found(world, world.relink, lambda: (world.outside / "sub" / "planted").exists(), attempt)
