"""Trees of work for tests: what every level of a made-up turn will do, a model that does it, and what must hold of it.

A tree is data. Every level finds its part by the words of its task, so that the same tree can be played by the engine,
killed, taken up again, and played without any engine by the decisions alone.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Literal, TypeAlias

from hypothesis import strategies as st

from wakeful import Agent, RunContext, tool
from wakeful.contracts.budgets import Limits
from wakeful.contracts.envelope import StoredFact
from wakeful.contracts.events import (
    AssistantRecorded,
    CostRecorded,
    ModelCompleted,
    ModelFailed,
    ModelRequested,
    SubagentCompleted,
    SubagentFailed,
    SubagentStarted,
    Terminal,
    ToolDispatched,
    ToolFailed,
    ToolResult,
    ToolStarted,
)
from wakeful.decisions.spend_windows import costs_nothing
from wakeful.decisions.state import TurnState
from wakeful.ports import ModelRequest
from wakeful.providers.prices import IN_CODE, ListedPrice, Price
from wakeful.providers.scripted import ScriptedModel

ProcessEnd: TypeAlias = Literal["text", "long", "unavailable", "no_key", "refused", "never"]
"""How a level ends that comes to its end: with words, or with a model that is away for a while or fails, or by calling
for ever."""
SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
LONG = "word " * 5_000
SPOKEN = 20
"""Tokens of every answer."""
MOST_OUTPUT = 40


@dataclass
class Node:
    """One level: what it calls in each of its rounds, and how it ends."""

    rounds: list[list[tuple[Any, ...]]] = field(default_factory=list)
    ending: ProcessEnd = "text"
    schema: bool = False
    """Its result has to fit a schema."""
    misfits: int = 0
    """How many payloads that do not fit it gives first."""


def planted(root: Node) -> dict[str, Node]:
    """Every level by the words of its task: `0`, `0.1.2` is what the second call of the first round makes."""
    found = {"0": root}
    for number, calls in enumerate(root.rounds):
        for place, call in enumerate(calls):
            for index, child in enumerate(_children(call)):
                below = planted(child)
                found |= {f"0.{number}.{place}.{index}{name[1:]}": node for name, node in below.items()}
    return found


def _children(call: tuple[Any, ...]) -> list[Node]:
    if call[0] in ("run", "self"):
        return [call[1]]
    return list(call[1]) if call[0] == "many" else []


def said(nodes: dict[str, Node], name: str, answered: int) -> dict[str, Any]:
    """What the model of a level says in a round."""
    node = nodes[name]
    usage = {"input_tokens": 10, "output_tokens": SPOKEN}
    if answered < len(node.rounds) and node.rounds[answered]:
        calls = [_call(f"{name}.{answered}.{place}", call) for place, call in enumerate(node.rounds[answered])]
        return {"calls": calls, "usage": usage}
    late = answered - len(node.rounds)
    if node.ending == "never":
        return {"calls": [{"name": "look", "arguments": {}}], "usage": usage}
    if node.ending == "unavailable":
        return {"fail": [{"kind": "server_error", "message": "gone", "status": 500, "retry_after": 0.0}]}
    if node.ending == "no_key":
        return {"fail": [{"kind": "auth_error", "message": "wrong key", "status": 401}]}
    if node.ending == "refused":
        return {"fail": [{"kind": "contract_error", "message": "no such setting", "status": 400}]}
    if node.schema:
        payload = {"n": "x"} if late < node.misfits else {"n": len(name)}
        return {"calls": [{"name": "finish_subtask", "arguments": payload}], "usage": usage}
    return {"text": LONG if node.ending == "long" else f"done {name}", "usage": usage}


def _call(name: str, call: tuple[Any, ...]) -> dict[str, Any]:
    kind = call[0]
    if kind == "run":
        more = {"output_schema": SCHEMA} if call[1].schema else {}
        return {"name": "run_subtask", "arguments": {"title": "t", "instructions": f"{name}.0", **more}}
    if kind == "self":
        more = {"output_schema": SCHEMA} if call[1].schema else {}
        return {"name": "spawn_self", "arguments": {"task": f"{name}.0", **more}}
    if kind == "many":
        jobs = [
            {"task": f"{name}.{index}", **({"output_schema": SCHEMA} if node.schema else {})}
            for index, node in enumerate(call[1])
        ]
        return {"name": "spawn_parallel", "arguments": {"jobs": jobs}}
    if kind == "write":
        return {"name": "scratch_write", "arguments": {"key": call[1], "value": name}}
    if kind == "list":
        return {"name": "scratch_list", "arguments": {}}
    if kind == "finish":
        return {"name": "finish_subtask", "arguments": {"n": 1}}
    return {"name": kind, "arguments": {}}


def name_of(request: ModelRequest) -> str:
    """Which level of the tree asks."""
    if request.level is None:
        return "0"
    first = next(iter(request.history))
    return first.text


class TreeModel(ScriptedModel):
    """Says what the tree says, at a price or at none that anybody knows."""

    def __init__(self, root: Node, *, priced: bool = True, asked: Counter[Any] | None = None) -> None:
        self.nodes = planted(root)
        self.asked = asked if asked is not None else Counter()
        """How often each round of each level was asked for."""
        self.price = ListedPrice(Price(Decimal(1), Decimal(10)), IN_CODE) if priced else None

        def answer(request: ModelRequest) -> Any:
            if request.level == "~plan":
                return {"text": "1. Do it.", "usage": {"input_tokens": 5, "output_tokens": 5}}
            name = name_of(request)
            self.asked[name, request.answered] += 1
            return said(self.nodes, name, request.answered)

        super().__init__(answer)

    def most_output(self, settings: Any) -> int | None:
        return MOST_OUTPUT


@tool(effect="pure")
async def look() -> str:
    """Look."""
    return "seen"


@tool(effect="keyed")
async def pay(ctx: RunContext[Any]) -> str:
    """Pay."""
    if isinstance(ctx.deps, Counter):
        ctx.deps[ctx.idempotency_key] += 1
    return "paid"


@tool(effect="keyed", locks=["alone"])
async def alone() -> str:
    """Stand alone."""
    return "one"


@tool(effect="pure")
async def fails() -> str:
    """Fail."""
    raise ValueError("no")


def tree_agent(root: Node, *, priced: bool = True, asked: Counter[Any] | None = None, **more: Any) -> Agent[Any, str]:
    model = TreeModel(root, priced=priced, asked=asked)
    options: dict[str, Any] = {"subtasks": True, "allow_parallel_subagents": True, "max_parallel_subagents": 4, **more}
    return Agent("tree", model, tools=[look, pay, alone, fails], **options)


# --- made up at random -----------------------------------------------------------------------------------------------

SIMPLE = st.one_of(
    st.sampled_from([("look",), ("pay",), ("alone",), ("fails",), ("nowhere",), ("list",), ("finish",)]),
    st.tuples(st.just("write"), st.sampled_from("ab")),
)


def nodes(depth: int, *, endings: Sequence[ProcessEnd] = ("text",)) -> st.SearchStrategy[Node]:
    """Levels that go so deep."""
    if depth == 0:
        call: st.SearchStrategy[Any] = SIMPLE
    else:
        below = st.deferred(lambda: nodes(depth - 1, endings=endings))
        call = st.one_of(
            SIMPLE,
            st.tuples(st.just("run"), below),
            st.tuples(st.just("self"), below),
            st.tuples(st.just("many"), st.lists(below, min_size=1, max_size=3)),
        )
    return st.builds(
        Node,
        rounds=st.lists(st.lists(call, max_size=3), max_size=2),
        ending=st.sampled_from(endings),
        schema=st.booleans(),
        misfits=st.integers(0, 5),
    )


# --- what must hold --------------------------------------------------------------------------------------------------


def check_tree(facts: Sequence[StoredFact], state: TurnState, limits: Limits) -> None:
    """Whatever a turn's tree did: it ended once, nothing was exceeded, and the ledger is what the facts add up to."""
    events = [entry.fact.event for entry in facts]
    ends = [event for event in events if isinstance(event, Terminal)]
    assert len(ends) == 1 and isinstance(events[-1], Terminal)
    assert ends[0].status == "completed" or (ends[0].stop_reason != "natural" and ends[0].message)
    started = Counter(event.level_id for event in events if isinstance(event, SubagentStarted))
    ended = Counter(event.level_id for event in events if isinstance(event, SubagentCompleted | SubagentFailed))
    assert started == ended and set(started.values()) <= {1}
    assert not state.tree.levels and not state.tree.in_flight and not state.tree.waiting
    _check_sums(facts, state)
    _check_limits(facts, state, limits)


