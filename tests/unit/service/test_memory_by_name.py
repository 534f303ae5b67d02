"""`:memory:` is memory, as SQLite spells it."""

from pathlib import Path

import pytest

from wakeful import Agent, run_sync
from wakeful.testing import scripted


def test_the_name_memory_makes_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert run_sync(Agent("a", scripted(["hi"])), "hello", store=":memory:").output == "hi"
    assert list(tmp_path.iterdir()) == []
