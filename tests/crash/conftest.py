"""Whatever was killed in a test of this folder: the turns of its stores are decided again at its end."""

from collections.abc import Iterator

import pytest

from kit.runs.replayed_stores import check_stores_below


@pytest.fixture(autouse=True)
def decisions_come_out_the_same(request: pytest.FixtureRequest) -> Iterator[None]:
    yield
    folder = request.node.funcargs.get("tmp_path")
    if folder is not None:
        check_stores_below(folder)
