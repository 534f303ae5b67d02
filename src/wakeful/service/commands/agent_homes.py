"""Homes of agents, made with them: from a template, and not at all where the agent cannot be made."""

import asyncio
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from wakeful.engine.run_request import Engine
from wakeful.guidance import AGENTS_MD
from wakeful.runtime.agent_templates import make_home, read_template, seed_templates
from wakeful.runtime.builtin_templates import DEFAULT_TEMPLATE
from wakeful.settings.store_file import FILE

IN_MEMORY = ":memory:"


@asynccontextmanager
async def new_home(engine: Engine, name: str, template: str | None) -> AsyncIterator[None]:
    """A home from a template for an agent that is made inside; without the agent the home goes, too.

    Raises InvalidRequest where the template cannot be had.
    """
    if template is None:
        yield
        return
    home = engine.agent_home(name)
    await asyncio.to_thread(seed_templates)
    found = await asyncio.to_thread(read_template, template)
    is_new = await asyncio.to_thread(make_home, home, found, engine.clock.now())
    try:
        yield
    except BaseException:
        if is_new:
            await asyncio.to_thread(shutil.rmtree, home, ignore_errors=True)
        raise


async def seed_home(engine: Engine) -> None:
    """Have the runtime's templates at hand, where agents have homes beside their store."""
    if Path(engine.store.location).name == FILE:
        await asyncio.to_thread(seed_templates)


async def guide_default(engine: Engine, name: str) -> None:
    """The default agent is told something, whoever defines it. What stands in its home is left as it is."""
    home = engine.agent_home(name)
    if engine.store.location == IN_MEMORY or (home / AGENTS_MD).exists():
        return
    await asyncio.to_thread(seed_templates)
    found = await asyncio.to_thread(read_template, DEFAULT_TEMPLATE)
    await asyncio.to_thread(make_home, home, found, engine.clock.now())
