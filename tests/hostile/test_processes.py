"""A hostile command and processes: bombs are bounded, nothing is left behind, nobody is reached."""

import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from kit.gates.confined_commands import PYTHON, alive, level, marker, said, sandbox, sh, until
from wakeful.sandbox.settings import MachineLimits

LEVELS = ["bubblewrap", "landlock", "not_enforced"]
CONFINED = LEVELS[:2]

# Each of these would stop by itself: with a limit that does not hold, the machine is not harmed.
BOMBS = {
    "many": "i=0; while [ $i -lt 300 ]; do i=$((i+1)); sleep {} & done; wait",
    "doubling": "b() {{ if [ $1 -gt 8 ]; then sleep {}; else b $(($1+1)) & b $(($1+1)) & wait; fi; }}; b 1",
    "orphans": "i=0; while [ $i -lt 300 ]; do i=$((i+1)); (setsid sleep {} &) ; done; sleep 60",
}


@pytest.mark.parametrize("bomb", BOMBS)
@pytest.mark.parametrize("mode", LEVELS)
async def test_a_fork_bomb_is_ended_at_the_limit(tmp_path: Path, mode: str, bomb: str) -> None:
    name = marker()
    ended = await sh(sandbox(tmp_path, mode, limits=MachineLimits(processes=64)), BOMBS[bomb].format(name))
    if os.getuid() == 0 or mode != "bubblewrap":
        assert ended.stopped == "processes"
    else:  # the kernel itself refuses the 65th to anybody but root
        assert ended.stopped == "processes" or "fork" in said(ended)
    assert alive(name) == []


@pytest.mark.parametrize("mode", LEVELS)
async def test_below_the_limit_nobody_is_ended(tmp_path: Path, mode: str) -> None:
    many = "i=0; while [ $i -lt 100 ]; do i=$((i+1)); sleep 0.3 & done; wait; echo all"
    ended = await sh(sandbox(tmp_path, mode, limits=MachineLimits(processes=400)), many)
    assert (ended.stopped, said(ended)) == (None, "all\n")


@pytest.mark.parametrize("mode", LEVELS)
async def test_a_command_that_takes_too_much_memory_is_ended(tmp_path: Path, mode: str) -> None:
    take = f"{PYTHON} -c 'x = bytearray(96 * 1024 * 1024); import time; time.sleep(60)'"
    share = MachineLimits(memory_bytes=64 * 1024 * 1024)
    ended = await sh(sandbox(tmp_path, mode, limits=share), take)
    assert ended.stopped == "memory" or "MemoryError" in said(ended)
    ended = await sh(sandbox(tmp_path, mode), take.replace("time.sleep(60)", "print(len(x))"))
    assert (ended.stopped, ended.exit_status) == (None, 0)


@pytest.mark.parametrize("mode", LEVELS)
async def test_files_have_a_largest_size(tmp_path: Path, mode: str) -> None:
    write = "head -c 3000000 /dev/zero > big"
    ended = await sh(sandbox(tmp_path, mode, limits=MachineLimits(file_bytes=1024 * 1024)), write)
    assert ended.exit_status != 0
    assert (tmp_path / "big").stat().st_size == 1024 * 1024
    assert (await sh(sandbox(tmp_path, mode), write)).exit_status == 0


@pytest.mark.parametrize("mode", LEVELS)
async def test_endless_output_is_read_and_kept_to_a_bound(tmp_path: Path, mode: str) -> None:
    shown: list[int] = []
    options: dict[str, Any] = {"kept_bytes": 100_000, "show": lambda _, text: shown.append(len(text))}
    ended = await sh(sandbox(tmp_path, mode), "cat /dev/zero", timeout=1, **options)
    assert ended.stopped == "timeout"
    assert ended.stdout.total_bytes - ended.stdout.dropped_bytes == len(ended.stdout.data) <= 100_000
    assert sum(shown) < 1_100_000
    shown.clear()
    ended = await sh(sandbox(tmp_path, mode), "head -c 40000000 /dev/zero", **options)
    assert ended.stopped is None
    assert (ended.stdout.kept_bytes, len(ended.stdout.data)) == (100_000, 100_000)
    assert ended.stdout.total_bytes == 40_000_000
    assert ended.stdout.dropped_bytes == 39_900_000
    assert sum(shown) < 1_100_000


