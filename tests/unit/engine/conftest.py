"""What the suites of the engine share."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from wakeful.bootstrap.stores import opened_store
from wakeful.ports import Store
from wakeful.store.memory import MemoryStore
from wakeful.testing.validating_store import ValidatingStore


@pytest.fixture(params=["memory", "sqlite"])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Store]:
    """Both stores, held to the published schema."""
    if request.param == "memory":
        yield ValidatingStore(MemoryStore())
    else:
        async with opened_store(tmp_path / "runs.db") as opened:
            yield ValidatingStore(opened)
