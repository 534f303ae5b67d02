"""A timer that is run now: a second one with the same words, thread and check, due at once, set by whoever asked.

So it goes the way of every due time, and the schedule of the first one stays as it is.
"""

from collections.abc import Sequence

from wakeful.contracts.authority import Authority
from wakeful.contracts.errors import InvalidRequest
from wakeful.engine.run_request import Engine
from wakeful.ports.timers import TimerRow
from wakeful.runtime.timers import TimerTerms, arm_timer

SHORTEST = 6
"""Letters of an id that are enough to name it."""
_AT_ONCE = 1_000
"""Microseconds: a timer's time is never past when it is set."""


async def run_timer(engine: Engine, named: str, *, by: str) -> TimerRow:
    """Raises InvalidRequest where no timer is meant, or more than one."""
    row = _meant(await engine.store.timers(), named)
    behind: Authority | None = row.derived_from
    if behind is None and row.armed_by == "agent":
        behind = "runtime_instruction"  # the agent's own words, whoever has them said now
    terms = TimerTerms(
        at=engine.clock.now() + _AT_ONCE,
        say=row.say,
        name=row.name,
        thread=row.thread,
        armed_by=by,
        derived_from=behind,
        check=row.check_command,
    )
    return await arm_timer(engine, row.agent_id, terms)


def _meant(rows: Sequence[TimerRow], named: str) -> TimerRow:
    armed = [row for row in rows if row.state == "armed"]
    scheduled = [row for row in armed if row.cron is not None]
    ways = (
        [row for row in armed if row.timer_id == named],
        [row for row in scheduled if row.name == named],
        [row for row in scheduled if row.agent_id == named],
        [row for row in armed if named in (row.name, row.agent_id)],
        [row for row in armed if row.timer_id.startswith(named)] if len(named) >= SHORTEST else [],
    )
    found = next((each for each in ways if each), [])
    if len(found) == 1:
        return found[0]
    if found:
        names = ", ".join(row.name or row.timer_id for row in found[:10])
        raise InvalidRequest(f"{named!r} has {len(found)} timers", f"Name one of them: {names}")
    raise InvalidRequest(
        f"there is no timer {named!r}, and no agent {named!r} with one", "Which there are: wakeful timer list"
    )
