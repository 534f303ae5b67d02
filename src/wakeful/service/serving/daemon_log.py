"""The log of a serving process: lines for people, or one JSON object a line. `[log]` of the owner's file says which.

Secrets of triggers stand in their addresses, and tokens in headers: what looks like one is not written.
"""

import json
import logging
import os
import re
import sys
import time
from contextlib import suppress
from typing import Any, TextIO

from wakeful.contracts.telemetry import DaemonLog
from wakeful.service.serving.run_files import log_path, older_log_path
from wakeful.settings.access_tokens import PREFIX
from wakeful.settings.telemetry import owner_log

STDOUT, STDERR = 1, 2
MOST_BYTES = 10_000_000
"""Of a daemon's log in the home: a new one is begun then, and the one before is kept."""
TEXT = "%(asctime)s %(levelname)s %(name)s: %(message)s"
_SECRETS = (
    (re.compile(r"(/callbacks/[^/\s\"']+/)[^\s\"'?#]+"), r"\1..."),
    (re.compile(rf"\b({PREFIX})[\w-]{{8,}}"), r"\1..."),
    (re.compile(r"(?i)\b(bearer\s+)[\w.~+/=-]{8,}"), r"\1..."),
)
_log = logging.getLogger("wakeful.serve")


def daemon_log() -> DaemonLog:
    """What the owner's file says. Raises InvalidConfig."""
    return owner_log()


def begin_log(wanted: DaemonLog) -> None:
    """From here on everything that is logged in this process goes to standard error."""
    logging.basicConfig(level=wanted.level.upper(), handlers=[log_handler(wanted, sys.stderr)], force=True)


def log_handler(wanted: DaemonLog, stream: TextIO) -> logging.Handler:
    """Writes lines to a stream."""
    handler = _BoundedLog(stream)
    handler.setFormatter(_JsonLines() if wanted.format == "json" else _Lines(TEXT))
    return handler


class _BoundedLog(logging.StreamHandler[TextIO]):
    """A log without an end would fill the disk of a daemon that runs for months."""

    def emit(self, record: logging.LogRecord) -> None:
        super().emit(record)
        with suppress(OSError):
            _begin_anew_when_long()


def _begin_anew_when_long() -> None:
    """Only where standard error is the log of this home: what a manager of services keeps is the manager's."""
    log, written = log_path(), os.fstat(STDERR)
    if written.st_size < MOST_BYTES or not os.path.samestat(written, log.stat()):
        return
    log.replace(older_log_path())
    new = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        for standard in (STDOUT, STDERR):
            if os.path.samestat(os.fstat(standard), written):
                os.dup2(new, standard)
    finally:
        os.close(new)


def say(words: str) -> None:
    """Tell whoever started the process, in a line of the log where that is JSON. Nobody may be there any more."""
    if any(isinstance(each.formatter, _JsonLines) for each in logging.getLogger().handlers):
        _log.info(words)
    else:
        with suppress(OSError):
            sys.stdout.write(words + "\n")
            sys.stdout.flush()


def without_secrets(words: str) -> str:
    for pattern, shown in _SECRETS:
        words = pattern.sub(shown, words)
    return words


class _Lines(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        return without_secrets(super().format(record))


class _JsonLines(logging.Formatter):
    """One object a line: time, level, logger, message, and the traceback where there is one."""

    def format(self, record: logging.LogRecord) -> str:
        seconds = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        said: dict[str, Any] = {
            "time": f"{seconds}.{int(record.msecs):03d}Z",
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": without_secrets(record.getMessage()),
        }
        if record.exc_info:
            said["traceback"] = without_secrets(self.formatException(record.exc_info))
        return json.dumps(said, ensure_ascii=False)
