"""The entrance: finds the command that was asked for and loads that one alone.

`wakeful --help` has to answer at once, so this module imports nothing but what the interpreter has loaded anyway: the
command table is the help. A command's own `--help` comes from its function, through typer.
"""

import contextlib
import gc
import os
import shlex
import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

from wakeful._version import __version__
from wakeful.surfaces.cli.command_table import (
    ASKS_MODELS,
    COMMANDS,
    FAMILIES,
    FIRST,
    GROUPS,
    LETS_RUN,
    NO_STORE,
    OWN_PROCESS,
    ROWS,
)
from wakeful.surfaces.cli.exit_codes import INTERRUPTED

if TYPE_CHECKING:
    from collections.abc import Callable

    import typer

HELP = ("--help", "-h")
NEAR = 0.75
"""How like two words are to the two of a command, to be taken for a slip of the finger."""
COLLECT_AFTER = 5_000, 3, 300
"""The thresholds of the garbage collector in a process of ours. A pass over everything alive stops every turn, so it
is rare, and the passes between are small: docs/explain/many-turns.md says more."""

OTHER_WORDS = {
    "agents": ("agent",), "history": ("events", "transcript"), "inbox": ("transcript", "tail"), "list": ("agent",),
    "log": ("tail", "daemon logs"), "logs": ("daemon logs", "tail"), "ls": ("agent", "events"),
    "messages": ("transcript",), "ps": ("status", "task list"), "spend": ("cost", "budget"),
    "start": ("daemon start",), "tasks": ("task list",), "threads": ("thread list",),
    "timers": ("timer list",), "turn": ("events",), "turns": ("events",), "up": ("daemon start",),
}  # fmt: skip
"""Words that people try first, and the commands that do what they mean."""
ELSEWHERE = {
    **dict.fromkeys(
        ("timer add", "timer create", "timer new", "timer set"),
        "Times stand in an agent's file: wakeful agent new NAME --at WHEN --say TEXT, or wake: in agents/NAME.yaml",
    ),
    **dict.fromkeys(
        ("agent change", "agent edit", "agent set", "agent update"),
        "Edit its file, agents/NAME.yaml in the home, then: wakeful reload. Its model alone: wakeful agent model NAME",
    ),
    **dict.fromkeys(
        ("work cancel", "work complete", "work delete", "work done", "work remove"),
        'An agent closes its items itself. Tell it: wakeful send AGENT "Complete the work item ID."',
    ),
}
"""Commands that people expect and that are not there, with the way in which it is done."""


def main(arguments: list[str] | None = None) -> None:
    """Run the command line and end the process with its exit code."""
    is_own = arguments is None  # the process is ours; with arguments, somebody called this function in theirs
    given = sys.argv[1:] if arguments is None else arguments
    try:
        code = _answer(list(given), is_own=is_own)
        sys.stdout.flush()
    except BrokenPipeError:
        # Whoever read has seen enough. Without this the interpreter complains when it flushes at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 0
    sys.exit(code)


def help_text(*, everything: bool = False) -> str:
    """`wakeful --help`: the commands of a first day; with `everything`, all of them."""
    groups = GROUPS if everything else {"Commands": FIRST}
    width = max(len(COMMANDS[name].usage) for names in groups.values() for name in names) + 2
    lines = [
        f"wakeful {__version__}: a durable runtime for AI agents.",
        "If a run is killed, run the same command again: it continues where it stopped.",
        "",
        "Usage: wakeful COMMAND [OPTIONS]",
        "Options and an example of each command: wakeful COMMAND --help",
    ]
    for title, names in groups.items():
        lines += ["", title]
        lines += [f"  {COMMANDS[name].usage:<{width}}{COMMANDS[name].says}" for name in names]
    if not everything:
        lines += ["", f"All {len(COMMANDS)} commands: wakeful help all", "A command in full: wakeful help COMMAND"]
    else:
        lines += [
            "",
            "TURN is a turn's id, the beginning of its id, or its key (--key).",
            "The beginning of an id stands for it, and so does the row number of the",
            "last list: wakeful approve 1, wakeful memory show ops 3.",
            "The store is --store FILE, else $WAKEFUL_STORE, else store in wakeful.toml,",
            "else the database in $WAKEFUL_HOME.",
        ]
    lines += [
        "",
        "Exit codes: 0 completed, 1 failed, 2 wrong request, 3 a person has to act,",
        "130 interrupted with Ctrl-C.",
        "Try this first; it needs no key and no network:  wakeful demo crash",
    ]
    return "\n".join(lines) + "\n"


