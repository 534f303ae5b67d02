"""The environment of a command: what it needs to work, and no secret of ours.

An allow-list: a variable that nobody thought of is left out. What an owner names is added, except keys of providers and
our own settings: those are in no command's environment, whoever asks. A virtual environment in the workspace comes
first on the path, as if it were activated. Git's own settings stand in the command's home, as a person's do: what a
repository says of itself comes before them.
"""

from collections.abc import Collection, Iterable, Mapping
from pathlib import Path

from wakeful.programs import DEFAULT_PATH

USUAL = frozenset(
    {"PATH", "LANG", "LANGUAGE", "TERM", "COLORTERM", "NO_COLOR", "TZ", "USER", "LOGNAME", "SHELL", "SOURCE_DATE_EPOCH"}
    | {"GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL"}
    | {"SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "NODE_EXTRA_CA_CERTS"}
)
VIRTUAL_ENVIRONMENTS = (".venv", "venv")
GIT_SETTINGS = ".gitconfig"
"""The name of git's settings in a home."""


def scrubbed(
    environ: Mapping[str, str],
    *,
    home: str,
    temporary: str,
    named: Collection[str] = (),
    keys: Collection[str] = (),
    virtual_environment: str | None = None,
) -> dict[str, str]:
    """The variables a command gets. `home` and `temporary` are its own folders; `keys` are never passed on."""
    wanted = USUAL.union(named).difference(keys)
    kept = {
        name: value
        for name, value in environ.items()
        if (name in wanted or (name.startswith("LC_") and name not in keys)) and not name.startswith("WAKEFUL_")
    }
    kept.setdefault("PATH", DEFAULT_PATH)
    kept.setdefault("LANG", "C.UTF-8")
    if virtual_environment is not None:
        kept |= {"VIRTUAL_ENV": virtual_environment, "PATH": f"{virtual_environment}/bin:{kept['PATH']}"}
    return kept | {"HOME": home, "TMPDIR": temporary, "GIT_TERMINAL_PROMPT": "0"}


def virtual_environment(root: str) -> str | None:
    """The virtual environment of a workspace."""
    for name in VIRTUAL_ENVIRONMENTS:
        if Path(root, name, "pyvenv.cfg").is_file() and Path(root, name, "bin").is_dir():
            return f"{root}/{name}"
    return None


def git_settings(chosen: Iterable[tuple[str, str]]) -> str:
    """Settings of git (`user.name`, a value) as a file of them. Nothing is collected as garbage by itself: what a
    command did not want to keep may be somebody's."""
    text = "[gc]\n\tauto = 0\n[maintenance]\n\tauto = false\n"
    for key, value in chosen:
        section, _, name = key.rpartition(".")
        quoted = value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
        text += f'[{section}]\n\t{name} = "{quoted}"\n'
    return text
