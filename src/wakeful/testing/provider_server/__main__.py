"""`python -m wakeful.testing.provider_server`: the server for commands, daemons and programs of other processes.

It prints what to set, then a line for each request, until it is interrupted.
"""

import argparse
import signal
import sys
import threading

from wakeful.errors import WakefulError
from wakeful.testing.provider_server.server import ProviderServer

MODELS = ("openai:gpt-5.5", "anthropic:claude-opus-4-7", "anthropic:claude-haiku-4-5", "gemini:gemini-3.8-flash")


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def main(words: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m wakeful.testing.provider_server", description=__doc__)
    parser.add_argument("--port", type=int, default=0, help="where to listen on 127.0.0.1 (default: any free port)")
    parser.add_argument("--script", help="a YAML or JSON file with the replies, as scripted:FILE takes it")
    parser.add_argument("--weather", help='what goes wrong, as in "429 after=2, cut, 10s-13s: 503"')
    parser.add_argument("--key", help="refuse requests with another key")
    given = parser.parse_args(words)
    stopped = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stopped.set())
    try:
        with ProviderServer(given.script, port=given.port, key=given.key, weather=given.weather) as server:
            for name, value in server.environment().items():
                say(f"export {name}={value}")
            say("# wakeful.toml, so that list prices apply:")
            say(server.settings(*MODELS))
            told = 0
            while not stopped.wait(0.1):
                for request in server.requests[told:]:
                    told += 1
                    say(f"{request.number}  {request.model or request.path}  {request.weather}  {request.status}")
            say(f"{len(server.requests)} requests, {server.spent:f} USD at list price")
    except (WakefulError, OSError) as problem:
        sys.stderr.write(f"{problem}\n")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
