"""Every benchmark, side by side, written to `docs/benchmarks.md`.

    make bench                                           the environment with the peers, then everything
    .venv-bench/bin/python benchmarks/run.py             everything; about twenty minutes
    .venv-bench/bin/python benchmarks/run.py --profile   with the profile of wakeful's cell, whatever the verdict
    .venv-bench/bin/python benchmarks/run.py --only wire only what is on the wire: the other sections stay as they are
                                                         (or gate, mediating, confined, supervised, long, trees,
                                                         threads, processes, admission, waking, recovery, memory)
    .venv/bin/python benchmarks/serving.py               the daemon; `python -m benchmarks.year` a year of one agent
    .venv-bench/bin/python benchmarks/start.py           one part alone, printed (or rounds, crowd, wire ...)

A missed aim is a result, not an error: the report says so and shows the profile of the cell, and the exit code stays 0.
"""

import argparse
import asyncio
from pathlib import Path

import admission
import confined
import crowd
import gate
import long_conversations
import mediating
import memory_search
import processes
import recovery
import reporting
import rounds
import start
import supervised
import thread_age
import trees
import waking
import wire
from contestants import CONTESTANTS

REPORT = Path(__file__).parent.parent / "docs" / "benchmarks.md"

HEAD = """# Benchmarks

Written by `benchmarks/run.py`; do not edit. Every number is from one run on one machine, with all libraries side by
side and no network. Compare the rows with each other, not with other machines.

    make bench
"""

ROUNDS = """## The cost of a round

One turn: a scripted model asks for the same trivial async tool `n` times, one call a round, then answers. Each cell
runs in a process of its own: a warm-up turn of {warm_up} rounds, then whole turns, each on a new database, timed from
the call to the answer with opening and closing the database included. The value is the median of at least {runs}
turns (fewer when one takes longer than a third of the limit), divided by the rounds. The peers hand their
replies over whole; wakeful streams them, as `run` does by default. No library
sends traces, every library's limit on steps is lifted. A turn that is not finished after {limit:.0f} s is stopped: `>`
marks the cost of a round up to there, a lower bound.

{notes}

The libraries do not promise the same. Those without a database lose the turn with the process. langgraph's default
lets rounds run ahead of their checkpoints, and what is not yet written is not there after a kill: `sync` is the row
to compare promises with. wakeful commits what it is about to do before it does it.
"""

START = f"""## Beginning

Median of {start.RUNS} fresh processes each.
"""

CROWD = """## Many turns at once

One process, one SQLite store, every turn in a session of its own. Memory is the peak over what the process held
before the turns.
"""


def report(
    cells: list[rounds.Cell],
    starts: list[start.Start],
    many: crowd.Crowd,
    verdicts: list[gate.Cost],
    mediated: mediating.Costs,
    wires: wire.Results,
    held: confined.Cost,
    task: supervised.Cost,
    long: long_conversations.Costs,
    grown: trees.Cost,
    old: thread_age.Costs,
    several: list[processes.Speed],
    accepted: admission.Cost,
    facts: list[tuple[str, str]],
    profile: str,
) -> str:
    notes = "\n".join(f"- **{c.name}**: {c.note}." for c in CONTESTANTS.values())
    packages = reporting.versions(dict.fromkeys([*(c.distribution for c in CONTESTANTS.values()), "pydantic", "apsw"]))
    parts = [
        HEAD,
        reporting.table(["", "this run"], [*facts, *packages]) + "\n",
        ROUNDS.format(warm_up=rounds.WARM_UP, runs=rounds.ENOUGH_RUNS, limit=rounds.LIMIT, notes=notes),
        rounds.markdown(cells),
        START,
        start.markdown(starts),
        CROWD,
        crowd.markdown(many),
        gate.markdown(verdicts),
        mediating.markdown(mediated),
        wire.markdown(wires),
        confined.markdown(held),
        supervised.markdown(task),
        long_conversations.markdown(long),
        trees.markdown(grown),
        thread_age.markdown(old),
        processes.markdown(several),
        admission.markdown(accepted),
    ]
    if profile:
        parts.append(
            f"## Profile: wakeful on SQLite, {rounds.PROFILED_ROUNDS} rounds\n\n"
            "cProfile, by own time, the event loop's thread only. "
            f"The profiler's own cost is in it: read the order, not the sum.\n\n```text\n{profile}```\n"
        )
    return "\n".join(parts)


