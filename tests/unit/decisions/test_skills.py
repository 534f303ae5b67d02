"""When a skill counts as used, and what it is to its thread then."""

from typing import Any

import pytest

from kit.runs.event_samples import ONE_OF_EACH
from wakeful.contracts.envelope import Fact, StoredFact
from wakeful.contracts.events import AnyEvent, SkillActivated, ToolResult, TurnCompleted, TurnFailed
from wakeful.contracts.skills import SkillEntry
from wakeful.decisions.skills import activated, active_skills

ROOT = "/w/.agents/skills/notes"
NOTES = SkillEntry(name="notes", scope="workspace", root=ROOT, entrypoint_path=f"{ROOT}/SKILL.md")
OTHER = SkillEntry(name="other", scope="user", root="/u/other", entrypoint_path="/u/other/SKILL.md")
RESULT = next(event for event in ONE_OF_EACH if isinstance(event, ToolResult))
"""Of a call that succeeded."""


def used(tool: str, arguments: dict[str, Any], **details: Any) -> list[tuple[str, str, str]]:
    result = RESULT.model_copy(update={"details": details})
    events = activated([NOTES, OTHER], tool, arguments, result, cwd="/w")
    assert all(event.entrypoint_path in (NOTES.entrypoint_path, OTHER.entrypoint_path) for event in events)
    return [(event.skill, event.load_reason, event.path) for event in events]


READ = ("notes", "read_skill_md", f"{ROOT}/SKILL.md")
RAN = ("notes", "run_skill_script", f"{ROOT}/scripts/go.sh")


@pytest.mark.parametrize(
    "path", [f"{ROOT}/SKILL.md", ".agents/skills/notes/SKILL.md", "./x/../.agents/skills/notes/SKILL.md"]
)
def test_reading_a_skills_entry_uses_it(path: str) -> None:
    assert used("wakeful/read_file", {"path": path}) == [READ]


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("cat .agents/skills/notes/SKILL.md", [READ]),
        (f"sed -n '1,40p' '{ROOT}/SKILL.md' | head", [READ]),
        ("cd .agents/skills/notes && cat SKILL.md", [READ]),
        ("cat <.agents/skills/notes/SKILL.md", [READ]),
        ("bash -c 'cd .agents/skills; cat notes/SKILL.md'", [READ]),
        (".agents/skills/notes/scripts/go.sh --fast", [RAN]),
        ("cd .agents/skills/notes; sh scripts/go.sh;", [RAN]),
        ("cat .agents/skills/notes/SKILL.md && .agents/skills/notes/scripts/go.sh", [READ, RAN]),
        ("cat SKILL.md", []),
        ("ls .agents/skills/notes .agents/skills/notes/scripts", []),
        ("cat .agents/skills/notes-two/SKILL.md", []),
        ("echo 'unclosed", []),
        ("cat /u/other/SKILL.md", [("other", "read_skill_md", "/u/other/SKILL.md")]),
    ],
)
def test_a_command_that_names_an_entry_or_a_script_uses_the_skill(command: str, expected: list[Any]) -> None:
    assert used("wakeful/exec_command", {"cmd": command}) == expected
    assert used("wakeful/exec_command_batch", {"items": [{"cmd": "true"}, {"cmd": command}]}) == expected


def test_a_command_is_read_from_the_folder_it_ran_in() -> None:
    inside = ".agents/skills/notes"
    assert used("wakeful/exec_command", {"cmd": "sh scripts/go.sh", "workdir": inside}) == [RAN]
    assert used("wakeful/exec_command", {"cmd": "sh scripts/go.sh"}) == []


def test_of_a_batch_only_what_succeeded_counts() -> None:
    items = [{"cmd": f"cat {ROOT}/SKILL.md"}, {"cmd": f"{ROOT}/scripts/go.sh"}]
    ended = [{"status": "failed"}, {"status": "completed", "exit_status": 0}]
    assert used("wakeful/exec_command_batch", {"items": items}, items=ended) == [RAN]
    ended = [{"status": "completed", "exit_status": 0}, {"status": "completed", "exit_status": 1}]
    assert used("wakeful/exec_command_batch", {"items": items}, items=ended) == [READ]
    assert used("wakeful/exec_command", items[0], exit_status=0) == [READ]
    assert used("wakeful/exec_command", items[0], exit_status=1) == []


def test_other_tools_and_odd_arguments_use_nothing() -> None:
    assert used("look_up", {"path": f"{ROOT}/SKILL.md"}) == []
    assert used("wakeful/read_file", {"path": f"{ROOT}/scripts/go.sh"}) == [], "reading a script does not run it"
    assert used("wakeful/read_file", {"path": 7}) == []
    assert used("wakeful/exec_command", {"cmd": None}) == []
    assert used("wakeful/exec_command_batch", {"items": ["x"]}) == []


def test_the_same_is_said_once_a_turn() -> None:
    arguments = {"path": NOTES.entrypoint_path}
    (first,) = activated([NOTES], "wakeful/read_file", arguments, RESULT, cwd="/w")
    already = {(first.load_reason, first.path)}
    assert activated([NOTES], "wakeful/read_file", arguments, RESULT, cwd="/w", already=already) == []


# --- states ----------------------------------------------------------------------------------------------------------

COMPLETED = next(event for event in ONE_OF_EACH if isinstance(event, TurnCompleted))
FAILED = next(event for event in ONE_OF_EACH if isinstance(event, TurnFailed))


def use(skill: SkillEntry) -> SkillActivated:
    return SkillActivated(
        skill=skill.name,
        scope=skill.scope,
        load_reason="read_skill_md",
        path=skill.entrypoint_path,
        entrypoint_path=skill.entrypoint_path,
    )


def states(*facts: tuple[str, AnyEvent], turn: str | None = None) -> dict[str, str]:
    log = [StoredFact("a", seq, Fact(event, seq, "t", turn_id)) for seq, (turn_id, event) in enumerate(facts, 1)]
    return {skill.name: skill.state for skill in active_skills(log, turn)}


@pytest.mark.spec("HOL-SKILL-15", "HOL-SKILL-16")
def test_what_a_completed_turn_used_stays_with_the_session_and_comes_back_with_it() -> None:
    first: list[tuple[str, AnyEvent]] = [("one", use(NOTES)), ("one", COMPLETED)]
    assert states(*first[:1], turn="one") == {"notes": "turn_active"}
    assert states(*first) == {"notes": "session_active"}, "and no event of its own said so"
    assert states(*first, turn="two") == {"notes": "restored"}
    assert states(*first, ("two", use(OTHER)), turn="two") == {"notes": "restored", "other": "turn_active"}
    assert states(*first, ("two", use(NOTES)), turn="two") == {"notes": "turn_active"}


def test_what_a_turn_used_that_did_not_complete_is_active_no_more() -> None:
    assert states(("one", use(NOTES)), ("one", FAILED)) == {}
    assert states(("one", use(NOTES)), ("one", FAILED), turn="two") == {}