def _is_home() -> bool:
    """Is there a store that a bare `wakeful` can tell about?"""
    from wakeful.service import default_store

    with contextlib.suppress(Exception):  # a settings file that cannot be read is told by the next command
        return default_store().is_file()
    return False


def _answer(given: list[str], *, is_own: bool) -> int:
    if given and given[0] == "help" and len(given) > 1 and given[1] != "all":
        given = [*given[1:], "--help"]
    if not given and _is_home():
        given = ["status"]
    if not given or given[0] in (*HELP, "help"):
        sys.stdout.write(help_text(everything=given[1:2] == ["all"]))
        return 0
    if given[0] in ("--version", "-V", "version"):
        sys.stdout.write(f"wakeful {__version__}\n")
        return 0
    two = " ".join(given[:2])
    name = two if two in COMMANDS else given[0]
    asks_help = len(given) > 1 and given[1] in HELP
    if asks_help and name in FAMILIES:
        sys.stdout.write(f"Usage: wakeful {name} COMMAND [OPTIONS]\n{_family(name)}")
        return 0
    if name not in COMMANDS or _is_mistyped(name, given) or _is_nearly_another(name, given):
        return _no_such_command(given)
    code = _invoke(name, given[len(name.split()) :], is_own=is_own)
    if asks_help:
        sys.stdout.write(_family(name))
    return code


def _family(name: str) -> str:
    """The commands whose first word it is, as its help ends with them."""
    members = [each for key, each in COMMANDS.items() if key.startswith(f"{name} ")]
    width = max((len(each.usage) for each in members), default=0) + 2
    lines = [f"  {each.usage:<{width}}{each.says}" for each in members]
    return "\n".join(["", "Commands:", *lines, ""]) if lines else ""


def _is_mistyped(name: str, given: list[str]) -> bool:
    """A second word that is none of the family's, where the first alone takes no argument."""
    takes_none = COMMANDS[name].usage == name and bool(_members(name))
    is_elsewhere = " ".join(given[:2]) in ELSEWHERE and len(given) > 2
    return is_elsewhere or (takes_none and len(given) > 1 and not given[1].startswith("-"))


def _is_nearly_another(name: str, given: list[str]) -> bool:
    """Two words behind a command that takes one, the first of them nearly one of the family's."""
    members = _members(name)
    if not members or len(given) < 3 or any(word.startswith("-") for word in given[1:3]):
        return False
    from difflib import get_close_matches

    return bool(get_close_matches(" ".join(given[:2]), members, n=1, cutoff=NEAR))


def _members(name: str) -> list[str]:
    return [each for each in COMMANDS if each.startswith(f"{name} ")]


def _no_such_command(given: list[str]) -> int:
    from difflib import get_close_matches

    from wakeful.surfaces.cli.problems import WrongRequest, exit_code_of

    asked = " ".join(given[:2]) if given[0] in (*FAMILIES, *COMMANDS) else given[0]
    if given[0].startswith("-"):
        named = next((word for word in given if word in (*FAMILIES, *COMMANDS)), "COMMAND")
        words = f"{given[0]} comes before the command"
        hint = f"options go after it: wakeful {named} {given[0]} ...   All commands: wakeful --help"
        return exit_code_of(WrongRequest(words, hint), as_json=_wants_json(given))
    if members := _members(given[0]):
        near = get_close_matches(asked, members, n=2, cutoff=NEAR) if len(given) > 1 else []
        meant = f"Did you mean {' or '.join(f'wakeful {each}' for each in near)}?"
        meant = ELSEWHERE.get(asked, meant)
        hint = meant if near or asked in ELSEWHERE else f"There are: {', '.join(f'wakeful {each}' for each in members)}"
        is_bare = len(given) == 1 or given[1].startswith("-")
        words = f"wakeful {given[0]} needs one more word" if is_bare else f"there is no command {asked!a}"
        return exit_code_of(WrongRequest(words, hint), as_json=_wants_json(given))
    firsts = dict.fromkeys(name.partition(" ")[0] for name in COMMANDS)
    whole = [" ".join([*get_close_matches(given[0], firsts, n=1, cutoff=0.65), *given[1:2]])]
    near = [name for name in whole if " " in name and name in COMMANDS]  # the second word may be right
    near = near or list(OTHER_WORDS.get(given[0], ())) or get_close_matches(asked, COMMANDS, n=2, cutoff=0.65)
    meant = " or ".join(f"wakeful {name}" for name in near)
    hint = f"Did you mean {meant}?" if near else "List the commands: wakeful --help"
    return exit_code_of(WrongRequest(f"there is no command {asked!a}", hint), as_json=_wants_json(given))


