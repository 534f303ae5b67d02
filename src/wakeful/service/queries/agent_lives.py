"""Why an agent does what it does: the state of each of its threads in a sentence, with the facts it rests on."""

from wakeful.decisions.waking.liveness import Liveness, LivenessViolation
from wakeful.decisions.work_items.activation import activation
from wakeful.engine.run_request import Engine
from wakeful.engine.work_items import NEEDS_INPUT, OBJECTIVE_CHARS, active_waits
from wakeful.runtime.thread_lives import owing_threads, thread_life
from wakeful.service.commands.agents import agent_named
from wakeful.views.runtime_records import AgentLife, ThreadLife

_FIRST = ("broken", "stopped", "paused", "running", "queued", "waiting", "idle")
"""Of several threads, the one with the first of these states speaks for the agent."""


async def why_agent(engine: Engine, agent: str) -> AgentLife:
    """Raises AgentNotFound."""
    row = await agent_named(engine.store, agent)
    threads = [
        _record(agent, thread, await thread_life(engine, row, thread)) for thread in await owing_threads(engine, agent)
    ]
    first = min(threads, key=lambda each: _FIRST.index(each.state))
    sentence = " ".join([first.sentence, *(await _open_work(engine, agent) if first.state == "idle" else ())])
    return AgentLife(agent=agent, state=first.state, sentence=sentence, threads=tuple(threads))


async def _open_work(engine: Engine, agent: str) -> list[str]:
    """The work of an agent at rest, where nothing but somebody's word moves it: an item that needs input, or one that
    is left alone because a person cancelled the turn about it."""
    items = await engine.store.open_work_items(agent)
    asking = [item for item in items if item.plan_status == NEEDS_INPUT]
    if asking:
        more = f" ({len(asking) - 1} more do)" if len(asking) > 1 else ""
        return [f"Work item {asking[0].work_item_id} needs your input{more}: {asking[0].objective[:OBJECTIVE_CHARS]}"]
    alone = activation(items, None, await active_waits(engine.store, agent))
    if alone is None:
        return []
    words = alone.item.objective[:OBJECTIVE_CHARS]
    return [f"Work item {alone.item.work_item_id} is left alone until you send {agent} a message: {words}"]


def _record(agent: str, thread: str, life: Liveness | LivenessViolation) -> ThreadLife:
    where = agent if thread == "main" else f"{agent} (thread {thread})"
    if isinstance(life, LivenessViolation):
        evidence = (f"{life.owed.owed} {life.owed.owed_id}",)
        words = f"{where} hangs: {life.words}. A runtime repairs this: a new one at once, a running one in a minute."
        return ThreadLife(thread=thread, state="broken", sentence=words, evidence=evidence)
    until = None if life.until is None else life.until / 1e6
    return ThreadLife(
        thread=thread, state=life.state, sentence=f"{where} {life.words}.", until=until, evidence=life.evidence
    )