@pytest.mark.parametrize("mode", LEVELS)
async def test_nothing_outlives_its_command(tmp_path: Path, mode: str) -> None:
    name = marker()
    leave = f"sleep {name} & (setsid nohup sleep {name} >/dev/null 2>&1 &) ; (trap '' TERM HUP; sleep {name}) & exit 7"
    ended = await sh(sandbox(tmp_path, mode), leave)
    assert ended.exit_status == 7
    assert alive(name) == []


@pytest.mark.parametrize("mode", LEVELS)
async def test_endless_sleep_ends_with_its_time_and_takes_all_along(tmp_path: Path, mode: str) -> None:
    name = marker()
    ended = await sh(sandbox(tmp_path, mode), f"trap '' TERM; setsid sleep {name} & sleep {name}", timeout=1)
    assert (ended.stopped, ended.exit_status) == ("timeout", None)
    assert alive(name) == []


async def test_without_anybody_around_it_a_command_would_be_left_behind() -> None:
    name = marker()
    subprocess.run(["sh", "-c", f"setsid sleep {name} >/dev/null 2>&1 &"], check=True)
    assert await until(lambda: alive(name))
    for pid in alive(name):
        os.kill(pid, signal.SIGKILL)


RUNTIME = """
import asyncio, sys
from wakeful.sandbox import level_probe
from wakeful.sandbox.confinement import Sandbox
mode, root, name = sys.argv[1:]
levels = {"bubblewrap": level_probe.bubblewrap, "landlock": level_probe.landlocked, "not_enforced": level_probe.bare}
where = Sandbox(root, level=levels[mode]())
script = f"setsid sleep {name} & (trap '' HUP TERM; sleep {name}) & sleep {name}"
asyncio.run(where.run(["sh", "-c", script], root, timeout=300))
"""


@pytest.mark.parametrize("mode", LEVELS)
async def test_killing_the_runtime_leaves_nothing_alive(tmp_path: Path, mode: str) -> None:
    from kit.gates.confined_commands import level

    level(mode)
    name = marker()
    runtime = subprocess.Popen([sys.executable, "-c", RUNTIME, mode, str(tmp_path), name])
    try:
        assert await until(lambda: len(alive(name)) == 4), "three sleepers and the runtime, which names them"
    finally:
        runtime.kill()
        runtime.wait()
    assert await until(lambda: not alive(name))


@pytest.mark.parametrize("mode", CONFINED)
async def test_processes_outside_are_neither_killed_nor_traced_nor_read(tmp_path: Path, mode: str) -> None:
    trace = "import ctypes; l = ctypes.CDLL(None, use_errno=True); print('traced', l.ptrace(16, {pid}, 0, 0))"
    environ = {"PATH": os.environ["PATH"], "SECRET": "canary-91bd"}
    with subprocess.Popen(["sleep", "300"], env=environ) as victim:
        try:
            attack = f"kill -CONT {victim.pid} && echo killed; cat /proc/{victim.pid}/environ"
            attack += f'; {PYTHON} -c "{trace.format(pid=victim.pid)}"'
            ended = await sh(sandbox(tmp_path, mode), attack)
            assert "killed" not in said(ended)
            assert "canary-91bd" not in said(ended)
            assert "traced -1" in said(ended)
            ended = await sh(sandbox(tmp_path, "not_enforced"), attack)
            assert "killed" in said(ended)
            assert "canary-91bd" in said(ended)
        finally:
            victim.kill()


