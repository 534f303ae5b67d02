"""What the library's functions stand on, in one place: loaded by the first of them that is called.

A program that only defines agents and tools, or imports them, does not pay for the machinery that runs them.
"""

from wakeful.bootstrap.engines import new_engine
from wakeful.bootstrap.stores import opened_store
from wakeful.service.commands.client_requests import time_out_late_requests
from wakeful.service.commands.interruption import cancel_turn, interrupt_turn
from wakeful.service.commands.steering import interject, pause_turn
from wakeful.service.commands.turn_claims import recall
from wakeful.service.commands.turn_retries import retry_turn
from wakeful.service.commands.turns import agent_named, resume_turn, run_turn
from wakeful.service.queries.turns import find_turn

__all__ = [
    "agent_named",
    "cancel_turn",
    "find_turn",
    "interject",
    "interrupt_turn",
    "opened_store",
    "pause_turn",
    "recall",
    "resume_turn",
    "retry_turn",
    "run_turn",
    "new_engine",
    "time_out_late_requests",
]
