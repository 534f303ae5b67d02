"""The agent that a command looks into: that of a stored turn, one of the daemon, or one of a run that starts now."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from wakeful.bootstrap.engines import new_engine
from wakeful.bootstrap.stores import opened_store
from wakeful.service import Agent, Engine
from wakeful.service.code_loader import load
from wakeful.surfaces.cli.agents import agent_for, named_agent
from wakeful.surfaces.cli.daemon_turns import check_options, check_own_run, daemon_for
from wakeful.surfaces.cli.places import StoreAddress, any_place, place_to_ask
from wakeful.surfaces.cli.problems import WrongRequest, note

T = TypeVar("T")


class AgentInQuestion(NamedTuple):
    """The options that say which agent is meant."""

    agent: Path | None
    tools: Sequence[str] | None
    mcp: Sequence[str] | None
    workspace: Path | None
    profile: str | None
    turn: str | None
    store: Path | None

    def report(
        self,
        subject: str,
        *,
        of_turn: Callable[[str, StoreAddress], T],
        of_agent: Callable[[str, StoreAddress], T],
        of_run: Callable[[Engine, Agent[Any, Any]], Awaitable[T]],
    ) -> T:
        """A report on the `subject` of the agent. Raises WrongRequest for an option that the agent does not go with.

        Of a run that starts now the store is only read, and none is created.
        """
        own = {"--tools": self.tools, "--mcp": self.mcp, "--workspace": self.workspace, "--profile": self.profile}
        if self.turn is not None:
            for option in (option for option, given in {"--agent": self.agent, **own}.items() if given):
                words = f"{option} does not go with --turn: a stored turn has its own {subject}"
                raise WrongRequest(words, "leave it out")
            return of_turn(self.turn, place_to_ask(self.store))
        name = named_agent(self.agent)
        if name is not None:
            where = daemon_for(name, self.store)
            check_options(own, name, where)
            return of_agent(name, where)
        check_own_run()
        loaded = load(self.tools or [])
        for words in loaded.notes:
            note(words)
        one = agent_for(
            loaded,
            self.agent,
            model=None,
            instructions=None,
            max_steps=None,
            workspace=self.workspace,
            profile=self.profile,
            mcp=self.mcp,
        )
        place = any_place(self.store)
        path = place.path if Path(place.path).is_file() else None

        async def looked() -> T:
            async with opened_store(path, reading=True) as opened:
                return await of_run(new_engine(opened), one)

        return asyncio.run(looked())
