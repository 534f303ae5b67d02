"""Which places a command may not see, and which it may see and not change.

Secrets of the person whose machine this is, sockets of other programs, and whatever would later run outside the sandbox
or steer the runtime: git's hooks and configuration, our own files. A place that does not exist yet must not come to be
from inside either: an empty folder or file stands in for it, to be mounted over.
"""

import fcntl
import os
import pwd
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from wakeful.programs import is_below as is_below

IN_THE_HOME = (
    *(".ssh", ".gnupg", ".aws", ".azure", ".kube", ".docker", ".password-store", ".terraform.d", ".config/gcloud"),
    *(".config/gh", ".config/hub", ".config/op", ".config/rclone", ".config/wakeful", ".local/share/wakeful"),
    *(".local/share/keyrings", ".netrc", ".npmrc", ".pypirc", ".pgpass", ".my.cnf", ".git-credentials", ".vault-token"),
    *(".cargo/credentials", ".cargo/credentials.toml", ".m2/settings.xml", ".gem/credentials", ".claude", ".codex"),
    *(".mozilla", ".thunderbird", ".config/google-chrome", ".config/chromium", ".config/BraveSoftware"),
    *(".config/microsoft-edge", ".config/vivaldi", ".bash_history", ".zsh_history", ".python_history", ".psql_history"),
)
OF_THE_SYSTEM = (
    *(
        "/etc/shadow",
        "/etc/shadow-",
        "/etc/gshadow",
        "/etc/gshadow-",
        "/etc/sudoers",
        "/etc/sudoers.d",
        "/etc/krb5.keytab",
    ),
    *("/etc/ssl/private", "/etc/ssh", "/etc/NetworkManager/system-connections", "/etc/wireguard", "/var/lib/docker"),
)
OURS = ".wakeful"
_SMALLEST_PAGE = 512
_SQLITE, _WAKEFUL = b"SQLite format 3\0", b"wake"
"""How a database begins, and whose it is: the store's `application_id`, at byte 68."""

_OF_A_PROCESS = ("/proc/", "/dev/fd/")
"""Names that lead somewhere else for every process."""

_real_names: dict[tuple[str, int, int], str] = {}
_places_of: dict[tuple[str, str], str] = {}
"""Where sockets are whose names count from their owner's folder: by their number and name."""


class Unprotectable(Exception):
    """A place that has to be held cannot be: the text says why."""


@dataclass(frozen=True, slots=True)
class SandboxPlace:
    """A path, and whether it is, or would be, a folder."""

    path: str
    folder: bool
    content: bytes = b""
    """What a file that is made for it holds."""
    passing: bool = False
    """A file made for it may be taken away again."""

    def as_dict(self) -> dict[str, Any]:
        """As another process is told of it."""
        return {"path": self.path, "folder": self.folder, "content": self.content.decode(), "passing": self.passing}

    @classmethod
    def from_dict(cls, told: Mapping[str, Any]) -> "SandboxPlace":
        return cls(told["path"], told["folder"], told["content"].encode(), told["passing"])


def known_secrets(environ: Mapping[str, str]) -> list[str]:
    """Where secrets would be: known names in the home, of the system, and our own home."""
    homes = dict.fromkeys(filter(None, (environ.get("HOME"), _own_home())))
    ours = filter(None, (environ.get("WAKEFUL_HOME"), environ.get("WAKEFUL_CONFIG"), environ.get("XAUTHORITY")))
    known = [f"{home}/{name}" for home in homes for name in IN_THE_HOME]
    if data := environ.get("XDG_DATA_HOME"):
        known.append(f"{data}/wakeful")
    return [*known, *OF_THE_SYSTEM, *map(os.path.abspath, ours)]


def secrets(listed: Iterable[str], hidden: Iterable[str]) -> list[SandboxPlace]:
    """What no command may read: those on the list that exist, and what the owner adds."""
    found = [place for path in listed if (place := _existing(path))]
    return list(dict.fromkeys([*found, *(_named(path) for path in hidden)]))


