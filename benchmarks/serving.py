"""The daemon beside a bare FastAPI application: followers, deaf followers, messages, chats; starting; `wakeful status`.

    python benchmarks/serving.py                         everything; meant for six minutes on a quiet machine
    python benchmarks/serving.py --quick                 fewer of everything; meant for two
    python benchmarks/serving.py --only followers        one part (or deaf, admission, chats, start, status)
    python benchmarks/serving.py --store BIG.db          the start on a store that is made there once, and kept

Daemon and bare application are processes of their own, on loopback, with the same uvicorn, asked one after the other
or in pairs; what is compared is the median. The clients are this process; `wrk` sends the messages where it is
installed. Processor time is the server's alone. The application parses what it is sent, answers, and keeps nothing.
"""

import argparse
import asyncio
import itertools
import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from reporting import Aim, aims_table, machine, number, table, versions
from served.clients import Caller, follow, leave

HERE = Path(__file__).parent
TOKEN_NAME = "bench"
MARKS = itertools.count()
KB = 1024


@dataclass(frozen=True)
class Sizes:
    """How much of everything."""

    followers: int = 2_000
    events: int = 9
    deaf: int = 500
    callers: int = 200
    seconds: int = 4
    pairs: int = 3
    chats: int = 200
    chat_seconds: int = 15
    instants: int = 7
    log_turns: int = 10_000
    agents: int = 10_000


QUICK = Sizes(followers=500, events=5, seconds=2, pairs=2, chat_seconds=5, instants=3, log_turns=500, agents=300)


class Server:
    """A process that serves, and where."""

    def __init__(self, process: "subprocess.Popen[bytes]", port: int, token: str = "none", folder: str = "") -> None:
        self.process, self.port, self.token, self.folder = process, port, token, folder

    @property
    def resident(self) -> int:
        return int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    @property
    def processor(self) -> float:
        """Seconds, of all its threads."""
        threads = Path(f"/proc/{self.process.pid}/task").iterdir()
        return sum(int((each / "schedstat").read_text().split()[0]) for each in threads) / 1e9

    async def caller(self) -> Caller:
        return await Caller(self.port, self.token).open()

    def get(self, path: str) -> Any:
        from wakeful.service.serving.control import ask_process

        return ask_process(Path(self.folder) / "run" / "wakeful.sock", "GET", path)


@contextmanager
def bare() -> Iterator[Server]:
    port = _free_port()
    line = [
        sys.executable,
        "-m",
        "uvicorn",
        "served.bare_app:app",
        "--port",
        str(port),
        "--http",
        "httptools",
        "--no-access-log",
    ]
    process = subprocess.Popen([*line, "--loop", "asyncio", "--log-level", "error"], cwd=HERE)
    with _ending(process):
        _until_listening(port, process)
        yield Server(process, port)


@contextmanager
def daemon(*, chats: int = 0, store: Path | None = None, folder: str | None = None) -> Iterator[Server]:
    from wakeful.service.serving.lifecycle import serve_command
    from wakeful.service.serving.options import ServeOptions
    from wakeful.settings.access_tokens import FILE, add_token

    with tempfile.TemporaryDirectory(dir="/var/tmp") as made:
        home = Path(folder or made)
        token = add_token(home / FILE, f"{TOKEN_NAME}{time.time_ns()}", ("operate",), at=time.time(), by="benchmark")
        environment = {**os.environ, "WAKEFUL_HOME": str(home), "PYTHONPATH": str(HERE), "BENCH_CHATS": str(chats)}
        if store is not None:
            environment["WAKEFUL_STORE"] = str(store)
        port = _free_port()
        command, handle = serve_command(ServeOptions(port=port, tools=("served.bench_agents:agents",)))
        process = subprocess.Popen(command, env=environment, pass_fds=[handle], stdout=subprocess.DEVNULL)
        os.close(handle)
        with _ending(process):
            _until_listening(port, process)
            yield Server(process, port, token, str(home))


