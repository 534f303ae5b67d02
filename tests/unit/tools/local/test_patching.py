"""Diffs by hand: what is understood, what is refused, and with which words."""

import pytest

from wakeful.contracts.errors import ToolReported
from wakeful.contracts.tools import ToolError
from wakeful.tools.local.patch_plan import Change, plan
from wakeful.tools.local.unified_diff import parse, paths_of

FILE = b"one\ntwo\nthree\nfour\nfive\n"


def planned(patch: str, **files: bytes) -> list[Change]:
    parsed = parse(patch)
    contents: dict[str, bytes | None] = dict.fromkeys(paths_of(parsed))
    contents.update({path: data for path, data in files.items() if path in contents})
    return plan(parsed, contents).changes


def refusal(patch: str, **files: bytes) -> ToolError:
    with pytest.raises(ToolReported) as raised:
        planned(patch, **files)
    error = raised.value.error
    assert error.recovery_hint and error.details and error.details["field"] == "patch"
    return error


def of_file(*hunk: str) -> str:
    return "\n".join(["--- a/f", "+++ b/f", "@@", *hunk, ""])


def test_a_file_is_changed_made_deleted_and_renamed() -> None:
    patch = (
        "diff --git a/f b/f\nindex 1..2 100644\n--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n one\n-two\n+2\n"
        "diff --git a/new b/new\nnew file mode 100755\nindex 0..1\n--- /dev/null\n+++ b/new\n@@ -0,0 +1 @@\n+hello\n"
        "diff --git a/gone b/gone\ndeleted file mode 100644\n--- a/gone\n+++ /dev/null\n@@ -1 +0,0 @@\n-bye\n"
        "diff --git a/x b/y\nsimilarity index 100%\nrename from x\nrename to y\n"
    )
    assert planned(patch, f=FILE, gone=b"bye\n", x=b"same") == [
        Change("f", FILE, b"one\n2\nthree\nfour\nfive\n"),
        Change("new", None, b"hello\n", 0o755),
        Change("gone", b"bye\n", None),
        Change("x", b"same", None),
        Change("y", None, b"same", bits_of="x"),
    ]


def test_a_renamed_file_may_change_as_well() -> None:
    git = "diff --git a/x b/y\nrename from x\nrename to y\n--- a/x\n+++ b/y\n@@ -1 +1 @@\n-a\n+b\n"
    plain = "--- a/x\n+++ b/y\n@@ -1 +1 @@\n-a\n+b\n"
    moved = [Change("x", b"a\n", None), Change("y", None, b"b\n", bits_of="x")]
    assert planned(git, x=b"a\n") == planned(plain, x=b"a\n") == moved
    assert planned("--- x.orig\n+++ x\n@@ -1 +1 @@\n-a\n+b\n", x=b"a\n") == [Change("x", b"a\n", b"b\n")]
    assert refusal(plain, x=b"a\n", y=b"").message == "the patch names x and y, and both exist"
    assert refusal(git, x=b"a\n", y=b"").kind == "already_exists"


def test_a_file_named_twice_is_changed_twice() -> None:
    patch = of_file(" one", "-two", "+2") + of_file(" four", "-five", "+5")
    assert planned(patch, f=FILE) == [Change("f", FILE, b"one\n2\nthree\nfour\n5\n")]


def test_names_may_be_quoted_have_blanks_and_stand_without_prefix() -> None:
    quoted = "gr\\303\\266\\303\\237e x"
    assert [file.new for file in parse(f'--- "a/{quoted}"\n+++ "b/{quoted}"\n@@\n+a\n')] == ["größe x"]
    assert [file.new for file in parse("--- a/b c\t2026-01-01\n+++ b/b c\t2026-01-01\n@@\n+a\n")] == ["b c"]
    assert [file.new for file in parse("--- src/x\n+++ src/x\n@@\n+a\n")] == ["src/x"]
    assert [file.new for file in parse("diff --git a/a b b/a b\nold mode 100644\nnew mode 100755\n")] == ["a b"]


def test_a_mailed_patch_with_words_around_it_is_understood() -> None:
    patch = "From 1234\nSubject: x\n\n---\n f | 2 +-\n\n" + of_file(" one", "-two", "+2") + "-- \n2.39.1\n\n"
    assert planned(patch, f=FILE)[0].after == b"one\n2\nthree\nfour\nfive\n"


def test_right_counts_tell_a_removed_line_from_a_header() -> None:
    patch = "--- a/f\n+++ b/f\n@@ -1,3 +1,3 @@\n a\n--- b\n+++ c\n d\n"
    assert planned(patch, f=b"a\n-- b\nd\n")[0].after == b"a\n++ c\nd\n"


def test_hunks_may_share_their_context_and_stand_in_any_order() -> None:
    patch = of_file(" three", "-four", "+4", " five", "@@", " one", "-two", "+2", " three")
    assert planned(patch, f=FILE)[0].after == b"one\n2\nthree\n4\nfive\n"
    twice = of_file(" one", "-two", "+2", "@@", "-two", "+zwei", " three")
    assert refusal(twice, f=FILE).kind == "overlapping_hunks"


