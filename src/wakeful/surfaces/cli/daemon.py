"""`wakeful daemon start|stop|restart|status|logs`: the same as `wakeful serve`, in the background."""

from pathlib import Path
from typing import Annotated

import typer

from wakeful.service.serving.autostart import start_file
from wakeful.service.serving.lifecycle import (
    DaemonStatus,
    daemon_logs,
    daemon_status,
    options_of_restart,
    restart_daemon,
    start_daemon,
    stop_daemon,
)
from wakeful.service.serving.options import ServeOptions, checked_options
from wakeful.surfaces.cli.options import JsonOption, ToolsOption
from wakeful.surfaces.cli.problems import note
from wakeful.surfaces.cli.screen import prose
from wakeful.surfaces.cli.serving_options import (
    AccessOption,
    AdvertiseOption,
    DefaultModelOption,
    HostOption,
    KeptAccessOption,
    ListenOption,
    PortOption,
    TokenFileOption,
    TokenOption,
    restart_lines,
    show_first_token,
)
from wakeful.surfaces.cli.shown_values import ago, json_text, local_times, out, plain
from wakeful.views.process_status import ProcessFailure, drain_words

DrainOption = Annotated[
    float | None,
    typer.Option(
        "--drain",
        metavar="SECONDS",
        help="How long model and tool calls under way may take to end. 0: end now. Default: [daemon] drain, or 120.",
    ),
]
LinesOption = Annotated[int, typer.Option("--lines", metavar="N", help="How many lines of the log.")]


def start(
    access: AccessOption = "local",
    host: HostOption = None,
    port: PortOption = None,
    listen: ListenOption = None,
    advertise: AdvertiseOption = None,
    token: TokenOption = None,
    token_file: TokenFileOption = None,
    model: DefaultModelOption = None,
    tools: ToolsOption = None,
    json: JsonOption = False,
) -> None:
    """Start the daemon of the home, unless it runs already with the same options."""
    options = _options(access, host, port, listen, advertise, token, token_file, model, tools)
    show_first_token(options)
    status, is_new = start_daemon(options)
    _told(status, "started" if is_new else "it runs already", json=json)


def restart(
    access: KeptAccessOption = None,
    host: HostOption = None,
    port: PortOption = None,
    listen: ListenOption = None,
    advertise: AdvertiseOption = None,
    token: TokenOption = None,
    token_file: TokenFileOption = None,
    model: DefaultModelOption = None,
    tools: ToolsOption = None,
    drain: DrainOption = None,
    json: JsonOption = False,
) -> None:
    """Stop the daemon and start another process. Turns continue in the new one.

    Model and tool calls under way may end first. It keeps what it was started with unless something else is given:
    --tools, --model, and as one thing where it listens and for whom. Files, code, store and address are checked first:
    where the new process could not start, the old one goes on.
    """
    given = _options(access or "local", host, port, listen, advertise, token, token_file, model, tools)
    is_placed = any(each is not None for each in (access, host, port, listen, advertise))
    terms = options_of_restart(given, is_placed=is_placed)
    show_first_token(terms.options)
    restarted = restart_daemon(terms, drain, note)
    _told(restarted, "restarted", json=json)
    if not json:
        out(restart_lines(restarted))


def stop(drain: DrainOption = None, json: JsonOption = False) -> None:
    """Stop the daemon. Agents stay as they are, and continue when it is started again.

    It begins nothing more, and lets model and tool calls under way end.
    """
    stopped = stop_daemon(drain, note)
    if json:
        out(json_text({"stopped": stopped}, indent=2))
    else:
        out("the daemon has ended" if stopped else "no daemon runs")


def status(json: JsonOption = False) -> None:
    """Show whether the daemon runs, what it does, and its newest failure."""
    _told(daemon_status(), "", json=json)


