"""Starting, stopping and looking at the process that serves a home. There is one at a time.

A process that answers at the socket is the truth; the files beside it are what is left where none does.
"""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from wakeful.contracts.errors import ForTheCaller, InvalidConfig, WakefulError
from wakeful.contracts.owner_settings import DRAIN_SECONDS
from wakeful.contracts.values import Value
from wakeful.service.access import NewTokenRecord, create_token, list_tokens
from wakeful.service.serving.control import ask_process, is_listening
from wakeful.service.serving.daemon_client import ControlRefused, NoAnswer, NobodyThere
from wakeful.service.serving.options import (
    END_SECONDS,
    KeptOptions,
    ServeOptions,
    check_drain,
    fingerprint,
    keep_options,
    typed,
)
from wakeful.service.serving.run_files import (
    LOGS,
    HomeServed,
    ProcessRecord,
    clear_failure,
    failure_path,
    log_path,
    log_tail,
    make_run_folder,
    read_failure,
    read_record,
    record_path,
    serving_lock,
    starting_lock,
    write_failure,
)
from wakeful.service.serving.socket_place import socket_path
from wakeful.settings.daemon import owner_drain
from wakeful.settings.home import home
from wakeful.views.process_status import DrainStatus, ProcessFailure, RuntimeActivity, drain_words

STATUS, SHUTDOWN = "/control/runtime/status", "/control/runtime/shutdown"
START_SECONDS = 60.0
TERM_SECONDS = 5.0
LOOK_SECONDS = 1.0
"""How often a process that drains is asked what it waits for."""
TELL_SECONDS = 15.0
"""After so long it is told again, although it is the same."""
END_NOW = "wakeful daemon stop --drain 0"
LOG_LINES = 60
MODULE = "wakeful.surfaces.http"


class DaemonProblem(WakefulError):
    """The daemon could not be started or stopped."""


class DaemonConflict(ForTheCaller):
    """Something else is where the daemon would be."""


class DaemonStatus(Value):
    """The daemon of a home."""

    running: bool
    healthy: bool = False
    """It answers at its socket."""
    pid: int | None = None
    version: str = ""
    home_dir: str
    socket_path: str
    http_addr: str | None = None
    fingerprint_matches: bool | None = None
    """Was it started with what these options and settings say? None: it does not run, or does not say."""
    activity: RuntimeActivity | None = None
    draining: DrainStatus | None = None
    """It ends once what is under way has ended."""
    last_failure: ProcessFailure | None = None
    problems: tuple[str, ...] = ()
    next_step: str = ""


class RestartedDaemon(DaemonStatus):
    """A daemon that took the place of another."""

    kept_options: tuple[str, ...] = ()
    """What the other one was started with and this one too, as it is typed."""
    dropped_options: tuple[str, ...] = ()
    """What the other one was started with and this one was not."""


class DaemonLogs(Value):
    """Where a daemon's files are, its newest failures, and the end of its log."""

    log_path: str
    metadata_path: str
    failure_path: str
    startup_failure: ProcessFailure | None = None
    shutdown_failure: ProcessFailure | None = None
    lines: tuple[str, ...] = ()


def first_token(options: ServeOptions) -> NewTokenRecord | None:
    """A token for callers on the network, where it listens there and none was made yet. Shown once, by whoever asks."""
    if options.host is None or options.token_digest or list_tokens():
        return None
    return create_token("first", ("operate",), by=f"local:{os.getuid()}")