def guarded(root: str, protected: Iterable[str]) -> list[SandboxPlace]:
    """What a command may read and not change in a workspace. Raises Unprotectable for a link in its way."""
    git = f"{root}/.git"
    places = [SandboxPlace(f"{root}/{OURS}", True)]
    if _has_something(git):
        places += _of_repository(git)
        places += [SandboxPlace(path, os.path.isdir(path)) for path in _inner_repositories(git)]
    else:
        places.append(SandboxPlace(git, not os.path.isfile(git)))
    places += [_named(path) for path in protected]
    unique = list(dict.fromkeys(places))
    for place in unique:
        _refuse_links(root, place.path)
    return unique


def guarded_elsewhere(git: str, own: str | None) -> list[SandboxPlace]:
    """The same in a git directory outside the workspace that this is a work tree of; `own` is the part that is its
    own. Raises Unprotectable."""
    trees = [f"{git}/worktrees/{name}" for name in _names(f"{git}/worktrees")]
    found = [*_of_repository(git), *(SandboxPlace(path, os.path.isdir(path)) for path in _inner_repositories(git))]
    found = [place for place in found if own is None or not is_below(place.path, [own])]
    found += [SandboxPlace(tree, True) for tree in trees if os.path.realpath(tree) != own and os.path.isdir(tree)]
    for place in found:
        _refuse_links(git, place.path)
    return list(dict.fromkeys(found))


def _names(folder: str) -> list[str]:
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []


def sockets(write_roots: Iterable[str]) -> list[str]:
    """Files at which programs listen, outside of what a command may write: a read-only mount does not keep anybody
    from talking to them."""
    roots = list(write_roots)
    found = {os.path.realpath(path) for path in _socket_files()}
    return sorted(path for path in found if not is_below(path, roots) and _is_socket(path) and _can_be_reached(path))


def _socket_files() -> Iterator[str]:
    """The kernel lists the names that sockets were given: relative ones, from where their owner was then, and ones that
    were renamed since. Where nothing is at a name, every socket beside it is meant."""
    try:
        with open("/proc/net/unix", encoding="utf-8", errors="surrogateescape") as listed:
            named = {(fields[6], fields[7].rstrip("\n")) for line in listed if len(fields := line.split(None, 7)) == 8}
    except OSError:
        return
    absolute = {name for _, name in named if name.startswith("/") and not name.startswith(_OF_A_PROCESS)}
    from_somewhere = {inode: name for inode, name in named if name not in absolute and not name.startswith("@")}
    absolute |= _from_their_owners(from_somewhere)
    yield from absolute
    for folder in {os.path.dirname(path) for path in absolute if not os.path.lexists(path)}:
        yield from (f"{folder}/{name}" for name in _names(folder) if _is_socket(f"{folder}/{name}"))


def _from_their_owners(named: Mapping[str, str]) -> set[str]:
    """Names that count from a process's folder or its open files, as paths. `named` has them by the socket's number."""
    unknown = {f"socket:[{inode}]": (inode, name) for inode, name in named.items() if (inode, name) not in _places_of}
    for pid in filter(str.isdigit, _names("/proc") if unknown else ()):
        for number in _names(f"/proc/{pid}/fd"):
            try:
                held = os.readlink(f"/proc/{pid}/fd/{number}")
                if (socket := unknown.get(held)) is not None:
                    _places_of[socket] = _seen_by(pid, socket[1])
            except OSError:
                continue  # it ended or was closed meanwhile, or is not ours to look at
    for socket in unknown.values():
        _places_of.setdefault(socket, "")  # nobody tells where it is: it is not asked before every command
    for socket in [known for known in _places_of if known not in named.items()]:
        _places_of.pop(socket, None)
    return {path for socket in named.items() if (path := _places_of.get(socket))}


def _seen_by(pid: str, name: str) -> str:
    """Raises OSError."""
    if name.startswith("/proc/self/"):
        folder, last = os.path.split(name.removeprefix("/proc/self/"))
        return f"{os.path.realpath(f'/proc/{pid}/{folder}')}/{last}"
    if name.startswith("/dev/fd/"):
        return _seen_by(pid, f"/proc/self/fd/{name.removeprefix('/dev/fd/')}")
    return name if name.startswith("/") else os.path.normpath(f"{os.readlink(f'/proc/{pid}/cwd')}/{name}")