def _check_sums(facts: Sequence[StoredFact], state: TurnState) -> None:
    events, ledger = [entry.fact.event for entry in facts], state.ledger
    lost = [event for event in events if isinstance(event, ModelFailed)]
    sent = [event for event in lost if event.failure_kind != "unsupported_transport"]
    free = sum(event.token_usage is None and costs_nothing(event) for event in sent)
    assert ledger.model_calls == sum(isinstance(event, ModelRequested) for event in events) - free
    begun = [
        entry.fact.call_id
        for entry in facts
        if (isinstance(entry.fact.event, ToolStarted) and entry.fact.event.dispatched)
        or (isinstance(entry.fact.event, ToolDispatched) and entry.fact.event.cause == "approval")
    ]
    assert ledger.tool_calls == len(begun) == sum(ledger.by_tool.values())
    assert ledger.subtasks == sum(isinstance(event, SubagentStarted) for event in events)
    assert not any((ledger.held_input, ledger.held_output, ledger.held_usd, ledger.held_unpriced))
    assert (ledger.input_tokens, ledger.output_tokens, ledger.usd) == _settled(facts)


def _settled(facts: Sequence[StoredFact]) -> tuple[int, int, Decimal]:
    """What the requests of a turn took: what is known of each, and what was held back for it where nothing is."""
    held: dict[str | None, ModelRequested] = {}
    priced: set[str | None] = set()
    heard = spoken = 0
    usd = Decimal(0)
    for entry in facts:
        event, level = entry.fact.event, entry.fact.level
        if isinstance(event, ModelRequested):
            held[level] = event
            priced.discard(level)
        elif isinstance(event, ModelCompleted | ModelFailed) and level in held:
            request, usage = held[level], event.token_usage
            refused = isinstance(event, ModelFailed) and (event.status is not None or event.stage == "connect")
            if usage is not None:
                heard, spoken = heard + (usage.input_tokens or 0), spoken + (usage.output_tokens or 0)
            elif not refused:
                heard, spoken = heard + (request.reserved_input or 0), spoken + (request.reserved_output or 0)
            if isinstance(event, ModelFailed):
                usd += 0 if refused else Decimal(request.reserved_usd or 0)
                del held[level]
        elif isinstance(event, CostRecorded):
            usd += Decimal(event.amount)
            priced.add(level)
        elif isinstance(event, AssistantRecorded) and level not in priced:
            usd += Decimal(held[level].reserved_usd or 0)
    return heard, spoken, usd


