"""What a person sees of each command, and the shape of what a program gets with `--json`."""

from pathlib import Path

import pytest

from pins.goldens import check_golden, check_goldens
from pins.journeys import FILES, JOURNEYS
from pins.terminal import Terminal, users_folder
from wakeful.surfaces.cli.command_table import COMMANDS, FAMILIES


@pytest.mark.parametrize("name", JOURNEYS)
def test_what_is_shown_and_what_json_holds_is_what_was_recorded(name: str, tmp_path: Path) -> None:
    folder = tmp_path / "user"
    with users_folder(folder, FILES):
        typed = Terminal(folder)
        JOURNEYS[name](typed)
    shapes = {f"json/{name}/{document}.txt": "\n".join(lines) + "\n" for document, lines in typed.shapes.items()}
    check_goldens({f"cli/{name}.txt": typed.transcript, **shapes}, alone_in=f"json/{name}")


def test_every_help_is_what_was_recorded(tmp_path: Path) -> None:
    folder = tmp_path / "user"
    with users_folder(folder, {}):
        typed = Terminal(folder)
        for name in ("", *FAMILIES, *COMMANDS):
            typed(f"{name} --help".strip())
    check_golden("cli/help.txt", typed.transcript)
