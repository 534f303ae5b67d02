"""`read_artifact`: lets a model read output that was too long to be shown whole, in pages.

Offered where such output was spilled and nowhere else; it reads the artifacts of its own level of the turn alone.
"""

from collections.abc import Awaitable, Callable, Collection
from functools import lru_cache
from typing import Any

from wakeful.contracts.agents import TurnConfig
from wakeful.contracts.errors import ToolRetry
from wakeful.contracts.tools import ToolDeclaration
from wakeful.tools.decorator import tool
from wakeful.tools.results import MAX_SHOWN_BYTES, READ_ARTIFACT, cut_text
from wakeful.tools.tool import Tool

PAGE_CHARS = 8_000
SHORTEST = 6
"""Characters of a hash that may stand for all of it."""


def artifact_reader(known: Callable[[], Collection[str]], fetch: Callable[[str], Awaitable[bytes]]) -> Tool[Any]:
    """The tool for one level. `known` are the artifacts it may read, by digest."""

    async def read_artifact(artifact: str, offset: int = 0, limit: int = PAGE_CHARS) -> str:
        """Read output of an earlier tool call that was too long to be shown whole.

        Args:
            artifact: Its id, as the cut result names it.
            offset: The character to begin at.
            limit: The most characters to read.
        """
        digest = _meant(artifact, known())
        if offset < 0 or limit < 1:
            raise ToolRetry("offset must be at least 0, and limit at least 1")
        data = await fetch(digest)
        if b"\x00" in data:
            raise ToolRetry(f"{artifact} is not text: {len(data):,} bytes of binary data")
        text = data.decode("utf-8", "replace")
        page = cut_text(text[offset : offset + limit], MAX_SHOWN_BYTES - 200)
        end = offset + len(page)
        more = f"continue with offset={end}" if end < len(text) else "this is the end"
        return f"{page}\n[characters {offset:,} to {end:,} of {len(text):,}; {more}]"

    return tool(read_artifact, effect="pure", name=READ_ARTIFACT)


@lru_cache(maxsize=1)
def reader_declaration() -> ToolDeclaration:
    """The tool as a model is shown it."""

    async def nothing(digest: str) -> bytes:
        raise AssertionError(f"{digest} is read by the tool of a level")

    return artifact_reader(tuple, nothing).declaration


def with_reader(config: TurnConfig) -> TurnConfig:
    """The configuration of a level where output was spilled: it follows from the log, and none is stored."""
    return config.changed(tools=(*config.tools, reader_declaration()))


def _meant(name: str, known: Collection[str]) -> str:
    bare = name.removeprefix("sha256:")
    found = [each for each in known if len(bare) >= SHORTEST and each.removeprefix("sha256:").startswith(bare)]
    if len(found) == 1:
        return found[0]
    there = ", ".join(sorted(each.removeprefix("sha256:")[:12] for each in known))
    raise ToolRetry(f"there is no artifact {name!r}; the artifacts here are: {there}")
