"""A daemon that is killed again and again under load, while its provider has bad weather: nothing lost, nothing twice.

    python -m benchmarks.soak                                  # 60 messages, 3 kills, outages of 5 seconds
    python -m benchmarks.soak --messages 1200 --kills 30 --outage 25

Processes of their own: a provider (`wakeful.testing.provider_server`) that answers 503, 429, 401 and not at all, one
after the other; the daemon, which is killed with SIGKILL and started again; and this one, which sends orders with keys
until they are acknowledged, and decides approvals. Each effect is a line of a file outside the home. In the end every
order has to be answered, no effect may be there twice, and the log has to agree with itself. Ends with exit code 1 and
the complaints where that is not so.
"""

import argparse
import asyncio
import http.client
import json
import os
import random
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from itertools import cycle
from pathlib import Path
from typing import Any, NamedTuple

from wakeful import open_store
from wakeful.service.serving.lifecycle import serve_command
from wakeful.service.serving.options import ServeOptions
from wakeful.settings.access_tokens import FILE, add_token
from wakeful.testing.effect_ledger import Ledger

HERE = Path(__file__).resolve().parent
CALLS = {"counter": ("bump",), "mailer": ("mail",), "cashier": ("pay",), "clerk": ("bump", "pay", "mail")}
"""By agent of `served/soak_agents.py`: the tools that an order has called, one after the other."""
KINDS = ("503", "429", "401", "hang")
LIFE = 12.0
"""Seconds between two kills: a daemon has to come as far as its work."""
PROBE_SECONDS = "2"
PATIENCE = 300.0
"""Seconds without any progress after which what is left counts as lost."""
Problem = (OSError, http.client.HTTPException, ValueError)
"""What a client sees of a process that dies while it is asked."""


class Plan(NamedTuple):
    """How much of everything."""

    messages: int = 60
    kills: int = 3
    outage: float = 5.0
    """Seconds of each spell of bad weather; half as many of fine weather come before it."""
    kinds: tuple[str, ...] = KINDS
    seed: int = 0

    @property
    def spells(self) -> int:
        """Of bad weather: every kind at least once, and more while there are daemons to kill."""
        return max(len(self.kinds), round(self.kills * LIFE / (self.outage * 1.5)))

    @property
    def seconds(self) -> float:
        """Until the weather is fine for ever. Orders are sent all that time."""
        return self.spells * self.outage * 1.5

    @property
    def weather(self) -> str:
        """As the server takes it. Some answers are cut off, too; and some requests are refused on any machine, however
        slow it is."""
        begins = [self.outage * (1.5 * spell + 0.5) for spell in range(self.spells)]
        spans = [f"{at:g}s-{at + self.outage:g}s: {kind}" for at, kind in zip(begins, cycle(self.kinds))]
        refused = [f"{number}: 503" for number in range(10, 40)]
        return ", ".join([*spans, *refused, *(f"{number}: cut" for number in range(40, 3 * self.messages, 40))])


class Outcome(NamedTuple):
    """What a soak came to."""

    acknowledged: int
    turns: Counter[str]
    """By how they ended."""
    waited: int
    """Turns that waited for the provider."""
    effects: Counter[str]
    unknown: int
    kills: int
    seconds: float
    complaints: list[str]


class ServedProcess:
    """A process that listens at a port; killed, it is started again at the same."""

    def __init__(self, start: Callable[[], "subprocess.Popen[bytes]"], port: int, path: str) -> None:
        self.start, self.port, self.path = start, port, path
        self.process = start()
        self.until_there()

    def until_there(self) -> None:
        until = time.monotonic() + 120
        while time.monotonic() < until:
            if self.process.poll() is not None:
                raise RuntimeError(f"a process at port {self.port} ended with {self.process.returncode}")
            with suppress(*Problem), closing(http.client.HTTPConnection("127.0.0.1", self.port, timeout=5)) as asked:
                asked.request("GET", self.path)
                asked.getresponse().read()
                return
            time.sleep(0.02)
        raise RuntimeError(f"nothing answers at port {self.port}")

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(60)

    def again(self) -> None:
        self.process = self.start()
        self.until_there()

    def end(self) -> None:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(60)
            except subprocess.TimeoutExpired:
                self.kill()


