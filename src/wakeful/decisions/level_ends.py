"""How a level below the root ends: the words its parent is told when there is no result."""

from typing import Any

from wakeful.decisions.levels import Level


def unsatisfied(level: Level, why: str) -> tuple[str, str, dict[str, Any]]:
    """A child that had to end with a fitting payload, and did not."""
    tries = len(level.finish_errors)
    return (
        "schema_not_satisfied",
        f"the subtask ended without a result that fits its schema: {why}",
        {"attempts": tries, "last_errors": level.finish_errors[-3:]},
    )


def too_many_rounds(level: Level, most: int) -> tuple[str, str, dict[str, Any]]:
    """A child that used up its rounds."""
    if level.output_schema is not None:
        return unsatisfied(level, f"finish_subtask was not called in {most} rounds")
    return "iteration_limit", f"the subtask did not end within {most} rounds", {"limit": most}
