"""The agents whose code is here: by name, each with the revision of its definition.

Code comes from the program and from files, never from the store. An agent that the store knows and nobody supplies
stays as it is, with everything that waits for it.
"""

import hashlib
import json
from collections.abc import Iterator, Set
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakKeyDictionary

from wakeful.contracts.agent_identity import AgentSource
from wakeful.contracts.errors import AgentMissing, InvalidConfig
from wakeful.engine.agent import Agent

_definitions: "WeakKeyDictionary[Agent[Any, Any], bytes]" = WeakKeyDictionary()
"""What can be said of agents that hold code. An agent never changes, and every turn asks for its revision."""


@dataclass(slots=True, frozen=True)
class RosterEntry:
    """An agent, and where its definition comes from."""

    agent: Agent[Any, Any]
    source: AgentSource = "code"
    place: str | None = None
    """The file it was read from."""
    definition: bytes | None = None
    """The agent as data; None: it holds code."""

    @property
    def revision(self) -> str:
        """The hash of what decides what it does: its model, its words, its tools and its options."""
        return "sha256:" + hashlib.sha256(self.described).hexdigest()

    @property
    def described(self) -> bytes:
        """The definition, or what can be said of one that holds code."""
        if self.definition:
            return self.definition
        if (known := _definitions.get(self.agent)) is None:
            known = _definitions[self.agent] = _definition(self.agent)
        return known


@dataclass(slots=True)
class AgentRoster:
    """Agents by name."""

    _agents: dict[str, RosterEntry] = field(default_factory=dict)

    def add(self, entry: RosterEntry) -> None:
        """Raises InvalidConfig for a second agent of a name, and for one that needs deps nobody can make."""
        agent = entry.agent
        if agent.name in self._agents:
            raise InvalidConfig(f"two agents are called {agent.name!r}", "Give each agent of a runtime its own name.")
        if agent.needs_deps and agent.deps is None:
            raise InvalidConfig(
                f"Agent {agent.name!r} needs deps, and a runtime has none to give it when it wakes",
                "Give the agent a function that makes them: Agent(..., deps=lambda context: ...)",
            )
        self._agents[agent.name] = entry

    def put(self, entry: RosterEntry) -> None:
        """Another definition of an agent: turns that begin from here on are run with it."""
        self._agents.pop(entry.agent.name, None)
        self.add(entry)

    def drop(self, name: str) -> None:
        """An agent that is no more."""
        self._agents.pop(name, None)

    def __iter__(self) -> Iterator[RosterEntry]:
        return iter(tuple(self._agents.values()))

    def names(self) -> Set[str]:
        return self._agents.keys()

    def get(self, name: str) -> RosterEntry | None:
        return self._agents.get(name)

    def entry(self, name: str) -> RosterEntry:
        """Raises AgentMissing when its code is not here."""
        found = self._agents.get(name)
        if found is None:
            here = ", ".join(sorted(self._agents)) or "none"
            raise AgentMissing(
                f"the code of agent {name!r} was not supplied (supplied: {here})",
                "Pass it to Runtime(agents=[...]) or to wakeful daemon start --tools, or archive the agent.",
            )
        return found


def _definition(agent: Agent[Any, Any]) -> bytes:
    try:
        data = agent.to_dict()
    except InvalidConfig:  # it holds code: what can be said of that is its name
        words = agent.instructions
        data = {
            "name": agent.name,
            "model": agent.model if isinstance(agent.model, str) else agent.model.ref,
            "instructions": words if isinstance(words, str) else getattr(words, "__qualname__", "function"),
            "tools": [declaration.model_dump(mode="json") for declaration in agent.declarations],
            **({"work_items": True} if agent.work_items else {}),
        }
    return json.dumps(data, sort_keys=True, default=str).encode()
