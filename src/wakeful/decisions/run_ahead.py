"""Which calls may begin before their intent is on disk.

Such a call shares one commit with the reply that made it, its own result and the next request. A process that dies in
it forgets the reply: it is paid for once more, and the call runs again. So it is a call that changes nothing, it is
alone, and it is quick: one that is not over after `SECONDS` has its intent written while it runs.

A call that kills its process would be forgotten each time. That the request before it was cut off by a crash is on
record: then the calls of its reply go the usual way, where three tries are enough (`decisions.recovery`).
"""

from wakeful.contracts.tools import ToolDeclaration
from wakeful.decisions.levels import Call
from wakeful.decisions.state import TurnState

SECONDS = 0.001


def may_run_ahead(state: TurnState, call: Call, declaration: ToolDeclaration) -> bool:
    """Is it a lone pure call of the turn itself, about which nobody was asked and that nothing has to wait for?"""
    level = call.level
    return (
        declaration.effect == "pure"
        and level is state
        and len(level.round.batch) == 1
        and not state.tree.in_flight
        and not state.tree.levels
        and not state.tree.waiting
        and state.stop is None
        and not level.round.crashes
        and not declaration.locks
        and call.pending is None
    )
