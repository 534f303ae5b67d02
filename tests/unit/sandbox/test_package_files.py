"""A process keeps to the wakeful that it was started from: a copy of the package, replaced while a process runs."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import wakeful
from wakeful.sandbox.package_files import PackageFiles

PACKAGE = Path(wakeful.__file__).parent

LATE = """
import sys
from pathlib import Path
site = Path(sys.argv[1])
sys.path.insert(0, str(site))
from wakeful.contracts.errors import ModuleRefused
from wakeful.sandbox.package_files import PackageFiles, hold_package
files = hold_package() if sys.argv[2] == "held" else PackageFiles()
import wakeful.views.latency
print(files.changed(), files.words() == "")
(site / "wakeful/views/tree.py").write_text("SAID = 'of the other version'")
(site / "wakeful/views/workflow_updates.py").unlink()
(site / "wakeful/views/brand_new.py").write_text("SAID = 'of the other version'")
files._looked_at = float("-inf")
print(files.changed(), "other files" in files.words())
for name in ("tree", "workflow_updates", "brand_new", "execution_snapshot", "nothing_of_that_name"):
    try:
        module = __import__(f"wakeful.views.{name}", fromlist=["_"])
        print(name, getattr(module, "SAID", "of this version"))
    except ModuleRefused as refused:
        print(name, refused.message.partition(": ")[2], "|", refused.hint)
    except ModuleNotFoundError:
        print(name, "is not there")
"""

COMMANDS = """
import asyncio, sys
from pathlib import Path
site, work, home = map(Path, sys.argv[1:])
sys.path.insert(0, str(site))
from wakeful.sandbox.package_files import held_package, hold_package
hold_package()
from wakeful import Agent, Runtime
from wakeful.testing import scripted

def reply(request):
    call = {"name": "exec_command", "arguments": {"cmd": "echo hello > said"}}
    return str(request.history[-1]) if request.answered else {"calls": [call]}

async def main():
    async with Runtime(home, agents=[Agent("ops", scripted(reply), workspace=work)]) as rt:
        await rt.answer(await rt.send("ops", "go", thread="one"))
        print((work / "said").exists())
        (work / "said").unlink()
        (site / "wakeful/_version.py").write_text('__version__ = "99.0.0"')
        held_package()._looked_at = float("-inf")
        result = await rt.answer(await rt.send("ops", "go", thread="two"))
        print((work / "said").exists(), result.status, "replaced on the disk by version 99.0.0" in result.output)

asyncio.run(main())
"""


@pytest.fixture
def site(tmp_path: Path) -> Path:
    shutil.copytree(PACKAGE, tmp_path / "site" / "wakeful", ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path / "site"


def run(program: str, *words: object) -> list[str]:
    line = [sys.executable, "-P", "-c", program, *map(str, words)]
    environ = {
        "PATH": "/usr/bin:/bin",
        "HOME": str(words[0]),
        "WAKEFUL_HOME": f"{words[0]}/own",
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    done = subprocess.run(line, env=environ, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_a_part_that_was_replaced_is_refused_by_name_and_an_unchanged_one_is_loaded(site: Path) -> None:
    refused = "wakeful was replaced on the disk since this process started | wakeful daemon restart"
    assert run(LATE, site, "held") == [
        "False True",
        "True True",
        f"tree {refused}",
        f"workflow_updates {refused}",
        f"brand_new {refused}",
        "execution_snapshot of this version",
        "nothing_of_that_name is not there",
    ]


def test_inversion_a_process_that_does_not_hold_its_package_loads_parts_of_the_other_one(site: Path) -> None:
    assert run(LATE, site, "loose")[2:5] == [
        "tree of the other version",
        "workflow_updates is not there",
        "brand_new of the other version",
    ]


def test_no_command_is_begun_with_a_supervisor_of_another_version(site: Path, tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    assert run(COMMANDS, site, tmp_path / "work", tmp_path / "home") == ["True", "False completed True"]


def test_a_look_at_all_files_is_made_at_most_once_a_second(tmp_path: Path) -> None:
    (tmp_path / "part.py").write_text("a = 1")
    files = PackageFiles(str(tmp_path))
    assert not files.changed()
    (tmp_path / "part.py").write_text("a = 22")
    assert not files.changed() and files.installed() == ""
    files._looked_at = float("-inf")
    assert files.changed()
    (tmp_path / "part.py").unlink()
    assert files.changed(), "once it was another one, it stays so"
