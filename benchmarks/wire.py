"""Requests out and streams in: wakeful's three wire formats, beside the vendors' SDKs.

    python benchmarks/wire.py                            everything; about two minutes; prints, writes nothing
    python benchmarks/wire.py --format chat              one format
    python benchmarks/run.py --only wire                 everything, into its section of docs/benchmarks.md

Each figure is from a process of its own. Nothing leaves the machine: streams are in memory, or from a server on the
loopback address.
"""

import argparse
import asyncio
import json
import sys
from dataclasses import dataclass, field
from typing import Any

from reporting import Aim, Broken, aims_table, machine, measure, number, table, versions
from wires import decoding, encoding, server, streaming
from wires.formats import FORMATS

LIMIT = 180.0
ENCODE_MS = 2.0
TIMES_FASTER = 3

HEADING = "## On the wire"

TEXT = f"""{HEADING}

Requests and streams of the three formats, beside the SDKs of the vendors. Each figure is from a process of its own.
This section is measured on its own too, so it has its own facts:

    .venv-bench/bin/python benchmarks/run.py --only wire
"""

ENCODING = f"""### The next request on a long conversation

A history of {encoding.TOKENS:,} tokens (UTF-8 bytes of text / {encoding.BYTES_A_TOKEN}), one more message, then
`Encoder.body`: the request as chunks, most of them made earlier. Joining, copying and sending them is not in it.
Median and slowest of {encoding.SAMPLES} requests, one more message each. `first` is the request for which every item
was encoded; `new` is how many chunks are not the very objects of the request before.
"""

DECODING = f"""### Decoding a stream

The same bytes, one event a piece, from a response object in memory; wakeful and the SDK turn and turn about in one
process, medians of {decoding.SAMPLES}. `recorded` are real answers of the providers, short ones, kept beside the
repository and not in it; `long` is an answer of {decoding.DELTAS:,} deltas of our own making. wakeful parses, gives
glimpses and puts the reply together. The SDK is measured handing out its typed events (`events`: less work than
ours) and putting the message together as well (`message`: the same work). The aim is held to both.
"""

STREAMING = f"""### {streaming.STREAMS} streams at once

One process reads {streaming.STREAMS} streams of {streaming.DELTAS} deltas from a local server, which is a process of
its own and answers only when every request is there. Processor is the reading process's alone: where all events
together need less of it than the time, the server or the machine was waited for. Memory is the most held while they
ran, over what was held before. wakeful gives glimpses and a whole reply; the SDK is read event by event for its text.
"""


@dataclass
class Results:
    """What every process said, by what it was asked for; a text is why there is no figure."""

    encoded: dict[tuple[str, str], dict[str, Any] | str] = field(default_factory=dict)
    decoded: dict[tuple[str, str], dict[str, Any] | str] = field(default_factory=dict)
    streamed: dict[tuple[str, str], dict[str, Any] | str] = field(default_factory=dict)
    profiles: dict[str, str] = field(default_factory=dict)


def run(names: list[str] | None = None, *, profile: bool = False) -> Results:
    """Measure. Where an aim is missed, or `profile` is given, the profile of that figure too."""
    names = names or list(FORMATS)
    results = Results()
    for name in names:
        for items in encoding.ITEMS:
            results.encoded[name, items] = _measured("encoding", name, items)
        for source in decoding.SOURCES:
            results.decoded[name, source] = _measured("decoding", name, source)
        for reader in streaming.READERS:
            results.streamed[name, reader] = _measured("streaming", name, reader)
    parts = {"encoding": results.encoded, "decoding": results.decoded, "streaming": results.streamed}
    for part, found in parts.items():
        for (name, which), result in found.items():
            missed = any(aim.verdict == "missed" for aim in _aims(part, name, which, result))
            if missed or (profile and which != "sdk"):
                under = _measured(part, name, which, "--under-profiler")
                results.profiles[f"{part}, {name}, {which}"] = under if isinstance(under, str) else under["profile"]
    return results


def _measured(part: str, name: str, which: str, *more: str) -> dict[str, Any] | str:
    try:
        result = measure("wire.py", ["--part", part, "--format", name, "--which", which, *more], LIMIT)
    except Broken as broken:
        print(f"{part} {name} {which}: {broken}", file=sys.stderr, flush=True)
        return str(broken)
    shown = {key: round(value, 5) if isinstance(value, float) else value for key, value in result.items()}
    print(f"{part} {name} {which}: {shown if not result.get('profile') else 'profiled'}", file=sys.stderr, flush=True)
    return result


# ---- the report


def _aims(part: str, name: str, which: str, result: dict[str, Any] | str) -> list[Aim]:
    """The promises that a figure is held to; none where there was nothing to measure them on."""
    if part == "encoding":
        median = None if isinstance(result, str) else result["median"]
        return [Aim(f"{name}, {which} items: the next request", median, ENCODE_MS, "ms")]
    if part == "streaming" or (not isinstance(result, str) and not result["streams"]):
        return []
    told = []
    for theirs, work in (("events_sdk", "events"), ("message_sdk", "message")):
        share = None if isinstance(result, str) else result["ours"] / result[theirs]
        note = f"{number(1 / share)} times as fast; the aim is {TIMES_FASTER}" if share else ""
        told.append(Aim(f"{name}, {which}: share of the SDK's time for its {work}", share, 1 / TIMES_FASTER, "", note))
    return told


