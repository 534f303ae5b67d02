"""A real process that serves a home, and clients of it: through its socket, or over the network with a token."""

import http.client
import json
import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from wakeful.ports import OPEN_STATES
from wakeful.service.serving.lifecycle import serve_command
from wakeful.service.serving.options import ServeOptions

TESTS = Path(__file__).parents[2]
AGENTS = "kit.surfaces.served_agents:agents"


def python_path(*first: Path | str) -> str:
    """PYTHONPATH of a process that a test starts: these folders, then what this process was given itself."""
    given = os.environ.get("PYTHONPATH")
    return os.pathsep.join([*map(str, first), *([given] if given else [])])


class Answer(NamedTuple):
    """What came back."""

    status: int
    body: Any
    headers: Mapping[str, str]

    @property
    def code(self) -> str:
        """Of an error."""
        found: str = self.body["error"]["code"]
        return found


class HomeClient:
    """A caller: through the socket, or at a port with a token and whatever headers a test wants."""

    def __init__(self, place: Path | int, token: str | None = None) -> None:
        self.place = place
        self.token = token

    def connection(self, seconds: float = 30.0) -> http.client.HTTPConnection:
        if isinstance(self.place, int):
            return http.client.HTTPConnection("127.0.0.1", self.place, timeout=seconds)
        found = http.client.HTTPConnection("localhost", timeout=seconds)
        found.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        found.sock.settimeout(seconds)
        try:
            found.sock.connect(str(self.place))
        except OSError:
            found.close()
            raise
        return found

    def ask(self, method: str, path: str, body: Any = None, *, headers: Mapping[str, str] | None = None) -> Answer:
        raw = body if isinstance(body, bytes) else None if body is None else json.dumps(body).encode()
        sent = {"content-type": "application/json"} if raw is not None else {}
        if self.token is not None:
            sent["authorization"] = f"Bearer {self.token}"
        connection = self.connection()
        try:
            connection.request(method, path, raw, {**sent, **(headers or {})})
            found = connection.getresponse()
            data = found.read()
            kind = found.getheader("content-type", "")
            shown = json.loads(data) if data and "json" in kind else data.decode()
            return Answer(found.status, shown, {name.lower(): value for name, value in found.getheaders()})
        finally:
            connection.close()

    def get(self, path: str, **options: Any) -> Answer:
        return self.ask("GET", path, **options)

    def post(self, path: str, body: Any = None, **options: Any) -> Answer:
        return self.ask("POST", path, body, **options)

    @contextmanager
    def stream(
        self, path: str, body: Any = None, *, last: str | None = None, seconds: float = 30.0
    ) -> Iterator["Frames"]:
        """A stream of events, of a GET or with a body of a POST; closed as a client closes it, by going away."""
        headers = {"accept": "text/event-stream"} | ({"last-event-id": last} if last is not None else {})
        if self.token is not None:
            headers["authorization"] = f"Bearer {self.token}"
        connection = self.connection(seconds)
        try:
            raw = None if body is None else json.dumps(body).encode()
            headers |= {} if raw is None else {"content-type": "application/json"}
            connection.request("GET" if raw is None else "POST", path, raw, headers)
            found = connection.getresponse()
            assert found.status == 200, found.read()
            yield Frames(found)
        finally:
            connection.close()

    def until_ended(self, message: Mapping[str, Any], seconds: float = 60.0) -> dict[str, Any]:
        """The turn that took a message, once it is over."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            turn_id = self.get(f"/messages/{message['message_id']}").body["turn_id"]
            if turn_id is not None:
                return self.until_over(turn_id, seconds)
            time.sleep(0.05)
        raise AssertionError(f"no turn took {message}")

    def until_over(self, turn_id: str, seconds: float = 60.0) -> dict[str, Any]:
        """A turn, once it is over: one that waits for somebody is not."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            found: dict[str, Any] = self.get(f"/turns/{turn_id}").body
            if found["state"] not in OPEN_STATES:
                return found
            time.sleep(0.05)
        raise AssertionError(f"{turn_id} did not come to its end: {found}")


class Frame(NamedTuple):
    """One event of a stream."""

    id: str
    event: str
    data: Any


