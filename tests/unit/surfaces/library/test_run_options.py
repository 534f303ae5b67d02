"""What a program asks for, before anything runs."""

from typing import Any

import pytest

from wakeful import run, stream
from wakeful.contracts.errors import InvalidConfig


async def test_what_is_no_agent_is_told_before_anything_runs() -> None:
    wrong: Any = "support"
    with pytest.raises(InvalidConfig, match=r"run\('support', \.\.\.\)"):
        await run(wrong, "hello")
    with pytest.raises(InvalidConfig, match="the first argument is the agent"):
        async with stream(wrong, "hello"):
            pass
