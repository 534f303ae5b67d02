"""Finding one's way: help, version, and words that are no command."""

import subprocess
import sys

import pytest

from kit.surfaces.command_line import Wakeful, command_line
from wakeful import __version__
from wakeful.surfaces.cli.command_table import COMMANDS, FIRST, GROUPS
from wakeful.surfaces.cli.main import COLLECT_AFTER


def test_help_names_every_command_and_the_exit_codes(wakeful: Wakeful) -> None:
    done = wakeful("help", "all")
    assert done.code == 0
    listed = {name for names in GROUPS.values() for name in names}
    assert listed | {
        "demo",
        "mcp",
        "models",
        "workflow",
        "dispatch",
        "approvals list",
        "requests list",
        "agent list",
        "memory",
        "trigger",
        "workspace",
        "channel",
        "task",
        "template",
        "thread",
        "config show",
        "config check",
    } == set(COMMANDS)
    assert all(f"  {COMMANDS[name].usage} " in done.out for name in listed)
    assert "0 completed, 1 failed, 2 wrong request, 3 a person has to act" in done.out
    assert max(map(len, done.out.splitlines())) <= 80


def test_the_first_help_shows_the_commands_of_a_first_day_and_where_the_rest_is(wakeful: Wakeful) -> None:
    done = wakeful("--help")
    assert done.code == 0
    shown = [line for line in done.out.splitlines() if line.startswith("  ")]
    assert [line.split("  ")[1] for line in shown] == [COMMANDS[name].usage for name in FIRST]
    assert 12 <= len(FIRST) <= 18
    assert "wakeful help all" in done.out
    assert "0 completed, 1 failed, 2 wrong request, 3 a person has to act" in done.out
    assert max(map(len, done.out.splitlines())) <= 80
    assert wakeful().out == wakeful("-h").out == wakeful("help").out == done.out
    assert wakeful("help", "agent", "new").out == wakeful("agent", "new", "--help").out


def test_where_there_is_a_home_a_bare_word_is_its_status(wakeful: Wakeful) -> None:
    assert wakeful("run", "hello", "--model", "scripted:demo").code == 0
    assert wakeful().out == wakeful("status").out


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_explains_itself(wakeful: Wakeful, name: str) -> None:
    done = wakeful(*name.split(), "--help")
    assert done.code == 0
    assert done.out.startswith(f"Usage: wakeful {name} ")
    assert max(map(len, done.out.splitlines())) <= 80
    examples = done.out.split("Example:\n")[1].splitlines()
    assert examples[: COMMANDS[name].example.count("\n") + 1] == [
        f"    {line}" for line in COMMANDS[name].example.splitlines()
    ]
    assert all(f"wakeful {name}" in line for line in COMMANDS[name].example.splitlines())


@pytest.mark.parametrize("first", sorted({name.split()[0] for name in COMMANDS if " " in name}))
def test_help_on_a_first_word_lists_the_commands_that_begin_with_it(wakeful: Wakeful, first: str) -> None:
    done = wakeful(first, "--help")
    assert done.code == 0
    assert all(f"  {COMMANDS[name].usage} " in done.out for name in COMMANDS if name.startswith(f"{first} "))


def test_what_may_be_left_out_stands_in_one_pair_of_brackets(wakeful: Wakeful) -> None:
    assert "[OPTIONS] [TURN]\n" in wakeful("resume", "--help").out
    assert "[WORDS]...\n" in wakeful("approvals", "reject", "--help").out
    assert not any("[[" in wakeful(*name.split(), "--help").out for name in COMMANDS)


def test_the_version_is_told(wakeful: Wakeful) -> None:
    assert wakeful("--version") == (0, f"wakeful {__version__}\n", "")


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("reply", "wakeful replay"),
        ("zzz", "wakeful --help"),
        ("approvals aprove", "wakeful approvals approve"),
        ("aprove", "wakeful approve"),
    ],
)
def test_a_word_that_is_no_command_is_answered_with_one_that_is(wakeful: Wakeful, typed: str, meant: str) -> None:
    done = wakeful(*typed.split())
    assert (done.code, done.out) == (2, "")
    assert f"there is no command '{typed}'" in done.err
    assert meant in done.err


@pytest.mark.parametrize(
    ("typed", "words", "meant"),
    [
        ("store", "wakeful store needs one more word", "wakeful store verify"),
        ("timer --json", "wakeful timer needs one more word", "wakeful timer list"),
        ("debug", "wakeful debug needs one more word", "wakeful debug latency"),
        ("debug nope", "there is no command 'debug nope'", "wakeful debug latency"),
        ("agent shwo ops", "there is no command 'agent shwo'", "did you mean wakeful agent show"),
        ("workspace attch ops .", "there is no command 'workspace attch'", "did you mean wakeful workspace attach"),
    ],
)
def test_a_word_of_a_family_is_answered_with_its_own_commands(
    wakeful: Wakeful, typed: str, words: str, meant: str
) -> None:
    done = wakeful(*typed.split())
    said = (done.err or done.out).lower()
    assert (done.code, words in said, meant in said) == (2, True, True), done


def test_help_loads_nothing_that_is_not_needed_for_it() -> None:
    program = (
        "import sys; from wakeful.surfaces.cli.main import main\n"
        "try: main(['--help'])\nexcept SystemExit: pass\n"
        "heavy = {'typer', 'click', 'rich', 'pydantic', 'apsw', 'asyncio', 'wakeful.contracts', 'wakeful.bootstrap'}\n"
        "sys.stderr.write(','.join(sorted(heavy & set(sys.modules))))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=240, check=True)
    assert done.stderr == ""
    # The check sees what is loaded: a command that is run needs typer.
    done = subprocess.run(
        [sys.executable, "-c", program.replace("'--help'", "'schema'")],
        capture_output=True,
        text=True,
        timeout=240,
        check=True,
    )
    assert "typer" in done.stderr


def test_a_reader_that_has_seen_enough_ends_the_command_in_peace() -> None:
    with subprocess.Popen(
        command_line("schema", "events"), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout is not None
        assert child.stderr is not None
        assert child.stdout.readline() == "{\n"
        child.stdout.close()
        assert (child.stderr.read(), child.wait(timeout=240)) == ("", 0)


def _collector_after(program: str) -> str:
    """What a process says of its garbage collector: thresholds, and whether anything is frozen."""
    told = "\nimport gc; sys.stderr.write(f'{gc.get_threshold()} {gc.get_freeze_count() > 0}')"
    ended = subprocess.run(
        [sys.executable, "-c", "import sys\n" + program + told], capture_output=True, text=True, timeout=240, check=True
    )
    return ended.stderr


def test_a_process_of_the_command_keeps_the_garbage_collector_out_of_the_way() -> None:
    command = "from wakeful.surfaces.cli.main import main\ntry: main({})\nexcept SystemExit: pass"
    assert _collector_after("sys.argv[1:] = ['schema']\n" + command.format("")) == f"{COLLECT_AFTER} True"
    # In somebody else's process the collector is theirs.
    untouched = _collector_after("")
    assert untouched.endswith(" False")
    assert _collector_after(command.format("['schema']")) == untouched
    assert _collector_after("from wakeful import Agent, run, tool\nimport wakeful.hosts, wakeful.testing") == untouched


def test_an_option_before_the_command_is_told_where_it_stands(wakeful: Wakeful) -> None:
    done = wakeful("--connect", "office", "status")
    assert done.code == 2
    assert "options go after it: wakeful status --connect ..." in done.err
