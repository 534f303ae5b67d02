"""Lines of the daemon's log: for people, as JSON, and never with an address of a trigger or a token."""

import io
import json
import logging
import os
import subprocess
import sys
from pathlib import Path
from typing import Literal

import pytest

from wakeful.contracts.telemetry import DaemonLog
from wakeful.decisions.waking.trigger_addresses import path_of
from wakeful.service.serving.daemon_log import MOST_BYTES, log_handler
from wakeful.service.serving.run_files import log_path, log_tail, older_log_path
from wakeful.settings.access_tokens import new_token


def written(form: Literal["text", "json"], message: str, *words: object, problem: Exception | None = None) -> str:
    stream = io.StringIO()
    record = logging.LogRecord("wakeful.http", logging.ERROR, __file__, 1, message, words, None)
    if problem is not None:
        record.exc_info = (type(problem), problem, problem.__traceback__)
    log_handler(DaemonLog(format=form), stream).emit(record)
    return stream.getvalue()


def test_a_line_of_json_has_time_level_logger_and_message() -> None:
    line = json.loads(written("json", "a request failed: %s", "GET /status"))
    assert line.pop("time").endswith("Z")
    assert line == {"level": "error", "logger": "wakeful.http", "message": "a request failed: GET /status"}


@pytest.mark.parametrize("form", ["text", "json"])
def test_no_address_of_a_trigger_and_no_token_reaches_the_log(form: Literal["text", "json"]) -> None:
    token = new_token()
    address = path_of(b"s" * 32, "trg_1", 1, "enqueue_message")
    said = written(
        form,
        "a request failed: POST http://127.0.0.1%s with %s",
        address,
        f"Authorization: Bearer {token}",
        problem=ValueError(f"no such thing: {address} {token}"),
    )
    assert "a request failed" in said and "no such thing" in said
    assert address.rpartition("/")[2] not in said and token not in said


SAYS_MUCH = """
import logging, os, sys
from wakeful.contracts.telemetry import DaemonLog
from wakeful.service.serving.daemon_log import begin_log
begin_log(DaemonLog(format="text"))
for number in range(int(sys.argv[1])):
    logging.getLogger("wakeful.http").error("%d %s", number, "x" * 100_000)
print("said all", flush=True)
"""


def test_a_log_that_grows_long_is_begun_anew_and_the_one_before_is_kept(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    log, old = tmp_path / "run" / "daemon.log", tmp_path / "run" / "daemon.log.old"
    with log.open("ab") as said:
        subprocess.run(
            [sys.executable, "-c", SAYS_MUCH, "250"],
            stdout=said,
            stderr=said,
            env={**os.environ, "WAKEFUL_HOME": str(tmp_path)},
            check=True,
        )
    assert max(log.stat().st_size, old.stat().st_size) < MOST_BYTES + 200_000
    assert (log.stat().st_mode & 0o777, log.read_text().splitlines()[-1]) == (0o600, "said all")
    numbers = [int(line.split()[4]) for path in (old, log) for line in path.read_text().splitlines() if "ERROR" in line]
    assert numbers == list(range(numbers[0], 250)), "nothing is lost between the two"


def test_the_end_of_a_log_that_was_just_begun_is_that_of_the_one_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WAKEFUL_HOME", str(tmp_path))
    (tmp_path / "run").mkdir()
    older_log_path().write_text("first\nsecond\n")
    log_path().write_text("third\n")
    assert log_tail() == ["first", "second", "third"]
    assert log_tail(10) == ["third"], "whole lines alone"


def test_what_a_manager_of_services_keeps_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    elsewhere = tmp_path / "journal"
    with elsewhere.open("ab") as said:
        environment = {**os.environ, "WAKEFUL_HOME": str(tmp_path)}
        subprocess.run([sys.executable, "-c", SAYS_MUCH, "120"], stdout=said, stderr=said, env=environment, check=True)
    assert elsewhere.stat().st_size > MOST_BYTES
    assert [path.name for path in tmp_path.rglob("*.old")] == []
