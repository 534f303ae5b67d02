"""The entrance: finds the command that was asked for and loads that one alone.

`wakeful --help` has to answer at once, so this module imports nothing but what the interpreter has loaded anyway: the
list below is the help. A command's own `--help` comes from its function, through typer.
"""

import gc
import os
import sys
from importlib import import_module
from typing import NamedTuple

from wakeful._version import __version__


class Command(NamedTuple):
    """Where a command lives, how it is called, and one line on what it does."""

    module: str
    usage: str
    says: str
    function: str = "command"


_DECIDE = "approval_decisions"
COMMANDS = {
    "demo": Command("demo", "demo [NAME]", "what can be tried offline"),
    "demo crash": Command("demo_crash", "demo crash", "a run is killed in the middle of a payment, and pays once"),
    "demo budget": Command("demo_budget", "demo budget", "a tree of subtasks keeps to one budget, over a kill"),
    "demo approve": Command("demo_approve", "demo approve", "a call waits for a person, over a kill, and runs once"),
    "run": Command("run", "run PROMPT", "run an agent on a prompt, in this process"),
    "resume": Command("resume", "resume [TURN]", "go on with what was cut off"),
    "cancel": Command("steering", "cancel TURN", "ask a turn to stop, wherever it runs", "cancel"),
    "pause": Command("steering", "pause TURN", "let a turn rest, wherever it runs; resume lets it go on", "pause"),
    "interject": Command("steering", "interject TURN TEXT", "say something to a turn that is under way", "interject"),
    "approvals": Command("approvals", "approvals", "what waits for a person's decision", "listed"),
    "approvals list": Command("approvals", "approvals list", "the same as approvals", "listed"),
    "approvals show": Command("approvals", "approvals show ID", "all about one of them", "show"),
    "approvals approve": Command(_DECIDE, "approvals approve ID", "let the call run", "approve"),
    "approvals reject": Command(_DECIDE, "approvals reject ID [WORDS]", "refuse it; the model reads why", "reject"),
    "approvals edit": Command(_DECIDE, "approvals edit ID NAME=VALUE", "let it run with other arguments", "edit"),
    "approvals answer": Command(_DECIDE, "approvals answer ID TEXT", "answer it, in the call's place", "answer"),
    "approvals always": Command(_DECIDE, "approvals always ID", "let it run, and do not ask again", "always"),
    "approvals rules": Command("approvals", "approvals rules", "standing answers", "rules"),
    "approvals revoke": Command("approvals", "approvals revoke RULE", "take a standing answer back", "revoke"),
    "workflow": Command("workflows", "workflow", "the same as workflow list", "listed"),
    "workflow list": Command("workflows", "workflow list", "the workflows that are saved", "listed"),
    "workflow show": Command("workflows", "workflow show NAME", "one of them, drawn", "show"),
    "workflow validate": Command("workflows", "workflow validate FILE", "does a graph hold together?", "validate"),
    "workflow save": Command("workflows", "workflow save FILE", "keep a graph as a new revision", "save"),
    "workflow run": Command("workflow_run", "workflow run NAME", "run one, through the gate, as a turn of its own"),
    "workflow delete": Command("workflows", "workflow delete NAME", "forget one, with all revisions", "delete"),
    "dispatch": Command("dispatch_show", "dispatch", "the same as dispatch list", "listed"),
    "dispatch run": Command("dispatch_run", "dispatch run INSTRUCTIONS", "hand work to a target", "run"),
    "dispatch list": Command("dispatch_show", "dispatch list", "what was handed to targets, newest first", "listed"),
    "dispatch show": Command("dispatch_show", "dispatch show RUN", "how one stands, and what happened to it", "show"),
    "dispatch resume": Command("dispatch_run", "dispatch resume RUN", "go on with one that was cut off", "resume"),
    "dispatch cancel": Command("dispatch_show", "dispatch cancel RUN", "ask one to stop", "cancel"),
    "targets": Command("dispatch_run", "targets", "who takes dispatched work here", "targets"),
    "package import": Command("package", "package import FILE", "register the agent of a bundle", "import_"),
    "package run": Command("package", "package run FILE", "run a workflow of a package", "run"),
    "unknown": Command("unknown", "unknown", "calls of which nobody knows whether they happened", "listed"),
    "resolve": Command("unknown", "resolve CALL", "say whether such a call happened", "resolve"),
    "requests": Command("requests", "requests", "calls that a client has to run", "listed"),
    "requests list": Command("requests", "requests list", "the same as requests", "listed"),
    "requests show": Command("requests", "requests show ID", "all about one of them", "show"),
    "requests submit": Command("requests", "requests submit ID JSON", "give the client's answer", "submit"),
    "requests timeout": Command("requests", "requests timeout ID", "no client will answer it", "timeout"),
    "requests cancel": Command("requests", "requests cancel ID", "nobody wants the answer any more", "cancel"),
    "status": Command("status", "status [AGENT]", "how agents stand, and the tokens they have used"),
    "events": Command("events", "events [TURN]", "the newest turns, or the log of one (--follow)"),
    "events validate": Command("events_validate", "events validate [FILE]", "hold a log to the published schema"),
    "tree": Command("tree", "tree [TURN]", "what a turn did, call inside call"),
    "replay": Command("inspection", "replay TURN",
                      "decide a turn again and prove that nothing comes out differently", "replay"),
    "tools": Command("tools", "tools", "what an agent is offered, allowed, asked, denied, and why"),
    "why": Command("inspection", "why CALL", "why a call ran, waited or was refused", "why"),
    "context": Command("context", "context [TURN]", "what the model was shown in a turn, and why"),
    "debug prompt": Command("debug_prompt", "debug prompt", "what an agent is told, and where each part is from"),
    "cost": Command("cost", "cost", "what requests to models cost, by model, agent, day or depth"),
    "budget": Command("budget", "budget", "what is spent in which window of time, and what may be"),
    "budget grant": Command("budget", "budget grant --usd AMOUNT", "more for a window that is under way", "more"),
    "debug latency": Command("inspection", "debug latency [TURN]", "where a turn's time went", "latency"),
    "models": Command("models", "models", "the same as models list", "listed"),
    "models list": Command("models", "models list",
                           "providers and models, with keys, capabilities and prices", "listed"),
    "models show": Command("models", "models show MODEL", "everything that is known about one model", "show"),
    "models test": Command("models", "models test MODEL", "one tiny live call: does it answer?", "test"),
    "mcp": Command("mcp", "mcp", "the same as mcp list", "listed"),
    "mcp list": Command("mcp", "mcp list", "the MCP servers of your file, and what changed; starts none", "listed"),
    "mcp tools": Command("mcp", "mcp tools SERVER", "a server's tools: offered, or not and why", "tools"),
    "mcp approve": Command("mcp", "mcp approve SERVER",
                           "accept tools that changed since they were accepted", "approve"),
    "mcp login": Command("mcp", "mcp login SERVER", "let wakeful in, with your browser", "login"),
    "trust": Command("trust", "trust [PATH]", "accept AGENTS.md, skills and other files as your own words"),
    "doctor": Command("doctor", "doctor", "is everything as it should be?"),
    "store forget": Command("store_forget", "store forget [PATH]", "take a store as it is, after a restore"),
    "schema": Command("schema", "schema [NAME]", "the published JSON Schemas"),
}  # fmt: skip
GROUPS = {
    "Begin": (
        "demo crash", "demo approve", "demo budget", "run", "resume", "pause", "interject", "cancel",
    ),
    "What needs a person": (
        "approvals", "approvals show", "approvals approve", "approvals reject", "approvals edit", "approvals answer",
        "approvals always", "approvals rules", "approvals revoke", "unknown", "resolve", "trust",
    ),
    "What a client has to do": (
        "requests", "requests show", "requests submit", "requests timeout", "requests cancel",
    ),
    "Workflows": (
        "workflow list", "workflow show", "workflow validate", "workflow save", "workflow run", "workflow delete",
    ),
    "Dispatch and packages": (
        "dispatch run", "dispatch list", "dispatch show", "dispatch resume", "dispatch cancel", "targets",
        "package import", "package run",
    ),
    "Models": ("models list", "models show", "models test"),
    "MCP servers": ("mcp list", "mcp tools", "mcp approve", "mcp login"),
    "Look": (
        "status", "events", "events validate", "tree", "tools", "why", "context", "replay", "cost", "budget",
        "budget grant", "debug prompt", "debug latency", "doctor", "store forget", "schema",
    ),
}  # fmt: skip
FAMILIES = ("debug", "package", "store")
"""First words that are no command by themselves."""
HELP = ("--help", "-h")
USAGE, INTERRUPTED = 2, 130
COLLECT_AFTER = 5_000, 3, 300
"""The thresholds of the garbage collector in a process of ours. A pass over everything alive stops every turn, so it
is rare, and the passes between are small: docs/explain/many-turns.md says more."""


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


