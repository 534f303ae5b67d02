"""What a serving process leaves in `run/` of its home: where it is, its log, the newest failure of a start or a stop.

Files of a process that is gone are stale, and are cleaned away by whoever comes next.
"""

import fcntl
import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from wakeful.contracts.errors import InvalidConfig, InvalidRequest
from wakeful.contracts.values import Value
from wakeful.processes.process_identity import ProcessIdentity
from wakeful.service.serving.options import ServeOptions
from wakeful.service.serving.socket_place import run_folder, socket_path
from wakeful.settings.home import home
from wakeful.views.process_status import FailurePhase, ProcessFailure

TAIL_BYTES = 20_000
LOGS = "wakeful daemon logs"
SECRETS = "secrets.env"


class HomeServed(InvalidRequest):
    """Another process serves the home, or begins to."""


class ProcessRecord(Value):
    """A process that serves, or served, as it said when it was ready."""

    pid: int
    started_ticks: int = 0
    boot: str = ""
    socket_path: str
    http_addr: str | None = None
    fingerprint: str = ""
    version: str = ""
    started_at: float = 0.0
    options: ServeOptions = ServeOptions()
    """Without the token."""
    folder: str = ""
    """The folder that it was written into, by its number: in a copy of the home it is about somebody else's process."""

    @property
    def identity(self) -> ProcessIdentity:
        return ProcessIdentity(self.pid, self.started_ticks, self.boot)


def home_folder() -> Path:
    return home()


def record_path() -> Path:
    return run_folder() / "daemon.json"


def log_path() -> Path:
    return run_folder() / "daemon.log"


def older_log_path() -> Path:
    """The log before the one that is written."""
    return run_folder() / "daemon.log.old"


def failure_path() -> Path:
    return run_folder() / "failure.json"


def first_token_path() -> Path:
    return run_folder() / "first-token"


def make_run_folder() -> None:
    """The folders of the files, for their owner alone. Raises OSError where somebody else has made one."""
    for folder in {run_folder(), socket_path().parent}:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = folder.stat()
        if found.st_uid != os.getuid():
            raise PermissionError(f"{folder} belongs to another user")
        if found.st_mode & 0o077:
            folder.chmod(0o700)


@contextmanager
def serving_lock() -> Iterator[None]:
    """For the one process that has the socket of this home, from before it looks at it until it has left it. Its death
    lets go of it.

    Raises HomeServed, naming the process that has it.
    """
    descriptor = os.open(run_folder() / "serving.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.read(descriptor, 40).decode("ascii", "replace").strip() or "another one"
            raise HomeServed(
                f"process {holder} serves {home()} already, or begins to",
                "Look: wakeful daemon status   To replace it: wakeful daemon restart",
            ) from None
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
        yield
    finally:
        os.close(descriptor)


@contextmanager
def starting_lock() -> Iterator[None]:
    """For one start at a time: whoever comes second waits, and finds the process of the first."""
    descriptor = os.open(run_folder() / "starting.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def read_record() -> ProcessRecord | None:
    """The newest process of this home; None: there is no word of one."""
    data = _read(record_path())
    if data is None:
        return None
    try:
        found = ProcessRecord.model_validate({name: data[name] for name in ProcessRecord.model_fields if name in data})
    except ValueError:
        return None
    return found if found.folder in ("", _folder_number()) else None


def write_record(record: ProcessRecord) -> None:
    _write(record_path(), record.model_dump(mode="json"))


def record_of_this_process(
    options: ServeOptions, socket: Path, http_addr: str | None, fingerprint: str, version: str
) -> ProcessRecord:
    identity = ProcessIdentity.of(os.getpid())
    return ProcessRecord(
        pid=identity.pid,
        started_ticks=identity.started,
        boot=identity.boot,
        socket_path=str(socket),
        http_addr=http_addr,
        fingerprint=fingerprint,
        version=version,
        started_at=time.time(),
        options=options.model_copy(update={"token_digest": ""}),
        folder=_folder_number(),
    )


def _folder_number() -> str:
    """A folder that is moved keeps it; a copy has another."""
    try:
        found = run_folder().stat()
    except OSError:
        return ""
    return f"{found.st_dev}:{found.st_ino}"


def remove_record(pid: int) -> None:
    """Of this process alone: another one may have come since."""
    found = read_record()
    if found is not None and found.pid == pid:
        record_path().unlink(missing_ok=True)


def read_failure() -> ProcessFailure | None:
    data = _read(failure_path())
    try:
        return None if data is None else ProcessFailure.model_validate(data)
    except ValueError:
        return None


def write_failure(phase: FailurePhase, summary: str, hint: str = "") -> None:
    """`hint`: what to do; blank: to look into the log."""
    with suppress(OSError):
        make_run_folder()
        failure = ProcessFailure(
            occurred_at=time.time(), summary=summary[:2_000], phase=phase, detail_hint=hint[:2_000] or LOGS
        )
        _write(failure_path(), failure.model_dump(mode="json"))


def clear_failure() -> None:
    failure_path().unlink(missing_ok=True)


def keep_first_token(token: str) -> Path:
    """In a file for its owner alone, where nobody looks on: what a process says may be kept in a log."""
    make_run_folder()
    _write_text(first_token_path(), token + "\n")
    return first_token_path()


def log_tail(most: int = TAIL_BYTES) -> list[str]:
    """The last lines of the log, whole ones; of one that was just begun, those of the one before."""
    found = b""
    for path in (log_path(), older_log_path()):
        if (room := most - len(found)) > 0:
            found = _end_of(path, room) + found
    lines = found.decode("utf-8", "replace").splitlines()
    return lines[1:] if len(found) == most else lines


def _end_of(path: Path, most: int) -> bytes:
    try:
        with path.open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - most))
            return file.read(most)
    except OSError:
        return b""


def read_secrets() -> dict[str, str]:
    """`secrets.env` of the home: NAME=VALUE a line, for a process without a shell's environment.

    Raises InvalidConfig for a file that others can read, or a line that is none.
    """
    path = home() / SECRETS
    try:
        mode = path.stat().st_mode
        lines = path.read_text("utf-8").splitlines()
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or error
        raise InvalidConfig(f"{path} cannot be read: {why}", "Write NAME=VALUE, one a line.") from None
    if mode & 0o077:
        raise InvalidConfig(f"{path} can be read by others", f"chmod 600 {path}")
    found = {}
    for number, line in enumerate(lines, 1):
        said = line.strip().removeprefix("export ")
        if not said or said.startswith("#"):
            continue
        name, is_one, value = said.partition("=")
        if not is_one or not name.strip().isidentifier():
            raise InvalidConfig(f"{path}, line {number} is not NAME=VALUE", "Write one variable a line.")
        value = value.strip()
        quoted = len(value) > 1 and value[0] == value[-1] and value[0] in "'\""
        found[name.strip()] = value[1:-1] if quoted else value
    return found


def _read(path: Path) -> dict[str, Any] | None:
    try:
        found = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) else None


def _write(path: Path, data: dict[str, Any]) -> None:
    _write_text(path, json.dumps(data))


def _write_text(path: Path, text: str) -> None:
    fresh = path.with_name(f"{path.name}.{os.getpid()}")
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with open(descriptor, "w", encoding="utf-8") as file:  # noqa: PTH123  (a handle, not a path)
        file.write(text)
    fresh.replace(path)
