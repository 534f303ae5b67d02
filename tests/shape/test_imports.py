"""What an import costs: nothing that is not needed is loaded."""

import json
import subprocess
import sys

HEAVY = {"pydantic", "typer", "rich", "mcp", "fastapi", "textual", "jsonschema", "apsw", "yaml", "asyncio"}


def loaded_by(program: str) -> set[str]:
    """The modules in a fresh interpreter after a program, without what plugins of this test run bring."""
    program += "\nimport sys, json; print('LOADED ' + json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=240, check=True)
    line = next(line for line in reversed(done.stdout.splitlines()) if line.startswith("LOADED "))
    return set(json.loads(line.removeprefix("LOADED ")))


def test_importing_wakeful_loads_nothing_heavy() -> None:
    assert HEAVY & loaded_by("import wakeful") == set()


def test_the_check_sees_what_is_loaded() -> None:
    assert {"pydantic", "wakeful.contracts.events"} <= loaded_by("import wakeful.contracts.events")


def test_asking_the_command_line_for_help_loads_no_contract() -> None:
    program = (
        "import sys\n"
        "sys.argv = ['wakeful', '--help']\n"
        "from wakeful.surfaces.cli.main import main\n"
        "try:\n    main()\nexcept SystemExit as end:\n    assert not end.code, end.code\n"
    )
    loaded = loaded_by(program)
    assert {name for name in loaded if name.startswith(("wakeful.contracts", "wakeful.decisions"))} == set()
    assert "pydantic" not in loaded


ALL_MODULES = """
import importlib, pkgutil, wakeful
for each in pkgutil.walk_packages(wakeful.__path__, "wakeful."):
    if not each.name.startswith(("wakeful.testing", "wakeful.surfaces.tui")) and not each.name.endswith("__main__"):
        importlib.import_module(each.name)
"""


def test_nothing_but_the_terminal_ui_loads_textual() -> None:
    loaded = loaded_by(ALL_MODULES)
    assert {"wakeful.surfaces.cli.tui", "wakeful.surfaces.http.application"} <= loaded
    assert "textual" not in loaded
    assert "textual" in loaded_by("import wakeful.surfaces.tui.console"), "the check sees it where it is"