class Clients:
    """Those who send and decide. They do again what was not acknowledged."""

    def __init__(self, port: int, token: str, plan: Plan) -> None:
        self.port, self.token, self.plan = port, token, plan
        self.messages: dict[str, str] = {}
        """By order: the message that was acknowledged."""
        self.wrong: list[str] = []
        """Answers that no client should have had."""
        self.is_over = False
        self._began = time.monotonic()
        shares = {agent: range(place, plan.messages, len(CALLS)) for place, agent in enumerate(CALLS)}
        self.senders = [threading.Thread(target=self._send, args=each) for each in shares.items()]
        self.decider = threading.Thread(target=self._decide)
        for thread in (*self.senders, self.decider):
            thread.start()

    def close(self) -> None:
        self.is_over = True
        for thread in (*self.senders, self.decider):
            thread.join(60)

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        """Until it is answered. None: an answer that nobody should have had, or nothing is to be asked any more."""
        while not self.is_over:
            with suppress(*Problem):
                connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
                headers = {"authorization": f"Bearer {self.token}", "content-type": "application/json"}
                try:
                    connection.request(method, path, None if body is None else json.dumps(body), headers)
                    found = connection.getresponse()
                    status, text = found.status, found.read().decode()
                    data = json.loads(text)
                finally:
                    connection.close()
                if status == 200:
                    return data
                if status != 503:  # it is about to end
                    self.wrong.append(f"{method} {path} was answered {status}: {text[:300]}")
                    return None
            time.sleep(0.05)
        return None

    def _send(self, agent: str, numbers: range) -> None:
        pace = self.plan.seconds / max(1, self.plan.messages)
        for number in numbers:
            time.sleep(max(0.0, self._began + number * pace - time.monotonic()))
            order = f"{agent}-{number}"
            lines = [f'call: {name} {{"order": "{order}"}}' for name in CALLS[agent]]
            text = "\n".join([f"Order {order}.", *lines, f"answer: {order} is done"])
            told = self.ask("POST", f"/agents/{agent}/messages", {"text": text, "thread": order, "key": order})
            if told is not None:
                self.messages[order] = told["message_id"]

    def _decide(self) -> None:
        while not self.is_over:
            for each in self.ask("GET", "/approvals?status=pending") or ():
                self.ask("POST", f"/approvals/{each['approval_id']}/decision", {"decision": "approved"})
            time.sleep(0.1)


def soak(plan: Plan, folder: Path, tell: Callable[[str], None] = print) -> Outcome:
    """Let it happen, in an empty folder."""
    chance = random.Random(plan.seed)
    ledger = Ledger(folder / "effects")
    with _processes(folder, plan, ledger.path) as (daemon, token):
        clients, began = Clients(daemon.port, token, plan), time.monotonic()
        try:
            for number in range(plan.kills):
                share = plan.seconds / plan.kills
                time.sleep(max(1.0, began + share * (number + chance.random()) - time.monotonic()))
                daemon.kill()
                daemon.again()
                tell(f"{time.monotonic() - began:6.1f} s  kill {number + 1}, {len(clients.messages)} acknowledged")
            for sender in clients.senders:
                sender.join()
            turns = _until_over(clients, began, tell)
            unknown = clients.ask("GET", "/unknown") or []
            doctor = clients.ask("GET", "/doctor") or {"problems": ["the doctor was not asked"]}
        finally:
            clients.close()
    complaints = [*clients.wrong, *(f"doctor: {each}" for each in doctor["problems"])]
    complaints += [f"{order} was not acknowledged" for order in _orders(plan) if order not in clients.messages]
    states = {order: turn["state"] if turn is not None else "lost" for order, turn in turns.items()}
    complaints += [
        f"{order}: its turn is {state}: {turns[order]}" for order, state in states.items() if state != "completed"
    ]
    complaints += _doubled(ledger, {turn["turn_id"]: order for order, turn in turns.items() if turn}, unknown, states)
    waited, replayed = asyncio.run(_replay(folder / "home" / "wakeful.db", clients.messages, turns))
    effects = Counter(entry.tool.partition(" ")[0] for entry in ledger.entries())
    seconds, ends = time.monotonic() - began, Counter(states.values())
    found = [*complaints, *replayed]
    return Outcome(len(clients.messages), ends, waited, effects, len(unknown), plan.kills, seconds, found)


def _orders(plan: Plan) -> list[str]:
    names = list(CALLS)
    return [f"{names[number % len(names)]}-{number}" for number in range(plan.messages)]


def _until_over(clients: Clients, began: float, tell: Callable[[str], None]) -> dict[str, Any]:
    """By order: its turn; None: none took it. Until all have ended, or nothing moves any more."""
    turns: dict[str, Any] = dict.fromkeys(clients.messages)
    moved, seen = time.monotonic(), Counter[str]()
    while time.monotonic() - moved < PATIENCE:
        for order, turn in turns.items():
            if turn is None or turn["state"] in ("running", "suspended"):
                message = clients.ask("GET", f"/messages/{clients.messages[order]}")
                if message is not None and message["turn_id"]:
                    turns[order] = clients.ask("GET", f"/turns/{message['turn_id']}")
        states = Counter(turn["state"] if turn is not None else "queued" for turn in turns.values())
        tell(f"{time.monotonic() - began:6.1f} s  {dict(states)}")
        if not states.keys() & {"queued", "running", "suspended"}:
            break
        if states != seen:
            moved, seen = time.monotonic(), states
        time.sleep(2)
    return turns