@contextmanager
def _ending(process: "subprocess.Popen[bytes]") -> Iterator[None]:
    try:
        yield
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _free_port() -> int:
    import socket

    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def _until_listening(port: int, process: "subprocess.Popen[bytes]") -> None:
    import http.client

    until = time.monotonic() + 120
    while time.monotonic() < until:
        assert process.poll() is None, "a server did not start"
        try:
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
            connection.request("GET", "/health")
            connection.getresponse().read()
            return
        except OSError:
            time.sleep(0.01)
        finally:
            connection.close()
    raise AssertionError("a server does not answer")


# ---- followers


async def followers(sizes: Sizes) -> dict[str, Any]:
    """What a follower costs, and how long one event takes to reach all of them."""
    found: dict[str, Any] = {"followers": sizes.followers}
    for name, path in (("agent", "/agents/ops/events"), ("feed", "/feed")):
        with bare() as plain, daemon() as ours:
            await _pause(ours, "ops")
            places = {name: (ours, path, "/agents/ops/messages"), "bare": (plain, "/events", "/messages")}
            took = {which: await _fan_out(*place, sizes) for which, place in places.items()}
            found[f"{name} ratio"] = took[name][0] / took["bare"][0]
            found[f"{name} ms"], found[f"{name} bare ms"] = took[name][0] * 1000, took["bare"][0] * 1000
            found[f"{name} KB"], found[f"{name} bare KB"] = took[name][1] / KB, took["bare"][1] / KB
            found[f"{name} cpu ratio"] = took[name][2] / took["bare"][2]
    return found


async def _fan_out(server: Server, path: str, say: str, sizes: Sizes) -> tuple[float, float, float]:
    """The median time for one event, the memory of a follower, and the server's processor time for an event."""
    warm = await follow(server.port, path, 20, server.token)
    leave(warm)
    await asyncio.sleep(0.5)
    before = server.resident
    crowd = await follow(server.port, path, sizes.followers, server.token)
    each = (server.resident - before) / sizes.followers
    await _until_quiet(server)  # they have begun, and may still be replaying
    caller, took = await server.caller(), []
    cpu = server.processor
    for _ in range(sizes.events):
        mark = f"mark-{next(MARKS)}-"
        came = [follower.look_for(mark.encode()) for follower in crowd]
        began = time.perf_counter()
        await caller.post(say, {"text": mark})
        took.append(max(await asyncio.gather(*came)) - began)
    cpu = (server.processor - cpu) / sizes.events
    caller.close()
    leave(crowd)
    await asyncio.sleep(0.5)
    return statistics.median(took), each, cpu


async def _until_quiet(server: Server) -> None:
    """Until it needs next to no processor, for a minute at most."""
    for _ in range(60):
        before = server.processor
        await asyncio.sleep(1)
        if server.processor - before < 0.03:
            return


async def _pause(server: Server, agent: str) -> None:
    caller = await server.caller()
    await caller.post(f"/control/agents/{agent}/pause", {"reason": "measured"})
    caller.close()


# ---- followers who do not read


async def deaf(sizes: Sizes) -> dict[str, Any]:
    """Accepting messages, without and with followers that asked for everything and read nothing."""
    rates: dict[str, list[float]] = {"without": [], "with": []}
    costs: dict[str, list[float]] = {"without": [], "with": []}
    with daemon() as ours:
        await _pause(ours, "ops")
        caller = await ours.caller()
        for _ in range(60):
            await caller.post("/agents/ops/messages", {"text": "x" * 20_000})
        caller.close()
        await _rate(ours, "/agents/ops/messages", sizes)
        for turn in range(sizes.pairs):
            for which in ("without", "with") if turn % 2 else ("with", "without"):
                crowd = (
                    await follow(ours.port, "/agents/ops/events", sizes.deaf, ours.token, is_deaf=True)
                    if which == "with"
                    else []
                )
                await asyncio.sleep(0.5)
                before, rate = ours.processor, await _rate(ours, "/agents/ops/messages", sizes)
                rates[which].append(rate)
                costs[which].append((ours.processor - before) / (rate * sizes.seconds))
                leave(crowd)
                await asyncio.sleep(0.5)
    shown = {which: statistics.median(each) for which, each in rates.items()}
    cost = {which: statistics.median(each) for which, each in costs.items()}
    return {
        "deaf": sizes.deaf,
        "without": shown["without"],
        "with": shown["with"],
        "slower": shown["without"] / shown["with"] - 1,
        "more processor": cost["with"] / cost["without"] - 1,
    }