def help_text() -> str:
    """What `wakeful --help` says."""
    width = max(len(command.usage) for command in COMMANDS.values()) + 3
    lines = [
        f"wakeful {__version__}: a durable runtime for AI agents.",
        "Kill it anywhere and run the same line again: it finishes as if nothing had happened.",
        "",
        "Usage: wakeful COMMAND [OPTIONS]     (wakeful COMMAND --help says more)",
    ]
    for title, names in GROUPS.items():
        lines += ["", title]
        lines += [f"  {COMMANDS[name].usage:<{width}}{COMMANDS[name].says}" for name in names]
    lines += [
        "",
        "Exit codes: 0 completed, 1 failed, 2 the request was wrong, 3 somebody has to decide or supply something.",
        "The first thing to try, without a key and without a network:  wakeful demo crash",
    ]
    return "\n".join(lines) + "\n"


def _answer(given: list[str], *, is_own: bool) -> int:
    if not given or given[0] in (*HELP, "help"):
        sys.stdout.write(help_text())
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
    if name not in COMMANDS or _is_mistyped(name, given):
        return _no_such_command(given)
    code = _invoke(name, given[len(name.split()) :], is_own=is_own)
    if asks_help:
        sys.stdout.write(_family(name))
    return code


def _family(name: str) -> str:
    """The commands whose first word it is, as its help ends with them."""
    members = [each for key, each in COMMANDS.items() if key.startswith(f"{name} ")]
    width = max((len(each.usage) for each in members), default=0) + 3
    lines = [f"  wakeful {each.usage:<{width}}{each.says}" for each in members]
    return "\n".join(["", "Commands:", *lines, ""]) if lines else ""