def daemon_status(options: ServeOptions | None = None) -> DaemonStatus:
    """How it is, as far as it says so itself; else as far as its files do. Without options, those it was started with
    are compared with the settings as they are now."""
    path, record = socket_path(), read_record()
    if options is None:
        options = record.options if record is not None else ServeOptions()
    base: dict[str, Any] = {"home_dir": str(home()), "socket_path": str(path)}
    try:
        found = ask_process(path, "GET", STATUS)
    except NoAnswer as problem:
        alive = record is not None and record.identity.is_alive()
        if not alive and not isinstance(problem, NobodyThere):
            return DaemonStatus(running=False, next_step=f"{problem.hint}  ({problem.message})", **base)
        return DaemonStatus(
            running=alive,
            pid=record.pid if record is not None and alive else None,
            last_failure=read_failure(),
            next_step=LOGS if alive or read_failure() is not None else "wakeful daemon start",
            **base,
        )
    except ControlRefused as refused:
        return DaemonStatus(running=True, next_step=f"{LOGS}  ({refused.message})", **base)
    failure = _optional(ProcessFailure, found.get("last_failure"))
    return DaemonStatus(
        running=True,
        healthy=True,
        pid=found.get("pid"),
        version=found.get("version", ""),
        http_addr=found.get("http_addr"),
        fingerprint_matches=found.get("fingerprint") == fingerprint(options) if found.get("fingerprint") else None,
        activity=_optional(RuntimeActivity, found.get("activity")),
        draining=_optional(DrainStatus, found.get("draining")),
        last_failure=failure or read_failure(),
        problems=tuple(found.get("problems") or ()),
        next_step=LOGS if failure is not None else "",
        **base,
    )


def _optional(kind: Any, data: Any) -> Any:
    """A part of an answer; one that a version near this one shapes differently is left out."""
    if not isinstance(data, dict):
        return None
    try:
        return kind.model_validate({name: data[name] for name in kind.model_fields if name in data})
    except ValueError:
        return None


def start_daemon(options: ServeOptions) -> tuple[DaemonStatus, bool]:
    """Start it, unless it runs with the same options. True: it was started now.

    Raises DaemonConflict when it runs with others or something else has its socket, DaemonProblem when it does not come
    up.
    """
    make_run_folder()
    with starting_lock():
        return _start(options)


def _start(options: ServeOptions) -> tuple[DaemonStatus, bool]:
    found = daemon_status(options)
    if found.draining is not None:
        raise DaemonConflict(
            f"the daemon for {home()} is shutting down (process {found.pid}): {drain_words(found.draining)}",
            f"Start it when that one has ended. To end it now: {END_NOW}",
        )
    if found.healthy:
        if found.fingerprint_matches is False:
            raise DaemonConflict(
                f"a daemon runs for {home()} with other settings (process {found.pid})",
                f"To replace it: {' '.join(('wakeful daemon restart', *typed(options)))}",
            )
        return found, False
    if found.running:
        raise DaemonConflict(
            f"process {found.pid} has {home()}, and does not answer",
            f"Look: {LOGS}   Replace it: wakeful daemon restart",
        )
    _clean_up()
    process = _launch(options)
    try:
        _await_ready(process)
    except DaemonProblem as problem:
        if read_failure() is None:
            write_failure("startup", problem.message)
        raise
    clear_failure()
    return daemon_status(options), True


def stop_daemon(drain: float | None = None, tell: Callable[[str], None] = lambda _: None) -> bool:
    """Let it drain and end. False: none ran. Raises DaemonProblem when it cannot be ended.

    `drain`: the seconds that calls under way have to end in; None: as its settings say. `tell` hears what it waits for.
    """
    check_drain(drain)
    path, record = socket_path(), read_record()
    patience = _owner_drain() if drain is None else drain
    try:
        told = ask_process(path, "POST", SHUTDOWN, None if drain is None else {"drain": drain})
        record = record if record is not None and record.pid == told.get("pid") else None
        pid: int | None = told.get("pid")
    except (NoAnswer, ControlRefused):
        if record is None or not record.identity.is_alive():
            _clean_up()
            clear_failure()
            return False
        pid, patience = record.pid, 0.0  # it has to say that it drains
        _signal(record, signal.SIGTERM)
    if not _drained(pid, record, patience, tell):
        for what, seconds in ((signal.SIGTERM, TERM_SECONDS), (signal.SIGKILL, TERM_SECONDS)):
            if record is None or not _signal(record, what) or _ended(pid, record, seconds):
                break
    if not _ended(pid, record, 0.1):
        write_failure("shutdown", f"process {pid} did not end")
        raise DaemonProblem(f"process {pid} did not end", LOGS)
    _clean_up()
    clear_failure()
    return True


