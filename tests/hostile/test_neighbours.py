"""A hostile command and its neighbours: processes of the same user, IPC objects, the setuid bit, memory that no process
holds.

Every attempt is also made where nothing confines it, and succeeds there: the attempt is real. What it is made on is a
process of the test's own.
"""

import asyncio
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from kit.gates.confined_commands import PYTHON, place_outside, said, sandbox, sh, until
from wakeful.sandbox.settings import MachineLimits

CONFINED = ["bubblewrap", "landlock"]
MIB = 1024 * 1024

ON_PROCESSES = """
import ctypes, os, struct, sys
pid = int(sys.argv[1])
libc = ctypes.CDLL(None, use_errno=True)
pair = ctypes.create_string_buffer(struct.pack("QQ", 64, 64))
mask = ctypes.create_string_buffer(struct.pack("Q", 1))
none = ctypes.create_string_buffer(struct.pack("i", 0))
attributes = ctypes.create_string_buffer(struct.pack("IIQiIQQQ", 48, 0, 0, 5, 0, 0, 0, 0))
attempts = {
    "prlimit": lambda: libc.prlimit(pid, 7, pair, None),
    "affinity": lambda: libc.sched_setaffinity(pid, 8, mask),
    "scheduler": lambda: libc.sched_setscheduler(pid, 3, none),
    "parameters": lambda: libc.sched_setparam(pid, none),
    "attributes": lambda: libc.syscall(314 if os.uname().machine == "x86_64" else 274, pid, attributes, 0),
    "priority": lambda: libc.setpriority(0, pid, 5),
    "priority of a group": lambda: libc.setpriority(1, os.getpgid(pid) if pid else 0, 5),
    "input and output": lambda: libc.syscall(251 if os.uname().machine == "x86_64" else 30, 1, pid, (2 << 13) | 6),
}
for name, attempt in attempts.items():
    print(name, "changed" if attempt() == 0 else "refused", sep=": ")
"""
EVERY_ATTEMPT = 8


@pytest.fixture
def victim() -> Iterator[int]:
    with subprocess.Popen(["sleep", "300"], start_new_session=True) as process:
        try:
            yield process.pid
        finally:
            process.kill()


async def test_limits_and_priorities_of_other_processes_stay_as_they_are(tmp_path: Path, victim: int) -> None:
    (tmp_path / "attempt.py").write_text(ON_PROCESSES)
    attack = f"{PYTHON} attempt.py {victim}"
    ended = await sh(sandbox(tmp_path, "landlock"), attack)
    assert said(ended).count("refused") == EVERY_ATTEMPT, said(ended)
    assert Path(f"/proc/{victim}/limits").read_text().count(" 64 ") == 0
    assert os.getpriority(os.PRIO_PROCESS, victim) == os.getpriority(os.PRIO_PROCESS, 0)
    ended = await sh(sandbox(tmp_path, "not_enforced"), attack)
    assert said(ended).count("changed") == EVERY_ATTEMPT, "unconfined, each of them changes something"
    assert os.getpriority(os.PRIO_PROCESS, victim) == 5


async def test_a_command_sets_its_own_limits_and_priority(tmp_path: Path) -> None:
    (tmp_path / "attempt.py").write_text(ON_PROCESSES)
    ended = await sh(sandbox(tmp_path, "landlock"), f"ulimit -n 128; nice -n 3 {PYTHON} attempt.py 0")
    refused = [line for line in said(ended).splitlines() if "refused" in line]
    assert refused == ["priority of a group: refused"]


SETUID = {
    "chmod": "touch tool && chmod u+s tool",
    "chmod by number": "touch tool && chmod 4755 tool",
    "install": "install -m 4755 /bin/true tool",
    "handle": f"touch tool && {PYTHON} -c 'import os; os.fchmod(os.open(\"tool\", os.O_RDWR), 0o4755)'",
    "created so": f"{PYTHON} -c 'import os; os.umask(0); os.open(\"tool\", os.O_CREAT | os.O_RDWR, 0o4755)'",
}


