"""Git as the runtime itself runs it: nothing that a repository brings is executed, and nothing is asked for.

A repository is data from outside. Its configuration can name programs for hooks, for watching files, for filters,
differences, pages, credentials, signatures and transports; a folder in it can pretend to be a repository of its own.
Each of these is switched off where it beats every file: on the command line, or in the environment.
"""

import os
import re
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from wakeful import programs

TIMEOUT = 60.0
_OFF = {
    "core.hooksPath": os.devnull,
    "core.fsmonitor": "false",
    "core.untrackedCache": "false",
    "core.pager": "cat",
    "core.editor": "false",
    "core.askPass": "false",
    "core.sshCommand": "false",
    "core.gitProxy": "false",
    "core.alternateRefsCommand": "false",
    "core.attributesFile": os.devnull,
    "sequence.editor": "false",
    "credential.helper": "",
    "diff.external": "",
    "diff.submodule": "short",
    "submodule.recurse": "false",
    "fetch.recurseSubmodules": "false",
    "protocol.allow": "never",
    "protocol.ext.allow": "never",
    "safe.bareRepository": "explicit",
    "commit.gpgSign": "false",
    "tag.gpgSign": "false",
    "gpg.program": "false",
    "gpg.ssh.program": "false",
    "gpg.x509.program": "false",
    "log.showSignature": "false",
    "uploadpack.packObjectsHook": "",
    "gc.auto": "0",
    "maintenance.auto": "false",
}
_PROGRAM_KEYS = re.compile(
    r"filter\..+\.(?:clean|smudge|process|required)|diff\..+\.(?:command|textconv)|merge\..+\.driver", re.DOTALL
)
"""Keys whose names a repository chooses: they have to be looked up to be switched off."""
_SWITCHES = ["--no-pager", *(word for key, value in _OFF.items() for word in ("-c", f"{key}={value}"))]
_ABOUT_THE_USER = r"^(user\.(name|email)|safe\.directory|init\.defaultbranch)$"
_SHOWS_DIFFERENCES = frozenset({"diff", "show", "log", "whatchanged", "format-patch", "stash"})


class GitFailed(Exception):
    """Git ended with a status that is not zero, or not in time. `stderr` is what it said."""

    def __init__(self, args: Sequence[str], status: int | None, stderr: str) -> None:
        how = "did not end in time" if status is None else f"ended with {status}"
        super().__init__(f"git {' '.join(args)} {how}: {stderr.strip()[:500]}")
        self.status = status
        self.stderr = stderr


@dataclass(frozen=True, slots=True)
class GitOutput:
    """What git said."""

    stdout: bytes
    stderr: str

    @property
    def text(self) -> str:
        return self.stdout.decode(errors="replace")


def run_git(args: Sequence[str], cwd: str | Path, *, timeout: float = TIMEOUT) -> GitOutput:
    """Run git in a folder with everything off that could run something else. Raises GitFailed.

    Nothing is fetched or pushed: no protocol is allowed.
    """
    chosen = _programs_named(cwd, timeout)
    given = list(args)
    if given and given[0] in _SHOWS_DIFFERENCES:
        given[1:1] = ["--no-ext-diff", "--no-textconv"] if given[0] != "stash" else []
    return _git([*_SWITCHES, *given], cwd, timeout, args, chosen)


def user_settings(cwd: str | Path, *, timeout: float = TIMEOUT) -> list[tuple[str, str]]:
    """Who the user is to git in this folder, and which folders git trusts: from the user's own files, not from the
    repository's, which git reads by itself. Nothing, where there is no git."""
    reading = ["config", "--includes", "--show-scope", "--null", "--get-regexp", _ABOUT_THE_USER]
    try:
        told = _git([*_SWITCHES, *reading], cwd, timeout, reading).text.split("\0")
    except GitFailed:
        return []
    found = zip(told[::2], told[1::2], strict=False)
    return [(key, value) for scope, one in found if scope == "global" for key, _, value in [one.partition("\n")]]


def _programs_named(cwd: str | Path, timeout: float) -> list[str]:
    """Keys of filters, drivers and converters that the configuration names. Reading it runs nothing."""
    reading = [*_SWITCHES, "config", "--includes", "--name-only", "--null", "--list"]
    try:
        listed = _git(reading, cwd, timeout, ["config"])
    except GitFailed:
        return []
    return sorted({key for key in listed.text.split("\0") if _PROGRAM_KEYS.fullmatch(key)})


def _git(
    line: Sequence[str], cwd: str | Path, timeout: float, args: Sequence[str], emptied: Sequence[str] = ()
) -> GitOutput:
    git = programs.find("git")
    if git is None:
        raise GitFailed(args, None, "git is not installed outside the folders that agents may write")
    try:
        done = subprocess.run(
            [git, *line],
            cwd=cwd,
            env={**_environment(), **_emptied(emptied)},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=timeout,
            check=False,
        )
    except subprocess.TimeoutExpired as late:
        raise GitFailed(args, None, (late.stderr or b"").decode(errors="replace")) from late
    except OSError as problem:
        raise GitFailed(args, None, f"git could not be started: {problem}") from problem
    if done.returncode != 0:
        raise GitFailed(args, done.returncode, done.stderr.decode(errors="replace"))
    return GitOutput(done.stdout, done.stderr.decode(errors="replace"))


def _emptied(keys: Sequence[str]) -> dict[str, str]:
    """Through the environment: such a key may hold an equals sign, and the command line would cut it there."""
    made = {"GIT_CONFIG_COUNT": str(len(keys))}
    for number, key in enumerate(keys):
        made |= {f"GIT_CONFIG_KEY_{number}": key, f"GIT_CONFIG_VALUE_{number}": ""}
    return made


def _environment() -> dict[str, str]:
    """No GIT_* of whoever started us, no prompts, no configuration of the system."""
    kept = {name: os.environ[name] for name in ("HOME", "LANG", "TMPDIR", "USER") if name in os.environ}
    return kept | {
        "PATH": programs.search_path(),
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_ASKPASS": "false",
        "SSH_ASKPASS": "false",
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_ATTR_NOSYSTEM": "1",
        "GIT_PAGER": "cat",
        "GIT_EDITOR": "false",
        "GIT_ALLOW_PROTOCOL": "",
        "GIT_PROTOCOL_FROM_USER": "0",
        "LC_ALL": "C.UTF-8",
    }
