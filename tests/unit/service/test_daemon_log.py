"""Lines of the daemon's log: for people, as JSON, and never with an address of a trigger or a token."""

import io
import json
import logging
from typing import Literal

import pytest

from wakeful.contracts.telemetry import DaemonLog
from wakeful.decisions.waking.trigger_addresses import path_of
from wakeful.service.serving.daemon_log import log_handler
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