@pytest.mark.parametrize("way", SETUID)
@pytest.mark.parametrize("mode", CONFINED)
async def test_no_file_that_runs_as_its_owner_is_left_in_the_workspace(tmp_path: Path, mode: str, way: str) -> None:
    inside, free = tmp_path / "inside", tmp_path / "free"
    inside.mkdir()
    free.mkdir()
    await sh(sandbox(inside, mode), SETUID[way])
    assert not (inside / "tool").exists() or not (inside / "tool").stat().st_mode & 0o4000
    assert (await sh(sandbox(inside, mode), "touch other && chmod 755 other && chmod g-w other")).exit_status == 0
    await sh(sandbox(free, "not_enforced"), SETUID[way])
    assert (free / "tool").stat().st_mode & 0o4000, "unconfined, it is set"


SHARED = """
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
segment = libc.shmget(0, {size}, 0o1600)
print("segment", "made" if segment >= 0 else "refused")
if segment >= 0:
    libc.shmctl(segment, 0, None)
"""


async def test_system_v_objects_are_the_commands_own_or_refused(tmp_path: Path) -> None:
    (tmp_path / "small.py").write_text(SHARED.format(size=4096))
    (tmp_path / "large.py").write_text(SHARED.format(size=MIB))
    shared = f"{PYTHON} small.py; {PYTHON} large.py"
    assert said(await sh(sandbox(tmp_path, "landlock"), shared)) == "segment refused\nsegment refused\n"
    small_only = said(await sh(sandbox(tmp_path, "bubblewrap"), shared))
    assert small_only == "segment made\nsegment refused\n", "its own, and no memory that nobody counts"
    assert said(await sh(sandbox(tmp_path, "not_enforced"), shared)) == "segment made\nsegment made\n"


# Each of them ends by itself: where a limit does not hold, the machine is not harmed.
TAKES = {
    "memfd": (
        "import os, time\nf = os.memfd_create('x')\nfor _ in range(96): os.write(f, bytes(1 << 20))\ntime.sleep(60)"
    ),
    "memfd that is mapped": (
        "import mmap, os, time\nf = os.memfd_create('x')\nos.ftruncate(f, 96 << 20)\nm = mmap.mmap(f, 96 << 20)\n"
        "for at in range(0, 96 << 20, 4096): m[at] = 1\ntime.sleep(60)"
    ),
    "shared memory": (
        "import time\nf = open('/dev/shm/x', 'wb')\n"
        "for _ in range(96): f.write(bytes(1 << 20))\nf.flush()\ntime.sleep(60)"
    ),
}


@pytest.mark.parametrize(
    ("mode", "way"),
    [("bubblewrap", way) for way in TAKES] + [("landlock", "memfd"), ("landlock", "memfd that is mapped")],
)
async def test_memory_that_no_process_has_for_itself_counts(tmp_path: Path, mode: str, way: str) -> None:
    (tmp_path / "take.py").write_text(TAKES[way])
    few = MachineLimits(memory_bytes=64 * MIB)
    assert (await sh(sandbox(tmp_path, mode, limits=few), f"{PYTHON} take.py")).stopped == "memory"
    (tmp_path / "take.py").write_text(TAKES[way].replace("time.sleep(60)", "time.sleep(0.5)"))
    enough = MachineLimits(memory_bytes=190 * MIB)  # counted twice it would be 192, and the interpreter
    ended = await sh(sandbox(tmp_path, mode, limits=enough), f"{PYTHON} take.py")
    assert (ended.stopped, ended.exit_status) == (None, 0), "counted once, also where it is mapped"


async def test_folders_in_memory_have_a_largest_size(tmp_path: Path) -> None:
    small = MachineLimits(temporary_bytes=4 * MIB)
    for folder in ("/dev/shm", "$TMPDIR"):
        ended = await sh(sandbox(tmp_path, "bubblewrap", limits=small), f"head -c 6000000 /dev/zero > {folder}/x")
        assert ended.exit_status != 0
        assert "No space left" in said(ended)
    assert (await sh(sandbox(tmp_path, "bubblewrap"), "touch /dev/new")).exit_status != 0


