"""Agents of the daemon that is measured: `ops` is paused there, and the others answer at once."""

import os

from wakeful import Agent
from wakeful.testing import scripted

CHATS = int(os.environ.get("BENCH_CHATS", "0"))


def answer(request: object) -> str:
    return "All is well."


agents = [Agent(name, scripted(answer)) for name in ["ops", *(f"chat{number}" for number in range(CHATS))]]
