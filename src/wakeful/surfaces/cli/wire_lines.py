"""One line for each message that a client is sent, as people read it."""

from rich.text import Text

from wakeful.contracts.costs import CostSummary
from wakeful.contracts.wire import (
    BudgetExceeded,
    Chunk,
    PlanningUpdate,
    TaskUpdate,
    ToolCallUpdate,
    TurnTerminal,
    WireMessage,
)
from wakeful.surfaces.cli.shown import arguments_text, one_line, plain

INDENT = "  "


def wire_line(message: WireMessage) -> Text:
    """Its kind and what it is about; what belongs to a child stands to the right."""
    match message:
        case Chunk():
            return _line(message.type, message.depth, one_line(message.content, 200))
        case ToolCallUpdate(status="start"):
            return _line(message.type, message.depth, f"→ {plain(message.name)}({arguments_text(message.args)})")
        case ToolCallUpdate():
            said = f"{'✗' if message.is_error else '✓'} {plain(message.name)}  {one_line(message.result or '')}"
            return _line(message.type, message.depth, said)
        case PlanningUpdate():
            more = f": {one_line(message.content)}" if message.content else ""
            return _line(message.type, message.depth, f"{message.phase} {message.status}{more}")
        case TaskUpdate():
            what = message.step or message.task
            return _line(message.type, message.depth, f"{message.event} {one_line(what.title)}")
        case BudgetExceeded():
            return _line(message.type, 0, f"{message.reason}: {message.observed:g} of {message.limit:g}")
        case CostSummary():
            total = message.total
            tokens = f"{total.input_tokens} + {total.output_tokens} tokens"
            known = f"{total.cost} {message.currency}" if message.cost_complete else "not all prices are known"
            return _line(message.type, 0, f"{total.calls} requests, {tokens}, {known}")
        case TurnTerminal():
            why = f": {one_line(message.message)}" if message.message else ""
            return _line(message.type, 0, f"{message.status} ({message.stop_reason}){why}")


def _line(kind: str, depth: int, words: str) -> Text:
    return Text.assemble((f"{kind:<18}", "dim"), INDENT * depth, words)
