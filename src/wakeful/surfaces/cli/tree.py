"""`wakeful tree`: what a turn did, call inside call, from the log."""

import asyncio
from collections.abc import Iterator

from rich.console import Console
from rich.text import Text

from wakeful.bootstrap import opened_store, own_keys
from wakeful.contracts.execution_tree import ExecutionTreeNode, ExecutionTreeSnapshot
from wakeful.ports import TurnRow
from wakeful.service.queries import find_turn
from wakeful.service.views import execution_tree
from wakeful.surfaces.cli.options import JsonOption, StoreOption, TurnArgument
from wakeful.surfaces.cli.places import Place, store_to_read
from wakeful.surfaces.cli.shown import duration, json_text, one_line, out, plain

WIDTH = 100
"""How much of a result stands on a call's line."""


def command(turn: TurnArgument = None, store: StoreOption = None, json: JsonOption = False) -> None:
    """Show a turn's calls as a tree: titles, how long each took, and what went wrong. Works while it goes on."""
    row, tree = asyncio.run(_tree(turn, store_to_read(store)))
    if json:
        out(json_text(tree.model_dump(mode="json"), indent=2))
        return
    console = Console(highlight=False, soft_wrap=True)
    console.print(Text(f"turn {row.turn_id}  {plain(row.agent_name)}  {row.state}", "bold"))
    for line in lines(tree):
        console.print(line)
    if not tree.nodes:
        console.print(Text("  no tool was called", "dim"))
    if tree.omitted:
        console.print(Text(f"  … and {tree.omitted} more calls: wakeful events {row.turn_id}", "dim"))


def lines(tree: ExecutionTreeSnapshot) -> Iterator[Text]:
    """A line for each call, under the call whose child made it, in the order they started."""
    inside: dict[str | None, list[ExecutionTreeNode]] = {}
    for node in tree.nodes:
        inside.setdefault(node.parent_id, []).append(node)
    waiting = [(node, 1) for node in reversed(inside.get(None, []))]
    while waiting:
        node, depth = waiting.pop()
        yield _line(node, depth)
        waiting += [(child, depth + 1) for child in reversed(inside.get(node.id, []))]


def _line(node: ExecutionTreeNode, depth: int) -> Text:
    mark, style = {None: ("·", "yellow"), True: ("✗", "red"), False: ("✓", "green")}[node.is_error]
    about = node.title or node.args_preview or ""
    said = one_line(node.result_preview or "", WIDTH) if not node.title or node.is_error else ""
    return Text.assemble(
        "  " * depth,
        (f"{mark} ", style),
        (plain(node.name), "bold"),
        f"  {one_line(about, WIDTH)}" if about not in ("", "{}") else "",
        (f"  {duration(node.duration_ms)}", "dim"),
        (f"  {said}" if said else "", "red" if node.is_error else "dim"),
    )


async def _tree(turn: str | None, place: Place) -> tuple[TurnRow, ExecutionTreeSnapshot]:
    async with opened_store(place.path) as opened:
        row = await find_turn(opened, turn)
        return row, await execution_tree(opened, row.turn_id, keys=own_keys())
