"""The cost of the gate per call, from its arguments to its outcome, without the log and without the tool.

    python benchmarks/mediating.py

`admit` and the shaping of a short result, for an in-process pure tool, under a policy of 50 rules, with 200 declared
tools; the same with 2 tools, and with a long conversation behind it: neither may matter. Beside it, what taking up a
turn costs the gate, and whether calls on distinct locks wait for each other.
"""

import asyncio
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from reporting import Aim, aims_table, number, table

from wakeful import Agent, run, tool
from wakeful.contracts.agents import TurnConfig
from wakeful.contracts.content import Text
from wakeful.contracts.conversation import CallPart, UserItem
from wakeful.contracts.policies import GatePolicy, Rule
from wakeful.decisions.level_conversation import LevelConversation
from wakeful.decisions.levels import Call
from wakeful.decisions.policy.permissions import default_policy
from wakeful.decisions.secret_values import keys_only
from wakeful.decisions.state import TurnState
from wakeful.gate.locks import LockTable
from wakeful.gate.outcomes import succeeded
from wakeful.gate.passage import Mediator
from wakeful.gate.turn_gate import GateParts
from wakeful.gate.turn_policy import TurnPolicy
from wakeful.store.memory import MemoryStore
from wakeful.testing import scripted
from wakeful.tools.results import show

TOOLS, FEW, RULES = 200, 2, 50
LONG = 20_000
BATCH, BATCHES = 200, 60
LIMIT = 150.0
GROWTH = 1.5
WAITS, WAIT_MS, WAITS_LIMIT = 100, 50, 150.0
SIDE_BY_SIDE = 8
"""As many calls as one turn runs at a time."""
TEXT = f"""## The cost of the gate per call

From a call's arguments to its outcome, without the log and without the tool: reading and validating the arguments, the
policy ({RULES} rules, classes, provenance), the facts of its beginning and end. In-process pure tool, median of
{BATCHES} batches of {BATCH} calls. The long conversation has {LONG:,} items.
"""


@dataclass(frozen=True)
class Costs:
    """Microseconds a call; `waits_ms` is the whole of the parallel waits."""

    few: float
    many: float
    long: float
    plain: float
    """Of a tool that no rule is about."""
    set_up: float
    """Of a turn with 200 tools that this process has run before."""
    waits_ms: float
    waits_same_ms: float


def _tools(count: int) -> list[Any]:
    made = []
    for n in range(count):

        def look_up(order: str, limit: int = 10, exact: bool = False) -> str:
            """Look an order up."""
            return order

        made.append(tool(effect="pure", name=f"tool_{n}")(look_up))
    return made


