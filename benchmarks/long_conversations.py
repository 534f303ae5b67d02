"""What long conversations cost: folding a million tokens, the next round on a long history, and stable prefixes.

    python benchmarks/long_conversations.py
    python benchmarks/run.py --only long                 into its section of docs/benchmarks.md

Everything runs in one process on the memory store. The model's own time is not in any figure: it answers at once.
"""

import asyncio
import statistics
import time
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from reporting import Aim, aims_table, number, table
from wires.formats import FORMATS

from wakeful import Agent, Budget, tool
from wakeful import run as run_agent
from wakeful.contracts.agents import TurnConfig
from wakeful.contracts.content import Text
from wakeful.contracts.conversation import AssistantItem, CallPart, ToolItem, UserItem
from wakeful.contracts.envelope import Fact
from wakeful.contracts.events import CompactionStarted
from wakeful.contracts.models import TokenUsage
from wakeful.decisions.compaction_outcome import settled_fold
from wakeful.decisions.evolve.facts import evolve
from wakeful.decisions.level_conversation import LevelConversation
from wakeful.decisions.state import TurnState
from wakeful.decisions.step import EndLevel, Fold
from wakeful.decisions.turn import decide
from wakeful.store.memory import MemoryStore
from wakeful.testing import scripted
from wakeful.testing.prefixes import Stability, stability

TOKENS = 1_000_000
FOLD_MS = 200.0
FEW, MANY = 100, 100_000
GROWTH = 1.5
PREFIX_ROUNDS = 200
PREFIX_SHARE = 0.99
SAMPLES = 5

TEXT = f"""## Long conversations

Folding {TOKENS:,} tokens is everything around the model call: seeing that it is too long, finding the cut, making the
transcript, holding the summary to what it may not lose, and putting it in place. A round on a long history is a whole
round of a run (decide, build, ask, record, call a tool) with so many items before it, medians; bytes are not copied,
because no request is sent. A prefix is measured on the bytes of requests as each format encodes them, in a run of
{PREFIX_ROUNDS} rounds with tools, a plan, a token budget and `per-message` awareness. `kept` is how much of each
request the next one begins with: the aim is for that. `sent again` is the same against what is sent, which has what is
new in it as well.
"""


@dataclass(frozen=True)
class Costs:
    """Milliseconds, and shares."""

    fold: float
    few: float
    many: float
    prefixes: dict[str, Stability]


# ---- folding


def _items(tokens: int) -> list[UserItem | AssistantItem | ToolItem]:
    """Rounds with results of 3,000 characters, a message of the user before every tenth."""
    items: list[UserItem | AssistantItem | ToolItem] = []
    length = 0
    while length < tokens * 3:
        number_ = len(items)
        if number_ % 21 == 0:
            items.append(UserItem(parts=(Text(f"message {number_} " + "please look " * 10),)))
        part = CallPart(call_id=f"call_{number_}", name="look", arguments={"x": str(number_)})
        result = ToolItem(call_id=part.call_id, name="look", parts=(Text("lorem ipsum " * 250),))
        items.extend((AssistantItem(parts=(part,)), result))
        length += 3_060
    return items


def fold_once() -> float:
    """Milliseconds around one summary of the whole conversation."""
    config = TurnConfig(agent_name="a", model_ref="scripted:x", context_window=TOKENS)
    state = TurnState(config=config, conversation=LevelConversation(_items(TOKENS)), phase="ready")
    state.tree.able[None] = state
    began = time.perf_counter()
    (fold,) = decide(state)
    assert isinstance(fold, Fold), fold
    begun = CompactionStarted(
        compaction_id="cmp_1",
        trigger=fold.trigger,
        tokens_before=fold.tokens_before,
        cut=fold.cut,
        level_id="~compaction:1.1",
    )
    evolve(state, Fact(begun, 1, "t", "turn_1"))
    writer = state.tree.levels["~compaction:1.1"]
    writer.answer.final_text = "a summary of it all"
    ended = settled_fold(state, state, writer, EndLevel("~compaction:1.1"))
    assert ended.kind == "context.compaction.completed", ended
    evolve(state, Fact(ended, 2, "t", "turn_1"))
    took = (time.perf_counter() - began) * 1000
    assert len(state.conversation.items) < fold.cut
    return took