class Frames:
    """The events of a stream, as they come."""

    def __init__(self, answer: http.client.HTTPResponse) -> None:
        self.answer = answer

    def all(self) -> list[Frame]:
        """To the end of the stream."""
        return [frame for frame in self if frame is not None]

    def __iter__(self) -> Iterator[Frame | None]:
        """None: a sign that the server is still there."""
        fields: dict[str, str] = {}
        while line := self.answer.readline():
            name, _, value = line.decode().rstrip("\n").partition(":")
            if name and value:
                fields[name] = value.strip()
            elif value:
                yield None
            elif not line.strip() and "data" in fields:
                yield Frame(fields.get("id", ""), fields.get("event", ""), json.loads(fields["data"]))
                fields = {}

    def until(self, event: str, seconds: float = 30.0) -> list[Frame]:
        """Everything up to an event of that kind, which has to come."""
        found, until = [], time.monotonic() + seconds
        for frame in self:
            if frame is not None:
                found.append(frame)
                if frame.event == event:
                    return found
            if time.monotonic() > until:
                break
        raise AssertionError(f"no {event} came; it was {[frame.event for frame in found]}")


class ServedHome:
    """A process that serves a home. Killed and started again, it goes on."""

    def __init__(self, folder: Path, options: ServeOptions | None = None, files: int | None = None) -> None:
        self.folder = folder
        self.files = files
        """How many files it may have open; None: as many as this process."""
        self.options = options or ServeOptions(port=0, tools=(AGENTS,))
        self.said = folder / "said.txt"
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def environment(self) -> dict[str, str]:
        around = {name: value for name, value in os.environ.items() if not name.startswith("WAKEFUL_")}
        return {**around, "WAKEFUL_HOME": str(self.folder), "PYTHONPATH": python_path(TESTS)}

    @property
    def socket(self) -> Path:
        return Path(self.record["socket_path"])

    @property
    def record(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((self.folder / "run" / "daemon.json").read_text())
        return found

    @property
    def port(self) -> int:
        return int(self.record["http_addr"].rpartition(":")[2])

    @property
    def client(self) -> HomeClient:
        return HomeClient(self.socket)

    def start(self) -> "ServedHome":
        self.folder.mkdir(parents=True, exist_ok=True)
        command, handle = serve_command(self.options)
        if self.files is not None:
            command = ["sh", "-c", 'ulimit -n "$0" && exec "$@"', str(self.files), *command]
        try:
            with self.said.open("ab") as said:
                self.process = subprocess.Popen(
                    command, env=self.environment, stdout=said, stderr=said, stdin=subprocess.DEVNULL, pass_fds=[handle]
                )
        finally:
            os.close(handle)
        self.until_there()
        return self

    def until_there(self) -> None:
        """Until the process that was started answers."""
        assert self.process is not None
        until = time.monotonic() + 60
        while time.monotonic() < until:
            assert self.process.poll() is None, self.said.read_text()
            try:
                if self.record["pid"] == self.process.pid and self.client.get("/health").status == 200:
                    return
            except (OSError, KeyError, ValueError):
                pass
            time.sleep(0.02)
        self.kill()
        raise AssertionError(f"it does not answer: {self.said.read_text()}")

    def kill(self) -> None:
        assert self.process is not None
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(30)

    def end(self, seconds: float = 30) -> int:
        """As a person ends it with Ctrl-C."""
        if self.process is None or self.process.poll() is not None:
            return -1 if self.process is None else self.process.returncode
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(seconds)

    def end_now(self) -> int:
        """Without waiting for what its agents are at."""
        self.client.post("/control/runtime/shutdown", {"drain": 0})
        assert self.process is not None
        return self.process.wait(60)


@contextmanager
def served(folder: Path, options: ServeOptions | None = None, files: int | None = None) -> Iterator[ServedHome]:
    home = ServedHome(folder, options, files)
    home.start()
    try:
        yield home
    finally:
        if home.process is not None and home.process.poll() is None:
            try:
                home.end_now()
            except (OSError, subprocess.TimeoutExpired):
                home.kill()
                raise
