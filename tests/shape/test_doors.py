"""Rules are shown through a door that users have. Those that are shown on values made by hand alone stand here.

The list only shrinks: a rule that is shown by a run, a command or a host's loop is taken out of it, and a new rule
begins with a test through a door.
"""

import re
from collections.abc import Iterator
from pathlib import Path

MARK = re.compile(r"mark\.spec\((.*?)\)", re.S)
RULE = re.compile(r"[A-Z]{2,5}-[A-Z0-9]+-\d{2,3}")
BY_HAND = ("unit/contracts/", "unit/decisions/", "unit/views/")

STAYS = {
    "is about our own contracts, schemas and pages, which no run brings up": (
        *("API-BND-03", "API-BND-05", "API-BND-06", "STD-ENV-01", "STD-VAL-01", "STD-VAL-03"),
        *("STD-MAP-02", "STD-MAP-03", "STD-MAP-04"),
    ),
    "is a table of every case, of which a run meets one or two": (
        *("LOOP-WF-07", "LOOP-WF-10", "LOOP-PERM-03", "LOOP-PERM-04", "LOOP-ERR-10"),
        *("HOL-FAIL-01", "HOL-FAIL-02", "HOL-FAIL-03", "HOL-FAIL-08", "HOL-LAT-02", "HOL-LAT-03", "HOL-TOK-03"),
        *("HOL-ERR-01", "HOL-ERR-02", "HOL-ERR-03", "HOL-ERR-04", "HOL-ERR-05", "HOL-ERR-07", "HOL-ERR-08"),
        *("HOL-ERR-10", "HOL-SKILL-15", "HOL-SKILL-16", "HOL-MSG-07"),
        *("HOL-CLOSE-02", "HOL-CLOSE-03", "HOL-CLOSE-05", "HOL-CLOSE-06", "HOL-CLOSE-07"),
        *("HOL-CLOSE-08", "HOL-CLOSE-09", "HOL-CLOSE-10", "HOL-CLOSE-11", "HOL-CLOSE-12"),
        *("HOL-CONT-01", "HOL-CONT-03", "HOL-CONT-04", "HOL-CONT-05", "HOL-CONT-06", "HOL-CONT-07", "HOL-CONT-08"),
        *("HOL-CONT-09", "HOL-CONT-10", "HOL-CONT-11", "HOL-CONT-12", "HOL-CONT-13", "HOL-CONT-14", "HOL-CONT-15"),
        *("HOL-CONT-16", "HOL-CONT-17", "HOL-CONT-19", "HOL-CONT-21"),
    ),
    "is about messages and prompts of the always-on runtime, which has no door yet": (
        *("HOL-MSG-06", "HOL-KIND-01", "HOL-ORIG-01"),
        *("LOOP-PROMPT-05", "LOOP-PROMPT-06"),
    ),
    "is the frame that every wire encodes; the wires show what they make of it": (
        *("HOL-FRAME-01", "HOL-FRAME-02", "HOL-FRAME-03", "HOL-FRAME-04", "HOL-FRAME-05", "HOL-FRAME-06"),
        "HOL-FRAME-08",
    ),
}


def marks(tests: Path) -> Iterator[tuple[str, str]]:
    """Each rule with a place where it is shown."""
    for path in sorted(tests.rglob("*.py")):
        where = path.relative_to(tests).as_posix()
        for mark in MARK.finditer(path.read_text()):
            yield from ((rule, where) for rule in RULE.findall(mark[1]))


def only_by_hand(tests: Path) -> set[str]:
    shown: dict[str, bool] = {}
    for rule, where in marks(tests):
        shown[rule] = shown.get(rule, True) and where.startswith(BY_HAND)
    return {rule for rule, is_by_hand in shown.items() if is_by_hand}


def test_rules_that_are_shown_by_hand_alone_are_those_that_have_to_be(root: Path) -> None:
    listed = [rule for rules in STAYS.values() for rule in rules]
    assert len(listed) == len(set(listed))
    found = only_by_hand(root / "tests")
    assert sorted(found - set(listed)) == [], "show it through a door: run, stream, ConversationLoop, the command line"
    assert sorted(set(listed) - found) == [], "it is shown through a door now: take it out of the list"


def test_a_rule_that_is_shown_by_hand_alone_is_found(tmp_path: Path) -> None:
    """The inversion."""
    mark = "@pytest.mark.spec(%s)"
    by_hand, through_a_door = tmp_path / "unit/views", tmp_path / "unit/service"
    for folder in (by_hand, through_a_door):
        folder.mkdir(parents=True)
    (by_hand / "test_a.py").write_text(mark % '"AB-CD-01", "AB-CD-02"')
    assert only_by_hand(tmp_path) == {"AB-CD-01", "AB-CD-02"}
    (through_a_door / "test_b.py").write_text(mark % '"AB-CD-02"')
    assert only_by_hand(tmp_path) == {"AB-CD-01"}


HOST_ROOMS = {"dispatch", "dispatch.dispatch_request", "packages.imports", "abilities.packages"}
"""Rooms behind `wakeful.hosts` that tests of its contract still look into. This list only shrinks."""


def test_the_contract_of_hosts_is_tried_at_its_public_address(root: Path) -> None:
    inner = re.compile(r"^from wakeful\.hosts\.(?!chat import)([\w.]+) import", re.M)
    found: set[str] = set()
    for path in (root / "tests/contract/hosts").rglob("test_*.py"):
        found |= {each.removesuffix(" ") for each in inner.findall(path.read_text())}
    assert found <= HOST_ROOMS, sorted(found - HOST_ROOMS)