# ---- a round


@tool(effect="pure")
async def look(x: str) -> str:
    """Look."""
    return "seen"


async def round_on(items: int, rounds: int = 60) -> float:
    """Milliseconds of one round on a conversation of so many items, the median."""
    earlier: list[Any] = []
    while len(earlier) < items:
        earlier += [{"role": "user", "content": "and then?"}, {"role": "assistant", "content": "then this"}]
    at: list[float] = []

    def answer(request: Any) -> Any:
        at.append(time.perf_counter())
        usage = TokenUsage(input_tokens=10, output_tokens=1, total_tokens=11).model_dump()
        if request.answered < rounds:
            return {"calls": [{"name": "look", "arguments": {"x": "1"}}], "usage": usage}
        return "done"

    agent = Agent("a", scripted(answer, context_window=10**9), tools=[look])
    result = await run_agent(agent, "go", store=MemoryStore(), history=earlier)
    assert result.status == "completed"
    gaps = [after - before for before, after in pairwise(at)][5:]
    return statistics.median(gaps) * 1000


# ---- prefixes


@tool(effect="pure")
def weigh(order: str, unit: str = "g") -> int:
    """Weigh an order, in the unit that is asked for."""
    return 7


async def prefix_of(name: str) -> Stability:
    bodies: list[bytes] = []
    encoders: list[Any] = []

    def answer(request: Any) -> Any:
        if request.level is not None:
            return "1. look\n2. weigh\n3. answer"
        if not encoders:
            encoders.append(FORMATS[name].encoder(request.tools))
        bodies.append(b"".join(encoders[0].body(request)))
        if request.answered < PREFIX_ROUNDS:
            given = {"order": f"A{request.answered}"}
            return {"text": "I weigh the next one.", "calls": [{"name": "weigh", "arguments": given}]}
        return "done"

    agent = Agent(
        "clerk",
        scripted(answer, context_window=10**7),
        "You serve a shop, and know its rules by heart. " * 200,
        tools=[look, weigh],
        planning_enabled=True,
        subtasks=True,
        budget_awareness="per-message",
        budget=Budget(tokens=10**9, model_calls=PREFIX_ROUNDS * 2, tool_calls=PREFIX_ROUNDS * 2),
        max_steps=PREFIX_ROUNDS * 2,
    )
    result = await run_agent(agent, "weigh them all", store=MemoryStore())
    assert result.status == "completed" and len(bodies) == PREFIX_ROUNDS + 1, (result.status, result.stop_reason)
    return stability(bodies)


# ---- the report


def run() -> Costs:
    fold_once()
    fold = statistics.median(fold_once() for _ in range(SAMPLES))
    few, many = asyncio.run(round_on(FEW)), asyncio.run(round_on(MANY))
    prefixes = {name: asyncio.run(prefix_of(name)) for name in FORMATS}
    return Costs(fold, few, many, prefixes)


def aims(costs: Costs) -> list[Aim]:
    lost = {name: 1 - found.kept for name, found in costs.prefixes.items()}
    return [
        Aim(f"folding {TOKENS:,} tokens, apart from the model", costs.fold, FOLD_MS, "ms"),
        Aim(f"a round on {MANY:,} items against one on {FEW}", costs.many / costs.few, GROWTH, "times"),
        *(
            Aim(f"{name}: share of a request that the next does not begin with", share, 1 - PREFIX_SHARE, "")
            for name, share in lost.items()
        ),
    ]


def markdown(costs: Costs) -> str:
    rows = [
        [f"folding {TOKENS:,} tokens, ms", number(costs.fold)],
        [f"a round on {FEW} items, ms", number(costs.few)],
        [f"a round on {MANY:,} items, ms", number(costs.many)],
        *(
            [
                f"{name}: kept (the least), sent again",
                f"{found.kept:.2%} ({found.worst_kept:.2%}), {found.share:.2%} of {found.sent:,} bytes",
            ]
            for name, found in costs.prefixes.items()
        ),
    ]
    return f"{TEXT}\n{table(['', 'this run'], rows)}\n\n{aims_table(aims(costs))}\n"


if __name__ == "__main__":
    print(markdown(run()))
