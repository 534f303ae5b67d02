"""The agent whose logs are kept: what it was when they were written is what it must be when they are read again."""

import os
import signal
from pathlib import Path
from typing import Any

from wakeful import Agent, RunContext, tool
from wakeful.ports import ModelRequest
from wakeful.testing import scripted

A_CENTURY = 100 * 365 * 24 * 3600
"""Whoever reads the log can still decide and answer what was asked in it."""


@tool(effect="pure")
async def look_up(order: str) -> int:
    """Price of an order in cents."""
    return {"A17": 4200, "B2": 999}[order]


@tool(effect="keyed")
async def refund(ctx: RunContext[Path], order: str, cents: int) -> str:
    """Give the money back."""
    _pay(ctx, order, cents)
    return f"refunded {cents}"


@tool(effect="irreversible")
async def write_letter(ctx: RunContext[Path], order: str) -> str:
    """Send a letter."""
    _pay(ctx, order, 0)
    return "sent"


@tool(effect="keyed", approval=True)
async def pay(ctx: RunContext[Path], order: str, cents: int) -> str:
    """Pay somebody."""
    _pay(ctx, order, cents)
    return f"paid {cents}"


@tool(effect="pure")
async def read_page(number: str) -> str:
    """Read a page."""
    return f"page {number}: " + "lorem " * 200


@tool(external=True, effect="pure", timeout=A_CENTURY)
def pick_file(folder: str) -> str:
    """Let the person pick a file."""
    raise AssertionError("a client runs it")


def _pay(ctx: RunContext[Path], order: str, cents: int) -> None:
    book = ctx.deps
    if ctx.idempotency_key not in (book.read_text() if book.exists() else ""):
        with book.open("a") as file:
            file.write(f"{ctx.idempotency_key} {order} {cents}\n")
    if os.environ.get("CRASH") == order:
        os.kill(os.getpid(), signal.SIGKILL)


TOOLS = [look_up, refund, write_letter, pay, read_page, pick_file]


def agent(name: str) -> Agent[Path, str]:
    """`shop` refunds two orders, `letters` writes one letter; `LATER` says what the others do."""
    script = SCRIPTS[name] if name in SCRIPTS else LATER[name]
    window = 4_000 if name == "reader" else None
    model = scripted(script, name=name if name in LATER else None, leftover="ignore", context_window=window)
    if name in SCRIPTS:
        return Agent(name, model, tools=[look_up, refund, write_letter], deps_type=Path)
    return Agent(name, model, tools=TOOLS, deps_type=Path, **OPTIONS.get(name, {}))


SCRIPTS: dict[str, list[Any]] = {
    "shop": [
        {
            "text": "I look both up.",
            "calls": [
                {"name": "look_up", "arguments": {"order": "A17"}},
                {"name": "look_up", "arguments": {"order": "nowhere"}},
            ],
            "usage": {"input_tokens": 12, "output_tokens": 7, "total_tokens": 19},
        },
        {"calls": [{"name": "refund", "arguments": {"order": "A17", "cents": 4200}}]},
        "Order A17 is refunded.",
    ],
    "letters": [
        {"calls": [{"name": "write_letter", "arguments": {"order": "B2"}}, {"name": "look_up", "arguments": "{"}]},
        "The letter is on its way.",
    ],
}


def _calls(name: str, **arguments: Any) -> dict[str, Any]:
    return {"calls": [{"name": name, "arguments": arguments}]}


def _read(request: ModelRequest) -> Any:
    """Plans, reads until its conversation has to be folded, and answers; a second turn of the thread only answers."""
    if request.level == "~plan":
        return "1. read all pages"
    if request.level is not None:
        return "The pages say lorem."
    if "again" in [item.text for item in request.history if item.role == "user"][-1]:
        return "It says lorem, as I said."
    return _calls("read_page", number=str(request.answered)) if request.answered < 9 else "It says lorem."


def _split(request: ModelRequest) -> Any:
    """One child that pays back, then two side by side."""
    task = next(iter(request.history)).text
    if task == "pay A17 back":
        return "paid back" if request.answered else _calls("refund", order="A17", cents=4200)
    if request.level is not None:
        return f"{task}: done"
    jobs = {"jobs": [{"task": "one"}, {"task": "two"}]}
    steps = [_calls("run_subtask", title="Refund", instructions="pay A17 back"), _calls("spawn_parallel", **jobs)]
    return steps[request.answered] if request.answered < 2 else "All of it is done."


LATER: dict[str, Any] = {
    "cashier": [_calls("pay", order="C3", cents=700), "C3 is paid."],
    "picker": [_calls("client/pick_file", folder="docs"), "You picked it."],
    "reader": _read,
    "team": _split,
}
"""Agents whose logs are kept since the second recording: a call that needs approval, a call that a client runs, a plan
and a conversation that is folded, and children one after the other and side by side."""
OPTIONS: dict[str, dict[str, Any]] = {
    "cashier": {"approval_expiry": A_CENTURY},
    "reader": {"planning_enabled": True},
    "team": {"subtasks": True, "allow_parallel_subagents": True},
}
