"""Generated diffs: every success byte for byte what it should be, every failure explained, and nothing written then."""

import re
import shutil
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from kit.gates.edit_corpus import Edit, ambiguous, diff_of, edits
from wakeful.contracts.errors import ToolReported
from wakeful.tools.local.patch_plan import plan
from wakeful.tools.local.unified_diff import parse

CORPUS = edits(300)
GIT = shutil.which("git")
PATCH = shutil.which("patch")


def applied(old: bytes, diff: str) -> bytes:
    (change,) = plan(parse(diff), {"file.txt": old}).changes
    assert change.after is not None
    return change.after


def outcome(edit: Edit, old: list[str], diff: str, expected: bytes) -> str:
    """What came of it. A refusal must be one that the file itself explains."""
    is_ambiguous = ambiguous(old, diff)
    try:
        result = applied("".join(old).encode(), diff)
    except ToolReported as report:
        assert report.error.kind == "ambiguous_context", f"seed {edit.seed}: {report.error}\n{diff}"
        assert is_ambiguous, f"seed {edit.seed} is not ambiguous: {report.error}\n{diff}"
        assert "hunk" in report.error.message and report.error.recovery_hint
        return "refused"
    assert not is_ambiguous, f"seed {edit.seed}: a place was guessed\n{diff}"
    assert result == expected, f"seed {edit.seed}\n{diff}"
    return "applied"


def test_a_diff_makes_exactly_the_file_it_was_made_from() -> None:
    outcomes = Counter(outcome(edit, edit.before, edit.diff(), edit.new) for edit in CORPUS)
    assert outcomes["applied"] >= 240 and outcomes["refused"] >= 1, outcomes


def test_a_diff_with_little_context_is_right_or_refused() -> None:
    outcomes = Counter(outcome(edit, edit.before, edit.diff(1), edit.new) for edit in CORPUS)
    assert outcomes["applied"] >= 150 and outcomes["refused"] >= 20, outcomes


def test_context_that_moved_is_found() -> None:
    counted: Counter[str] = Counter()
    for edit in CORPUS:
        moved = [f"moved {edit.seed} {number}\n" for number in range(edit.seed % 50 + 1)]
        expected = "".join([*moved, *edit.after]).encode()
        counted[outcome(edit, [*moved, *edit.before], edit.diff(), expected)] += 1
    assert counted["applied"] >= 240, counted


@pytest.mark.parametrize("header", ["@@ -900,1 +7,77 @@", "@@", "@@ ... @@", "@@ -1 +1 @@ def same():"])
def test_numbers_that_are_wrong_change_nothing(header: str) -> None:
    counted: Counter[str] = Counter()
    for edit in CORPUS:
        diff = re.sub(r"^@@.*$", header, edit.diff(), flags=re.MULTILINE)
        if any(line.startswith(("--- ", "+++ ")) for line in diff.split("\n")[2:]):
            continue  # only right numbers can tell such a line from a header
        counted[outcome(edit, edit.before, diff, edit.new)] += 1
    assert counted["applied"] >= 140, counted


def test_a_diff_without_carriage_returns_keeps_those_of_the_file() -> None:
    counted: Counter[str] = Counter()
    for edit in CORPUS:
        if edit.old.count(b"\n") != edit.old.count(b"\r\n") or b"\r\n" not in edit.old:
            continue
        before = [line.replace("\r\n", "\n") for line in edit.before]
        after = [line.replace("\r\n", "\n") for line in edit.after]
        expected = "".join(line.replace("\n", "\r\n") for line in after).encode()
        counted[outcome(edit, edit.before, diff_of(before, after), expected)] += 1
    assert counted["applied"] >= 40, counted


def test_a_diff_that_travelled_with_carriage_returns_does_not_bring_them_along() -> None:
    counted: Counter[str] = Counter()
    for edit in CORPUS:
        if b"\r" in edit.old + edit.new:
            continue
        counted[outcome(edit, edit.before, edit.diff().replace("\n", "\r\n"), edit.new)] += 1
    assert counted["applied"] >= 80, counted