def _is_socket(path: str) -> bool:
    try:
        return stat.S_ISSOCK(os.lstat(path).st_mode)
    except OSError:
        return False


def _can_be_reached(path: str) -> bool:
    """May this user go there by the bits of the folders? Root inside a sandbox has nothing but those either."""
    groups = {os.getgid(), *os.getgroups()}
    while (path := os.path.dirname(path)) != "/":
        try:
            found = os.stat(path)
        except OSError:
            return False
        bit = 0o100 if found.st_uid == os.getuid() else 0o010 if found.st_gid in groups else 0o001
        if not found.st_mode & bit:
            return False
    return True


def store_files(path: str) -> tuple[str, ...]:
    """A database of ours and what stands beside it, to be hidden: whoever writes a journal writes the database."""
    endings = (
        "",
        "-wal",
        "-shm",
        "-journal",
        "-anchor",
        ".owners/",
        ".blobs/",
        ".memory/",
    )  # the last three are folders
    return tuple(f"{os.path.abspath(path)}{ending}" for ending in endings)


def stores_in(folder: str) -> list[str]:
    """Databases of wakeful directly in a folder, whoever they belong to: a command decides nothing in any of them."""
    found = []
    try:
        with os.scandir(folder) as entries:
            files = [entry.path for entry in entries if entry.is_file(follow_symlinks=False) and _is_whole_pages(entry)]
    except OSError:
        return []
    for path in files:
        try:
            with open(path, "rb", opener=_without_waiting) as file:
                head = file.read(72)
        except OSError:
            continue
        if head.startswith(_SQLITE) and head[68:72] == _WAKEFUL:
            found.append(path)
    return sorted(found)


class StandIns:
    """Makes every place exist that has to be covered, while commands may come; `close` takes back what it made.

    Several runtimes may stand in for the same place: each holds a lock on it, and the last one takes it away. A file
    that is not `passing` stays: next to a database, taking an empty file away could lose what is being written to it.
    """

    def __init__(self, made: Callable[[SandboxPlace], None] = lambda place: None) -> None:
        """`made` hears of every place that may have to be taken away."""
        self._held: dict[str, tuple[SandboxPlace, int]] = {}
        self._made = made

    def ensure(self, places: Iterable[SandboxPlace]) -> None:
        """Before every command: somebody may have taken one away, or put something real there."""
        for place in places:
            held = self._held.get(place.path)
            if held is not None and _is_at(place.path, held[1]):
                continue
            if held is not None:
                os.close(self._held.pop(place.path)[1])
            handle = _hold(place)
            if handle is not None:
                self._held[place.path] = (place, handle)
                self._made(place)

    @property
    def places(self) -> tuple[SandboxPlace, ...]:
        """What is held now."""
        return tuple(place for place, _ in self._held.values())

    def close(self) -> None:
        for path in reversed(list(self._held)):
            place, handle = self._held.pop(path)
            os.close(handle)
            take_away(place)


def _hold(place: SandboxPlace) -> int | None:
    """A shared lock on a stand-in, made where there was nothing; None where there is something real."""
    while True:
        if place.folder:
            os.makedirs(place.path, mode=0o755, exist_ok=True)
        elif not os.path.lexists(place.path):
            os.makedirs(os.path.dirname(place.path), exist_ok=True)
            try:
                handle = os.open(place.path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600)
            except FileExistsError:
                continue
            os.write(handle, place.content)
            os.close(handle)
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | (os.O_DIRECTORY if place.folder else 0)
        try:
            handle = os.open(place.path, flags)
        except FileNotFoundError:  # another command's stand-in went away between the two
            continue
        fcntl.flock(handle, fcntl.LOCK_SH)
        if not _is_at(place.path, handle):
            os.close(handle)
        elif _is_stand_in(place, handle):
            return handle
        else:
            os.close(handle)
            return None