@pytest.mark.parametrize("mode", CONFINED)
async def test_the_kernel_is_not_for_commands(tmp_path: Path, mode: str) -> None:
    attempts = [
        "mount -t tmpfs none /mnt",
        "unshare -Ur true",
        "chroot / true",
        ": >> /proc/sys/kernel/core_pattern",
        ": >> /proc/sysrq-trigger",
        f"{PYTHON} -c 'import ctypes; raise SystemExit(ctypes.CDLL(None).syscall(250, 0, -3, 0) == -1)'",
        f"{PYTHON} -c 'import ctypes; raise SystemExit(ctypes.CDLL(None).syscall(425, 1, 0) == -1)'",
    ]
    for attempt in attempts:
        assert (await sh(sandbox(tmp_path, mode), attempt)).exit_status != 0, attempt
    if os.getuid() == 0:
        for attempt in ("chroot / true", ": >> /proc/sys/kernel/core_pattern"):
            assert (await sh(sandbox(tmp_path, "not_enforced"), attempt)).exit_status == 0


async def test_every_mount_is_read_only_but_the_workspace_and_what_is_private(tmp_path: Path) -> None:
    ended = await sh(sandbox(tmp_path, "bubblewrap"), "cat /proc/self/mountinfo")
    mounts = {fields[4]: fields[5].split(",") for line in said(ended).splitlines() if (fields := line.split())}
    writable = {path for path, options in mounts.items() if "rw" in options and not path.startswith("/dev")}
    private = str(Path(tmp_path.anchor, "tmp"))
    assert writable == {private, str(tmp_path)}
    assert len(mounts) > 5


@pytest.mark.parametrize("mode", LEVELS)
async def test_no_key_and_no_setting_of_ours_is_in_the_environment(tmp_path: Path, mode: str) -> None:
    secrets = {"OPENAI_API_KEY": "canary-1", "WAKEFUL_TOKEN": "canary-2", "DATABASE_PASSWORD": "canary-3"}
    environ = {"PATH": os.environ["PATH"], "MY_BUILD": "chosen", "LC_TIME": "C", **secrets}
    named = ("MY_BUILD", "OPENAI_API_KEY", "WAKEFUL_TOKEN")
    look = "env; cat /proc/self/environ /proc/$PPID/environ"
    ended = await sh(sandbox(tmp_path, mode, environ, environment=named), look)
    assert "canary" not in said(ended)
    assert "MY_BUILD=chosen" in said(ended)
    assert "LC_TIME=C" in said(ended)
    ended = await sh(sandbox(tmp_path, mode, environ, environment=("DATABASE_PASSWORD",)), look)
    assert "canary-3" in said(ended), "what the owner names is passed on: it is the list that keeps it out"


IGNORING = """
import asyncio, signal, sys
sys.path.insert(0, sys.argv[1])
from pathlib import Path
from kit.gates.confined_commands import sandbox, sh
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
for tty in (False, True):
    ended = asyncio.run(sh(sandbox(Path(sys.argv[2]), sys.argv[3]), "(exit 3); echo $?; exit 7", tty=tty))
    print(ended.exit_status, ended.stdout.data.decode().strip())
"""


@pytest.mark.parametrize("mode", LEVELS)
def test_a_program_that_ignores_the_ends_of_its_children_learns_how_commands_ended(tmp_path: Path, mode: str) -> None:
    """The signal's disposition is inherited: without a reset, 7 became 0, or the command never ended."""
    level(mode)
    line = [sys.executable, "-c", IGNORING, str(Path(__file__).parents[1]), str(tmp_path), mode]
    done = subprocess.run(line, capture_output=True, text=True, check=False)
    assert (done.stdout.split(), done.returncode) == (["7", "3", "7", "3"], 0), done.stderr


async def test_a_sandbox_that_is_ended_while_it_is_set_up_leaves_no_process(tmp_path: Path) -> None:
    """Then it is two processes, and the second waits for the first."""
    where = sandbox(tmp_path, "bubblewrap")
    for attempt in range(60):
        with suppress(Exception):
            await sh(where, "true", timeout=0.0005 * (1 + attempt % 30))
    assert await until(lambda: not alive(str(tmp_path)), seconds=10), alive(str(tmp_path))
