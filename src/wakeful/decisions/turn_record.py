"""The record of a settled turn, from its facts: never from a brief, and never guessed from what a text sounds like."""

from collections.abc import Iterable

from wakeful.contracts.envelope import Recorded, iso
from wakeful.contracts.events import AssistantRecorded, Terminal
from wakeful.contracts.turns import TurnTerminalRecord
from wakeful.decisions.views.mapping import is_roots


def terminal_record(turn_id: str, facts: Iterable[Recorded]) -> TurnTerminalRecord | None:
    """How the turn ended; None while it has no terminal fact, whatever its last words were."""
    last_text: str | None = None
    for _, _, fact in facts:
        if fact.turn_id != turn_id:
            continue
        match fact.event:
            case AssistantRecorded(item=item) if is_roots(fact):
                last_text = item.text or last_text or ""
            case Terminal() as end:
                return TurnTerminalRecord(
                    turn_index=end.turn_index,
                    kind="completed" if end.status == "completed" else "aborted",
                    last_assistant_message=last_text,
                    completed_at=iso(fact.at),
                    duration_ms=round(end.duration_ms),
                )
    return None