def _is_at(path: str, handle: int) -> bool:
    try:
        return os.lstat(path).st_ino == os.fstat(handle).st_ino
    except FileNotFoundError:
        return False


def _is_stand_in(place: SandboxPlace, handle: int) -> bool:
    if place.folder:
        return not os.listdir(handle)
    return place.passing and os.pread(handle, len(place.content) + 1, 0) == place.content


def take_away(place: SandboxPlace) -> bool:
    """Take a stand-in away that nobody holds. False when somebody does.

    Whoever held it lets go first: of several that leave at once, the last one to look finds nobody. If each kept its
    lock until it has a better one, none would get it.
    """
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | (os.O_DIRECTORY if place.folder else 0)
    try:
        handle = os.open(place.path, flags)
    except OSError:
        return True  # it is gone, or something else is there
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if _is_at(place.path, handle) and _is_stand_in(place, handle):
            os.rmdir(place.path) if place.folder else os.unlink(place.path)
    except BlockingIOError:
        return False  # another command needs it
    except OSError:
        pass  # somebody has put something there meanwhile
    finally:
        os.close(handle)
    return True


def _has_something(folder: str) -> bool:
    """Is it a folder with something in it? An empty one may be a stand-in, and holds no repository."""
    if os.path.islink(folder):
        return False
    try:
        with os.scandir(folder) as entries:
            return next(entries, None) is not None
    except OSError:
        return False


def _of_repository(git: str) -> list[SandboxPlace]:
    """What git runs, what tells it to run something, and what sends it elsewhere to look for these."""
    places = [
        SandboxPlace(f"{git}/hooks", True),
        SandboxPlace(f"{git}/config", False),
        # Git takes "." for the folder itself: a stand-in that git outside can live with.
        SandboxPlace(f"{git}/commondir", False, b".\n", passing=True),
    ]
    own = f"{git}/config.worktree"
    try:
        with open(f"{git}/config", "rb", opener=_without_waiting) as config:
            splits = b"worktreeconfig" in config.read().lower()
    except OSError:
        splits = False
    return [*places, SandboxPlace(own, False)] if splits or os.path.exists(own) else places


def _inner_repositories(git: str) -> list[str]:
    """Hooks and configuration of submodules and worktrees, which live below `.git`."""
    found = []
    for top in ("modules", "worktrees"):
        for folder, folders, files in os.walk(f"{git}/{top}"):
            if "HEAD" in files:
                found += [f"{folder}/{name}" for name in ("config", "config.worktree") if name in files]
                found += [f"{folder}/hooks"] if "hooks" in folders else []
                folders[:] = [name for name in folders if name == "modules"]
    return found


def _named(path: str) -> SandboxPlace:
    return SandboxPlace(os.path.normpath(path), path.endswith("/") or os.path.isdir(path))


def _refuse_links(root: str, path: str) -> None:
    """A mount would land on what a link points to, and the link itself could be replaced."""
    while is_below(path, [root]) and path != root:
        if os.path.islink(path):
            raise Unprotectable(f"{path} is a link, and what it points to could be exchanged by the command")
        path = os.path.dirname(path)


def _existing(path: str) -> SandboxPlace | None:
    """What is there, under the name it really has. Asked for every name on the list before every command."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    known = (path, found.st_dev, found.st_ino)  # as long as it is the same thing, it has the same name
    real = _real_names.get(known)
    if real is None:
        real = _real_names[known] = os.path.realpath(path)
    return SandboxPlace(real, stat.S_ISDIR(found.st_mode))


def _is_whole_pages(entry: "os.DirEntry[str]") -> bool:
    """May it be a database? Their size is a number of whole pages; nothing else is opened."""
    size = entry.stat(follow_symlinks=False).st_size
    return size > 0 and size % _SMALLEST_PAGE == 0


def _without_waiting(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NONBLOCK | os.O_NOFOLLOW)


def _own_home() -> str | None:
    try:
        return pwd.getpwuid(os.getuid()).pw_dir
    except KeyError:
        return None
