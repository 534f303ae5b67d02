"""What the suites about the command share: a shop with tools, scripts for its model, and how a command ended."""

import os
import sys
from collections.abc import Callable
from typing import NamedTuple

SHOP = '''
import os, signal, time
from wakeful import Agent, tool

@tool(effect="pure")
def look_up(order: str, password: str = "") -> int:
    """Price of an order."""
    print("looking up", order)
    return 4200

@tool(effect="keyed")
def refund(order: str, cents: int) -> str:
    """Give the money back."""
    if os.environ.get("CRASH"):
        os.kill(os.getpid(), signal.SIGKILL)
    return "refunded \\x1b[31mred"

@tool
def ship(order: str) -> str:
    """Send it."""
    if os.environ.get("CRASH"):
        os.kill(os.getpid(), signal.SIGKILL)
    return "shipped"

@tool(effect="pure")
def wait_for(file: str) -> str:
    """Until the file is there."""
    open("waiting", "w").close()
    while not os.path.exists(file):
        time.sleep(0.01)
    return "it is there"

def weigh(order: str) -> int:
    return 7

both = [look_up, refund]
everything = (look_up, refund, ship, wait_for)
clerk = Agent("clerk", "scripted:demo", tools=[look_up])
other = Agent("other", "scripted:demo")
price = 4200
'''
REFUND = """
- text: I will look.
  calls: [{name: look_up, arguments: {order: A17, password: hunter2}}]
- calls: [{name: refund, arguments: {order: A17, cents: 4200}}]
- text: "Done \\e[31mred."
  usage: {input_tokens: 10, output_tokens: 5, total_tokens: 15}
"""
SHIP = """
- calls: [{name: ship, arguments: {order: A17}}]
- It is on its way.
"""
WAIT = """
- calls: [{name: wait_for, arguments: {file: go}}]
- Now it is there.
"""
FAIL = "- fail: {kind: contract_error, message: the field is wrong, status: 400}\n"


ME = f"local:{os.getuid()}"
"""Who acts with a command on a file, as the log and programs have it; a person reads `you`."""


class Done(NamedTuple):
    """How a command ended."""

    code: int
    out: str
    err: str


Wakeful = Callable[..., Done]


def command_line(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "wakeful.surfaces.cli", *arguments]