def test_empty_context_lines_may_have_lost_their_space() -> None:
    counted: Counter[str] = Counter()
    for edit in CORPUS:
        diff = re.sub(r"^ (\r?)$", r"\1", edit.diff(), flags=re.MULTILINE)
        if diff != edit.diff():
            try:
                result = applied(edit.old, diff)
            except ToolReported as report:
                assert report.error.kind == "ambiguous_context", report.error
                counted["refused"] += 1
            else:
                assert result == edit.new, f"seed {edit.seed}\n{diff}"
                counted["applied"] += 1
    assert counted["applied"] >= 80, counted


def test_a_diff_that_does_not_fit_says_where_and_what_was_expected() -> None:
    told = 0
    for edit in CORPUS:
        lines = edit.diff().split("\n")
        spots = [at for at, line in enumerate(lines) if at > 2 and line[:1] in (" ", "-") and line[1:].strip()]
        if not spots:
            continue
        at = spots[edit.seed % len(spots)]
        lines[at] = f"{lines[at][0]}nobody wrote this"
        with pytest.raises(ToolReported) as raised:
            applied(edit.old, "\n".join(lines))
        error = raised.value.error
        assert error.kind in ("context_not_found", "already_applied"), error
        assert error.details and error.details["field"] == "patch" and error.details["path"] == "file.txt"
        assert "hunk" in error.message and "of the patch" in error.message
        told += "nobody wrote this" in error.message
    assert told >= 200


# --- against other programs -----------------------------------------------------------------------------------------


@pytest.mark.skipif(GIT is None, reason="needs git")
def test_git_makes_the_same_of_every_diff(tmp_path: Path) -> None:
    """One run of git for the whole corpus: each edit is a file of its own."""
    assert GIT is not None
    whole = []
    for edit in CORPUS:
        (tmp_path / f"f{edit.seed}").write_bytes(edit.old)
        whole.append(diff_of(edit.before, edit.after, path=f"f{edit.seed}"))
    command = [GIT, "-c", "core.autocrlf=false", "apply", "--whitespace=nowarn", "-"]
    done = subprocess.run(command, input="".join(whole).encode(), cwd=tmp_path, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    files = {f"f{edit.seed}": edit for edit in CORPUS}
    compared = 0
    for name, edit in files.items():
        try:
            ours = applied(edit.old, edit.diff())
        except ToolReported:
            continue
        assert (tmp_path / name).read_bytes() == ours, name
        compared += 1
    assert compared >= 240


@pytest.mark.skipif(PATCH is None, reason="needs patch")
def test_patch_makes_the_same_of_diffs_whose_context_moved(tmp_path: Path) -> None:
    assert PATCH is not None
    whole, ours = [], {}
    for edit in CORPUS[:150]:
        moved = [f"moved {number}\n" for number in range(3)]
        name = f"f{edit.seed}"
        try:
            ours[name] = applied("".join([*moved, *edit.before]).encode(), edit.diff())
        except ToolReported:
            continue
        (tmp_path / name).write_bytes("".join([*moved, *edit.before]).encode())
        whole.append(diff_of(edit.before, edit.after, path=name))
    command = [PATCH, "--binary", "-p1", "--fuzz=0", "--no-backup-if-mismatch"]
    done = subprocess.run(command, input="".join(whole).encode(), cwd=tmp_path, capture_output=True, check=False)
    assert done.returncode in (0, 1), done.stderr
    # A hunk at the very beginning or end of the old file is one that `patch` does not move.
    reports = re.findall(r"^patching file (\S+)\n((?:(?!patching).*\n)*)", done.stdout.decode(), flags=re.MULTILINE)
    theirs = [name for name, words in reports if "FAILED" not in words]
    assert {name: (tmp_path / name).read_bytes() for name in theirs} == {name: ours[name] for name in theirs}
    assert len(theirs) >= 60