def _is_mistyped(name: str, given: list[str]) -> bool:
    """A second word that is none of the family's, where the first alone takes no argument."""
    takes_none = COMMANDS[name].usage == name and any(each.startswith(f"{name} ") for each in COMMANDS)
    return takes_none and len(given) > 1 and not given[1].startswith("-")


def _no_such_command(given: list[str]) -> int:
    from difflib import get_close_matches

    asked = " ".join(given[:2]) if given[0] in (*FAMILIES, *COMMANDS) else given[0]
    near = get_close_matches(asked, COMMANDS, n=2, cutoff=0.65)
    near = near or [name for name in COMMANDS if name.startswith(given[0] + " ")]
    meant = f"Did you mean: {', '.join('wakeful ' + name for name in near)}?" if near else "The list: wakeful --help"
    sys.stderr.write(f"error: there is no command {asked!a}\n  {meant}\n")
    return USAGE


def _invoke(name: str, arguments: list[str], *, is_own: bool) -> int:
    if is_own:
        gc.set_threshold(*COLLECT_AFTER)
    import typer

    from wakeful.service import guard_imports

    guard_imports()
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")  # no word of a model may stop the command
    app = typer.Typer(
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    try:
        module = import_module(f"wakeful.surfaces.cli.{COMMANDS[name].module}")
        if is_own:
            gc.freeze()  # what is loaded now stays: no pass looks at it again
        app.command()(getattr(module, COMMANDS[name].function))
        app(arguments, prog_name=f"wakeful {name}")
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else 0 if end.code is None else 1
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        raise
    except Exception as error:
        from wakeful.surfaces.cli.problems import exit_code_of

        return exit_code_of(error)
    return 0
