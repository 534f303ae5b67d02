"""A client's request in the words of a terminal, with the commands that end it."""

from wakeful.contracts.runtime_tools import RuntimeToolRequest
from wakeful.surfaces.cli.places import StoreAddress
from wakeful.surfaces.cli.screen import short as short_id
from wakeful.surfaces.cli.shown_values import arguments_text, plain

PREFIX = "runtime-tool-"
SHOWN = 12


def short(request_id: str) -> str:
    """Enough of an id to name it."""
    return request_id.removeprefix(PREFIX)[:SHOWN] if request_id.startswith(PREFIX) else request_id


def line(request: RuntimeToolRequest) -> str:
    """One request on one line."""
    until = f", expires {plain(request.timeout_at)}" if request.timeout_at else ""
    call = f"{plain(request.tool_name)}({arguments_text(request.parameters)})"
    return f"{plain(short(request.request_id))}  {call}\n{'':<14}turn {plain(short_id(request.run_id))}{until}"


def how_to_end(request: RuntimeToolRequest, place: StoreAddress) -> list[str]:
    """The commands that end it."""
    name = plain(short(request.request_id))
    return [
        f"result:     wakeful requests submit {name} 'JSON'{place.flag}",
        f'failed:     wakeful requests submit {name} --error "the reason"{place.flag}',
        f"timed out:  wakeful requests timeout {name}{place.flag}",
    ]