@pytest.mark.parametrize(
    ("hunk", "before", "after"),
    [
        (["-b", "\\ No newline at end of file", "+b"], b"a\nb", b"a\nb\n"),
        (["-b", "+b", "\\ No newline at end of file"], b"a\nb\n", b"a\nb"),
        (["-b", "+c"], b"a\nb", b"a\nc"),
        ([" b", "+c"], b"a\nb", b"a\nb\nc"),
        ([" a", "-b"], b"a\nb", b"a\n"),
        ([" a", "+x"], b"a\nb", b"a\nx\nb"),
        (["-a", "+x"], b"a\r\nb", b"x\r\nb"),
        ([" b", "+c"], b"a\r\nb", b"a\r\nb\r\nc"),
    ],
)
def test_the_end_of_the_file_is_as_the_diff_says_or_as_it_was(hunk: list[str], before: bytes, after: bytes) -> None:
    assert planned(of_file(*hunk), f=before)[0].after == after


def test_a_blank_line_matches_a_context_line_that_lost_all_its_space() -> None:
    assert planned(of_file(" a", "", "-b", "+c"), f=b"a\n    \nb\n")[0].after == b"a\n    \nc\n"


# --- refusals -------------------------------------------------------------------------------------------------------


def test_a_hunk_that_does_not_fit_names_file_hunk_line_and_what_was_expected() -> None:
    error = refusal(of_file(" one", " two", "-3", "+drei"), f=FILE)
    assert error.message == (
        "f: hunk 1 (line 3 of the patch) does not fit. Nearest place, line 1: "
        "line 3 of the hunk expects '3', line 3 of the file is 'three'"
    )
    assert error.details == {
        "field": "patch",
        "path": "f",
        "hunk": 1,
        "patch_line": 3,
        "file_line": 3,
        "expected": "3",
        "found": "three",
    }
    assert "differ only in white space" in refusal(of_file(" one", "-  two", "+2"), f=FILE).message
    assert "the file ends after line 5" in refusal(of_file(" five", "-six", "+6"), f=FILE).message
    assert "not one of its lines is" in refusal(of_file("-x", "+y"), f=FILE).message
    open_end = refusal(of_file(" four", "-five", "\\ No newline at end of file", "+5"), f=FILE)
    assert "says that there is no newline" in open_end.message
    assert refusal(of_file(" one", "-zwei", "+two", " three"), f=FILE).kind == "already_applied"


def test_a_hunk_that_fits_twice_is_refused_whatever_number_it_gives() -> None:
    error = refusal("--- a/f\n+++ b/f\n@@ -3 +3 @@\n-x\n+y\n", f=b"x\n1\nx\n")
    assert error.kind == "ambiguous_context"
    assert error.message == "f: hunk 1 (line 3 of the patch) fits in 2 places, at lines 1, 3"
    many = refusal(of_file("-x", "+y"), f=b"x\n" * 100)
    assert many.message.endswith("fits in more than 8 places, at lines 1, 2, 3, 4, 5, 6, 7, 8")
    assert refusal(of_file("+only added"), f=FILE).kind == "ambiguous_context"


@pytest.mark.parametrize(
    ("patch", "words"),
    [
        ("", "names no file"),
        ("*** Begin Patch\n*** Update File: f\n", "names no file"),
        ("@@ -1 +1 @@\n-a\n+b\n", "line 1 of the patch is a hunk without a file"),
        (of_file(" one", "two"), "line 5 of the patch is a line of a hunk that begins with none of"),
        (of_file(" one"), "changes nothing"),
        ("--- a/f\n+++ b/f\n@@x\n-a\n", "cannot be read"),
        ("--- a/f\n+++ b/f\n-a\n+b\n", "line 3 of the patch is a changed line that belongs to no hunk"),
        ("--- /dev/null\n+++ /dev/null\n@@\n+a\n", "from nowhere to nowhere"),
        ("diff --git a/l b/l\nnew file mode 120000\n--- /dev/null\n+++ b/l\n@@\n+/etc\n", "the mode 120000"),
        ("diff --git a/b b/b\nindex 1..2\nBinary files a/b and b/b differ\n", "a binary change"),
        ("diff --git a/x b/y\ncopy from x\ncopy to y\n", "a copy"),
        ("diff --git a/x b/x\nindex 1..2\n", "a file without any change"),
        ("diff --git a/x b/y\nrename from x\n", "half a rename"),
    ],
)
def test_what_is_no_diff_is_refused_with_its_line(patch: str, words: str) -> None:
    error = refusal(patch, f=FILE)
    assert error.kind == "malformed_patch"
    assert words in error.message


def test_a_file_that_is_not_what_the_diff_takes_it_for_is_refused() -> None:
    assert refusal(of_file(" one", "-two", "+2")).kind == "not_found"
    assert refusal(of_file(" one", "-two", "+2"), f=b"one\n\x00two\n").kind == "binary_file"
    assert refusal("--- /dev/null\n+++ b/f\n@@ -0,0 +1 @@\n+a\n", f=FILE).kind == "already_exists"
    assert "leaves 3 of its lines" in refusal("--- a/f\n+++ /dev/null\n@@\n-one\n-two\n", f=FILE).message
    assert refusal(of_file(" one", "-two", "+two"), f=FILE).kind == "no_change"
    middle = refusal(of_file(" one", "-two", "+2", "\\ No newline at end of file"), f=FILE)
    assert "which is not the last line" in middle.message
