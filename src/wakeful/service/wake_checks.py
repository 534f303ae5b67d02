"""Checks of timers: a command that decides whether an agent has to be woken, run like any call of that agent.

It is a turn without a model, with one call of `exec_command`: the agent's policy, its hooks, the gate and the sandbox
hold for it, and its log tells what it did. The turn has a key that follows from the due time, so that a check which a
kill cut off is not run a second time. A check that needs approval is not asked about: the agent is woken and told. One
that is paused with its agent is told of when the agent runs again.
"""

from dataclasses import replace

from wakeful.contracts.authority import Authority
from wakeful.contracts.errors import AgentBusy, ForTheCaller, ForThePerson
from wakeful.contracts.waking import CHECK_THREAD
from wakeful.contracts.workflows import WorkflowGraph, WorkflowNode, WorkflowRunResult
from wakeful.engine.run_request import Engine, RunRequest
from wakeful.engine.workflow_parts import workflow_registry
from wakeful.ports.timers import TimerRow
from wakeful.runtime.timers import WakeCheckOutcome
from wakeful.service.agent_supply import AgentSupply
from wakeful.service.commands.interruption import cancel_turn
from wakeful.service.workflows.runs import run_workflow

NODE, TOOL = "check", "wakeful/exec_command"
MOST_MS = 600_000
MOST_SAID = 4_000
EVIDENCE: Authority = "external_evidence"
"""A command prints what files and other programs say: that is nobody's instruction."""


async def run_check(engine: Engine, supply: AgentSupply, row: TimerRow, due_at: int) -> WakeCheckOutcome:
    """Run the check of a timer for a due time, or tell from the log what it came to."""
    agent = await supply.agent(row.agent_id)
    command = row.check_command or ""
    apart = replace(engine, surroundings=replace(engine.surroundings, tasks=None))
    graph = WorkflowGraph(
        name=f"check of {row.name or row.timer_id}",
        nodes=(
            WorkflowNode(
                id=NODE,
                kind="tool",
                ref=TOOL,
                inputs={"cmd": command, "yield_time_ms": MOST_MS},
            ),
        ),
    )
    key = f"check:{row.timer_id}:{due_at}"
    request = RunRequest(agent, "", thread=f"{CHECK_THREAD}{row.name or row.timer_id}", key=key)
    try:
        outcome = await run_workflow(apart, await workflow_registry(apart, agent), graph, request)
    except (ForTheCaller, ForThePerson) as problem:
        return WakeCheckOutcome("", f"The check `{command}` could not be run: {problem}", EVIDENCE)
    if outcome.result is None and outcome.run.stop_reason == "paused":
        raise AgentBusy(f"the check of timer {row.timer_id} is paused with its agent", "It goes on when that runs.")
    if outcome.result is None:
        await cancel_turn(apart, outcome.run.turn_id, requested_by="runtime")
        said = f"The check `{command}` needs approval, so it was not run. Allow it with a rule of the agent's policy."
        return WakeCheckOutcome(outcome.run.turn_id, said, EVIDENCE)
    return WakeCheckOutcome(outcome.run.turn_id, _said(command, outcome.result), EVIDENCE)


def _said(command: str, result: WorkflowRunResult) -> str:
    """What the agent is told; blank: the command ended with 0 and printed nothing."""
    (node,) = result.nodes
    value = node.output if isinstance(node.output, dict) else {}
    status = value.get("exit_status")
    printed = "\n".join(str(value.get(name) or "").strip() for name in ("stdout_preview", "stderr_preview")).strip()
    if node.status == "succeeded" and status == 0 and not printed:
        return ""
    if node.error is not None:
        return f"The check `{command}` failed: {node.error.message}"
    return f"The check `{command}` ended with exit status {status} and printed:\n\n{printed[:MOST_SAID] or '(nothing)'}"
