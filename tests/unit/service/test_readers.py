"""Readers: what is delivered twice counts once, and what is read later forgets nothing that is still open."""

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import pytest

from kit.hosts.task_host import OWNER, TaskHost
from kit.runs.asked_runs import REFUND, World, again, agent, asked, say
from kit.runs.engine_runs import cut
from kit.runs.whole_views import run_stream, transcript, wire_messages
from wakeful import Agent, Approve, run, tool
from wakeful.contracts.envelope import RuntimeEvent, StoredFact, published
from wakeful.contracts.events import ActionRequired, ActionResolved, ToolFailed
from wakeful.store.memory import Memory, MemoryStore
from wakeful.testing import scripted
from wakeful.views.conversation_export import export
from wakeful.views.cost import cost_summary
from wakeful.views.explanation import explained
from wakeful.views.latency import turn_latency
from wakeful.views.tree import execution_tree, thread_messages
from wakeful.views.turn_record import terminal_record

READERS: dict[str, Callable[[str, Sequence[StoredFact]], Any]] = {
    "run stream": run_stream,
    "wire": wire_messages,
    "tree": lambda turn, facts: execution_tree(facts, turn),
    "thread": lambda turn, facts: thread_messages(facts),
    "transcript": lambda turn, facts: transcript(facts),
    "export": lambda turn, facts: export(facts, None),
    "latency": turn_latency,
    "cost": cost_summary,
    "end": terminal_record,
    "why": lambda turn, facts: explained(turn, "shop", str(_call(facts)), facts, {}),
}


@tool(effect="pure")
def broken() -> str:
    raise ValueError("it does not work")


def _call(facts: Sequence[StoredFact]) -> str | None:
    return next(entry.fact.call_id for entry in facts if isinstance(entry.fact.event, ActionRequired))


async def decided_run() -> tuple[Memory, str, list[StoredFact]]:
    """A turn with a call that failed and one that a person let through, in its thread."""
    memory, world = Memory(), World()
    store = MemoryStore(memory)
    support = agent([world.tool(approval=True), broken], (("broken", {}),), (REFUND,), (("broken", {}),))
    waiting = await asked(support, store, thread="t")
    await say(store, waiting.approvals[0], Approve())
    done = await again(support, store, thread="t")
    assert (done.output, world.names) == ("done", ["refund"])
    return memory, done.turn_id, list(done.facts())


@pytest.mark.spec("STD-ENV-08")
async def test_what_is_delivered_twice_counts_once_and_nothing_open_or_failed_is_ever_lost() -> None:
    memory, turn_id, facts = await decided_run()
    for name, read in READERS.items():
        whole = read(turn_id, facts)
        twice = [entry for entry in facts for _ in range(2)]
        assert read(turn_id, twice) == whole, f"{name}: each fact twice"
        for place in (1, len(facts) // 2, len(facts) - 1):  # a reader that comes back and is given some again
            assert read(turn_id, [*facts[:place], *facts[max(0, place - 5) :]]) == whole, f"{name}: from {place}"

    failed: set[str] = set()
    required: set[str] = set()
    for place, entry in enumerate(facts, 1):
        event = entry.fact.event
        if isinstance(event, ToolFailed):
            failed.add(str(entry.fact.call_id))
        elif isinstance(event, ActionRequired):
            required.add(str(entry.fact.action_id))
        elif isinstance(event, ActionResolved):
            required.discard(str(entry.fact.action_id))
        snapshot = execution_tree(facts[:place], turn_id)
        assert {node.id for node in snapshot.nodes if node.is_error} == failed
        later = MemoryStore(cut(memory, entry.agent_id, entry.seq))
        assert {row.action_id for row in await later.actions(pending_only=True)} == required
    assert len(failed) == 2


@pytest.mark.spec("STD-ENV-05")
async def test_the_ids_of_events_form_a_tree_and_none_stands_for_two_things() -> None:
    store, world = MemoryStore(), World()
    rounds = ((("look", {}), ("refund", {"order": "A17", "cents": 1})), (("look", {}),))
    support = agent([world.tool(approval=True), world.reading()], *rounds)
    for thread, key in (("t1", "a"), ("t2", "b"), ("t1", "c")):
        waiting = await run(support, "go", store=store, key=key, thread=thread)
        await say(store, waiting.approvals[0], Approve())
        assert (await run(support, "go", store=store, key=key, thread=thread)).output == "done"
    (agent_id,) = await store.agents()
    events = [published(entry, "runtime_1") for entry in await store.read(agent_id)]
    levels: list[Callable[[RuntimeEvent], str | None]] = [
        lambda event: event.session_id,
        lambda event: event.thread_id,
        lambda event: event.turn_id,
        lambda event: event.step_id,
        lambda event: event.tool_call_id and f"{event.turn_id} {event.tool_call_id}",  # a call is named in its turn
        lambda event: event.action_id,
    ]
    names = [{name for event in events if (name := level(event)) is not None} for level in levels]
    assert [len(each) for each in names] == [1, 2, 3, 9, 9, 3]
    assert sum(map(len, names)) == len(set().union(*names)), "no id of one level is an id of another"
    for outer, inner in pairwise(levels):
        inside: dict[str, set[str | None]] = {}
        for event in events:
            if (name := inner(event)) is not None:
                inside.setdefault(name, set()).add(outer(event))
        assert all(len(holders) == 1 and None not in holders for holders in inside.values()), "each is in one"

    # A task survives retries, and each retry is a run of its own.
    tasks = TaskHost(MemoryStore(), agents=[Agent("support", scripted(["done"]))])
    runs = [await tasks.call("run_task", {"task_id": "t", "session_id": "s"}, OWNER) for _ in range(2)]
    kept = await tasks.host.dispatcher.all(OWNER)
    begun = [(await tasks.host.dispatcher.events("s", each.run_id, OWNER))[0] for each in kept]
    assert {each["payload"]["task_id"] for each in begun} == {"t"}
    assert {each.run_id for each in kept} == {each["run_id"] for each in runs} and len(kept) == 2
    assert len({row.turn_id for row in await tasks.store.turns()}) == 2
