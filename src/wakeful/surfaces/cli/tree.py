"""`wakeful tree`: the calls of a turn as a tree, from the log."""

from collections.abc import Iterator

from rich.console import Console
from rich.text import Text

from wakeful.service.operations.turn_reports import SHOW_TREE
from wakeful.service.operations.turns import SHOW_TURN, TurnName
from wakeful.surfaces.cli.options import JsonOption, StoreOption, TurnArgument, WideOption
from wakeful.surfaces.cli.places import ask, place_to_ask
from wakeful.surfaces.cli.screen import short, width
from wakeful.surfaces.cli.shown_values import duration, json_text, one_line, out, plain
from wakeful.views.tree import ExecutionTreeNode, ExecutionTreeSnapshot

WIDTH = 100
"""How much of a result stands on a call's line."""


def command(
    turn: TurnArgument = None, store: StoreOption = None, json: JsonOption = False, wide: WideOption = False
) -> None:
    """Show the calls of a turn as a tree, with duration and result of each. Works while the turn runs."""
    place = place_to_ask(store)
    row = ask(SHOW_TURN, TurnName(turn), place)
    tree = ask(SHOW_TREE, TurnName(row.turn_id), place)
    if json:
        out(json_text(tree.model_dump(mode="json"), indent=2))
        return
    console = Console(highlight=False, soft_wrap=wide, width=None if wide else width())
    console.print(Text(f"turn {short(row.turn_id)}  {plain(row.agent)}  {row.state}", "bold"))
    for line in lines(tree):
        console.print(line, no_wrap=True, overflow="ellipsis")
    if not tree.nodes:
        console.print(Text("  no tool calls", "dim"))
    if tree.omitted:
        console.print(Text(f"  … and {tree.omitted} more calls: wakeful events {short(row.turn_id)}", "dim"))


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
        (f"  {node.cost} USD" if node.cost is not None else "", "dim"),
        (f"  {said}" if said else "", "red" if node.is_error else "dim"),
    )