def aims(results: Results) -> list[Aim]:
    return [
        aim
        for part, found in (("encoding", results.encoded), ("decoding", results.decoded))
        for (name, which), result in found.items()
        for aim in _aims(part, name, which, result)
    ]


def markdown(results: Results) -> str:
    """The whole section, heading, facts and aims included."""
    facts = [*machine(), *versions(["wakeful", "openai", "anthropic", "httpx2", "pydantic"])]
    parts = [
        TEXT,
        table(["", "this section"], facts) + "\n",
        ENCODING,
        _encoded(results.encoded) + "\n",
        DECODING,
        _decoded(results.decoded) + "\n",
        STREAMING,
        _streamed(results.streamed) + "\n",
        "### Aims on the wire\n",
        aims_table(aims(results)) + "\n",
    ]
    for what, profile in results.profiles.items():
        parts.append(
            f"### Profile: {what}\n\n"
            "cProfile, by own time; a round is one request or one event. "
            f"The profiler's own cost is in it: read the order, not the sum.\n\n```text\n{profile}```\n"
        )
    return "\n".join(parts)


def _encoded(found: dict[tuple[str, str], dict[str, Any] | str]) -> str:
    head = ["", "items", "tokens", "first, ms", "median, ms", "slowest, ms", "chunks", "new"]
    rows = []
    for (name, items), result in found.items():
        label = f"{name}, {items} items"
        if isinstance(result, str):
            rows.append([label, *_none(result, len(head))])
            continue
        times = [number(result[key]) for key in ("first", "median", "slowest")]
        counts = [f"{result['chunks']:,}", str(result["fresh"])]
        rows.append([label, f"{result['items']:,}", f"{result['tokens']:,}", *times, *counts])
    return table(head, rows)


def _decoded(found: dict[tuple[str, str], dict[str, Any] | str]) -> str:
    head = [
        "microseconds an event",
        "streams",
        "events",
        "KB",
        "wakeful",
        "SDK, events",
        "times",
        "SDK, message",
        "times",
    ]
    rows = []
    for (name, source), result in found.items():
        label = f"{name}, {source}"
        if isinstance(result, str):
            rows.append([label, *_none(result, len(head))])
            continue
        if not result["streams"]:
            rows.append([label, *_none("no recordings here", len(head))])
            continue
        ours, events, message = (
            result[who] / result["events_read"] * 1e6 for who in ("ours", "events_sdk", "message_sdk")
        )
        rows.append(
            [
                label,
                f"{result['streams']:,}",
                f"{result['events_read']:,}",
                number(result["bytes_read"] / 1024),
                number(ours),
                number(events),
                number(events / ours),
                number(message),
                number(message / ours),
            ]
        )
    return table(head, rows)


def _streamed(found: dict[tuple[str, str], dict[str, Any] | str]) -> str:
    head = ["", "events", "time, s", "events a second", "processor an event, us", "memory a stream, KB"]
    rows = []
    for (name, reader), result in found.items():
        label = f"{name}, {'wakeful' if reader == 'wakeful' else f'{FORMATS[name].vendor} SDK'}"
        if isinstance(result, str):
            rows.append([label, *_none(result, len(head))])
            continue
        count = result["events"]
        rows.append(
            [
                label,
                f"{count:,}",
                number(result["seconds"]),
                number(count / result["seconds"]),
                number(result["processor"] / count * 1e6),
                number(result["memory"] / result["streams"] / 1024),
            ]
        )
    return table(head, rows)


def _none(why: str, columns: int) -> list[str]:
    return [f"no result: {why}", *["-"] * (columns - 2)]


def main() -> None:
    parser = argparse.ArgumentParser(description="Requests out and streams in, beside the vendors' SDKs.")
    parser.add_argument("--format", nargs="+", choices=list(FORMATS), default=list(FORMATS))
    parser.add_argument("--profile", action="store_true", help="show the profile of each figure whatever the verdict")
    parser.add_argument("--streams", type=int, default=streaming.STREAMS, help=argparse.SUPPRESS)
    parser.add_argument("--part", choices=["encoding", "decoding", "streaming"], help=argparse.SUPPRESS)
    parser.add_argument("--which", help=argparse.SUPPRESS)
    parser.add_argument("--under-profiler", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--server", choices=list(FORMATS), help=argparse.SUPPRESS)
    parser.add_argument("--deltas", type=int, default=streaming.DELTAS, help=argparse.SUPPRESS)
    parser.add_argument("--crowds", nargs="+", type=int, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.server:
        asyncio.run(server.serve(args.server, args.deltas, args.crowds))
    elif args.part == "encoding":
        print(json.dumps(encoding.measured(args.format[0], args.which, args.under_profiler)))
    elif args.part == "decoding":
        print(json.dumps(decoding.measured(args.format[0], args.which, args.under_profiler)))
    elif args.part == "streaming":
        print(json.dumps(streaming.measured(args.format[0], args.which, args.streams, args.under_profiler)))
    else:
        print(markdown(run(args.format, profile=args.profile)))


if __name__ == "__main__":
    main()