def _check_limits(facts: Sequence[StoredFact], state: TurnState, limits: Limits) -> None:
    ledger = state.ledger
    for used, most in (
        (ledger.model_calls, limits.model_calls),
        (ledger.tool_calls, limits.tool_calls),
        (ledger.subtasks, limits.subtasks),
        (ledger.input_tokens, limits.input_tokens),
        (ledger.output_tokens, limits.output_tokens),
        (ledger.input_tokens + ledger.output_tokens, limits.tokens),
        (max((entry.fact.depth for entry in facts), default=0), limits.depth),
    ):
        assert most is None or used <= most, (used, most)
    for name, most in limits.per_tool.items():
        assert ledger.by_tool.get(name, 0) <= most
    if limits.usd is not None:
        assert ledger.usd <= Decimal(limits.usd)
        assert ledger.unpriced_tokens <= (limits.unpriced_token_ceiling or 0)
    assert limits.width is None or most_at_once(facts) <= limits.width
    if limits.max_steps is not None:
        assert all((entry.fact.step or 0) <= limits.max_steps for entry in facts)


def most_at_once(facts: Sequence[StoredFact]) -> int:
    """How much ran and was asked at the same time, in the whole tree; a call that waits for children is neither."""
    busy: set[Any] = set()
    most = 0
    for place, entry in enumerate(facts):
        event, call_id = entry.fact.event, entry.fact.call_id
        if isinstance(event, ModelRequested):
            busy.add(("asked", entry.fact.level))
        elif event.kind in ("model.failed", "assistant.recorded"):
            busy.discard(("asked", entry.fact.level))
        elif isinstance(event, ToolStarted) and event.dispatched and not _at_once(facts, place):
            busy.add(call_id)
        elif isinstance(event, SubagentStarted | ToolResult | ToolFailed):
            busy.discard(call_id)
        most = max(most, len(busy))
    return most


def _at_once(facts: Sequence[StoredFact], place: int) -> bool:
    """Was it over in the commit it began in: answered by the runtime itself?"""
    following = facts[place + 1].fact if place + 1 < len(facts) else None
    same = following is not None and following.call_id == facts[place].fact.call_id
    return same and following is not None and not isinstance(following.event, ToolDispatched)
