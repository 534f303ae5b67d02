"""`wakeful events validate`: hold a log, or an export of one, to the published schema."""

from pathlib import Path
from typing import Annotated

import typer

from wakeful.service.operations.log import CHECK_LOG
from wakeful.service.operations.operation import NoRequest
from wakeful.service.queries.log_check import CheckedEvent, check_lines
from wakeful.surfaces.cli.exit_codes import FAILED
from wakeful.surfaces.cli.options import JsonOption, StoreOption
from wakeful.surfaces.cli.places import ask, place_to_ask
from wakeful.surfaces.cli.problems import unreadable
from wakeful.surfaces.cli.shown_values import json_text, out, plain

STDIN = "-"


def command(
    file: Annotated[
        Path | None,
        typer.Argument(metavar="FILE", help="JSON lines, as wakeful events TURN --json prints them; - is stdin."),
    ] = None,
    store: StoreOption = None,
    json: JsonOption = False,
) -> None:
    """Check every event against the schema of `wakeful schema events`. Names event and path of each error."""
    if file is not None:
        where, checked = str(file), _of_file(file)
    else:
        place = place_to_ask(store)
        where, checked = place.path, ask(CHECK_LOG, NoRequest(), place)
    wrong = [(each.event, path, message) for each in checked for path, message in each.problems]
    if json:
        errors = [{"event": event, "path": path, "message": message} for event, path, message in wrong]
        out(json_text({"checked": len(checked), "errors": errors}, indent=2))
    else:
        out([plain(f"{event}: {path or 'the event'}: {message}") for event, path, message in wrong])
        verdict = f"{len(wrong)} error{'' if len(wrong) == 1 else 's'}" if wrong else "every event fits the schema"
        out(f"{len(checked)} events of {where}: {verdict}")
    if wrong:
        raise typer.Exit(FAILED)


def _of_file(file: Path) -> list[CheckedEvent]:
    if str(file) == STDIN:
        return list(check_lines(typer.get_text_stream("stdin")))
    try:
        with file.open(encoding="utf-8") as lines:
            return list(check_lines(lines))
    except (OSError, UnicodeDecodeError) as error:
        raise unreadable(file, error, "wakeful events TURN --json > FILE makes one") from None
