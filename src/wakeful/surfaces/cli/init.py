"""`wakeful init`: a home in one go. Asks for a model, a daily limit, how to reach you, and whether to start at boot.

Everything is asked and checked first, then written, then started. A file that is there is never written over unasked.
"""

import asyncio
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Annotated, NamedTuple

import typer

from wakeful.bootstrap.homes import check_home
from wakeful.bootstrap.models import model_catalogue, try_model
from wakeful.contracts.catalogue import ProviderState
from wakeful.contracts.errors import WakefulError
from wakeful.contracts.models import spelled_reference
from wakeful.service.operations.runtime import (
    LIST_NOTICES,
    TEST_NOTICE,
    AgentControlRequest,
    NoticeQuery,
)
from wakeful.service.serving.autostart import start_file
from wakeful.service.serving.lifecycle import (
    DaemonStatus,
    RestartedDaemon,
    daemon_status,
    options_of_restart,
    restart_daemon,
    start_daemon,
)
from wakeful.service.serving.options import ServeOptions, checked_options
from wakeful.service.serving.run_files import SECRETS, home_folder, read_secrets
from wakeful.service.setup_files import (
    INSTRUCTIONS,
    REACH_VARIABLE,
    WayToOwner,
    agent_file,
    agent_text,
    keep_secrets,
    owner_text,
    reach_of,
    write_new,
)
from wakeful.surfaces.cli.file_words import problem_lines
from wakeful.surfaces.cli.options import JsonOption
from wakeful.surfaces.cli.phone_setup import TOKEN_VARIABLE, PhoneState, bot_token, pair_phone
from wakeful.surfaces.cli.places import ask, place_to_ask
from wakeful.surfaces.cli.problems import Failure, NeedsPerson, WrongRequest, complain, note
from wakeful.surfaces.cli.serving_options import ListenOption, restart_lines, show_first_token
from wakeful.surfaces.cli.shown_values import json_text, out, plain
from wakeful.surfaces.cli.terminal_approver import is_attended

MAIN = "main"
SPEND = 5.0
SUGGESTED = {"anthropic": "claude-sonnet-5", "openai": "gpt-5.5", "gemini": "gemini-2.5-pro"}
"""A model for somebody who names only a provider."""
TEST_SECONDS = 10.0


class Answers(NamedTuple):
    """Everything that is to be known before anything is written."""

    model: str
    provider: ProviderState
    key: str
    """To be kept in `secrets.env`; blank: none is needed, or it is there."""
    spend: float | None
    reach: WayToOwner
    autostart: bool
    base_url: str | None
    token: str = ""
    """Of a bot, to be kept in `secrets.env`; blank: none is needed, or it is there."""


