"""Locks that do not become free in time: the call is refused, and the log alone says so again."""

import pytest

from wakeful import tool
from wakeful.contracts.agents import TurnConfig
from wakeful.contracts.conversation import CallPart
from wakeful.contracts.events import ActionRequired, ActionResolved, PermissionEvaluated
from wakeful.contracts.events.tools import Opinion
from wakeful.decisions.differences import compared
from wakeful.decisions.levels import Call, Level, OutsideRequest
from wakeful.gate.call_at_gate import Admission
from wakeful.gate.locks import LockTable
from wakeful.gate.passage import Mediator
from wakeful.gate.turn_gate import GateParts
from wakeful.gate.verdicts import PREDICATE


@tool(effect="irreversible", locks=["till"])
def book() -> str:
    raise AssertionError("it has no lock")


CONFIG = TurnConfig(agent_name="any", model_ref="scripted:inline", tools=(book.declaration,))
ASKS = Opinion(by=PREDICATE, decision="ask", reason="it is expensive")


def admitted(call: Call, parts: GateParts, said: tuple[Opinion, ...] | None = None) -> Admission:
    mediator = Mediator(CONFIG, {"book": book}, "turn_1", parts)
    return mediator.admit(call, {}, now=0.0, batch_id="turn_1/1", scheduling="serial", said=said)


def fresh() -> Call:
    return Call(CallPart(call_id="call_1", name="book", arguments={}), 1, 0, Level())


def approved() -> Call:
    call = fresh()
    asked = admitted(call, GateParts(), (ASKS,)).events[-1]
    assert isinstance(asked, ActionRequired)
    said = ActionResolved(
        action_id=asked.action_id, tool_name="book", status="approved", decision="approve", resolver="ada"
    )
    call.pending = OutsideRequest(asked.action_id, asked.expires_at, asked, said=said)
    return call


@pytest.mark.parametrize(
    ("call", "kinds"),
    [
        (fresh(), ["permission.evaluated", "tool.started", "tool.failed"]),
        (approved(), ["permission.evaluated", "tool.failed"]),
    ],
    ids=["fresh", "approved"],
)
async def test_a_call_that_did_not_get_its_lock_is_refused_and_the_log_says_so_again(
    call: Call, kinds: list[str]
) -> None:
    locks = LockTable()
    assert locks.try_claim("somebody", ["till"])
    waits = admitted(call, GateParts(locks=locks, lock_seconds=0.01))
    assert waits.later is not None and not waits.events
    judged = await waits.later()
    events = judged().events
    assert [event.kind for event in events] == kinds
    verdict = events[0]
    assert isinstance(verdict, PermissionEvaluated)
    assert (verdict.decision, verdict.layer) == ("deny", "locks") and "held by somebody" in verdict.decision_reason
    again = admitted(call, GateParts(), verdict.said).events
    assert [compared(event, other) for event, other in zip(events, again, strict=True)] == [None] * len(kinds)


async def test_a_call_that_gets_its_lock_is_let_through() -> None:
    locks, call = LockTable(), fresh()
    assert locks.try_claim("somebody", ["till"])
    waits = admitted(call, GateParts(locks=locks, lock_seconds=60))
    assert waits.later is not None
    locks.release("somebody")
    judged = await waits.later()
    assert judged().dispatch is not None and list(locks.holders(["till"])) == ["till"]
