"""One thing that may be asked of the runtime about a store: name, scope, request, answer, handler."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, fields, replace
from functools import cached_property
from importlib import import_module
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeAlias, TypeVar

if TYPE_CHECKING:
    from wakeful.engine.run_request import Engine
    from wakeful.ports import Store
    from wakeful.service.commands.keyed_requests import OncePerKey
    from wakeful.service.host_door import HostDoor
    from wakeful.service.living_runtime import LivingRuntime
    from wakeful.service.queries.operator_feed import AgentEvents, FeedReader
    from wakeful.service.queries.process_status import ServingProcess
    from wakeful.service.queries.replay_queue import ReplayQueue
    from wakeful.service.queries.task_output import TaskWatcher

Scope: TypeAlias = Literal["observe", "operate"]
"""`observe` reads, `operate` decides and changes."""
Q = TypeVar("Q")
A = TypeVar("A")
IDENTITY = ("by", "sender", "said_by")
"""Fields of requests that say who acts. Blank: the surface that asks says it, by `in_name_of`."""


class OpenStore:
    """A store that somebody asks about, with what an operation may need beside it, made when it is needed."""

    def __init__(
        self,
        store: "Store",
        engine: "Callable[[Store], Engine]",
        keys: Callable[[], frozenset[str]],
        living: "LivingRuntime | None" = None,
        process: "ServingProcess | None" = None,
        host: "HostDoor | None" = None,
    ) -> None:
        self.store = store
        self._engine = engine
        self.keys = keys
        """The keys of this process: nothing that is shown may hold one."""
        self.living = living
        """The runtime that runs the agents of the store, where it is in this process."""
        self.process = process
        """This process, where it serves the store to others."""
        self.host = host
        """Hands work to the runtime, where this process serves the store to others."""
        self._followed: dict[str, AgentEvents] = {}
        self._watched: dict[str, TaskWatcher] = {}

    @cached_property
    def engine(self) -> "Engine":
        """Raises InvalidConfig for an owner's file that cannot be read."""
        return self._engine(self.store)

    @cached_property
    def replays(self) -> "ReplayQueue":
        """Turns of all who read what is stored here."""
        from wakeful.service.queries.replay_queue import ReplayQueue

        return ReplayQueue()

    @cached_property
    def feed(self) -> "FeedReader":
        """The feed over all agents, read once for all who follow it here."""
        from wakeful.service.queries.operator_feed import FeedReader

        return FeedReader(self.store, keys=self.keys(), replays=self.replays)

    @cached_property
    def once_per_key(self) -> "OncePerKey":
        """Requests of this process that have idempotency keys."""
        from wakeful.service.commands.keyed_requests import OncePerKey

        return OncePerKey(self.engine)

    def events_of(self, agent: str) -> "AgentEvents":
        """The events of an agent, read once for all who follow it here."""
        from wakeful.service.queries.operator_feed import AgentEvents

        self._followed = {name: each for name, each in self._followed.items() if each.is_followed}
        return self._followed.setdefault(agent, AgentEvents(self.store, agent, keys=self.keys(), replays=self.replays))

    def watcher_of(self, task: str) -> "TaskWatcher":
        """Looks after the output of a task, once for all who follow it here."""
        from wakeful.service.queries.task_output import TaskWatcher

        self._watched = {name: each for name, each in self._watched.items() if each.is_followed}
        return self._watched.setdefault(task, TaskWatcher(self.engine, task))


@dataclass(frozen=True, slots=True)
class NoRequest:
    """No words are needed."""


@dataclass(frozen=True, slots=True)
class Operation(Generic[Q, A]):
    """One thing that may be asked."""

    name: str
    scope: Scope
    request: type[Q]
    answer: str
    """The address of what is answered, or of each item of it; loaded by `answer_type`."""
    handler: Callable[[OpenStore, Q], Awaitable[A]]
    many: bool = False
    """A list of it is answered."""
    repeatable: bool = False
    """Done twice it comes to the same as done once, so that one that was cut off may be done again."""
    is_secret: bool = False
    """The answer holds a secret: it is not kept for whoever asks again."""

    @property
    def changes(self) -> bool:
        """The store is written: one that can only be read refuses."""
        return self.scope == "operate"

    def answer_type(self) -> Any:
        """The class of the answer, or of each item of it."""
        module, _, name = self.answer.rpartition(".")
        return getattr(import_module(module), name)


def in_name_of(asked: Q, caller: str) -> Q:
    """The request with who acts, where it does not say that yet."""
    blank = {each.name: caller for each in fields(asked) if each.name in IDENTITY and not getattr(asked, each.name)}  # type: ignore[arg-type]
    return replace(asked, **blank) if blank else asked  # type: ignore[type-var]


def check_no_tool(what: str) -> None:
    """No tool of an agent decides for a person, whatever store it opens. Raises NotEntitled."""
    check_outside_tools(f"decide about {what}")


def check_outside_tools(doing: str) -> None:
    """This is no code of a tool, nor anything that one has started. Raises NotEntitled."""
    from wakeful.contracts.errors import NotEntitled
    from wakeful.tools.call_runner import inside_tool

    if inside_tool.get():
        raise NotEntitled(
            f"a tool of an agent may not {doing}", "nothing was changed; a person or your own program decides"
        )