def command(
    model: Annotated[
        str | None, typer.Option("--model", metavar="PROVIDER[:MODEL]", help="The model of your first agent.")
    ] = None,
    spend: Annotated[
        str | None, typer.Option("--spend", metavar="USD", help="The daily spending limit, or none. Default: 5.")
    ] = None,
    reach: Annotated[
        str | None,
        typer.Option(
            "--reach", metavar="HOW", help="A phone (ntfy or telegram), an address for notices, a command, or none."
        ),
    ] = None,
    autostart: Annotated[
        bool | None, typer.Option("--autostart/--no-autostart", help="Start the daemon when the machine starts.")
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Use the defaults for everything that is not given.")] = False,
    base_url: Annotated[
        str | None,
        typer.Option("--base-url", metavar="URL", help="The address of the provider, if not its usual one."),
    ] = None,
    check: Annotated[bool, typer.Option("--check/--no-check", help="Ask the model for one word first.")] = True,
    start: Annotated[bool, typer.Option("--start/--no-start", help="Start the daemon.")] = True,
    listen: ListenOption = None,
    replace: Annotated[
        bool,
        typer.Option(
            "--replace",
            help="Replace existing files (kept as *.old) and other values in secrets.env.",
        ),
    ] = False,
    json: JsonOption = False,
) -> None:
    """Set up your home: a model with its key, a daily limit, how to reach you, start at boot; then start the daemon.

    The key is taken from the environment or asked for, checked with one tiny call, and kept in secrets.env, which only
    you can read.
    """
    home = home_folder()
    files = [home / "wakeful.toml", agent_file(home, MAIN)]
    there = [path for path in files if path.exists()]
    if there and not replace:
        raise WrongRequest(
            f"{home} is set up already: {', '.join(plain(path.name) for path in there)}",
            "edit the files and run wakeful check, or: wakeful init --replace (keeps them as *.old)",
        )
    attended = is_attended() and not yes and not json
    missing = [name for name, value in (("--model", model), ("--spend", spend), ("--reach", reach)) if value is None]
    if not attended and not yes and (missing or autostart is None):
        needed = ", ".join([*missing, *(["--autostart or --no-autostart"] if autostart is None else [])])
        raise WrongRequest(
            f"there is no terminal to ask at, and these are not given: {needed}",
            "give them, or --yes for the defaults: wakeful init --model anthropic --yes",
        )
    if base_url is not None and model is None:
        raise WrongRequest(
            "--base-url is the address of a provider, and --model names none", "give --model PROVIDER:MODEL"
        )
    options = checked_options(listen=listen) if start else None
    answers = _answers(model, spend, reach, autostart, base_url, attended=attended, replace=replace)
    if answers.reach.phone is not None and not start:
        raise WrongRequest(
            "a phone is paired through the daemon, and --no-start was given",
            f"leave out --no-start, or give --reach none and later: wakeful channel add {answers.reach.phone.kind}",
        )
    said = _checked(answers) if check else "not checked"
    _write(home, answers, files, replace=replace)
    report = check_home(None)
    if not report.valid:
        raise Failure("\n".join(problem_lines(report.problems)), "the files are written; fix them, then: wakeful check")
    status = _started(options, listen) if options is not None else None
    phone: PhoneState | None = None
    if status is not None and answers.reach.phone is not None:
        phone = pair_phone(answers.reach.phone, place_to_ask(None), attended=attended)
    is_reached = bool(answers.reach.lines) or (phone is not None and phone.is_paired)
    sent = _test_notice() if status is not None and is_reached else ""
    at_boot = _at_boot(listen) if answers.autostart else ()
    if json:
        told = {
            "home": str(home),
            "model": answers.model,
            "check": said,
            "files": [str(path) for path in files],
            "spend_usd_per_day": answers.spend,
            "test_notice": sent or None,
            "phone": None if phone is None else phone._asdict(),
            "daemon_pid": status.pid if status is not None else None,
            "daemon_restarted": isinstance(status, RestartedDaemon),
            "autostart_commands": list(at_boot),
        }
        out(json_text(told, indent=2))
        return
    kept = f", key kept in {SECRETS} (0600)" if answers.key else ""
    out(f"model: {plain(answers.model)}, {said}{kept}")
    out(f"spend a day: {f'${answers.spend:g}' if answers.spend is not None else 'no limit'}")
    if answers.reach.lines:
        out(f"reach you: {sent or 'written; wakeful notify test main'}")
    elif phone is not None and phone.is_paired:
        out(f"reach you: {phone.kind}, paired as {phone.channel}; {sent}")
    elif phone is not None:
        out(["reach you: the phone is not paired yet, within ten minutes:", *(f"  {line}" for line in phone.steps)])
    out([f"wrote {plain(str(path))}" for path in files])
    if at_boot:
        out(["to start it at boot:", *(f"  {line}" for line in at_boot)])
    if status is not None:
        where = f", http://{status.http_addr}" if status.http_addr else ""
        is_new = not isinstance(status, RestartedDaemon)
        out(f"daemon {'up' if is_new else 'restarted with what was written'}, process {status.pid}{where}")
    if isinstance(status, RestartedDaemon):
        out(restart_lines(status))
    out('next: wakeful send main "hello"   wakeful tail main   wakeful tui')


def _started(options: ServeOptions, listen: str | None) -> DaemonStatus:
    """Start the daemon. One that runs has read the files as they were before: another one takes its place, and listens
    where it did unless something else was said."""
    if not daemon_status().running:
        show_first_token(options)
        return start_daemon(options)[0]
    terms = options_of_restart(options, is_placed=listen is not None)
    show_first_token(terms.options)
    return restart_daemon(terms)


def _answers(
    model: str | None,
    spend: str | None,
    reach: str | None,
    autostart: bool | None,
    base_url: str | None,
    *,
    attended: bool,
    replace: bool,
) -> Answers:
    named = _provider_part(model)
    if base_url is not None and named:
        os.environ[f"{named.upper().replace('-', '_')}_BASE_URL"] = base_url  # for the check; the file says it later
    providers = {each.name: each for each in model_catalogue().providers if each.name != "scripted"}
    if model is None:
        ask_for_it = partial(_asked_model, providers, attended=attended)
        model = _until_right(ask_for_it, partial(_named, providers)) if attended else ask_for_it()
    provider, reference = _named(providers, model)
    key = _key(provider, attended=attended, replace=replace)
    if spend is None:
        words = "Spend a day, in dollars (or none)"
        ask_for_it = partial(typer.prompt, words, default=f"{SPEND:g}", err=True)
        spend = _until_right(ask_for_it, _money) if attended else str(SPEND)
    if reach is None:
        words = "How to reach you (ntfy, telegram, an address, a command, none)"
        ask_for_it = partial(typer.prompt, words, default="none", err=True)
        reach = _until_right(ask_for_it, reach_of) if attended else "none"
    if autostart is None:
        autostart = typer.confirm("Start when the machine starts?", default=True, err=True) if attended else False
    way = reach_of(str(reach))
    token = bot_token(way.phone, attended=attended, replace=replace)
    return Answers(reference, provider, key, _money(str(spend)), way, autostart, base_url, token)


def _until_right(ask_for_it: Callable[[], object], check: Callable[[str], object]) -> str:
    """The answer of a person, asked for again as long as it will not do: the answers before it are not lost."""
    while True:
        said = str(ask_for_it())
        try:
            check(said)
        except WakefulError as wrong:
            complain(wrong.message, wrong.hint)
        else:
            return said


def _named(providers: dict[str, ProviderState], model: str) -> tuple[ProviderState, str]:
    """The provider and the whole reference of a model, or of a provider's suggested one. Raises WrongRequest."""
    provider_name, _, model_name = spelled_reference(model).partition(":")
    if provider_name == "scripted":
        provider = next(each for each in model_catalogue().providers if each.name == "scripted")
    elif provider_name not in providers:
        from difflib import get_close_matches

        near = get_close_matches(provider_name, providers, n=1)
        hint = f"did you mean {near[0]}?" if near else f"there are: {', '.join(providers)}"
        raise WrongRequest(f"there is no provider {provider_name!r}", hint)
    else:
        provider = providers[provider_name]
    if not model_name:
        model_name = SUGGESTED.get(provider_name, "")
        if not model_name:
            raise WrongRequest(
                f"--model {provider_name} names no model", f"give one of its models: --model {provider_name}:MODEL"
            )
    return provider, f"{provider_name}:{model_name}"


def _provider_part(model: str | None) -> str:
    return spelled_reference(model or "").partition(":")[0]


def _asked_model(providers: dict[str, ProviderState], *, attended: bool) -> str:
    ready = [each for each in providers.values() if each.key == "found" and each.name in SUGGESTED]
    default = f"{ready[0].name}:{SUGGESTED[ready[0].name]}" if ready else ""
    if attended:
        found = ", ".join(f"{each.name} ({each.key_variable})" for each in ready)
        note(
            f"Keys found: {found}" if found else "No key was found in the environment. wakeful models lists providers."
        )
        return str(typer.prompt("Model, as PROVIDER:MODEL", default=default or "anthropic:claude-sonnet-5", err=True))
    if not default:
        variables = ", ".join(str(providers[name].key_variable) for name in SUGGESTED if name in providers)
        raise NeedsPerson(
            "no model was given, and no key was found",
            f"give --model PROVIDER:MODEL, or set one of {variables}; to look around without a key: wakeful demo wake",
        )
    return default


def _key(provider: ProviderState, *, attended: bool, replace: bool) -> str:
    """The key to keep; blank where none is needed or `secrets.env` has one that stays. Raises NeedsPerson."""
    variable = provider.key_variable
    if provider.key == "not_needed" or variable is None:
        return ""
    kept = read_secrets().get(variable)
    if provider.key == "found":
        return "" if kept and not replace else os.environ[variable]
    if kept:
        os.environ[variable] = kept
        return ""
    if not attended:
        raise NeedsPerson(
            f"no key of {provider.name} was found",
            f"set {variable}, or write it to {home_folder() / SECRETS} (chmod 600)",
        )
    given = str(
        typer.prompt(f"Key of {provider.name} ({variable}; it is not shown)", hide_input=True, err=True)
    ).strip()
    os.environ[variable] = given
    return given


def _money(said: str) -> float | None:
    if said.strip().lower() == "none":
        return None
    try:
        amount = float(said.strip().lstrip("$"))
    except ValueError:
        amount = 0.0
    if not 0 < amount < 1e9:
        raise WrongRequest(f"--spend {said} is not an amount of dollars", "give a number such as 5, or none")
    return amount


def _checked(answers: Answers) -> str:
    """Ask the model for one word. Raises Failure or MalformedScript; then nothing was written."""
    found = asyncio.run(try_model(answers.model))  # raises MalformedScript for a script that is not there
    if answers.provider.name == "scripted":
        return "a script, which needs no key"
    if not found.ok:
        raise Failure(
            f"{answers.model} did not answer: {found.message}; nothing was written",
            found.advice or "try it: wakeful models test " + answers.model,
        )
    return f"answered in {found.duration_ms / 1000:.1f} s"


def _write(home: Path, answers: Answers, files: list[Path], *, replace: bool) -> None:
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    kept = {}
    if answers.key and answers.provider.key_variable is not None:
        kept[answers.provider.key_variable] = answers.key
    if answers.reach.address:
        kept[REACH_VARIABLE] = answers.reach.address
    if answers.token:
        kept[TOKEN_VARIABLE] = answers.token
    keep_secrets(home / SECRETS, kept, replace=replace)
    os.environ.update(kept)
    base = (answers.provider.name, answers.base_url) if answers.base_url is not None else None
    owner, agent = files
    write_new(
        owner,
        owner_text(spend=answers.spend, reach=answers.reach, base_url=base, environ=os.environ),
        replace=replace,
    )
    write_new(agent, agent_text(MAIN, answers.model, INSTRUCTIONS, notify=bool(answers.reach.lines)), replace=replace)


def _test_notice() -> str:
    """Have a test notice sent, and say whether it arrived."""
    import time

    place = place_to_ask(None)
    ask(TEST_NOTICE, AgentControlRequest(MAIN), place)
    until = time.monotonic() + TEST_SECONDS
    while time.monotonic() < until:
        for each in ask(LIST_NOTICES, NoticeQuery(MAIN, 5), place):
            if each.kind == "test" and each.state == "delivered":
                return "test notice delivered"
            if each.kind == "test" and each.error:
                return f"the test notice was not taken: {plain(each.error)}"
        time.sleep(0.1)
    return "the test notice is not delivered yet: wakeful notices main"


def _at_boot(listen: str | None) -> tuple[str, ...]:
    found = start_file(("--listen", listen) if listen is not None else ())
    found.path.parent.mkdir(parents=True, exist_ok=True)
    found.path.write_text(found.text, "utf-8")
    return tuple(line.replace(" --now", "") for line in found.commands)
