"""A sandbox for the commands of one workspace: what holds them, and running one.

The level is found once. Where the owner requires confinement and the machine has none, a command is refused; where it
is preferred, it runs and its `Confinement` says `not_enforced` and why.
"""

import asyncio
import json
import os
import re
import shutil
import stat
import sys
import tempfile
import weakref
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

from wakeful import programs
from wakeful.contracts.errors import InvalidConfig
from wakeful.contracts.tools import Confinement
from wakeful.sandbox import bubblewrap, environment, level_probe, places, repositories, seccomp
from wakeful.sandbox.capture import KEPT_BYTES
from wakeful.sandbox.command_process import CommandEnd, CommandPipes, ShownOutput, ShowOutput, run
from wakeful.sandbox.command_start import PreparedLine, SpawnFailed
from wakeful.sandbox.grants import split, split_folders
from wakeful.sandbox.own_code import code_places
from wakeful.sandbox.settings import SandboxSettings
from wakeful.sandbox.sweep import Sweeper

_SYSTEM = "usr bin sbin lib lib32 lib64 libx32 opt nix proc sys/devices"
SYSTEM_ROOTS = tuple(f"/{name}" for name in _SYSTEM.split())
# Not /dev/pts: the terminals of other programs are there, and the one at which a person is asked.
DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty", "/dev/ptmx")
NOT_WHOLE = (
    "Landlock cannot take places out of a writable folder: .git/hooks and .git/config can be written while a command "
    "runs, and are put back after it; .wakeful can be written"
)


MADE_AGAIN = 20
"""How often a sandbox is tried to be made, when sockets outside come and go meanwhile."""
SOCKETS_COME_AND_GO = "the sandbox could not be made: sockets that it has to cover come and go"
_TAKE_TERMINAL = f"""import fcntl, os, signal, termios
{level_probe.HEAR_OF_CHILDREN}os.setsid()
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
os.dup2(int(sys.argv[1]), 0)
os.execv(sys.argv[2], sys.argv[2:])
"""
"""A child of ours that makes the terminal its own and then turns into what holds the command; no other program is
asked to do it."""
_COVER_FAILED = re.compile(
    rb"bwrap: Can't (?:create file at |mkdir parents for |bind mount /oldroot/dev/null on /newroot)(/[^\n]*?)"
    rb": (?:Unable to [^\n]*|[^\n:]*)\n"
)


class NotConfined(Exception):
    """The owner requires confinement, and the command cannot be held: the text says why."""