def logs(lines: LinesOption = 60, json: JsonOption = False) -> None:
    """Show the end of the daemon's log, its newest failure, and where its files are."""
    found = daemon_logs(lines)
    if json:
        out(json_text(found.model_dump(mode="json"), indent=2))
        return
    out([f"log       {plain(found.log_path)}", f"metadata  {plain(found.metadata_path)}"])
    out(f"failure   {plain(found.failure_path)}")
    for failure in (found.startup_failure, found.shutdown_failure):
        if failure is not None:
            prose(_failure(failure))
    out(["", *(plain(line) for line in found.lines)] if found.lines else "the log is empty")


def install(
    access: AccessOption = "local",
    host: HostOption = None,
    port: PortOption = None,
    listen: ListenOption = None,
    advertise: AdvertiseOption = None,
    model: DefaultModelOption = None,
    tools: ToolsOption = None,
    show: Annotated[bool, typer.Option("--print", help="Print the file and write nothing.")] = False,
    json: JsonOption = False,
) -> None:
    """Write the file with which your system starts the daemon by itself, and show the commands that enable it."""
    options = _options(access, host, port, listen, advertise, None, None, model, tools)
    given = {"--host": host, "--port": port, "--listen": listen, "--advertise": advertise, "--model": model}
    words = ["--access", access] if access != "local" else []
    words += [word for name, value in given.items() if value is not None for word in (name, str(value))]
    words += [word for each in tools or () for word in ("--tools", each)]
    found = start_file(tuple(words), folder=Path(options.folder) if options.folder else None)
    if not show:
        found.path.parent.mkdir(parents=True, exist_ok=True)
        found.path.write_text(found.text, "utf-8")
    if json:
        told = {"path": str(found.path), "text": found.text, "commands": list(found.commands), "written": not show}
        out(json_text(told, indent=2))
    elif show:
        out(found.text.rstrip())
    else:
        out([f"wrote {plain(str(found.path))}; to enable it:", *(f"  {line}" for line in found.commands)])


def _options(
    access: str,
    host: str | None,
    port: int | None,
    listen: str | None,
    advertise: str | None,
    token: str | None,
    token_file: TokenFileOption,
    model: str | None,
    tools: list[str] | None,
) -> ServeOptions:
    return checked_options(
        access=access,
        host=host,
        port=port,
        listen=listen,
        advertise=advertise,
        token=token,
        token_file=token_file,
        model=model,
        tools=tools or (),
    )


def _told(status: DaemonStatus, words: str, *, json: bool) -> None:
    if json:
        out(json_text(status.model_dump(mode="json"), indent=2))
        return
    if not status.running:
        out("the daemon does not run")
    else:
        health = "" if status.healthy else ", and does not answer"
        process = f", process {status.pid}" if status.pid is not None else ""
        out(f"the daemon runs{process}{health}" + (f" ({words})" if words else ""))
    out([f"  home     {plain(status.home_dir)}", f"  socket   {plain(status.socket_path)}"])
    if status.running:
        out(f"  network  {status.http_addr or 'none'}")
    if status.activity is not None:
        busy = status.activity
        out(
            f"  agents   {busy.state}: {busy.processing_agent_count} working, {busy.waiting_agent_count} waiting, "
            f"{busy.active_agent_count} active; {busy.active_task_count} tasks"
        )
    if status.draining is not None:
        prose(plain(f"It is shutting down: {drain_words(status.draining)}"))
    if status.fingerprint_matches is False:
        prose("It was started with other options than the ones configured now. To replace it: wakeful daemon restart")
    if status.last_failure is not None:
        prose(_failure(status.last_failure))
    for problem in status.problems:
        prose(plain(local_times(problem)))
    if status.next_step:
        out(f"next: {plain(status.next_step)}")


def _failure(failure: ProcessFailure) -> str:
    when = ago(int(failure.occurred_at * 1e6))
    return f"{failure.phase} failure, {when} ago: {plain(failure.summary)}"
