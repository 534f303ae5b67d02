"""Agents that a served process runs in tests: each does what its message says."""

import os
import re
import time
from pathlib import Path

from wakeful import Agent, RunContext, tool
from wakeful.ports import ModelRequest
from wakeful.testing import scripted


@tool(effect="keyed", approval=True)
def refund(ctx: RunContext[None], cents: int) -> str:
    """Give money back."""
    return f"refunded {cents}"


@tool(effect="keyed", approval=True)
def run_code(code: str) -> str:
    """Run it."""
    return "ran"


@tool(effect="pure")
def work_slowly(seconds: float) -> str:
    """Take a while."""
    time.sleep(seconds)
    return "done"


@tool(effect="pure")
def work_until(file: str) -> str:
    """Take until a file is in the home; not for ever, where a test fails."""
    until = time.monotonic() + 300
    while not (Path(os.environ["WAKEFUL_HOME"]) / file).exists() and time.monotonic() < until:
        time.sleep(0.02)
    return "done"


@tool(effect="pure")
def read_log(lines: int) -> str:
    """Read a log that is too long to be shown."""
    return "".join(f"<script>line {number}</script>\n" for number in range(lines))


def answer(request: ModelRequest) -> object:
    """`refund N` asks for money, `code N` for the run of N lines of code, `slow N` takes N seconds, `hold NAME` until a
    file NAME is in the home, `log N` reads N lines, `fail` fails; anything else is said again."""
    text = str(request.history[-1].text) if not request.answered else ""
    if request.answered:
        return "finished"
    if held := re.search(r"hold (\w+)", text):
        return {"calls": [{"name": "work_until", "arguments": {"file": held[1]}}]}
    said = re.search(r"(refund|code|slow|fail|wait|log) ?([\d.]*)", text) or ("", "", "")
    match said[1]:
        case "refund":
            return {"calls": [{"name": "refund", "arguments": {"cents": int(said[2])}}]}
        case "code":
            lines = "".join(f"if {number}:\n    step({number})\n" for number in range(int(said[2]) // 2))
            return {"calls": [{"name": "run_code", "arguments": {"code": lines}}]}
        case "slow":
            return {"calls": [{"name": "work_slowly", "arguments": {"seconds": float(said[2])}}]}
        case "log":
            return {"calls": [{"name": "read_log", "arguments": {"lines": int(said[2])}}]}
        case "wait":
            return {"calls": [{"name": "wait_for", "arguments": {"reason": "the vote", "wake": "external"}}]}
        case "fail":
            return {"fail": [{"kind": "invalid_request", "message": "the request cannot be taken"}]}
    return f"you said: {text[-100:]}"


clerk = Agent("clerk", scripted(answer), tools=[refund, run_code, work_slowly, work_until, read_log])
keeper = Agent("keeper", scripted(answer), work_items=True)
agents = [clerk, keeper]
