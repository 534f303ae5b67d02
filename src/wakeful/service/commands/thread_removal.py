"""Delete a conversation. Not while something of it is open: that is named, with the commands that end it.

It is one fact. The next message under the name begins an empty conversation, and what was said leaves the log with the
next pass of retention. Briefs, costs and approvals stay. Deleting what is deleted changes nothing.
"""

from difflib import get_close_matches

from wakeful.contracts.envelope import MAIN_THREAD, Fact
from wakeful.contracts.errors import EventRefused, InvalidRequest, ThreadNotFound
from wakeful.contracts.events import ThreadDeleted
from wakeful.engine.run_request import Engine
from wakeful.engine.warm_threads import warm_threads
from wakeful.ports import Store
from wakeful.ports.waits import WaitRow
from wakeful.views.store_records import DeletedThread

MOST_NAMED = 5
NEAR = 200
"""Among how many of the threads that were used last a mistyped name is looked for."""
MOST_AGENTS = 50
"""Of how many agents with a thread of the same name one is looked for."""


async def delete_thread(
    engine: Engine, thread: str, agent: str | None = None, *, by: str, reason: str = ""
) -> DeletedThread:
    """Raises ThreadNotFound, or InvalidRequest: for `main`, a name that several agents have, or with what is open."""
    if thread == MAIN_THREAD:
        raise InvalidRequest(
            f"{MAIN_THREAD!r} is the thread in which an agent lives, and stays",
            "Hold conversations that are to be deleted in threads of their own: --thread NAME. "
            "For an agent that is not needed any more: wakeful agent archive",
        )
    agent_id = await _agent_of(engine.store, thread, agent)
    while True:
        row = await engine.store.thread(agent_id, thread)
        if row is None:
            return await _deleted_before(engine.store, agent_id, thread)
        if found := await _open_matters(engine.store, agent_id, thread):
            words = "; ".join(f"{what}: {_some(names)}" for what, _, names in found)
            raise InvalidRequest(
                f"thread {thread!r} of {row.agent_name} cannot be deleted now: {words}",
                "Let it end, or end it first: " + "; ".join(dict.fromkeys(way for _, way, _ in found)),
            )
        now = engine.clock.now()
        deleted = ThreadDeleted(deleted_by=by, reason=reason, turns=row.turns)
        try:
            await engine.store.admit(agent_id, [Fact(deleted, now, thread)])
        except EventRefused:
            continue  # a message came meanwhile, or somebody else deleted it
        warm_threads.forget(engine.store, agent_id, thread)
        return DeletedThread(
            thread=thread, agent=row.agent_name, agent_id=agent_id, turns=row.turns, deleted_at=now / 1e6
        )


async def _agent_of(store: Store, thread: str, agent: str | None) -> str:
    """The agent whose thread is meant, also where that is deleted. Raises ThreadNotFound or InvalidRequest."""
    for deleted in (False, True):
        names = await _agents(store, thread, deleted=deleted)
        meant = [each for each, name in names.items() if agent in (None, name, each)]
        if len(meant) > 1:
            said = ", ".join(sorted(f"{names[each]} ({each})" for each in meant))
            raise InvalidRequest(f"{len(meant)} agents have a thread {thread!r}: {said}", "Say which: --agent NAME")
        if meant:
            return meant[0]
    others = await _agents(store, thread, deleted=False)
    if others:
        raise ThreadNotFound(
            f"agent {agent!r} has no thread {thread!r}", f"Agents that have one: {', '.join(sorted(others.values()))}."
        )
    known = [row.thread_id for row in await store.threads(limit=NEAR) if agent in (None, row.agent_name, row.agent_id)]
    near = get_close_matches(thread, dict.fromkeys(known), n=3, cutoff=0.5)
    of = "" if agent is None else f" of {agent}"
    hint = f"Did you mean {' or '.join(near)}?" if near else "List the threads: wakeful thread list"
    raise ThreadNotFound(f"there is no thread {thread!r}{of}", hint)


async def _agents(store: Store, thread: str, *, deleted: bool) -> dict[str, str]:
    """The agents that have a thread of that name, by id."""
    ids = await store.agents_of_thread(thread, limit=MOST_AGENTS, deleted=deleted)
    if deleted:
        return {each: (await store.deleted_turns(each, thread))[-1].agent_name for each in ids}
    return {each: (await store.turns_of_thread(each, thread, last=1))[-1].agent_name for each in ids}


async def _deleted_before(store: Store, agent_id: str, thread: str) -> DeletedThread:
    rows = await store.deleted_turns(agent_id, thread)
    return DeletedThread(
        thread=thread,
        agent=rows[-1].agent_name,
        agent_id=agent_id,
        turns=len(rows),
        deleted_at=(rows[-1].deleted_at or 0) / 1e6,
    )


async def _open_matters(store: Store, agent_id: str, thread: str) -> list[tuple[str, str, list[str]]]:
    """What is open: what it is, the command that ends it, and its ids."""
    turns = [row.turn_id for row in await store.turns_of_thread(agent_id, thread, open_only=True)]
    asked = [row.action_id for turn in turns for row in await store.actions(pending_only=True, turn_id=turn)]
    queued = [row.message_id for row in await store.queued(agent_id, thread, limit=MOST_NAMED + 1)]
    deferred = [row.message_id for row in await store.deferred(agent_id, thread)]
    unknown = [row.call_id for row in await store.unknown() if (row.agent_id, row.thread_id) == (agent_id, thread)]
    timers = [row.timer_id for row in await store.armed_timers(agent_id) if thread in (row.thread_id, row.thread)]
    own_waits = [row for row in await store.open_waits(agent_id) if row.thread_id == thread]
    waits = [row.wait_id for row in own_waits]
    tasks = [row.task_id for row in await store.tasks_of(agent_id) if row.thread_id == thread and not row.is_over]
    answered = f'wakeful send {agent_id} --thread {thread} "..."'
    taken = "wakeful daemon start, whose turns take them"
    found = [
        ("open turns", "wakeful cancel TURN", turns),
        ("pending approvals", "wakeful reject ID", asked),
        ("queued messages", taken, queued),
        ("deferred messages", taken, deferred),
        ("calls with an unknown outcome", "wakeful resolve CALL", unknown),
        ("timers", "wakeful timer cancel TIMER", timers),
        ("waits", f"{answered} {_ends(own_waits)}", waits),
        ("tasks", "wakeful task stop TASK", tasks),
    ]
    return [each for each in found if each[2]]


def _ends(waits: list[WaitRow]) -> str:
    """What a message does to these waits."""
    if all(wait.wake == "operator_input" for wait in waits):
        return "ends what it waits for"
    return "lets it cancel what it waits for; else that ends at its time"


def _some(ids: list[str]) -> str:
    more = len(ids) - MOST_NAMED
    return ", ".join(ids[:MOST_NAMED]) + (" and more" if more > 0 else "")
