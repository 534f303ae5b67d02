"""What may be asked about one turn: its tree, lines, latency, context, prompt and tools, and whether it replays."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from wakeful.service.operations.operation import OpenStore, Operation
from wakeful.service.operations.turns import TurnName, told_turn

if TYPE_CHECKING:
    from wakeful.service.queries.replay import ReplayReport
    from wakeful.service.queries.tool_inventory import ToolInventory
    from wakeful.views.prompt_report import PromptReport
    from wakeful.views.tree import ExecutionTreeSnapshot
    from wakeful.views.turn_lines import TurnLine, TurnView
    from wakeful.views.turn_record import TurnLatency
    from wakeful.views.wire_messages import WireReplay


@dataclass(frozen=True, slots=True)
class TurnStep:
    """A turn, and one of its requests to a model."""

    turn: str | None = None
    step: int | None = None


@dataclass(frozen=True, slots=True)
class WireQuery:
    """A turn, and the last of its events that the client has."""

    turn: str | None = None
    after: int = 0
    """The `event_seq` of the last event that is known."""


@dataclass(frozen=True, slots=True)
class LineQuery:
    """A turn in one of its views, after the last event that the reader has."""

    turn: str | None = None
    view: "TurnView" = "stream"
    after: int = 0
    limit: int | None = None
    reveal: bool = False
    """Show secrets instead of [redacted]."""


async def _tree(opened: OpenStore, asked: TurnName) -> "ExecutionTreeSnapshot":
    from wakeful.service.queries.views import execution_tree

    row = await told_turn(opened, asked.turn)
    return await execution_tree(opened.store, row.turn_id, keys=opened.keys())


async def _wire(opened: OpenStore, asked: WireQuery) -> "WireReplay":
    from wakeful.service.queries.views import wire_messages

    return await wire_messages(opened.store, asked.turn, asked.after, keys=opened.keys())


async def _lines(opened: OpenStore, asked: LineQuery) -> "list[TurnLine]":
    found: list[TurnLine] = []
    async for line in follow_lines(opened, asked, follow_it=False):
        if asked.limit is not None and len(found) >= asked.limit and line.event_seq != found[-1].event_seq:
            break  # all lines of an event are on one page: the next one goes on behind that event
        found.append(line)
    return found


async def follow_lines(
    opened: OpenStore, asked: LineQuery, *, follow_it: bool = True
) -> "AsyncGenerator[TurnLine, None]":
    """The lines of a turn; with `follow_it`, also those that come, until the turn is over."""
    async with aclosing(follow_lines_of_events(opened, asked, follow_it=follow_it)) as events:
        async for lines in events:
            for line in lines:
                yield line


async def follow_lines_of_events(
    opened: OpenStore, asked: LineQuery, *, follow_it: bool = True
) -> "AsyncGenerator[list[TurnLine], None]":
    """The same, with all lines of an event together: whoever goes on behind an event has to have all of them."""
    from wakeful.service.queries.event_cursors import check_reached
    from wakeful.service.queries.turn_lines import read_lines

    row = await told_turn(opened, asked.turn)
    await check_reached(opened.store, row.agent_id, asked.after)
    hidden = () if asked.reveal else opened.keys()
    async for lines in read_lines(
        opened.store, row, asked.view, after=asked.after, reveal=asked.reveal, keys=hidden, follow_it=follow_it
    ):
        yield lines


async def _result(opened: OpenStore, asked: TurnName) -> dict[str, Any]:
    from wakeful.contracts.errors import NotCompleted
    from wakeful.service.commands.turn_claims import recall

    row = await told_turn(opened, asked.turn)
    if row.is_open:
        raise NotCompleted(f"turn {row.turn_id} is not over: {row.state}", f"Follow it: GET /turns/{row.turn_id}/chat")
    return (await recall(opened.engine, row, None)).to_dict()


async def _latency(opened: OpenStore, asked: TurnName) -> "TurnLatency":
    from wakeful.service.queries.turns import latency_of

    return await latency_of(opened.store, await told_turn(opened, asked.turn))


async def _context(opened: OpenStore, asked: TurnStep) -> dict[str, Any]:
    from wakeful.service.queries.turn_context import readable_context

    return await readable_context(opened.store, await told_turn(opened, asked.turn), asked.step, keys=opened.keys())


async def _prompt(opened: OpenStore, asked: TurnName) -> "PromptReport":
    from wakeful.service.queries.prompt_report import prompt_of_turn

    return await prompt_of_turn(opened.store, await told_turn(opened, asked.turn))


async def _tools(opened: OpenStore, asked: TurnName) -> "ToolInventory":
    from wakeful.service.queries.tool_inventory import tool_inventory

    return await tool_inventory(opened.engine, turn=await told_turn(opened, asked.turn))


async def _replay(opened: OpenStore, asked: TurnName) -> "ReplayReport":
    from wakeful.service.queries.replay import replay_turn

    return await replay_turn(opened.store, await told_turn(opened, asked.turn))


SHOW_TREE = Operation("turns.tree", "observe", TurnName, "wakeful.views.tree.ExecutionTreeSnapshot", _tree)
SHOW_WIRE = Operation("turns.wire", "observe", WireQuery, "wakeful.views.wire_messages.WireReplay", _wire)
LIST_LINES = Operation("turns.lines", "observe", LineQuery, "wakeful.views.turn_lines.TurnLine", _lines, many=True)
SHOW_RESULT = Operation("turns.result", "observe", TurnName, "builtins.dict", _result)
SHOW_LATENCY = Operation("turns.latency", "observe", TurnName, "wakeful.views.turn_record.TurnLatency", _latency)
SHOW_CONTEXT = Operation("turns.context", "observe", TurnStep, "builtins.dict", _context)
SHOW_PROMPT = Operation("turns.prompt", "observe", TurnName, "wakeful.views.prompt_report.PromptReport", _prompt)
SHOW_TOOLS = Operation(
    "turns.tools", "observe", TurnName, "wakeful.service.queries.tool_inventory.ToolInventory", _tools
)
REPLAY = Operation("turns.replay", "observe", TurnName, "wakeful.service.queries.replay.ReplayReport", _replay)
