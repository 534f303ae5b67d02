"""`kill_everywhere`: run a scenario, then run it again for every moment at which its process could have died.

For each point, in a new folder: (1) run the scenario with a kill armed at that point; the process dies by SIGKILL.
(2) Look at log and ledger: nothing acknowledged may be missing. (3) Run the same scenario again, with no kill, until it
finishes. (4) Look again: the same end, nothing done twice, every unknown outcome visible. The world is the ledger, a
file outside the store that the scenario's tools write to.
"""

import asyncio
import inspect
import os
import random
import shutil
import tempfile
import traceback
from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeAlias

from wakeful.ports import Store
from wakeful.store.sqlite import SqliteStore
from wakeful.testing.crash_checks import BrokenPromise, KillReport, Moment, check_kill, check_recovery
from wakeful.testing.crash_children import HANDS, Nursery, nursery_for
from wakeful.testing.crash_nurse import ProcessEnd
from wakeful.testing.crash_snapshot import Snapshot, take_snapshot
from wakeful.testing.crash_store import CrashingStore
from wakeful.testing.crash_switch import CrashSwitch, KillPoint, activate
from wakeful.testing.effect_ledger import Ledger

Scenario: TypeAlias = Callable[..., Any]
"""`scenario(store, ledger)`, or `scenario(store)` when the tools know their ledger; sync or async."""
Opener: TypeAlias = Callable[[Path], Awaitable[Store]]
TOGETHER = 16
"""Stores that one process looks at, after so many kills and again after so many recoveries."""


def kill_everywhere(
    scenario: Scenario,
    ledger: Ledger | str | os.PathLike[str] | None = None,
    *,
    open_store: Opener = SqliteStore.open,
    points: Sequence[KillPoint] | None = None,
    most: int | None = None,
    seed: int = 0,
    tries: int = 3,
    seconds: float = 60.0,
    workers: int = HANDS,
) -> KillReport:
    """Kill the scenario's process before and after every commit and every effect, and see that nothing came of it.

    `scenario(store, ledger)` is a function at the top of a module. It runs an agent on `store` with a `key` (so that
    running it again resumes it); its tools call `ledger.record(name, ctx.idempotency_key)`, or `ledger.once` when they
    are keyed. `ledger` names the file to use when the tools do not take it from the scenario; it is emptied each time.
    `points` limits the kills; `most` takes so many of them by chance, the same ones for the same `seed`. `tries` is how
    often the program may be run again, `seconds` how long a run may take.
    Raises AssertionError with the list of what was broken; else returns the report.
    """
    fixed = Ledger(ledger.path if isinstance(ledger, Ledger) else ledger) if ledger is not None else None
    if fixed is not None:
        workers = 1
    folder = Path(tempfile.mkdtemp(prefix="wakeful-kills-"))
    suite = _Suite(scenario, open_store, folder, fixed, tries, seconds)
    try:
        report = suite.run(points, most, seed, workers)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    if not report.ok:
        raise AssertionError(str(report))
    return report


