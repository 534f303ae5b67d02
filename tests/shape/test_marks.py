"""The check on spec marks itself: a crowded or misspelt mark stops the run before any test of it."""

import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.parametrize(
    ("mark", "complaint"),
    [
        ('"AB-CD-01", "AB-CD-02", "AB-CD-03", "AB-CD-04", "AB-CD-05"', "5 rules in one mark"),
        ("", "0 rules in one mark"),
        ('"AB-CD-1"', "'AB-CD-1' is no rule"),
        ('"AB-CD-01", "AB-CD-02", "AB-CD-03", "AB-CD-04"', None),
    ],
)
def test_a_mark_holds_one_to_four_rules_written_as_rules_are(
    root: Path, tmp_path: Path, mark: str, complaint: str | None
) -> None:
    (tmp_path / "conftest.py").write_text((root / "tests/conftest.py").read_text())
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers =\n    spec: rules\n")
    (tmp_path / "test_it.py").write_text(f"import pytest\n@pytest.mark.spec({mark})\ndef test_it(): pass\n")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    if complaint is None:
        assert done.returncode == 0, done.stdout
    else:
        assert done.returncode == 4
        assert complaint in done.stderr
