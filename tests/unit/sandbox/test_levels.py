"""What a machine can hold a command with, and what is said where it cannot."""

import asyncio
import os
from pathlib import Path

import pytest

from kit.gates.confined_commands import level, place_outside, said, sandbox, sh
from wakeful.contracts.errors import InvalidConfig
from wakeful.sandbox import landlock, level_probe, seccomp
from wakeful.sandbox.confinement import Sandbox
from wakeful.sandbox.environment import scrubbed
from wakeful.sandbox.settings import MachineLimits, SandboxSettings


def test_the_best_level_is_taken_and_one_that_is_less_says_why() -> None:
    found = level_probe.probe()
    if found.mode == "bubblewrap":
        assert (found.reason, found.version >= (0, 5)) == ("", True)
    else:
        assert found.reason


def test_a_machine_without_bubblewrap_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert level_probe.bubblewrap() == level_probe.bare("bubblewrap (the program bwrap) is not installed")


def test_a_bubblewrap_that_cannot_make_namespaces_is_no_level(monkeypatch: pytest.MonkeyPatch) -> None:
    with place_outside() as folder:
        (folder / "bwrap").write_text(
            "#!/bin/sh\n"
            '[ "$1" = --version ] && { echo bubblewrap 0.8.0; exit 0; }\n'
            'echo "bwrap: No permissions" >&2; exit 1\n'
        )
        (folder / "bwrap").chmod(0o755)
        monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
        found = level_probe.bubblewrap()
    assert found.mode == "not_enforced"
    assert "bwrap: No permissions" in found.reason


def test_older_landlock_says_what_it_does_not_hold() -> None:
    assert landlock.missing(7) == []
    assert landlock.missing(1) == [
        "moving files between folders is refused altogether",
        "files outside can be truncated",
        "device ioctls are open",
        "signals and abstract sockets reach outside",
    ]
    assert landlock.handled(1) < landlock.handled(2) < landlock.handled(3) < landlock.handled(5)


def test_a_filter_is_whole_instructions_with_and_without_sockets() -> None:
    if not seccomp.supported():
        pytest.skip(f"no filter is known for {os.uname().machine}")
    with_sockets, without = seccomp.program(sockets=True), seccomp.program(sockets=False)
    assert len(with_sockets) % 8 == len(without) % 8 == 0
    assert len(with_sockets) > len(without)


async def test_a_workspace_below_a_hidden_folder_can_be_worked_in(tmp_path: Path) -> None:
    home = tmp_path / "state"
    (home / "work").mkdir(parents=True)
    (home / "token").write_text("canary")
    environ = {"PATH": os.environ["PATH"], "WAKEFUL_HOME": str(home)}
    where = Sandbox(home / "work", level=level("bubblewrap"), environ=environ)
    ended = await sh(where, "echo x > made; cat ../token; ls ..")
    assert (home / "work/made").read_text() == "x\n"
    assert "canary" not in said(ended)
    assert "token\n" not in ended.stdout.data.decode()


async def test_a_folder_the_owner_adds_is_writable_and_its_repository_is_held(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    (tmp_path / "cache/.git/hooks").mkdir(parents=True)
    (tmp_path / "cache/.git/config").write_text("")
    where = sandbox(tmp_path / "work", "bubblewrap", write_roots=(str(tmp_path / "cache"),))
    ended = await sh(where, f"echo x > {tmp_path}/cache/file && touch {tmp_path}/cache/.git/hooks/pre-commit")
    assert ended.exit_status != 0
    assert (tmp_path / "cache/file").exists()
    assert not (tmp_path / "cache/.git/hooks/pre-commit").exists()


async def test_commands_at_the_same_time_do_not_disturb_each_other(tmp_path: Path) -> None:
    where = sandbox(tmp_path, "bubblewrap")
    ended = await asyncio.gather(*(sh(where, f"echo {n}; exit {n}") for n in range(8)))
    assert [(one.exit_status, one.stdout.data) for one in ended] == [(n, f"{n}\n".encode()) for n in range(8)]


@pytest.mark.parametrize("mode", ["bubblewrap", "landlock", "not_enforced"])
async def test_nothing_of_the_runtime_stays_open_after_a_command(tmp_path: Path, mode: str) -> None:
    where = sandbox(tmp_path, mode)
    await sh(where, "true")
    before = len(list(Path("/dev/fd").iterdir()))
    for tty in (False, True):
        await sh(where, "ls /dev/fd; exit 1", tty=tty)
    await asyncio.sleep(0)
    assert len(list(Path("/dev/fd").iterdir())) == before


def test_home_and_temporary_folder_are_the_commands_own() -> None:
    environ = {"PATH": "/bin", "HOME": "/home", "LC_ALL": "C", "FOO": "1", "WAKEFUL_X": "2", "KEY": "3"}
    assert scrubbed(environ, home="/h", temporary="/t", named=["FOO", "WAKEFUL_X", "KEY"], keys=["KEY"]) == {
        "PATH": "/bin",
        "LC_ALL": "C",
        "FOO": "1",
        "LANG": "C.UTF-8",
        "HOME": "/h",
        "TMPDIR": "/t",
        "GIT_TERMINAL_PROMPT": "0",
    }


def test_settings_that_do_not_hold_together_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidConfig, match="confinement='maybe'"):
        SandboxSettings(confinement="maybe")  # type: ignore[arg-type]
    with pytest.raises(InvalidConfig, match="network='some'"):
        SandboxSettings(network="some")  # type: ignore[arg-type]
    with pytest.raises(InvalidConfig, match="hidden has 'notes'"):
        SandboxSettings(hidden=("notes",))
    with pytest.raises(InvalidConfig, match="processes=0"):
        MachineLimits(processes=0)
    with pytest.raises(InvalidConfig, match="is not a folder"):
        Sandbox(tmp_path / "missing")