class Sandbox:
    """Runs commands in a workspace, held to what the settings allow."""

    def __init__(
        self,
        root: str | Path,
        settings: SandboxSettings | None = None,
        *,
        keys: Collection[str] = (),
        environ: Mapping[str, str] | None = None,
        level: level_probe.ConfinementLevel | None = None,
        git_settings: Callable[[], Iterable[tuple[str, str]]] = tuple,
        cwd: str | None = None,
    ) -> None:
        """`keys` are variables that hold keys of providers. `level` is found out when it is not given. `git_settings`
        are what a command finds in its home, asked for when the first one runs. `cwd` is the folder where commands
        begin that name none; the root otherwise.

        From now on the runtime takes no program from what commands here may write.
        """
        self._root = os.path.realpath(root)
        if not Path(self._root).is_dir():
            raise InvalidConfig(f"the workspace {root} is not a folder", "name a folder that exists")
        self.cwd = cwd if cwd is not None else self._root
        self._settings = settings if settings is not None else SandboxSettings()
        self._attached = repositories.attached(self._root)
        chosen = (os.path.realpath(path) for path in self._settings.write_roots)
        self._write_roots = tuple(dict.fromkeys([self._root, *chosen, *filter(None, [self._attached])]))
        programs.add_write_roots(self._write_roots)
        self._keys = frozenset(keys)
        self._environ = dict(environ if environ is not None else os.environ)
        self.code = code_places(self._write_roots)
        """Code of the runtime below the write roots: commands read it and do not change it."""
        self._secrets = places.known_secrets(self._environ)
        self._level = level
        self._chosen_for_git = git_settings
        self._git_settings: bytes | None = None
        self._sweeper = Sweeper(self._root)
        self._stand_ins = places.StandIns(self._sweeper.made)
        weakref.finalize(self, _close, self._stand_ins, self._sweeper)

    def close(self) -> None:
        """Take back what was put into the workspace, until the next command. It also happens by itself when nobody
        uses the sandbox any more."""
        _close(self._stand_ins, self._sweeper)

    @property
    def root(self) -> str:
        return self._root

    @property
    def level(self) -> level_probe.ConfinementLevel:
        return self._level if self._level is not None else level_probe.probe()

    @property
    def network(self) -> str:
        return self._settings.network

    @property
    def write_roots(self) -> tuple[str, ...]:
        return self._write_roots

    @property
    def hidden(self) -> tuple[str, ...]:
        """Paths that a held command cannot read."""
        return tuple(place.path for place in places.secrets(self._secrets, self._settings.hidden))

    @property
    def protected(self) -> tuple[str, ...]:
        """Paths that a held command can read and not change: the owner's, and the runtime's own code."""
        return tuple(path.rstrip("/") for path in (*self._settings.protected, *self.code))

    def confinement(self, cwd: str) -> Confinement:
        """What a command in this folder is held to."""
        settings, mode = self._settings, self.level.mode
        whole = self.level.reason
        if mode == "landlock":
            whole = "; ".join(filter(None, (whole, NOT_WHOLE, self._price_of_splitting())))
        return Confinement(
            mode=mode,
            cwd=cwd,
            read_roots=("/",) if mode != "landlock" else self._readable(),
            write_roots=("/",) if mode == "not_enforced" else self.write_roots,
            network="full" if mode == "not_enforced" else settings.network,
            process_limits=settings.limits.as_dict(),
            reason=whole,
        )

    async def run(
        self,
        argv: Sequence[str],
        cwd: str,
        *,
        timeout: float,
        tty: bool = False,
        show: ShowOutput = lambda stream, text: None,
        kept_bytes: int = KEPT_BYTES,
    ) -> CommandEnd:
        """Run one command to its end. Raises SpawnFailed, and NotConfined where the owner requires confinement."""
        for _ in range(MADE_AGAIN):
            shown = ShownOutput(show)
            with ExitStack() as holding:
                line = CommandPipes(holding)
                start = await self.prepare(argv, cwd, line, holding, tty=tty)
                ended = await run(start, line, timeout=timeout, show=shown, kept_bytes=kept_bytes)
            if not lost_a_socket(ended, start.line):
                shown.release()
                return ended
        raise SpawnFailed(SOCKETS_COME_AND_GO)

    async def prepare(
        self,
        argv: Sequence[str],
        cwd: str,
        line: CommandPipes,
        holding: ExitStack,
        *,
        tty: bool = False,
        accepts_input: bool = False,
    ) -> PreparedLine:
        """The line that runs the command confined. What it needs open is open as long as the stack. Raises as `run`."""
        if self.level.mode == "not_enforced" and self._settings.confinement == "required":
            raise NotConfined(f"commands must be confined here, and no sandbox is available: {self.level.reason}")
        self._refuse_second_names()
        if self._git_settings is None:
            chosen = await asyncio.to_thread(self._chosen_for_git)
            self._git_settings = environment.git_settings(chosen).encode(errors="surrogateescape")
        prepare = self._wrapped if self.level.mode == "bubblewrap" else self._launched
        return prepare(argv, cwd, tty, accepts_input, line, holding)

    # --- bubblewrap ---------------------------------------------------------------------------------------------------

    def _wrapped(
        self, argv: Sequence[str], cwd: str, tty: bool, accepts_input: bool, line: CommandPipes, holding: ExitStack
    ) -> PreparedLine:
        if (
            self._attached is not None and not Path(self._attached).is_dir()
        ):  # what stands in for it would be left there
            raise SpawnFailed(f"{self._attached}, the repository that the workspace belongs to, is not there")
        ground = self._ground(cwd)
        self._sweeper.watch()
        self._stand_ins.ensure(ground.must_stand())
        variables = self._environment(bubblewrap.HOME, bubblewrap.TEMPORARY)
        program = _found(argv[0], cwd, variables)
        passed = [line.tells]

        def given(descriptor: int) -> int:
            holding.callback(os.close, descriptor)
            passed.append(descriptor)
            return descriptor

        made = bubblewrap.command_line(
            self.level,
            ground,
            [program, *argv[1:]],
            stdin="terminal" if tty else "line" if accepts_input else "nothing",
            status=line.tells,
            seccomp=given(_file_of(seccomp.program(sockets=True, namespaces=True))) if seccomp.supported() else None,
            git_settings=given(_file_of(self._git_settings or b"")),
            nothing=lambda: given(os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)),
        )
        start = self._start(made, variables, tty, accepts_input, line, tuple(passed), self.write_roots)
        taking = tuple(level_probe.interpreter(_TAKE_TERMINAL)) if tty else ()
        return start._replace(stand_ins=tuple(each.as_dict() for each in self._stand_ins.places), take_terminal=taking)

    def _ground(self, cwd: str) -> bubblewrap.Ground:
        named = (*self._settings.protected, *self.code)
        try:
            roots = [root for root in self.write_roots if root != self._attached]
            guarded = [place for root in roots for place in places.guarded(root, named)]
            if self._attached is not None:
                own = repositories.git_directory(f"{self._root}/.git")
                guarded += places.guarded_elsewhere(self._attached, own)
        except places.Unprotectable as problem:
            raise NotConfined(str(problem)) from problem
        hidden = places.secrets(self._secrets, self._settings.hidden)
        return bubblewrap.Ground(
            cwd=cwd,
            write_roots=self.write_roots,
            hidden=tuple(place for place in hidden if self._can_be_covered(place)),
            guarded=tuple(dict.fromkeys(guarded)),
            sockets=tuple(places.sockets(self.write_roots)),
            network=self._settings.network,
            limits=self._settings.limits,
        )

    def _can_be_covered(self, place: places.SandboxPlace) -> bool:
        """What is not there needs no cover where nobody can make it: outside, everything is read-only."""
        return places.is_below(place.path, self.write_roots) or os.path.lexists(place.path)

    # --- the launcher: Landlock, or nothing ---------------------------------------------------------------------------

    def _launched(
        self, argv: Sequence[str], cwd: str, tty: bool, accepts_input: bool, line: CommandPipes, holding: ExitStack
    ) -> PreparedLine:
        variables = self._environment("", "")
        program = _found(argv[0], cwd, variables)
        limits = self._settings.limits
        hidden, protected = self._closed() if self.level.mode == "landlock" else ([], [])
        grants = split(self.write_roots, hidden=hidden, protected=protected)
        private = tempfile.mkdtemp(prefix="wakeful-")
        home = Path(private, "home")
        home.mkdir(mode=0o700)
        Path(home, environment.GIT_SETTINGS).write_bytes(self._git_settings or b"")
        plan = {
            "argv": [program, *argv[1:]],
            "cwd": cwd,
            "tty": tty,
            "status": line.tells,
            "lifeline": line.hears,
            "confined": self.level.mode == "landlock",
            "network": self._settings.network,
            "read": [*self._readable(), private, *grants.read],
            "write": [*grants.write, private],
            "listed": grants.listed,
            "devices": list(DEVICES),
            "rlimits": {
                "RLIMIT_CORE": 0,
                "RLIMIT_CPU": limits.cpu_seconds,
                "RLIMIT_FSIZE": limits.file_bytes,
                "RLIMIT_DATA": limits.memory_bytes,
            },
        }
        made = [*level_probe.interpreter("from wakeful.sandbox.launcher import main; main()"), json.dumps(plan)]
        passed, grows = (line.tells, line.hears), (*self.write_roots, private)
        variables |= {"HOME": str(home), "TMPDIR": private}
        return self._start(made, variables, tty, accepts_input, line, passed, grows)._replace(private=private)

    def _closed(self) -> tuple[list[str], list[str]]:
        """What lies below the write roots and is hidden, and what is protected there."""
        hidden = [path for path in self.hidden if places.is_below(path, self.write_roots)]
        protected = [path for path in self.protected if places.is_below(path, self.write_roots)]
        if hidden or protected:  # where a folder is split anyway, our own is closed too
            protected += [f"{root}/{places.OURS}" for root in self.write_roots]
        return hidden, protected

    @property
    def split_folders(self) -> tuple[str, ...]:
        """Folders in which a command held by Landlock makes, moves and removes nothing: see `grants`."""
        hidden, protected = self._closed()
        return split_folders(self.write_roots, (*hidden, *protected)) if self.level.mode == "landlock" else ()

    def _price_of_splitting(self) -> str:
        folders = self.split_folders
        if not folders:
            return ""
        return (
            f"commands make, move and remove nothing directly in {', '.join(folders)}, where files of the runtime "
            "or of its owner lie that they must not reach"
        )

    def _readable(self) -> tuple[str, ...]:
        """Folders that are granted one by one: the system, what is on the path, this Python, and the owner's."""
        hidden = self.hidden
        on_path = [folder for folder in self._environ.get("PATH", "").split(":") if folder.startswith("/")]
        settings = sorted(map(str, Path("/etc").iterdir())) if Path("/etc").is_dir() else []
        wanted = [*SYSTEM_ROOTS, *settings, *on_path, sys.prefix, sys.base_prefix, *self._settings.read_roots]
        real = [os.path.realpath(path) for path in (*wanted, *self.write_roots) if os.path.exists(path)]
        return tuple(dict.fromkeys(path for path in real if not any(places.is_below(h, [path]) for h in hidden)))

    # --- both ---------------------------------------------------------------------------------------------------------

    def _refuse_second_names(self) -> None:
        """A hard link is another name of a file: hiding one name does not hide the other."""
        for path in self._settings.hidden:
            if not places.is_below(path, self.write_roots):
                continue
            try:
                found = os.lstat(path)
            except OSError:
                continue
            if stat.S_ISREG(found.st_mode) and found.st_nlink > 1:
                raise NotConfined(f"{path} is hidden and has another name (a hard link) that a command could use")

    def _environment(self, home: str, temporary: str) -> dict[str, str]:
        named = self._settings.environment
        return environment.scrubbed(
            self._environ,
            home=home,
            temporary=temporary,
            named=named,
            keys=self._keys,
            virtual_environment=environment.virtual_environment(self._root),
        )

    def _start(
        self,
        made: list[str],
        variables: dict[str, str],
        tty: bool,
        accepts_input: bool,
        line: CommandPipes,
        passed: tuple[int, ...],
        grows: Sequence[str],
    ) -> PreparedLine:
        limits = self._settings.limits
        return PreparedLine(
            line=made,
            environment=variables,
            tty=tty,
            accepts_input=accepts_input,
            tells=line.tells,
            hears=line.hears,
            hears_as_stdin=self.level.mode == "bubblewrap",
            passed=passed,
            tasks=limits.processes + 1,  # the first is what holds the others
            memory_bytes=limits.memory_bytes,
            growth_bytes=limits.growth_bytes,
            write_roots=tuple(grows),
            shared=bubblewrap.SHARED_MEMORY if self.level.mode == "bubblewrap" else None,
        )


