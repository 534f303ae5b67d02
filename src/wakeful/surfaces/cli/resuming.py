"""The line that goes on with a turn, with the code that has to be named for it: what is typed as it stands works."""

from wakeful.bootstrap import resolve_model
from wakeful.ports import Store, TurnRow
from wakeful.service.rebuilding import code_needed
from wakeful.surfaces.cli.places import Place
from wakeful.surfaces.cli.shown import one_line


async def resume_line(store: Store, turn: TurnRow, place: Place) -> str:
    """`wakeful resume TURN --tools MODULE:refund   (or run your program again)`."""
    needed = await code_needed(store, turn, resolve_model)
    code = "".join(f" --tools MODULE:{one_line(name.rpartition('/')[2])}" for name in needed)
    also = "   (or run your program again)" if needed else ""
    return f"wakeful resume {turn.turn_id}{place.flag}{code}{also}"