async def _rate(server: Server, path: str, sizes: Sizes) -> float:
    """Messages a second, by as many callers as the sizes say."""
    if shutil.which("wrk"):
        with tempfile.NamedTemporaryFile("w", suffix=".lua") as script:
            script.write(
                'wrk.method = "POST"\nwrk.body = \'{"text": "Check the backups of host 17."}\'\n'
                'wrk.headers["Content-Type"] = "application/json"\n'
                f'wrk.headers["Authorization"] = "Bearer {server.token}"\n'
            )
            script.flush()
            line = ["wrk", "-t1", f"-c{sizes.callers}", f"-d{sizes.seconds}s", "-s", script.name]
            running = await asyncio.create_subprocess_exec(
                *line, f"http://127.0.0.1:{server.port}{path}", stdout=asyncio.subprocess.PIPE
            )
            said = (await running.communicate())[0].decode()
        assert "Non-2xx" not in said, said
        rate = float(said.partition("Requests/sec:")[2].split()[0])
        assert rate, f"no message was accepted in {sizes.seconds} s"
        return rate
    callers = [await server.caller() for _ in range(sizes.callers)]
    until, done = time.perf_counter() + sizes.seconds, itertools.count()

    async def call(caller: Caller) -> None:
        while time.perf_counter() < until:
            await caller.post(path, {"text": "Check the backups of host 17."})
            next(done)

    await asyncio.gather(*(call(each) for each in callers))
    for each in callers:
        each.close()
    return next(done) / sizes.seconds


# ---- admission


async def admission(sizes: Sizes) -> dict[str, Any]:
    """The rate over HTTP, beside the rate in process and that of an application that keeps nothing."""
    http, inside, plain, cpu = [], [], [], []
    with bare() as app, daemon() as ours:
        await _pause(ours, "ops")
        await _rate(ours, "/agents/ops/messages", sizes)
        for _ in range(sizes.pairs):
            plain.append(await _rate(app, "/messages", sizes))
            before = ours.processor
            http.append(await _rate(ours, "/agents/ops/messages", sizes))
            cpu.append((ours.processor - before) / (http[-1] * sizes.seconds) * 1e6)
            line = [sys.executable, str(HERE / "serving.py"), "--cell", str(sizes.callers), str(sizes.seconds)]
            running = await asyncio.create_subprocess_exec(*line, stdout=asyncio.subprocess.PIPE)
            inside.append(json.loads((await running.communicate())[0]))
    within = statistics.median(each["rate"] for each in inside)
    return {
        "http": statistics.median(http),
        "in process": within,
        "bare": statistics.median(plain),
        "times slower": within / statistics.median(http),
        "http cpu us": statistics.median(cpu),
        "in process cpu us": statistics.median(each["cpu"] for each in inside),
    }


async def _in_process(callers: int, seconds: float) -> dict[str, float]:
    from wakeful import Agent, Runtime
    from wakeful.testing import scripted

    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        async with Runtime(Path(folder, "home"), agents=[Agent("ops", scripted(["ok"]))]) as rt:
            await rt.pause("ops")
            until, done = time.perf_counter() + seconds, itertools.count()

            async def call() -> None:
                while time.perf_counter() < until:
                    await rt.send("ops", "Check the backups of host 17.")
                    next(done)

            before = time.process_time()
            await asyncio.gather(*(call() for _ in range(callers)))
            many = next(done)
            return {"rate": many / seconds, "cpu": (time.process_time() - before) / many * 1e6}


