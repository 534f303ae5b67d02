"""How dispatched work stands that became a turn: in this process (`local`), or by a message to a runtime (`runtime`).

Nothing is written: whoever ends a run keeps its end.
"""

from typing import Any

from pydantic_core import to_jsonable_python

from wakeful.decisions.intake import id_of_key
from wakeful.engine.run_request import Engine
from wakeful.ports import MessageRow
from wakeful.service.commands.turn_claims import recall
from wakeful.service.run_result import RunResult

LOCAL, RUNTIME = "local", "runtime"
OF_TURNS = {"completed": "succeeded", "cancelled": "cancelled"}
"""The rest of what a turn can end as is a failure of the task."""
AT_REST = ("approval_required", "runtime_tool_pending", "waiting")


def key_of(run_id: str) -> str:
    """The key of a run's turn, or of its message."""
    return f"task:{run_id}"


async def local_state(engine: Engine, run_id: str) -> dict[str, Any] | None:
    """What became of a run whose turn is over; None while it is not."""
    row = await engine.store.turn_of_key(key_of(run_id))
    return None if row is None or row.is_open else told(await recall(engine, row, None))


async def runtime_state(engine: Engine, agent: str, run_id: str) -> dict[str, Any] | None:
    """How the message of a run stands, and its turn; None while no turn has taken it."""
    row = await message_of(engine, agent, run_id)
    turn = await engine.store.turn(row.turn_id) if row is not None and row.turn_id else None
    if turn is None:
        return {"status": "cancelled"} if row is not None and row.state == "expired" else None
    if turn.state in ("admitted", "running"):
        return {"status": "running", "provenance": {"turn_id": turn.turn_id}, "diagnostics": {}}
    return told(await recall(engine, turn, None))


async def message_of(engine: Engine, agent: str, run_id: str) -> MessageRow | None:
    """The message that a run of a runtime is."""
    return await engine.store.message(id_of_key(agent, key_of(run_id)))


def told(result: RunResult[Any]) -> dict[str, Any]:
    """A turn's result as that of a task. One that rests is still running: its turn goes on, and ends it then."""
    provenance = {"turn_id": result.turn_id, "agent": result.agent, "agent_id": result.agent_id}
    if result.status in AT_REST:
        what = result.waiting_for if result.status == "waiting" else result.status
        return {
            "status": "running",
            "provenance": provenance,
            "diagnostics": {"turn_id": result.turn_id, "waiting_for": what},
        }
    status = OF_TURNS.get(result.status, "failed")
    done: dict[str, Any] = {
        "status": status,
        "provenance": provenance,
        "diagnostics": {},  # what it waited for is no matter any more
        "output": to_jsonable_python(result.output) if result.completed else None,
        "execution_metrics": {
            "environment": LOCAL,
            "wall_time_ms": result.duration_ms,
            "tool_call_count": result.tool_calls,
        },
        "metadata": {"usage": result.usage.model_dump(mode="json")},
    }
    if status == "failed":
        message = result.message or f"the turn ended as {result.status}"
        done["diagnostics"] = {"error_code": result.stop_reason, "error_message": message}
        done["execution_metrics"]["failure_class"] = result.stop_reason
    return done
