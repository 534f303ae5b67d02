"""Which places a command may not see, and which it may see and not change.

Secrets of the person whose machine this is, sockets of other programs, and whatever would later run outside the sandbox
or steer the runtime: git's hooks and configuration, our own files. A place that does not exist yet must not come to be
from inside either: an empty folder or file stands in for it, to be mounted over.
"""

import fcntl
import os
import pwd
import stat
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

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

_real_names: dict[tuple[str, int, int], str] = {}


class Unprotectable(Exception):
    """A place that has to be held cannot be: the text says why."""


@dataclass(frozen=True, slots=True)
class Place:
    """A path, and whether it is, or would be, a folder."""

    path: str
    folder: bool
    content: bytes = b""
    """What a file that is made for it holds."""
    passing: bool = False
    """A file made for it may be taken away again."""


def known_secrets(environ: Mapping[str, str]) -> list[str]:
    """Where secrets would be: known names in the home, of the system, and our own home."""
    homes = dict.fromkeys(filter(None, (environ.get("HOME"), _own_home())))
    ours = filter(None, (environ.get("WAKEFUL_HOME"), environ.get("WAKEFUL_CONFIG"), environ.get("XAUTHORITY")))
    known = [f"{home}/{name}" for home in homes for name in IN_THE_HOME]
    if data := environ.get("XDG_DATA_HOME"):
        known.append(f"{data}/wakeful")
    return [*known, *OF_THE_SYSTEM, *map(os.path.abspath, ours)]


def secrets(listed: Iterable[str], hidden: Iterable[str]) -> list[Place]:
    """What no command may read: those on the list that exist, and what the owner adds."""
    found = [place for path in listed if (place := _existing(path))]
    return list(dict.fromkeys([*found, *(_named(path) for path in hidden)]))


def guarded(root: str, protected: Iterable[str]) -> list[Place]:
    """What a command may read and not change in a workspace. Raises Unprotectable for a link in its way."""
    git = f"{root}/.git"
    places = [Place(f"{root}/{OURS}", True)]
    if _has_something(git):
        places += _of_repository(git)
        places += [Place(path, os.path.isdir(path)) for path in _inner_repositories(git)]
    else:
        places.append(Place(git, not os.path.isfile(git)))
    places += [_named(path) for path in protected]
    unique = list(dict.fromkeys(places))
    for place in unique:
        _refuse_links(root, place.path)
    return unique


def store_files(path: str) -> tuple[str, ...]:
    """A database of ours and what stands beside it, to be hidden: whoever writes a journal writes the database."""
    endings = ("", "-wal", "-shm", "-journal", "-owners", ".blobs/")  # the last is a folder
    return tuple(f"{os.path.abspath(path)}{ending}" for ending in endings)


def is_below(path: str, roots: Iterable[str]) -> bool:
    return any(path == root or path.startswith(root if root == "/" else f"{root}/") for root in roots)


class StandIns:
    """Makes every place exist that has to be covered, while commands may come; `close` takes back what it made.

    Several runtimes may stand in for the same place: each holds a lock on it, and the last one takes it away. A file
    that is not `passing` stays: next to a database, taking an empty file away could lose what is being written to it.
    """

    def __init__(self) -> None:
        self._held: dict[str, tuple[Place, int]] = {}

    def ensure(self, places: Iterable[Place]) -> None:
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

    def close(self) -> None:
        for path in reversed(list(self._held)):
            _let_go(*self._held.pop(path))


def _hold(place: Place) -> int | None:
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


def _is_stand_in(place: Place, handle: int) -> bool:
    if place.folder:
        return not os.listdir(handle)
    return place.passing and os.pread(handle, len(place.content) + 1, 0) == place.content


def _let_go(place: Place, handle: int) -> None:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if place.folder:
            os.rmdir(place.path)
        elif _is_stand_in(place, handle):
            os.unlink(place.path)
    except OSError:
        pass  # another command needs it, or somebody has put something there
    finally:
        os.close(handle)


def _has_something(folder: str) -> bool:
    """Is it a folder with something in it? An empty one may be a stand-in, and holds no repository."""
    if os.path.islink(folder):
        return False
    try:
        with os.scandir(folder) as entries:
            return next(entries, None) is not None
    except OSError:
        return False


def _of_repository(git: str) -> list[Place]:
    """What git runs, what tells it to run something, and what sends it elsewhere to look for these."""
    places = [
        Place(f"{git}/hooks", True),
        Place(f"{git}/config", False),
        # Git takes "." for the folder itself: a stand-in that git outside can live with.
        Place(f"{git}/commondir", False, b".\n", passing=True),
    ]
    own = f"{git}/config.worktree"
    try:
        with open(f"{git}/config", "rb") as config:
            splits = b"worktreeconfig" in config.read().lower()
    except OSError:
        splits = False
    return [*places, Place(own, False)] if splits or os.path.exists(own) else places


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


def _named(path: str) -> Place:
    return Place(os.path.normpath(path), path.endswith("/") or os.path.isdir(path))


def _refuse_links(root: str, path: str) -> None:
    """A mount would land on what a link points to, and the link itself could be replaced."""
    while is_below(path, [root]) and path != root:
        if os.path.islink(path):
            raise Unprotectable(f"{path} is a link, and what it points to could be exchanged by the command")
        path = os.path.dirname(path)


def _existing(path: str) -> Place | None:
    """What is there, under the name it really has. Asked for every name on the list before every command."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    known = (path, found.st_dev, found.st_ino)  # as long as it is the same thing, it has the same name
    real = _real_names.get(known)
    if real is None:
        real = _real_names[known] = os.path.realpath(path)
    return Place(real, stat.S_ISDIR(found.st_mode))


def _own_home() -> str | None:
    try:
        return pwd.getpwuid(os.getuid()).pw_dir
    except KeyError:
        return None
