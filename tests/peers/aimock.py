"""aimock, a model server written by others, as a process of its own: scripted over its control API."""

import json
import re
import shutil
import subprocess
import threading
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

LISTENING = re.compile(r"listening on (http://127\.0\.0\.1:\d+)")


def why_not(root: Path) -> str | None:
    """Why there is no aimock here; None when there is."""
    if shutil.which("node") is None:
        return "needs node 20 or newer to run aimock"
    if not _program(root).is_file():
        return "needs aimock, which is not installed; run: make peers"
    return None


class Aimock:
    """A running server. What it says is a list of fixtures; the first that matches a request answers it."""

    def __init__(self, url: str) -> None:
        self.url = url

    def says(self, *fixtures: dict[str, Any]) -> None:
        self._control("POST", "/__aimock/fixtures", {"fixtures": list(fixtures)})

    def in_turn(self, *answers: dict[str, Any], **match: Any) -> None:
        """The same question, answered differently each time it comes."""
        self.says(
            *({**_fixture(answer), "match": {**match, "sequenceIndex": place}} for place, answer in enumerate(answers))
        )

    def chaos(self, **rates: float) -> None:
        self._control("POST", "/__aimock/chaos", rates)

    def reset(self) -> None:
        self._control("POST", "/__aimock/reset")

    def journal(self) -> list[dict[str, Any]]:
        """What was asked, and with which status it was answered."""
        entries: list[dict[str, Any]] = self._control("GET", "/__aimock/journal")
        return entries

    def statuses(self) -> list[int]:
        return [entry["response"]["status"] for entry in self.journal()]

    def _control(self, method: str, path: str, body: object = None) -> Any:
        data = json.dumps(body).encode() if body is not None else None
        headers = {"content-type": "application/json"}
        request = urllib.request.Request(f"{self.url}{path}", data, headers, method=method)
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.loads(answer.read() or b"null")


@contextmanager
def running(root: Path) -> Iterator[Aimock]:
    """An aimock of its own, on a port of its own, ended with the block."""
    fixtures = root / "tests" / "peers" / "aimock_fixtures.json"
    command = ["node", str(_program(root)), "--port", "0", "--fixtures", str(fixtures), "--log-level", "info"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=root)
    assert process.stdout is not None
    drain: threading.Thread | None = None
    try:
        heard: list[str] = []
        for line in process.stdout:
            heard.append(line)
            if found := LISTENING.search(line):
                break
        else:
            raise RuntimeError(f"aimock ended before it listened:\n{''.join(heard)}")
        # It goes on talking, and would stop when nobody listened.
        drain = threading.Thread(target=process.stdout.read, daemon=True)
        drain.start()
        yield Aimock(found.group(1))
    finally:
        process.terminate()
        process.wait(timeout=60)
        if drain is not None:
            drain.join(timeout=60)
        process.stdout.close()


def _fixture(answer: dict[str, Any]) -> dict[str, Any]:
    """An answer, or a whole fixture without its match."""
    return answer if "response" in answer else {"response": answer}


def _program(root: Path) -> Path:
    return root / ".peers" / "node_modules" / "@copilotkit" / "aimock" / "dist" / "cli.js"