def _close(stand_ins: places.StandIns, sweeper: Sweeper) -> None:
    stand_ins.close()
    sweeper.close()


def lost_a_socket(ended: CommandEnd, line: Sequence[str]) -> bool:
    """Did bubblewrap, and not the command, fail: a socket that had to be covered, or the folder that it was in, was
    gone before it came there?"""
    if ended.exit_status is not None or ended.stopped is not None:
        return False
    out, err = ended.stdout.data, ended.stderr.data
    if out and err:
        return False
    wrong = _COVER_FAILED.fullmatch((err or out).replace(b"\r\n", b"\n"))  # at a terminal all is one stream
    return wrong is not None and os.fsdecode(wrong.group(1)) in line


def _file_of(data: bytes) -> int:
    descriptor = os.memfd_create("wakeful", os.MFD_CLOEXEC)
    os.write(descriptor, data)
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor


def _found(program: str, cwd: str, variables: Mapping[str, str]) -> str:
    """The shell's path, not one that the agent may have put on its own PATH if there is another. Raises SpawnFailed.

    Inside, a missing program would look like a command that ended with 127.
    """
    if "/" in program:
        program = os.path.join(cwd, program)
    found = programs.find(program, variables) or shutil.which(program, path=variables["PATH"])
    if found is None or not os.access(found, os.X_OK):
        raise SpawnFailed(f"{program}: not found, or not executable")
    return found