# ---- chats


async def chats(sizes: Sizes) -> dict[str, Any]:
    """From a message to the first byte of its answer: 50 a second, and all chats in one instant."""
    with bare() as plain, daemon(chats=sizes.chats) as ours:
        bare_took = await _paced(plain, lambda _: "/chat", sizes)
        took = await _paced(ours, _chat_path, sizes)
        for server, path in ((plain, lambda _: "/chat"), (ours, _chat_path)):
            await _instant(server, path, sizes)
        pairs = [
            (*await _instant(plain, lambda _: "/chat", sizes), *await _instant(ours, _chat_path, sizes))
            for _ in range(sizes.instants)
        ]
        bare_at_once, bare_cpu, at_once, cpu = [statistics.median(each) for each in zip(*pairs, strict=True)]
    return {
        "p50 ms": took[len(took) // 2] * 1000,
        "p99 ms": took[int(len(took) * 0.99)] * 1000,
        "bare p99 ms": bare_took[int(len(bare_took) * 0.99)] * 1000,
        "instant ms": at_once * 1000,
        "bare instant ms": bare_at_once * 1000,
        "instant ratio": at_once / bare_at_once,
        "instant cpu ms": cpu * 1000,
        "bare instant cpu ms": bare_cpu * 1000,
        "instant cpu ratio": cpu / bare_cpu,
    }


def _chat_path(place: int) -> str:
    return f"/agents/chat{place}/chat"


async def _chat(caller: Caller, path: str, number: int) -> float:
    began = time.perf_counter()
    caller.write(path, {"text": f"How is it, {number}?", "thread": "main"})
    return await caller.until(b"event: chunk") - began


async def _paced(server: Server, path: Callable[[int], str], sizes: Sizes) -> list[float]:
    callers = [await server.caller() for _ in range(sizes.chats)]
    for place, caller in enumerate(callers[:20]):
        await _chat(caller, path(place), place)
    running, due = [], time.perf_counter()
    for turn in range(50 * sizes.chat_seconds):
        due += 1 / 50
        await asyncio.sleep(max(0.0, due - time.perf_counter()))
        place = turn % sizes.chats
        running.append(asyncio.create_task(_chat(callers[place], path(place), turn)))
    took = sorted(await asyncio.gather(*running))
    for each in callers:
        each.close()
    return took


async def _instant(server: Server, path: Callable[[int], str], sizes: Sizes) -> tuple[float, float]:
    """How long until all have their first chunk, and the server's processor time for each."""
    before, callers = server.processor, [await server.caller() for _ in range(sizes.chats)]
    took = max(await asyncio.gather(*(_chat(each, path(place), place) for place, each in enumerate(callers))))
    for each in callers:
        each.close()
    await asyncio.sleep(0.3)  # it still puts away what it used
    return took, (server.processor - before) / sizes.chats


# ---- starting, and asking for the status


async def start(sizes: Sizes, store: Path | None = None) -> dict[str, Any]:
    """`serve` on a long log, and the memory of a daemon that does nothing."""
    import growth

    from wakeful.store.sqlite import SqliteStore

    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        path = store or Path(folder, "big.db")
        if not path.exists():
            made = await SqliteStore.open(path)
            await growth.fill(made, sizes.log_turns, max(10, sizes.log_turns // 10))
            await made.close()
        took, spent, idle = [], [], 0
        for _ in range(4):
            began = time.perf_counter()
            with daemon(store=path) as ours:
                took.append(time.perf_counter() - began)
                spent.append(ours.processor)
                await asyncio.sleep(1)
                idle = ours.resident
    return {
        "events": sizes.log_turns * 100,
        "seconds": statistics.median(took[1:]),
        "processor s": statistics.median(spent[1:]),
        "idle MB": idle / 1e6,
    }


async def status(sizes: Sizes) -> dict[str, Any]:
    """`wakeful status` as a person waits for it, while a daemon runs."""
    found: dict[str, Any] = {"agents": sizes.agents}
    for many in (10, sizes.agents):
        with tempfile.TemporaryDirectory(dir="/var/tmp") as folder, daemon(chats=many, folder=folder):
            environment = {**os.environ, "WAKEFUL_HOME": folder}
            line = [str(Path(sys.executable).with_name("wakeful")), "status"]
            took = []
            for _ in range(8):
                began = time.perf_counter()
                await _ended(line, environment)
                took.append(time.perf_counter() - began)
        found[f"{'few' if many == 10 else 'many'} ms"] = statistics.median(took[1:]) * 1000
    return found


async def _ended(line: list[str], environment: dict[str, str]) -> None:
    running = await asyncio.create_subprocess_exec(*line, env=environment, stdout=asyncio.subprocess.PIPE)
    await running.communicate()
    assert running.returncode == 0, line


# ---- around it

PARTS: dict[str, Callable[[Sizes], Awaitable[dict[str, Any]]]] = {
    "followers": followers,
    "deaf": deaf,
    "admission": admission,
    "chats": chats,
    "start": start,
    "status": status,
}
LIMITS: dict[str, list[tuple[str, str, float, str]]] = {
    "followers": [
        ("{followers:,} followers of an agent, each over an empty server", "agent KB", 40, "KB"),
        ("{followers:,} followers of the feed, each", "feed KB", 40, "KB"),
        ("one event to all who follow its agent, beside bare FastAPI", "agent ratio", 2, "x"),
        ("one event to all who follow the feed, beside bare FastAPI", "feed ratio", 2, "x"),
    ],
    "deaf": [("{deaf} followers that stopped reading: how much slower messages are accepted", "slower", 0.1, "")],
    "admission": [("accepting over HTTP, beside in process: how many times slower", "times slower", 2, "x")],
    "chats": [
        ("chat to first byte, 200 chats, 50 messages a second, p99", "p99 ms", 25, "ms"),
        ("200 in one instant, beside bare FastAPI", "instant ratio", 6, "x"),
    ],
    "start": [("`serve` on a store of {events:,} events", "seconds", 2, "s")],
    "status": [
        ("`wakeful status` while a daemon runs", "few ms", 300, "ms"),
        ("the same with {agents:,} agents", "many ms", 300, "ms"),
    ],
}


def aims(results: dict[str, dict[str, Any]]) -> list[Aim]:
    return [
        Aim(text.format(**found), found.get(name), limit, unit)
        for part, found in results.items()
        for text, name, limit, unit in LIMITS[part]
    ]


def markdown(results: dict[str, dict[str, Any]]) -> str:
    facts = [*machine(), *versions(["wakeful", "fastapi", "uvicorn"])]
    rows = [
        [f"{part}: {name}", number(float(value))] for part, found in results.items() for name, value in found.items()
    ]
    return "\n\n".join(
        ["## The daemon", table(["", "this section"], facts), aims_table(aims(results)), table(["", "measured"], rows)]
    )


def main() -> None:
    parser = argparse.ArgumentParser(description="The daemon beside a bare FastAPI application.")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--only", choices=PARTS, action="append")
    parser.add_argument("--store", type=Path, help="the store that `serve` is started on; made there if it is not")
    parser.add_argument("--cell", nargs=2, type=float, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.cell:
        print(json.dumps(asyncio.run(_in_process(int(args.cell[0]), args.cell[1]))))
        return
    sizes, results = QUICK if args.quick else Sizes(), {}
    for name in args.only or PARTS:
        part = start(sizes, args.store) if name == "start" else PARTS[name](sizes)
        results[name] = asyncio.run(part)  # type: ignore[arg-type]
        print(f"{name}: {results[name]}", file=sys.stderr, flush=True)
    print(markdown(results))


if __name__ == "__main__":
    main()
