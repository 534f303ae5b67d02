"""What may be asked about threads and their messages, and to delete one."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from wakeful.service.operations.operation import OpenStore, Operation, check_no_tool
from wakeful.service.operations.turns import PAGE

if TYPE_CHECKING:
    from wakeful.views.store_records import DeletedThread, ThreadRecord
    from wakeful.views.tree import ThreadMessage


@dataclass(frozen=True, slots=True)
class ThreadQuery:
    """The threads of all agents, or of one."""

    agent: str | None = None
    limit: int = PAGE
    before: tuple[float, str, str] | None = None
    """The last thread of the page before: when it was active, its `agent_id` and its name."""


@dataclass(frozen=True, slots=True)
class MessageQuery:
    """The newest messages of a thread."""

    thread: str
    agent: str | None = None
    limit: int = PAGE
    before: int | None = None
    """The `event_seq` of the first message of the page after."""


@dataclass(frozen=True, slots=True)
class ThreadRemoval:
    """A thread that is to be deleted; `agent`: whose, where several have one of that name."""

    thread: str
    agent: str | None = None
    by: str = ""
    reason: str = ""


async def _threads(opened: OpenStore, asked: ThreadQuery) -> "list[ThreadRecord]":
    from wakeful.ports.threads import ThreadPlace
    from wakeful.service.queries.history import threads

    place = None
    if asked.before is not None:
        active_at, agent_id, thread = asked.before
        place = ThreadPlace(round(active_at * 1e6), agent_id, thread)
    return await threads(opened.store, asked.agent, asked.limit, place)


async def _messages(opened: OpenStore, asked: MessageQuery) -> "list[ThreadMessage]":
    from wakeful.service.queries.history import messages

    return await messages(opened.store, asked.thread, asked.agent, asked.limit, asked.before, keys=opened.keys())


async def _delete(opened: OpenStore, asked: ThreadRemoval) -> "DeletedThread":
    from wakeful.service.commands.thread_removal import delete_thread

    check_no_tool("threads")
    return await delete_thread(opened.engine, asked.thread, asked.agent, by=asked.by, reason=asked.reason)


_RECORDS = "wakeful.views.store_records"
LIST_THREADS = Operation("threads.list", "observe", ThreadQuery, f"{_RECORDS}.ThreadRecord", _threads, many=True)
LIST_MESSAGES = Operation(
    "threads.messages", "observe", MessageQuery, "wakeful.views.tree.ThreadMessage", _messages, many=True
)
DELETE_THREAD = Operation(
    "threads.delete", "operate", ThreadRemoval, f"{_RECORDS}.DeletedThread", _delete, repeatable=True
)
