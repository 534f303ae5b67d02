"""Asking the process that serves a home one thing, through its socket, whatever version it is of."""

import http.client
import json
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from wakeful.service.serving.daemon_client import (
    START,
    ControlRefused,
    NoAnswer,
    NobodyThere,
    SocketConnection,
    told_error,
)

SECONDS = 5.0


def ask_process(
    path: Path, method: str, where: str, body: Mapping[str, Any] | None = None, *, seconds: float = SECONDS
) -> Any:
    """One request and its answer. Raises NoAnswer, or ControlRefused with the error that was told."""
    connection = SocketConnection(str(path), seconds)
    try:
        sent = None if body is None else json.dumps(body)
        headers = {"content-type": "application/json"} if sent is not None else {}
        connection.request(method, where, sent, headers)
        answer = connection.getresponse()
        data, ours = answer.read(), answer.getheader("wakeful-api")
    except TimeoutError:
        raise NoAnswer(f"the process at {path} does not answer", "Look: wakeful daemon logs") from None
    except OSError as error:
        raise NobodyThere(f"no daemon answers at {path}: {error.strerror or error}", START) from None
    except http.client.HTTPException:
        raise _stranger(path) from None
    finally:
        connection.close()
    if ours is None:
        raise _stranger(path)
    try:
        found = json.loads(data) if data else None
    except ValueError:
        raise NoAnswer(f"the daemon at {path} answered with something other than JSON", "wakeful daemon logs") from None
    if answer.status >= 400:
        words = told_error(data)
        raise ControlRefused(
            answer.status, words.get("code", "error"), words.get("message", "it was refused"), words.get("hint", "")
        )
    return found


def _stranger(path: Path) -> NoAnswer:
    return NoAnswer(f"another program answers at {path}", "Stop that program, or use another home.")


def is_listening(path: Path) -> bool:
    """Does any process accept connections at this socket?"""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as trial:
        trial.settimeout(1.0)
        try:
            trial.connect(str(path))
        except OSError:
            return False
    return True
