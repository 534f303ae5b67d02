"""The policy's verdict is the only thing that lets a call through: nothing answers in its place.

A layer that always denies is added to `decisions/policy/verdict` in a copy of the package, and every way to a tool is
tried with that copy. A second place that says yes, for speed or by mistake, would let a call through here.
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from kit.gates.gate_paths import PATHS

ADDED_BEFORE = "    found.extend(call.hooks)\n"
LAYER = '    found.append(Verdict("deny", "mode", "no", layer="new"))\n'
EVERY_WAY = """
import asyncio, json, sys
from pathlib import Path
from kit.gates.gate_paths import PATHS, Way
from wakeful.contracts.events import PermissionEvaluated

async def main():
    for number, way in enumerate(PATHS):
        plain = await Way(way, Path(sys.argv[1], str(number))).go()
        said = {each.fact.event.decision for each in plain.facts if isinstance(each.fact.event, PermissionEvaluated)}
        print(json.dumps([way, plain.reached, sorted(said)]))

asyncio.run(main())
"""


def tried(package: Path, root: Path, folder: Path) -> dict[str, list[object]]:
    """Of every way: how often its tool was reached, and all that was decided on the way to it."""
    folder.mkdir()
    paths = {"PYTHONPATH": os.pathsep.join([str(package), str(root / "tests")]), "PYTHONDONTWRITEBYTECODE": "1"}
    line = [sys.executable, "-P", "-c", EVERY_WAY, str(folder)]
    done = subprocess.run(line, env={**os.environ, **paths}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return {way: rest for way, *rest in map(json.loads, done.stdout.splitlines())}


@pytest.fixture
def with_a_layer(root: Path, tmp_path: Path) -> Path:
    """The package with one layer more, which denies every call."""
    copy = tmp_path / "src"
    shutil.copytree(root / "src/wakeful", copy / "wakeful")
    verdict = copy / "wakeful/decisions/policy/verdict.py"
    text = verdict.read_text()
    assert text.count(ADDED_BEFORE) == 1
    verdict.write_text(text.replace(ADDED_BEFORE, LAYER + ADDED_BEFORE))
    return copy


def test_a_layer_that_is_added_to_the_verdict_denies_every_call(with_a_layer: Path, root: Path, tmp_path: Path) -> None:
    assert tried(with_a_layer, root, tmp_path / "denied") == {way: [0, ["deny"]] for way in PATHS}


def test_inversion_without_the_layer_the_same_calls_reach_their_tools(root: Path, tmp_path: Path) -> None:
    assert tried(root / "src", root, tmp_path / "plain") == {way: [1, ["allow"]] for way in PATHS}