def with_section(text: str, section: str) -> str:
    """The report with this section in place of the one of the same heading; without one, at the end."""
    heading = section.partition("\n")[0]
    before, found, after = text.partition(f"{heading}\n")
    if not found:
        return f"{text.rstrip()}\n\n{section}"
    _, following, rest = after.partition("\n## ")
    return f"{before}{section}{following}{rest}"


SECTIONS = {
    "gate": lambda profile: gate.markdown(gate.run()),
    "mediating": lambda profile: mediating.markdown(mediating.run_parts()),
    "wire": lambda profile: wire.markdown(wire.run(profile=profile)),
    "confined": lambda profile: confined.markdown(confined.run()),
    "supervised": lambda profile: supervised.markdown(supervised.run()),
    "long": lambda profile: long_conversations.markdown(long_conversations.run()),
    "trees": lambda profile: trees.markdown(trees.run()),
    "threads": lambda profile: thread_age.markdown(thread_age.run_parts()),
    "admission": lambda profile: admission.markdown(admission.run()),
    "processes": lambda profile: processes.markdown(processes.run_all()),
    "waking": lambda profile: f"{waking.measured(waking.AGENTS)}\n",
    "recovery": lambda profile: f"{recovery.measured(recovery.AGENTS)}\n",
    "memory": lambda profile: asyncio.run(memory_search.measured()),
}
"""Parts of the report that can be measured by themselves."""
OF_A_RUNTIME = ("waking", "recovery", "memory")


def kept_sections(text: str) -> list[str]:
    """The sections of a report, with their headings."""
    return [f"## {section.rstrip()}\n" for section in f"\n{text}".split("\n## ")[1:]]


def main() -> None:
    parser = argparse.ArgumentParser(description="Every benchmark, side by side, written to docs/benchmarks.md.")
    parser.add_argument(
        "--profile", action="store_true", help="show the profile of wakeful's cell whatever the verdict"
    )
    parser.add_argument("--output", type=Path, default=REPORT)
    parser.add_argument(
        "--only", choices=sorted(SECTIONS), help="measure this section and leave the others as they are"
    )
    args = parser.parse_args()
    if args.only:
        section = SECTIONS[args.only](args.profile)
        args.output.write_text(with_section(args.output.read_text(), section))
        print(section)
        return
    facts = reporting.machine()
    starts = start.run()
    many = crowd.run()
    verdicts = gate.run()
    mediated = mediating.run_parts()
    wires = wire.run(profile=args.profile)
    held, task = confined.run(), supervised.run()
    long = long_conversations.run()
    grown = trees.run()
    old, several, accepted = thread_age.run_parts(), processes.run_all(), admission.run()
    cells = rounds.run(list(CONTESTANTS), list(rounds.ROUNDS), rounds.LIMIT)
    missed = any(aim.verdict == "missed" for aim in rounds.aims(cells))
    profile = _profile() if args.profile or missed else ""
    text = report(
        cells, starts, many, verdicts, mediated, wires, held, task, long, grown, old, several, accepted, facts, profile
    )
    for name in OF_A_RUNTIME:
        text = with_section(text, SECTIONS[name](args.profile))
    headings = {section.partition("\n")[0] for section in kept_sections(text)}
    for section in kept_sections(args.output.read_text()) if args.output.exists() else ():
        if section.partition("\n")[0] not in headings and not section.startswith("## Profile"):
            text = with_section(text, section)  # measured by a command of its own
    args.output.parent.mkdir(exist_ok=True)
    args.output.write_text(text)
    print(text)


def _profile() -> str:
    try:
        return rounds.profile()
    except reporting.Broken as broken:
        return f"no profile: {broken}\n"


if __name__ == "__main__":
    main()
