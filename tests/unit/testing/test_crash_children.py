"""The process that forks children to be killed: kept while it serves, and its children know only what they must."""

import importlib.util
import os
import signal
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from wakeful.testing.crash_children import Nursery, nursery_for
from wakeful.testing.crash_nurse import ProcessEnd

NAME = "WAKEFUL_TEST_OF_CHILDREN"
MODULE = "import os\ndef where():\n    return {!r}\n"


def ran(nursery: Nursery, function: Callable[..., Any], folder: Path) -> ProcessEnd:
    return nursery.run(function, output=folder / "output", seconds=60)


def surroundings() -> tuple[int, str, str, int]:
    return os.getppid(), os.environ.get(NAME, ""), str(Path.cwd()), threading.active_count()


def end_the_parent() -> None:
    os.kill(os.getppid(), signal.SIGKILL)


def import_late() -> bool:
    """Was it here when this process began?"""
    was_here = "wakeful.surfaces.cli.main" in sys.modules
    importlib.import_module("wakeful.surfaces.cli.main")
    return was_here


def test_the_next_child_comes_from_the_same_process_with_the_environment_of_now(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with nursery_for(surroundings) as nursery:
        before = ran(nursery, surroundings, tmp_path).value
    monkeypatch.setenv(NAME, "now")
    monkeypatch.chdir(tmp_path)
    with nursery_for(surroundings) as nursery:
        assert ran(nursery, surroundings, tmp_path).value == (before[0], "now", str(tmp_path), 1)


def test_what_a_child_imported_late_is_there_for_the_next(tmp_path: Path) -> None:
    with Nursery(import_late) as nursery:  # not the one that is kept: nobody knows what that has imported
        first, second = (ran(nursery, import_late, tmp_path).value for _ in range(2))
    assert (first, second) == (False, True)


def test_a_process_that_was_ended_is_replaced(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="ended by itself"), nursery_for(end_the_parent) as nursery:
        ran(nursery, end_the_parent, tmp_path)
    with nursery_for(surroundings) as nursery:
        assert ran(nursery, surroundings, tmp_path).how == "done"


def test_another_module_of_the_same_name_is_loaded_in_a_new_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = []
    for place in ("first", "second"):
        file = tmp_path / place / "twice_named.py"
        file.parent.mkdir()
        file.write_text(MODULE.format(place))
        spec = importlib.util.spec_from_file_location("twice_named", file)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        monkeypatch.setitem(sys.modules, "twice_named", module)
        spec.loader.exec_module(module)
        with nursery_for(module.where) as nursery:
            found.append(ran(nursery, module.where, tmp_path).value)
    assert found == ["first", "second"]