def _doubled(ledger: Ledger, orders: dict[str, str], unknown: list[Any], states: dict[str, str]) -> list[str]:
    """What was done twice; and what was not done although its turn says so."""
    done = Counter(entry.tool for entry in ledger.entries())
    found = [f"{name} was done {times} times" for name, times in done.items() if times > 1]
    unsure = {f"{each['tool']} {orders.get(each['turn_id'])}" for each in unknown}
    found += [f"{each}: the outcome of a keyed call is unknown" for each in unsure if not each.startswith("mail")]
    for order, state in states.items():
        due = [f"{name} {order}" for name in CALLS[order.partition("-")[0]]] if state == "completed" else []
        found += [f"{each} was not done, and nothing says so" for each in due if not done[each] and each not in unsure]
    return found


async def _replay(path: Path, messages: dict[str, str], turns: dict[str, Any]) -> tuple[int, list[str]]:
    """How many turns waited for the provider, and which do not come out again as they are in the log."""
    waited, found = 0, []
    async with open_store(path) as store:
        for order, turn in turns.items():
            if turn is None:
                continue
            report = await store.replay(turn["turn_id"])
            if not report.identical:
                found.append(f"{order}: replay differs: {report}")
            kinds = [event.type async for event in store.events(turn["turn_id"])]
            waited += "model.wait_started" in kinds
            if kinds.count("turn.completed") > 1:
                found.append(f"{order} was completed {kinds.count('turn.completed')} times")
    return waited, found


@contextmanager
def _processes(folder: Path, plan: Plan, ledger: Path) -> Iterator[tuple[ServedProcess, str]]:
    home = folder / "home"
    home.mkdir()
    token = add_token(home / FILE, "soak", ("operate", "reveal"), at=time.time(), by="soak")
    provider_port, port = _free_port(), _free_port()
    line = [sys.executable, "-m", "wakeful.testing.provider_server", "--port", str(provider_port)]
    base = f"http://127.0.0.1:{provider_port}"
    environment = {name: value for name, value in os.environ.items() if not name.startswith("WAKEFUL_")} | {
        "WAKEFUL_HOME": str(home),
        "WAKEFUL_PROVIDER_PROBE_SECONDS": PROBE_SECONDS,
        "PYTHONPATH": str(HERE),
        "SOAK_LEDGER": str(ledger),
        "OPENAI_BASE_URL": f"{base}/v1",
        "ANTHROPIC_BASE_URL": base,
        "OPENAI_API_KEY": "test",
        "ANTHROPIC_API_KEY": "test",
    }

    def start_provider() -> "subprocess.Popen[bytes]":
        with (folder / "provider.log").open("ab") as said:
            return subprocess.Popen([*line, "--weather", plan.weather], stdout=said, stderr=said)

    def start_daemon() -> "subprocess.Popen[bytes]":
        command, handle = serve_command(ServeOptions(port=port, tools=("served.soak_agents:agents",)))
        try:
            with (folder / "daemon.log").open("ab") as said:
                return subprocess.Popen(command, env=environment, pass_fds=[handle], stdout=said, stderr=said)
        finally:
            os.close(handle)

    daemon = ServedProcess(start_daemon, port, "/health")
    try:
        provider = ServedProcess(start_provider, provider_port, "/")
        try:
            yield daemon, token
        finally:
            provider.end()
    finally:
        daemon.end()


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def main() -> int:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # its processes end with it
    terms = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    terms.add_argument("--messages", type=int, default=60)
    terms.add_argument("--kills", type=int, default=3)
    terms.add_argument("--outage", type=float, default=5.0, help="seconds of each kind of bad weather")
    terms.add_argument("--seed", type=int, default=0, help="chooses the moments of the kills")
    terms.add_argument("--keep", type=Path, help="a folder to leave home, ledger and logs in")
    given = terms.parse_args()
    plan = Plan(given.messages, given.kills, given.outage, seed=given.seed)
    with tempfile.TemporaryDirectory(dir="/var/tmp") as made:
        folder = given.keep or Path(made)
        folder.mkdir(parents=True, exist_ok=True)
        found = soak(plan, folder, lambda line: print(line, flush=True))
    print(f"{found.acknowledged} orders acknowledged, {found.kills} kills, {found.seconds:.0f} s")
    print(f"turns: {dict(found.turns)}; {found.waited} of them waited for the provider")
    print(f"effects: {dict(found.effects)}; {found.unknown} outcomes unknown, and listed")
    print(*(found.complaints or ["no complaints"]), sep="\n")
    return 1 if found.complaints else 0


if __name__ == "__main__":
    sys.exit(main())
