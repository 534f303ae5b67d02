"""What one verdict of the gate costs: classes, 50 rules, people, provenance, for a turn with 200 tools.

    python benchmarks/gate.py

Each figure is the median over batches of calls, in microseconds a call, in one process. The same is measured with 2
tools: a verdict may not grow with the number of tools. Compiling the policy is done once a turn and shown beside it.
"""

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass

from reporting import Aim, aims_table, number, table

from wakeful.contracts.policies import GatePolicy, Rule
from wakeful.contracts.tools import ToolDeclaration
from wakeful.decisions.policy.permissions import default_policy
from wakeful.decisions.policy.provenance import Exposure
from wakeful.decisions.policy.verdict import CallUnderJudgement, CompiledPolicy, compile_policy, judge

TOOLS = 200
FEW = 2
RULES = 50
BATCH = 200
BATCHES = 100
LIMIT = 50.0
GROWTH = 1.5
TEXT = f"""## The cost of a verdict

One verdict of the gate, with nothing appended and nothing run: permission classes, {RULES} rules, `hitl_tools`,
provenance. Median of {BATCHES} batches of {BATCH} calls in one process.
"""


@dataclass(frozen=True)
class Cost:
    """Microseconds."""

    what: str
    few: float
    many: float


def declarations(count: int) -> list[ToolDeclaration]:
    """Half of them local, half of a server; the first two are those that are called."""
    commands = ToolDeclaration(name="exec_command", input_schema={}, permission_class="execute")
    merging = ToolDeclaration(name="mcp.github/merge_pr", input_schema={}, runtime_owner="mcp_server")
    others = [
        ToolDeclaration(name=f"mcp.github/tool_{n}", input_schema={}, runtime_owner="mcp_server")
        if n % 2
        else ToolDeclaration(name=f"tool_{n}", input_schema={}, effect="pure")
        for n in range(count - 2)
    ]
    return [commands, merging, *others]


def policy() -> GatePolicy:
    on_commands = [
        Rule(match="exec_command", arguments={"cmd": f"program-{n} *"}, decision="deny") for n in range(RULES // 2)
    ]
    by_name = [
        Rule(match=f"mcp.github/{'tool' if n % 2 else 'merge'}_*", decision="ask" if n % 3 else "allow")
        for n in range(RULES - len(on_commands))
    ]
    return GatePolicy(
        tools=default_policy("thread", profile="coding", workspace_root="workspace", allowed_mcp_servers=["github"]),
        rules=tuple(on_commands + by_name),
        hitl_tools=("mcp.github/merge_*", "refund"),
    )


CALLS = {
    "a command, 25 rules look at its text": CallUnderJudgement(
        name="exec_command", arguments={"cmd": "git status --short"}, now=0.0
    ),
    "a server's tool, asked by rules and by name": CallUnderJudgement(
        name="mcp.github/merge_pr", arguments={"number": 7}, now=0.0
    ),
    "the same in a turn that saw all there is to see": CallUnderJudgement(
        name="mcp.github/merge_pr",
        arguments={"number": 7},
        now=0.0,
        derived_from="external_evidence",
        exposure=Exposure("fetch", "read_mail"),
    ),
}


def run() -> list[Cost]:
    few, many = (compile_policy(policy(), declarations(count)) for count in (FEW, TOOLS))
    costs = [Cost(what, _judging(call, few), _judging(call, many)) for what, call in CALLS.items()]
    return [*costs, Cost("compiling, once a turn", _compiling(FEW), _compiling(TOOLS))]


def _judging(call: CallUnderJudgement, compiled: CompiledPolicy) -> float:
    def batch() -> None:
        for _ in range(BATCH):
            judge(call, compiled)

    return _median(batch, BATCHES) / BATCH


def _compiling(count: int) -> float:
    tools, rules = declarations(count), policy()
    return _median(lambda: compile_policy(rules, tools), 20)


def _median(work: Callable[[], object], times: int) -> float:
    work()
    took = []
    for _ in range(times):
        began = time.perf_counter()
        work()
        took.append((time.perf_counter() - began) * 1e6)
    return statistics.median(took)


def aims(costs: list[Cost]) -> list[Aim]:
    verdicts = costs[:-1]
    return [
        Aim(f"a verdict with {RULES} rules and {TOOLS} tools", max(cost.many for cost in verdicts), LIMIT, "µs"),
        Aim(
            f"the same verdict with {TOOLS} tools against {FEW}",
            max(cost.many / cost.few for cost in verdicts),
            GROWTH,
            "times",
        ),
    ]


def markdown(costs: list[Cost]) -> str:
    rows = [[cost.what, number(cost.few), number(cost.many)] for cost in costs]
    return f"{TEXT}\n{table(['', f'{FEW} tools, µs', f'{TOOLS} tools, µs'], rows)}\n\n{aims_table(aims(costs))}\n"


if __name__ == "__main__":
    print(markdown(run()))
