"""A sandbox for the commands of one workspace: what holds them, and running one.

The level is found once. Where the owner requires confinement and the machine has none, a command is refused; where it
is preferred, it runs and its `Confinement` says `not_enforced` and why.
"""

import json
import os
import shutil
import sys
import tempfile
import weakref
from collections.abc import Collection, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

from wakeful.contracts.errors import InvalidConfig
from wakeful.contracts.tools import Confinement
from wakeful.sandbox import bubblewrap, places, probing, seccomp
from wakeful.sandbox.capture import KEPT_BYTES
from wakeful.sandbox.environment import scrubbed
from wakeful.sandbox.running import Ended, Line, ShowOutput, SpawnFailed, Start, run
from wakeful.sandbox.settings import SandboxSettings

_SYSTEM = "usr bin sbin lib lib32 lib64 libx32 opt nix proc sys/devices"
SYSTEM_ROOTS = tuple(f"/{name}" for name in _SYSTEM.split())
DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty", "/dev/ptmx", "/dev/pts")
NOT_WHOLE = (
    "Landlock cannot take places out of a writable folder: .git/hooks, .git/config and .wakeful can be written, "
    "and what is hidden inside the workspace can be read and written"
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
        level: probing.Level | None = None,
    ) -> None:
        """`keys` are variables that hold keys of providers. `level` is found out when it is not given."""
        self._root = os.path.realpath(root)
        if not Path(self._root).is_dir():
            raise InvalidConfig(f"the workspace {root} is not a folder", "name a folder that exists")
        self._settings = settings if settings is not None else SandboxSettings()
        self._write_roots = (self._root, *(os.path.realpath(path) for path in self._settings.write_roots))
        self._keys = frozenset(keys)
        self._environ = dict(environ if environ is not None else os.environ)
        self._secrets = places.known_secrets(self._environ)
        self._level = level
        self._stand_ins = places.StandIns()
        self.close = weakref.finalize(self, self._stand_ins.close)
        """Takes back what was put into the workspace; happens by itself when nobody uses the sandbox any more."""

    @property
    def root(self) -> str:
        return self._root

    @property
    def level(self) -> probing.Level:
        if self._level is None:
            self._level = probing.probe()
        return self._level

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

    def confinement(self, cwd: str) -> Confinement:
        """What a command in this folder is held to."""
        settings, mode = self._settings, self.level.mode
        whole = self.level.reason
        if mode == "landlock":
            whole = "; ".join(filter(None, (whole, NOT_WHOLE)))
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
    ) -> Ended:
        """Run one command to its end. Raises SpawnFailed, and NotConfined where the owner requires confinement."""
        if self.level.mode == "not_enforced" and self._settings.confinement == "required":
            raise NotConfined(f"commands have to be confined here, and nothing can: {self.level.reason}")
        with ExitStack() as holding:
            line = Line(holding)
            prepare = self._wrapped if self.level.mode == "bubblewrap" else self._launched
            start = prepare(argv, cwd, tty, line, holding)
            return await run(start, line, timeout=timeout, show=show, kept_bytes=kept_bytes)

    # --- bubblewrap ---------------------------------------------------------------------------------------------------

    def _wrapped(self, argv: Sequence[str], cwd: str, tty: bool, line: Line, holding: ExitStack) -> Start:
        ground = self._ground(cwd)
        self._stand_ins.ensure(ground.must_stand())
        environment = self._environment(bubblewrap.HOME, bubblewrap.TEMPORARY)
        program = _found(argv[0], environment)
        passed = [line.tells]

        def given(descriptor: int) -> int:
            holding.callback(os.close, descriptor)
            passed.append(descriptor)
            return descriptor

        made = bubblewrap.command_line(
            self.level,
            ground,
            [program, *argv[1:]],
            tty=tty,
            status=line.tells,
            seccomp=given(_file_of(seccomp.program(sockets=True))) if seccomp.supported() else None,
            nothing=lambda: given(os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)),
        )
        return self._start(made, environment, tty, line, tuple(passed))

    def _ground(self, cwd: str) -> bubblewrap.Ground:
        try:
            guarded = [place for root in self.write_roots for place in places.guarded(root, self._settings.protected)]
        except places.Unprotectable as problem:
            raise NotConfined(str(problem)) from problem
        return bubblewrap.Ground(
            cwd=cwd,
            write_roots=self.write_roots,
            hidden=tuple(places.secrets(self._secrets, self._settings.hidden)),
            guarded=tuple(dict.fromkeys(guarded)),
            network=self._settings.network,
            limits=self._settings.limits,
        )

    # --- the launcher: Landlock, or nothing ---------------------------------------------------------------------------

    def _launched(self, argv: Sequence[str], cwd: str, tty: bool, line: Line, holding: ExitStack) -> Start:
        private = holding.enter_context(tempfile.TemporaryDirectory(prefix="wakeful-", ignore_cleanup_errors=True))
        home = Path(private, "home")
        home.mkdir(mode=0o700)
        limits = self._settings.limits
        plan = {
            "argv": list(argv),
            "cwd": cwd,
            "tty": tty,
            "status": line.tells,
            "lifeline": line.hears,
            "confined": self.level.mode == "landlock",
            "network": self._settings.network,
            "read": [*self._readable(), private],
            "write": [*self.write_roots, private],
            "devices": list(DEVICES),
            "rlimits": {
                "RLIMIT_CORE": 0,
                "RLIMIT_CPU": limits.cpu_seconds,
                "RLIMIT_FSIZE": limits.file_bytes,
                "RLIMIT_DATA": limits.memory_bytes,
            },
        }
        environment = self._environment(str(home), private)
        made = [*probing.interpreter("from wakeful.sandbox.launcher import main; main()"), json.dumps(plan)]
        return self._start(made, environment, tty, line, (line.tells, line.hears))

    def _readable(self) -> tuple[str, ...]:
        """Folders that are granted one by one: the system, what is on the path, this Python, and the owner's."""
        hidden = self.hidden
        on_path = [folder for folder in self._environ.get("PATH", "").split(":") if folder.startswith("/")]
        settings = sorted(map(str, Path("/etc").iterdir())) if Path("/etc").is_dir() else []
        wanted = [*SYSTEM_ROOTS, *settings, *on_path, sys.prefix, sys.base_prefix, *self._settings.read_roots]
        real = [os.path.realpath(path) for path in (*wanted, *self.write_roots) if os.path.exists(path)]
        return tuple(dict.fromkeys(path for path in real if not any(places.is_below(h, [path]) for h in hidden)))

    # --- both ---------------------------------------------------------------------------------------------------------

    def _environment(self, home: str, temporary: str) -> dict[str, str]:
        named = self._settings.environment
        return scrubbed(self._environ, home=home, temporary=temporary, named=named, keys=self._keys)

    def _start(
        self,
        made: list[str],
        environment: dict[str, str],
        tty: bool,
        line: Line,
        passed: tuple[int, ...],
    ) -> Start:
        limits = self._settings.limits
        return Start(
            line=made,
            environment=environment,
            tty=tty,
            tells=line.tells,
            hears=line.hears,
            hears_as_stdin=self.level.mode == "bubblewrap",
            passed=passed,
            tasks=limits.processes + 1,  # the first is what holds the others
            memory_bytes=limits.memory_bytes,
        )


def _file_of(data: bytes) -> int:
    descriptor = os.memfd_create("wakeful", os.MFD_CLOEXEC)
    os.write(descriptor, data)
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor


def _found(program: str, environment: Mapping[str, str]) -> str:
    """The program's path. Raises SpawnFailed: inside, a missing program looks like a command that ended with 127."""
    found = shutil.which(program, path=environment["PATH"])
    if found is None:
        raise SpawnFailed(f"{program}: not found, or not executable")
    return found
