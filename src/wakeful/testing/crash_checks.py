"""Checks after a kill and a recovery, and the report about them.

lost       a fact that was acknowledged is gone, an effect has no intent, or an effect never came
repeated   an effect happened twice that may happen only once
hidden     nobody is told of an effect whose outcome is unknown
wedged     the turn did not finish when the same program was run again, or not as it would have without the kill; a row
           is not what the log says, or something waits and nobody is told to look
different  a decision that stands in the log does not come out the same when it is made again from the log
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from wakeful.testing.crash_snapshot import Snapshot
from wakeful.testing.crash_switch import KillPoint
from wakeful.testing.effect_ledger import LedgerEntry


class BrokenPromise(NamedTuple):
    """A promise that was broken, and where the kill was."""

    promise: str
    point: KillPoint | None
    what: str

    def __str__(self) -> str:
        where = f"killed {self.point}: " if self.point else ""
        return f"{self.promise}: {where}{self.what}"


@dataclass(frozen=True)
class Moment:
    """The log and the world at one time."""

    log: Snapshot
    ledger: Sequence[LedgerEntry]

    def counted(self) -> Counter[str]:
        return Counter(entry.key for entry in self.ledger)


@dataclass
class KillReport:
    """The report of the crash suite: its kills, and the problems it found."""

    points: int = 0
    """Moments at which a kill was tried."""
    kills: int = 0
    """Processes that died of it."""
    unknown: int = 0
    """Outcomes that nobody knows, each of them visible. Not a fault: that is what irreversible means."""
    unreached: list[KillPoint] = field(default_factory=list)
    """Points the scenario did not come to again: it does not do the same thing each time."""
    violations: list[BrokenPromise] = field(default_factory=list)

    @classmethod
    def together(cls, reports: Iterable["KillReport"]) -> "KillReport":
        """Several reports as one."""
        whole = cls()
        for report in reports:
            whole.points += report.points
            whole.kills += report.kills
            whole.unknown += report.unknown
            whole.unreached += report.unreached
            whole.violations += report.violations
        return whole

    @property
    def ok(self) -> bool:
        return not self.violations

    def of(self, promise: str) -> list[BrokenPromise]:
        return [violation for violation in self.violations if violation.promise == promise]

    @property
    def lost(self) -> list[BrokenPromise]:
        return self.of("lost")

    @property
    def repeats(self) -> list[BrokenPromise]:
        return self.of("repeated")

    @property
    def hidden(self) -> list[BrokenPromise]:
        return self.of("hidden")

    @property
    def wedged(self) -> list[BrokenPromise]:
        return self.of("wedged")

    @property
    def different(self) -> list[BrokenPromise]:
        return self.of("different")

    def __str__(self) -> str:
        head = (
            f"{self.kills} kills at {self.points} points: {len(self.lost)} lost, {len(self.repeats)} repeated, "
            f"{len(self.hidden)} hidden, {len(self.wedged)} wedged, {len(self.different)} different; "
            f"{self.unknown} outcomes unknown and visible"
        )
        unreached = [f"not reached again: {', '.join(map(str, self.unreached))}"] if self.unreached else []
        return "\n".join([head, *unreached, *(f"- {violation}" for violation in self.violations)])


def check_kill(point: KillPoint, unharmed: Moment, killed: Moment, acknowledged: int) -> list[BrokenPromise]:
    """Check the log before the recovery."""
    found = []
    if killed.log.count < acknowledged:
        found.append(f"{acknowledged} facts were acknowledged and {killed.log.count} are in the log")
    if _keys_are_intents(unharmed):
        intents = killed.log.intents()
        found += [
            f"{entry.tool} {entry.key} happened and its intent is not in the log"
            for entry in killed.ledger
            if entry.key not in intents
        ]
    lost = [BrokenPromise("lost", point, what) for what in found]
    return lost + [BrokenPromise("wedged", point, what) for what in killed.log.misfits]


def check_recovery(point: KillPoint, unharmed: Moment, killed: Moment, recovered: Moment) -> list[BrokenPromise]:
    """Check the log after the same program was run again."""
    promises = {
        "lost": [*_changed_facts(killed, recovered), *_missing_effects(unharmed, recovered)],
        "repeated": list(_repeats(killed, recovered)),
        "hidden": list(_hidden(killed, recovered)),
        "wedged": [*_other_ends(unharmed, recovered), *recovered.log.misfits],
        "different": recovered.log.different,
    }
    return [BrokenPromise(promise, point, what) for promise, found in promises.items() for what in found]


def _keys_are_intents(unharmed: Moment) -> bool:
    """Do the tools write their calls' idempotency keys? Only then can a line be held against its intent."""
    intents = unharmed.log.intents()
    return all(entry.key in intents for entry in unharmed.ledger)


def _changed_facts(killed: Moment, recovered: Moment) -> Iterator[str]:
    for agent_id, facts in killed.log.facts.items():
        if recovered.log.facts.get(agent_id, [])[: len(facts)] != facts:
            yield f"what the log of {agent_id} held at the kill is not its beginning any more"


def _missing_effects(unharmed: Moment, recovered: Moment) -> Iterator[str]:
    """By tool, since keys are new in each run. An unknown outcome may stand for an effect that never came."""
    done = Counter(entry.tool for entry in set(recovered.ledger))
    unknown = Counter(recovered.log.calls[name].tool for name in recovered.log.unknown if name in recovered.log.calls)
    for tool, count in Counter(entry.tool for entry in set(unharmed.ledger)).items():
        if done[tool] + unknown[tool] < count:
            yield f"{tool} had {count} effects without the kill and {done[tool]} with it"


def _repeats(killed: Moment, recovered: Moment) -> Iterator[str]:
    finished, before = killed.log.finished_keys(), killed.counted()
    effects = {call.key: call.effect for call in recovered.log.calls.values()}
    tools = {entry.key: entry.tool for entry in recovered.ledger}
    for key, count in recovered.counted().items():
        effect = effects.get(key, "undeclared")
        if key in finished and count > before[key]:
            yield f"{tools[key]} {key} had finished before the kill and ran again"
        elif count > 1 and effect != "pure":
            yield f"{tools[key]} {key} ({effect}) happened {count} times"


def _hidden(killed: Moment, recovered: Moment) -> Iterator[str]:
    for name, call in killed.log.calls.items():
        cut_off = call.dispatched and not call.ended and call.effect == "irreversible"
        if cut_off and name not in recovered.log.unknown:
            yield f"{call.tool} ({name[1]}) was cut off and its outcome is not listed as unknown"


def _other_ends(unharmed: Moment, recovered: Moment) -> Iterator[str]:
    expected, found = unharmed.log.answers(), recovered.log.answers()
    if len(expected) != len(found):
        yield (
            f"{len(expected)} turns without the kill and {len(found)} with it; "
            f"give the run a key, so that running the program again resumes it"
        )
        return
    for (state, answer), (other_state, other_answer) in zip(expected, found, strict=True):
        if state != other_state:
            yield f"the turn is {other_state}; without the kill it is {state}"
        # A model that is told of an unknown outcome may well say something else.
        elif answer != other_answer and not recovered.log.unknown:
            yield f"the answer is {other_answer!r}; without the kill it is {answer!r}"
