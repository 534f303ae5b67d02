"""What a person sees of each command, and the shape of what a program gets with `--json`."""

import re
from pathlib import Path

import pytest

from pins.goldens import FOLDER, check_golden, check_goldens
from pins.journeys import FILES, JOURNEYS
from pins.terminal import Terminal, users_folder
from wakeful.surfaces.cli.command_table import COMMANDS, FAMILIES

SILENT_FILES = {**FILES, "shop.py": FILES["shop.py"].replace('    print("looking up", order)\n', "")}
"""On a screen, words that a tool prints may stand before or after the line of its call."""
LONG = 160
"""Letters of a path that never fits the screen: lines are folded round it in the same way on every machine."""


@pytest.mark.parametrize("name", JOURNEYS)
def test_what_is_shown_and_what_json_holds_is_what_was_recorded(name: str, tmp_path: Path) -> None:
    folder = tmp_path / "user"
    with users_folder(folder, FILES):
        typed = Terminal(folder)
        JOURNEYS[name](typed)
    shapes = {f"json/{name}/{document}.txt": "\n".join(lines) + "\n" for document, lines in typed.shapes.items()}
    check_goldens({f"cli/{name}.txt": typed.transcript, **shapes}, alone_in=f"json/{name}")


@pytest.mark.parametrize("name", JOURNEYS)
def test_a_screen_of_80_columns_shows_what_was_recorded_with_its_colours(name: str, tmp_path: Path) -> None:
    folder = tmp_path / ("user" + "_" * (LONG - len(str(tmp_path))))
    with users_folder(folder, SILENT_FILES, has_colours=True):
        typed = Terminal(folder, has_screen=True)
        JOURNEYS[name](typed)
    check_golden(f"screen/{name}.txt", typed.transcript)
    assert typed.too_wide == []


NOT_THE_SAME_TWICE = {
    "demo approve", "demo budget", "demo wake", "store stats", "store export", "store import",
    "serve", "daemon start", "daemon stop", "daemon restart", "daemon status", "daemon logs", "daemon install",
    "tui", "chat", "token create", "token list", "token revoke", "backup", "restore",
    "init", "agent new", "timer run", "approve", "reject", "completion", "demo replay",
    "work", "work add", "skills", "skills show", "workflow runs", "workflow cancel",
    "prompt", "config", "config show", "config check", "config path",
    "template", "template list", "template show", "template add",
    "channel", "channel list", "channel add", "channel pair", "channel test", "channel remove",
}  # fmt: skip
"""Commands whose output depends on how fast the machine is, on sizes, on processes, or on a list that was shown. Looked
at in `tests/journeys/cli` (`test_demo.py`, `test_store_upkeep.py`, `test_store_transfer.py`, `test_backup.py`,
`test_init.py`, `test_why.py`, `test_config.py`, `test_templates.py`,
 `test_completion.py`, `test_daemon.py`, `test_daemon_commands.py`, `test_daemon_work.py`), in
`tests/journeys/tui` and in `tests/journeys/test_channels.py`."""


def test_every_command_is_in_a_journey() -> None:
    typed = re.findall(r"^\$ wakeful (.+)$", "\n".join(text.read_text() for text in (FOLDER / "cli").iterdir()), re.M)
    missing = [
        name
        for name in COMMANDS
        if not any(f"{each} ".startswith(f"{name} ") for each in typed if "--help" not in each)
    ]
    assert set(missing) == NOT_THE_SAME_TWICE


def test_every_help_is_what_was_recorded(tmp_path: Path) -> None:
    folder = tmp_path / "user"
    with users_folder(folder, {}):
        typed = Terminal(folder)
        for name in ("", *FAMILIES, *COMMANDS):
            typed(f"{name} --help".strip())
    check_golden("cli/help.txt", typed.transcript)