def _wants_json(arguments: list[str]) -> bool:
    """Is the caller a program? Then an error is JSON on stdout, too."""
    end = arguments.index("--") if "--" in arguments else len(arguments)
    return "--json" in arguments[:end]


def app_of(name: str) -> "typer.Typer":
    """One command as an application of its own, with its example at the end of its help."""
    import typer

    app = typer.Typer(
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    command = COMMANDS[name]
    example = "\b\nExample:\n" + "\n".join(f"  {line}" for line in command.example.splitlines())
    module = import_module(f"wakeful.surfaces.cli.{command.module}")
    app.command(epilog=example)(_as_typed(name, getattr(module, command.function)))
    return app


def _as_typed(name: str, function: "Callable[..., Any]") -> "Callable[..., Any]":
    """A command as a person types it. One that may ask a daemon takes `--connect`, beside the `--store` that it has by
    itself; the number of a row of the last list stands for the id in that row."""
    from inspect import Parameter, signature

    given = signature(function)
    may_ask = "store" in given.parameters or name in NO_STORE
    if not may_ask and name not in ROWS:
        return function
    from wakeful.surfaces.cli.options import ConnectOption
    from wakeful.surfaces.cli.places import asking

    def asked(connect: str | None = None, **options: Any) -> Any:
        with asking(connect):
            return function(**_with_ids(name, options, is_file=not may_ask or name in OWN_PROCESS))

    own = [each.replace(kind=Parameter.KEYWORD_ONLY) for each in given.parameters.values()]
    if may_ask and name not in OWN_PROCESS:
        own.append(Parameter("connect", Parameter.KEYWORD_ONLY, default=None, annotation=ConnectOption))
    asked.__signature__ = given.replace(parameters=own)  # type: ignore[attr-defined]
    asked.__doc__ = function.__doc__
    return asked


def _with_ids(name: str, options: dict[str, Any], *, is_file: bool) -> dict[str, Any]:
    """The options with the ids of the rows that were named by their numbers. `is_file`: it works on a file, whether a
    daemon runs or not."""
    from wakeful.surfaces.cli.last_list import id_of, is_number
    from wakeful.surfaces.cli.places import place_of_rows

    numbers = [each for each in ROWS.get(name, {}) if is_number(options[each])]
    if not numbers:
        return options
    place, agent = place_of_rows(options.get("store"), is_file=is_file), options.get("agent") or ""
    must_be_shown = name in LETS_RUN
    ids = {
        each: id_of(options[each], ROWS[name][each], place, agent=agent, must_be_shown=must_be_shown)
        for each in numbers
    }
    return {**options, **ids}


def _invoke(name: str, arguments: list[str], *, is_own: bool) -> int:
    if is_own:
        gc.set_threshold(*COLLECT_AFTER)
    import typer

    from wakeful.service import guard_imports
    from wakeful.surfaces.cli.problems import exit_code_of, file_problem, usage_problem

    guard_imports()
    if is_own and name in ASKS_MODELS:
        _take_keys()
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")  # no word of a model may stop the command
    try:
        app = app_of(name)
        if is_own:
            gc.freeze()  # what is loaded now stays: no pass looks at it again
        code = app(arguments, prog_name=f"wakeful {name}", standalone_mode=False)
        return code if isinstance(code, int) else 0
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else 0 if end.code is None else 1
    except (KeyboardInterrupt, typer.Abort):
        return INTERRUPTED
    except BrokenPipeError:
        raise
    except Exception as error:
        problem = usage_problem(error, name) if hasattr(error, "format_message") else file_problem(error)
        return exit_code_of(_without_own_store(problem), as_json=_wants_json(arguments))


def _take_keys() -> None:
    """Keys of the home are there for commands that ask models themselves. A file that cannot be used is told."""
    from wakeful.bootstrap.keys import take_keys_of_home
    from wakeful.contracts.errors import InvalidConfig
    from wakeful.surfaces.cli.problems import note

    try:
        take_keys_of_home()
    except InvalidConfig as problem:
        note(f"{problem.message}; nothing of it is used. {problem.hint}")


def _without_own_store(error: Exception) -> Exception:
    """The same error; commands in its hint do not name the store that they would find without."""
    hint = getattr(error, "hint", "")
    if isinstance(hint, str) and "--store" in hint:
        from wakeful.surfaces.cli.places import any_place

        with contextlib.suppress(Exception):  # a settings file that cannot be read is not what went wrong here
            error.hint = hint.replace(f" --store {shlex.quote(any_place(None).path)}", "")  # type: ignore[attr-defined]
    return error