class _Suite:
    def __init__(
        self,
        scenario: Scenario,
        open_store: Opener,
        folder: Path,
        ledger: Ledger | None,
        tries: int,
        seconds: float,
    ) -> None:
        self._scenario = scenario
        self._open_store = open_store
        self._folder = folder
        self._ledger = ledger
        self._tries = tries
        self._seconds = seconds

    def run(self, points: Sequence[KillPoint] | None, most: int | None, seed: int, workers: int) -> KillReport:
        with nursery_for(self._scenario) as nursery:
            unharmed, passed = self._unharmed(nursery)
            chosen = list(passed if points is None else points)
            if most is not None and len(chosen) > most:
                chosen = sorted(random.Random(seed).sample(chosen, most))

            def work(number: int) -> KillReport:
                share = chosen[number::workers]
                together = 1 if self._ledger is not None else TOGETHER  # one file is one world
                parts = [share[at : at + together] for at in range(0, len(share), together)]
                return KillReport.together(self._kill_at(part, nursery, unharmed) for part in parts)

            with ThreadPoolExecutor(workers) as pool:
                report = KillReport.together(pool.map(work, range(min(workers, len(chosen)))))
        if report.kills * 2 < len(chosen) or not chosen:
            few = f"{report.kills} of {len(chosen)} points were reached: this shows nothing"
            report.violations.append(BrokenPromise("wedged", None, few))
        return report

    def _unharmed(self, nursery: Nursery) -> tuple[Moment, list[KillPoint]]:
        """The run without a kill: what should come out, and where it can be killed."""
        place = self._place("unharmed")
        ending = self._live(nursery, place, None)
        if ending.how != "done":
            raise AssertionError(f"the scenario does not finish without a kill ({ending.how}):\n{ending.words}")
        (seen,) = self._see(nursery, [place])
        if not isinstance(seen, Snapshot):
            raise AssertionError(f"without a kill, the store cannot be read {seen}")
        return Moment(seen, self._ledger_at(place).entries()), ending.value

    def _kill_at(self, points: Sequence[KillPoint], nursery: Nursery, unharmed: Moment) -> KillReport:
        """Kill at each point; look at all that is left; let each be finished; look at all of it again."""
        report = KillReport(points=len(points))
        places: dict[KillPoint, Path] = {}
        try:
            for point in points:
                self._kill(point, nursery, places, report)
            killed = self._look(nursery, places, report)
            for point, moment in killed.items():
                report.violations += check_kill(point, unharmed, moment, acknowledged(places[point]))
            finished = [point for point in killed if self._recover(point, nursery, places[point], report)]
            for point, recovered in self._look(nursery, {point: places[point] for point in finished}, report).items():
                report.unknown += len(recovered.log.unknown)
                report.violations += check_recovery(point, unharmed, killed[point], recovered)
        finally:
            for place in places.values():
                shutil.rmtree(place, ignore_errors=True)
        return report

    def _kill(self, point: KillPoint, nursery: Nursery, places: dict[KillPoint, Path], report: KillReport) -> None:
        """Give the place where the process died at this point, which it may not come to each time."""
        for attempt in range(self._tries):
            place = self._place(f"{point.place}-{point.number}-{point.moment}-{attempt}")
            ending = self._live(nursery, place, point)
            if ending.how == "killed":
                report.kills += 1
                places[point] = place
                return
            shutil.rmtree(place, ignore_errors=True)
            if ending.how != "done":
                what = f"{ending.how} before it was killed:\n{ending.words}"
                report.violations.append(BrokenPromise("wedged", point, what))
                return
        report.unreached.append(point)

    def _recover(self, point: KillPoint, nursery: Nursery, place: Path, report: KillReport) -> bool:
        """The same program, run again until it finishes."""
        for _ in range(self._tries):
            ending = self._live(nursery, place, None)
            if ending.how != "raised":
                break
        if ending.how != "done":
            what = f"run again, it {ending.how}:\n{ending.words}"
            report.violations.append(BrokenPromise("wedged", point, what))
        return ending.how == "done"

    def _place(self, name: str) -> Path:
        """A folder of its own, and an empty world."""
        place = self._folder / name
        place.mkdir()
        if self._ledger is not None:
            self._ledger.entries()  # raises when the file is something else: that is not ours to empty
            self._ledger.path.unlink(missing_ok=True)
        return place

    def _ledger_at(self, place: Path) -> Ledger:
        return self._ledger or Ledger(place / "ledger.jsonl")

    def _live(self, nursery: Nursery, place: Path, armed: KillPoint | None) -> ProcessEnd:
        ledger = self._ledger_at(place).path
        arguments = (self._scenario, self._open_store, place, ledger, armed)
        return nursery.run(live, *arguments, output=place / "output", seconds=self._seconds)

    def _look(self, nursery: Nursery, places: Mapping[KillPoint, Path], report: KillReport) -> dict[KillPoint, Moment]:
        """What there is at each of the places that can be read."""
        moments: dict[KillPoint, Moment] = {}
        for point, seen in zip(places, self._see(nursery, [*places.values()]), strict=True):
            if isinstance(seen, Snapshot):
                moments[point] = Moment(seen, self._ledger_at(places[point]).entries())
            else:
                report.violations.append(BrokenPromise("lost", point, f"the store cannot be read {seen}"))
        return moments

    def _see(self, nursery: Nursery, places: list[Path]) -> "list[Snapshot | str]":
        """In one child, what stands in the stores of these places; or why it cannot be read."""
        if not places:
            return []
        seconds = self._seconds * len(places)
        ending = nursery.run(look_at, self._open_store, places, output=places[0] / "look", seconds=seconds)
        if ending.how != "done":
            return [f"({ending.how}):\n{ending.words}"] * len(places)
        seen: list[Snapshot | str] = ending.value
        return seen


def live(scenario: Scenario, open_store: Opener, place: Path, ledger: Path, armed: KillPoint | None) -> list[KillPoint]:
    """In a child: run the scenario on a store and a world that may kill it."""
    switch = CrashSwitch(armed)
    activate(switch)
    path = place / "store.db"
    store = CrashingStore(str(path), lambda: open_store(path), switch, place / "acknowledged")
    given = (store, Ledger(ledger, switch))[: _arity(scenario)]
    outcome = scenario(*given)
    if inspect.iscoroutine(outcome):
        asyncio.run(outcome)
    return switch.points()


def look_at(open_store: Opener, places: Sequence[Path]) -> list[Snapshot | str]:
    """In a child: read each log as somebody would who comes later."""

    async def look(place: Path) -> Snapshot:
        store = await open_store(place / "store.db")
        try:
            return await take_snapshot(store)
        finally:
            await store.close()

    seen: list[Snapshot | str] = []
    for place in places:
        try:
            seen.append(asyncio.run(look(place)))
        except Exception:
            seen.append(f"(raised):\n{traceback.format_exc()[-2000:]}")
    return seen


def _arity(scenario: Scenario) -> int:
    parameters = inspect.signature(scenario).parameters.values()
    return sum(p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) for p in parameters)


def acknowledged(place: Path) -> int:
    noted = place / "acknowledged"
    return sum(map(int, noted.read_text().split())) if noted.exists() else 0