def _policy(*, about_it: bool = True) -> GatePolicy:
    own = [Rule(match="tool_0", arguments={"order": f"forbidden-{n}*"}, decision="deny") for n in range(RULES // 2)]
    others = [Rule(match=f"other_{n}_*", decision="ask") for n in range(RULES - len(own))]
    return GatePolicy(tools=default_policy("library"), rules=(*(own if about_it else ()), *others))


def _gate(count: int, items: int = 0, *, about_it: bool = True) -> tuple[Mediator, Callable[[], None]]:
    tools = {each.name: each for each in _tools(count)}
    config = TurnConfig(
        agent_name="a",
        model_ref="m",
        tools=tuple(each.declaration for each in tools.values()),
        policy=_policy(about_it=about_it),
    )
    state = TurnState(conversation=LevelConversation([UserItem(parts=(Text("x"),)) for _ in range(items)]))
    policy = TurnPolicy(lambda: state, lambda: config, b"s" * 32)
    parts = GateParts(policy, locks=LockTable(), secret=b"s" * 32)
    mediator = Mediator(config, tools, "turn", parts)
    keys = keys_only(frozenset({"a-key-of-this-process-0123456789"}))
    arguments = {"order": "A17", "limit": 3}
    calls = [
        Call(CallPart(call_id=f"call_{n}", name="tool_0", arguments=arguments), 1, n, malformed=False, level=state)
        for n in range(BATCH)
    ]

    def batch() -> None:
        for call in calls:
            admission = mediator.admit(call, arguments, now=1.0, batch_id="b", scheduling="parallel")
            assert admission.dispatch is not None
            parts_, _, size = show(keys.hide_keys("A17: 3 pieces, shipped on Monday"))
            succeeded(admission.dispatch, now=2.0, parts=parts_, size_bytes=size, whole=None)

    return mediator, batch


def run_parts() -> Costs:
    few, many, long = (_median(_gate(*given)[1], BATCHES) / BATCH for given in ((FEW,), (TOOLS,), (TOOLS, LONG)))
    plain = _median(_gate(TOOLS, about_it=False)[1], BATCHES) / BATCH
    return Costs(
        few, many, long, plain, _set_up(), asyncio.run(_waits(distinct=True)), asyncio.run(_waits(distinct=False))
    )


def _set_up() -> float:
    """What a turn with 200 tools costs more than one with none, in a process that has run one before."""
    tools, policy = _tools(TOOLS), _policy()

    async def turns(given: list[Any]) -> float:
        agent = Agent("a", scripted(["done"]), tools=given, policy=policy)
        took = []
        store = MemoryStore()
        for _ in range(30):
            began = time.perf_counter()
            await run(agent, "go", store=store)
            took.append((time.perf_counter() - began) * 1e6)
        return statistics.median(took[5:])

    return asyncio.run(turns(tools)) - asyncio.run(turns([]))


async def _waits(*, distinct: bool) -> float:
    """100 calls at once, each of which waits 50 ms under a lock: its own, or three of them the same.

    A round runs a few calls side by side, so they are those of several turns; the turns' own cost is in it.
    """

    def waiting(n: int) -> Any:
        async def wait() -> str:
            """Wait."""
            await asyncio.sleep(WAIT_MS / 1000)
            return "waited"

        return tool(effect="pure", name=f"wait_{n}", locks=[f"lock_{n}" if distinct else "lock"])(wait)

    tools = [waiting(n) for n in range(WAITS if distinct else 3)]
    agents = []
    for first in range(0, len(tools), SIDE_BY_SIDE):
        mine = tools[first : first + SIDE_BY_SIDE]
        calls = [{"name": each.name, "arguments": {}} for each in mine]
        agents.append(Agent(f"a{first}", scripted([{"calls": calls}, "done"]), tools=mine))
    store = MemoryStore()
    took = []
    for _ in range(7):
        began = time.perf_counter()
        await asyncio.gather(*(run(agent, "go", store=store) for agent in agents))
        took.append((time.perf_counter() - began) * 1000)
    return statistics.median(took[2:])


def _median(work: Callable[[], object], times: int) -> float:
    work()
    took = []
    for _ in range(times):
        began = time.perf_counter()
        work()
        took.append((time.perf_counter() - began) * 1e6)
    return statistics.median(took)


def aims(costs: Costs) -> list[Aim]:
    return [
        Aim(f"mediation of a call, {RULES} rules, {TOOLS} tools", costs.many, LIMIT, "µs"),
        Aim(f"the same with {TOOLS} tools against {FEW}", costs.many / costs.few, GROWTH, "times"),
        Aim(f"the same after {LONG:,} items against none", costs.long / costs.many, GROWTH, "times"),
        Aim(f"{WAITS} calls, each {WAIT_MS} ms under a lock of its own", costs.waits_ms, WAITS_LIMIT, "ms"),
    ]


def markdown(costs: Costs) -> str:
    rows = [
        [f"{FEW} tools", number(costs.few)],
        [f"{TOOLS} tools", number(costs.many)],
        [f"{TOOLS} tools, a long conversation", number(costs.long)],
        [f"{TOOLS} tools, a tool that no rule is about", number(costs.plain)],
    ]
    beside = (
        f"Taking up a turn with {TOOLS} tools costs {number(costs.set_up)} µs more than one with none, in a process "
        f"that has run one before. {WAITS} calls at once, of {-(-WAITS // SIDE_BY_SIDE)} turns, each of which waits "
        f"{WAIT_MS} ms under a lock of its own, take {number(costs.waits_ms)} ms with their turns; three that want the "
        f"same lock, {number(costs.waits_same_ms)} ms."
    )
    return f"{TEXT}\n{table(['', 'µs a call'], rows)}\n\n{beside}\n\n{aims_table(aims(costs))}\n"


if __name__ == "__main__":
    print(markdown(run_parts()))
