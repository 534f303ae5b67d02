"""`:memory:` is memory, as SQLite spells it."""

import os
from pathlib import Path

import pytest

from wakeful import Agent, run
from wakeful.testing import scripted


async def test_the_name_memory_makes_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert (await run(Agent("a", scripted(["hi"])), "hello", store=":memory:")).output == "hi"
    assert not os.listdir()
