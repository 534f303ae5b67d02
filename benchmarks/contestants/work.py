"""The work that everybody does: one trivial async tool a round, `rounds` times, then a final text.

The tool is this very function in every library. It counts its calls, so that a cell proves that the work was done,
and a cell that is stopped at its time limit can say how far it came.
"""

PROMPT = "go"
FINAL = "done"
TOOL = "add"


class Count:
    """How many rounds the turn under way has finished."""

    rounds = 0


async def add(a: int, b: int) -> int:
    """Add two numbers."""
    Count.rounds += 1
    return a + b


def arguments(round_number: int) -> dict[str, int]:
    """What the model asks the tool for in this round."""
    return {"a": round_number, "b": 1}