FILLS = {
    "files": "i=0; while [ $i -lt 48 ]; do i=$((i+1)); head -c 1000000 /dev/urandom > fill$i; done; sync; sleep 60",
    "deleted files": (
        "exec 3> fill; rm fill; i=0; while [ $i -lt 48 ]; do i=$((i+1)); head -c 1000000 /dev/urandom >&3; done; "
        "sync; sleep 60"
    ),
}


@pytest.mark.parametrize("way", FILLS)
@pytest.mark.parametrize("mode", [*CONFINED, "not_enforced"])
async def test_the_folders_that_may_be_written_do_not_grow_without_end(mode: str, way: str) -> None:
    with place_outside() as root:
        ended = await sh(sandbox(root, mode, limits=MachineLimits(growth_bytes=8 * MIB)), FILLS[way])
        assert ended.stopped == "growth"
        ended = await sh(sandbox(root, mode), FILLS[way].replace("sleep 60", "true"))
        assert (ended.stopped, ended.exit_status) == (None, 0)


async def test_what_others_write_meanwhile_is_nobody_s_growth() -> None:
    with place_outside() as root, place_outside() as elsewhere:
        (elsewhere / "other").write_bytes(b"")
        where = sandbox(root, "bubblewrap", limits=MachineLimits(growth_bytes=4 * MIB))
        running = asyncio.ensure_future(sh(where, "touch begun; while [ ! -e done ]; do sleep 0.05; done; sleep 0.5"))
        assert await until((root / "begun").exists)
        with (elsewhere / "other").open("wb") as other:
            other.write(os.urandom(16 * MIB))
            os.fsync(other.fileno())
        (root / "done").touch()
        assert (await running).stopped is None


REACH = (
    "import socket, sys; s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1]); s.sendall(b'x'); print('reached')"
)


LISTENS = """
import os, socket, sys
os.chdir(sys.argv[1])
here = os.open(".", os.O_RDONLY)
with socket.socket(socket.AF_UNIX) as listens:
    listens.bind(sys.argv[2].format(here=here))
    if sys.argv[2] != "daemon.sock" and not os.path.lexists("daemon.sock"):
        os.rename("daemon.new", "daemon.sock")
    listens.listen()
    print("listens", flush=True)
    sys.stdin.read()
"""


@pytest.mark.parametrize("name", ["daemon.sock", "/proc/self/fd/{here}/daemon.sock", "daemon.new"])
async def test_a_socket_with_a_name_that_only_its_owner_understands_is_not_reached(tmp_path: Path, name: str) -> None:
    with place_outside() as outside:
        line = [sys.executable, "-c", LISTENS, str(outside), name]
        with subprocess.Popen(line, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as program:
            assert program.stdout is not None and program.stdout.readline() == b"listens\n"
            attack = f'{PYTHON} -c "{REACH}" {outside}/daemon.sock'
            held = said(await sh(sandbox(tmp_path, "bubblewrap"), attack))
            free = said(await sh(sandbox(tmp_path, "not_enforced"), attack))
            program.communicate()
        assert ("reached" in held.splitlines(), "reached" in free.splitlines()) == (False, True)


@pytest.mark.parametrize("network", ["none", "full"])
async def test_programs_that_listen_at_a_file_outside_are_not_reached(tmp_path: Path, network: str) -> None:
    with place_outside() as outside, socket.socket(socket.AF_UNIX) as listens, socket.socket(socket.AF_UNIX) as inside:
        listens.bind(str(outside / "daemon.sock"))
        listens.listen()
        inside.bind(str(tmp_path / "own.sock"))
        inside.listen()
        (outside / "link").symlink_to("daemon.sock")
        attack = f'{PYTHON} -c "{REACH}" {outside}/'
        for name in ("daemon.sock", "link"):
            ended = await sh(sandbox(tmp_path, "bubblewrap", network=network), attack + name)
            assert "reached" not in said(ended).splitlines(), name
            assert "reached" in said(await sh(sandbox(tmp_path, "not_enforced"), attack + name)).splitlines()
        own = await sh(sandbox(tmp_path, "bubblewrap", network=network), f'{PYTHON} -c "{REACH}" {tmp_path}/own.sock')
        assert "reached" in said(own), "one in the workspace is"