def _owner_drain() -> float:
    try:
        return owner_drain()
    except InvalidConfig:
        return DRAIN_SECONDS  # a file that was damaged since keeps nobody from stopping


def _drained(pid: int | None, record: ProcessRecord | None, drain: float, tell: Callable[[str], None]) -> bool:
    """Has it ended in its time, or in what it says that it has left? Tells what it waits for when that changes."""
    until, tell_again, before = time.monotonic() + drain + END_SECONDS, 0.0, None
    while not _ended(pid, record, min(LOOK_SECONDS, max(0.0, until - time.monotonic()))):
        if (found := _draining()) is not None:
            until = time.monotonic() + found.seconds_left + END_SECONDS
            names = sorted((each.agent_id, each.tool) for each in found.waits_for)
            if found.seconds_left and (names != before or time.monotonic() > tell_again):
                tell(f"{drain_words(found)}; to end it now: {END_NOW}")
                before, tell_again = names, time.monotonic() + TELL_SECONDS
        if time.monotonic() >= until:
            return False
    return True


def _draining() -> DrainStatus | None:
    with suppress(NoAnswer, ControlRefused):
        return _optional(DrainStatus, ask_process(socket_path(), "GET", STATUS).get("draining"))  # type: ignore[no-any-return]
    return None


def options_of_restart(given: ServeOptions, *, is_placed: bool) -> KeptOptions:
    """What the daemon is started with in the place of the one that runs, or was killed. A token that it was given is
    on no file, and is not kept."""
    record = read_record()
    return keep_options(given, record.options if record is not None else ServeOptions(), is_placed=is_placed)


def restart_daemon(
    terms: KeptOptions, drain: float | None = None, tell: Callable[[str], None] = lambda _: None
) -> RestartedDaemon:
    """The whole process is replaced. Turns that run are left at a step and go on in the new one.

    What a start would end with is found before anything is stopped. Raises DaemonProblem, and the daemon goes on.
    """
    check_drain(drain)
    make_run_folder()
    _check_start(terms.options)
    stop_daemon(drain, tell)
    try:
        status = start_daemon(terms.options)[0]
    except DaemonProblem as problem:  # nothing says any more what the other one was started with
        again = " ".join(("wakeful daemon start", *typed(terms.options)))
        raise DaemonProblem(problem.message, f"{problem.hint}   Then: {again}") from problem
    return RestartedDaemon(**status.model_dump(), kept_options=terms.kept, dropped_options=terms.dropped)


def _check_start(options: ServeOptions) -> None:
    """In a process of its own: it reads the files, the code and the wakeful that are there now."""
    record = read_record()
    running = record if record is not None and record.identity.is_alive() else None
    port = (running.http_addr or "").rpartition(":")[2] if running is not None else ""
    command, handle = serve_command(options)
    try:
        found = subprocess.run(
            [*command, "check", *(("bind",) if port != str(options.port) else ())],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            pass_fds=[handle],
            timeout=START_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise DaemonProblem(
            f"whether a daemon can be started could not be found out within {START_SECONDS:g} seconds",
            "Nothing was stopped. Try again.",
        ) from None
    finally:
        os.close(handle)
    if not found.returncode:
        return
    said = found.stdout.decode(errors="replace").splitlines()
    try:
        problem = json.loads(said[-1])
    except (IndexError, ValueError):
        words = found.stderr.decode(errors="replace").splitlines() or ["it said nothing"]
        problem = {"message": words[-1], "hint": ""}
    goes_on = "None ran." if running is None else f"The daemon goes on as it was, process {running.pid}."
    raise DaemonProblem(f"a daemon cannot be started: {problem['message']}", f"{goes_on} {problem['hint']}".strip())


def daemon_logs(lines: int = LOG_LINES) -> DaemonLogs:
    failure = read_failure()
    return DaemonLogs(
        log_path=str(log_path()),
        metadata_path=str(record_path()),
        failure_path=str(failure_path()),
        startup_failure=failure if failure is not None and failure.phase == "startup" else None,
        shutdown_failure=failure if failure is not None and failure.phase == "shutdown" else None,
        lines=tuple(log_tail()[-lines:]),
    )


def serve_command(options: ServeOptions) -> tuple[list[str], int]:
    """The command that serves, and the handle it reads its options from: none of them is in a list of processes."""
    reader, writer = os.pipe()
    os.set_inheritable(reader, True)
    with os.fdopen(writer, "w", encoding="utf-8") as sent:
        sent.write(options.model_dump_json())
    return [sys.executable, "-P", "-m", MODULE, str(reader)], reader


def _launch(options: ServeOptions) -> "subprocess.Popen[bytes]":
    command, handle = serve_command(options)
    try:
        with log_path().open("ab") as log:
            log_path().chmod(0o600)
            return subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                pass_fds=[handle],
                start_new_session=True,
                close_fds=True,
            )
    finally:
        os.close(handle)


def _await_ready(process: "subprocess.Popen[bytes]", seconds: float = START_SECONDS) -> None:
    path, until = socket_path(), time.monotonic() + seconds
    while time.monotonic() < until:
        if process.poll() is not None:
            failure = read_failure()
            why = failure.summary if failure is not None else "\n".join(log_tail()[-3:]) or "it said nothing"
            hint = LOGS if failure is None or failure.detail_hint == LOGS else f"{failure.detail_hint}   More: {LOGS}"
            raise DaemonProblem(f"the daemon ended with exit code {process.returncode}: {why}", hint)
        with suppress(NoAnswer):
            if ask_process(path, "GET", "/health", seconds=1.0):
                return
        time.sleep(0.05)
    process.terminate()
    try:
        process.wait(min(seconds, TERM_SECONDS))
    except subprocess.TimeoutExpired:
        process.kill()  # it acknowledged nothing, and would keep the home
        process.wait()
    raise DaemonProblem(f"the daemon did not answer within {seconds:g} seconds, and was ended", LOGS)


def _clean_up() -> None:
    """Files of a process that is gone. Raises DaemonConflict where another program has the socket."""
    path, record = socket_path(), read_record()
    if path.exists() and not path.is_socket():
        raise DaemonConflict(f"{path} is not a socket", "Move it away; the daemon listens there.")
    if path.exists() and is_listening(path):
        raise DaemonConflict(
            f"another program listens at {path}", "Stop that program, or use another home: WAKEFUL_HOME"
        )
    if record is None or not record.identity.is_alive():
        with suppress(HomeServed, FileNotFoundError), serving_lock():  # it is of one that begins just now
            path.unlink(missing_ok=True)
            record_path().unlink(missing_ok=True)


def _signal(record: ProcessRecord, what: signal.Signals) -> bool:
    """False: it is gone."""
    handle = record.identity.open()
    if handle is None:
        return False
    try:
        signal.pidfd_send_signal(handle, what)
    except ProcessLookupError:
        return False
    finally:
        os.close(handle)
    return True


def _ended(pid: int | None, record: ProcessRecord | None, seconds: float) -> bool:
    until = time.monotonic() + seconds
    while True:
        with suppress(ChildProcessError, OSError):
            if pid is not None:
                os.waitpid(pid, os.WNOHANG)  # where it is a child of this process, its remains are cleared
        alive = record.identity.is_alive() if record is not None else is_listening(socket_path())
        if not alive:
            return True
        if time.monotonic() >= until:
            return False
        time.sleep(0.05)
