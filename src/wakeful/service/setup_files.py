"""The first files of a home: `wakeful.toml`, `agents/NAME.yaml`, `secrets.env`. Written whole, and never over others.

Each is on disk before it has its name. A file that is there is left alone; with `replace` it is kept beside as `.old`.
"""

import json
import os
import re
import secrets
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

from wakeful.contracts.channels import SERVERS, ChannelKind
from wakeful.contracts.errors import InvalidRequest, WakefulError
from wakeful.engine.agent_file import read_agent_file
from wakeful.settings.agent_homes import FOLDER
from wakeful.settings.local_zone import local_zone
from wakeful.settings.notify_targets import owner_targets

REACH_VARIABLE = "NOTIFY_URL"
"""Where the address of notices is kept: whoever knows it can read them, or send others."""
REACH_NAME = "me"
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}")
INSTRUCTIONS = (
    "You are the personal assistant of the owner of this machine. Be brief. Say what you did and what you did not do."
)


class PhoneToPair(NamedTuple):
    """A phone that is to be paired once the daemon runs."""

    kind: ChannelKind
    server: str | None = None


class WayToOwner(NamedTuple):
    """How the owner is reached."""

    lines: tuple[str, ...] = ()
    """Of `wakeful.toml`."""
    address: str = ""
    """For `secrets.env`."""
    phone: PhoneToPair | None = None


def reach_of(said: str) -> WayToOwner:
    """`none`, a phone, an address, or the words of a command. Raises InvalidRequest with the forms there are."""
    said = said.strip()
    if said in ("", "none"):
        return WayToOwner()
    for kind in SERVERS:
        if said == kind or said.startswith(f"{kind}:"):
            server = said.removeprefix(kind).removeprefix(":") or None
            if server is not None and not _is_address(server):
                raise _unreachable(said)
            return WayToOwner(phone=PhoneToPair(kind, server))
    head = f"[notify.{REACH_NAME}]"
    if "://" in said:
        if not _is_address(said):
            raise _unreachable(said)
        parts = urlsplit(said)
        lines = [head, f'to_env = "{REACH_VARIABLE}"   # in secrets.env: whoever knows it reads your notices']
        if parts.hostname in ("localhost", "127.0.0.1", "::1"):
            lines.append("allow_private = true")
        return WayToOwner(tuple(lines), said)
    import shlex

    try:
        words = shlex.split(said)
    except ValueError:
        raise _unreachable(said) from None
    if len(words) < 2 and not said.startswith("/"):
        raise _unreachable(said)
    return WayToOwner((head, f"to = {json.dumps(words)}"))


def _is_address(said: str) -> bool:
    parts = urlsplit(said)
    return parts.scheme in ("http", "https") and bool(parts.hostname)


def _unreachable(said: str) -> InvalidRequest:
    return InvalidRequest(
        f"{said!r} is not a way to reach you",
        "Give ntfy or telegram (ntfy:https://SERVER for your own), an address that takes POST (https://...), "
        "a command of two words or more, or none.",
    )


def owner_text(
    *, spend: float | None, reach: WayToOwner, base_url: tuple[str, str] | None, environ: Mapping[str, str]
) -> str:
    """The owner's file."""
    lines = [
        "# wakeful.toml: yours. Nothing rewrites it; `wakeful check` reads it. Settings: docs/reference/settings.md"
    ]
    if spend is not None:
        lines += ["", "[budget]", f"per_day = {{usd = {spend:g}}}", f'timezone = "{local_zone(environ)}"']
    if reach.lines:
        lines += ["", *reach.lines]
    if base_url is not None:
        lines += ["", f"[providers.{base_url[0]}]", f"base_url = {json.dumps(base_url[1])}"]
    return "\n".join(lines) + "\n"


def agent_text(
    name: str,
    model: str,
    instructions: str,
    *,
    notify: bool = False,
    workspace: Path | None = None,
    wake: Sequence[Mapping[str, str]] = (),
    usd_per_run: float | None = None,
) -> str:
    """The file of an agent. Texts are written as JSON writes them, which YAML reads."""
    lines = [f"name: {_as_yaml(name)}", f"model: {json.dumps(model)}", f"instructions: {_quoted(instructions)}"]
    if workspace is not None:
        lines.append(f"workspace: {_quoted(str(workspace))}")
    if wake:
        lines.append("wake:")
        lines += [f"  - {{{', '.join(f'{key}: {_quoted(value)}' for key, value in entry.items())}}}" for entry in wake]
    if usd_per_run is not None:
        lines.append(f"budget: {{per_run: {{usd: {usd_per_run:g}}}}}")
    if notify:
        lines.append(f"notify: {{to: {REACH_NAME}}}")
    return "\n".join(lines) + "\n"


def _as_yaml(name: str) -> str:
    """A name as it is, where YAML reads a text; `no` and `007` are something else to it, and are quoted."""
    import yaml  # who sets nothing up must not pay for it

    return name if isinstance(yaml.safe_load(name), str) else _quoted(name)


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def agent_file(home: Path, name: str) -> Path:
    """Where the file of an agent goes. Raises InvalidRequest for a name that is none."""
    if not _NAME.fullmatch(name):
        raise InvalidRequest(
            f"{name!r} is not a name for an agent",
            "Use letters, digits, - and _, a letter first: wakeful agent new ops",
        )
    return home / FOLDER / f"{name}.yaml"


def write_new(path: Path, text: str, *, replace: bool = False) -> None:
    """Write a file that is not there. Raises InvalidRequest where it is; with `replace` that one is kept as `.old`."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    if replace and path.exists():
        path.replace(path.with_name(f"{path.name}.old"))
    unnamed = path.with_name(f".{path.name}.{secrets.token_hex(4)}.new")
    descriptor = os.open(unnamed, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(descriptor)
        os.link(unnamed, path)
    except FileExistsError:
        raise InvalidRequest(f"{path} is there already", "It was not changed. Edit it, or remove it first.") from None
    finally:
        unnamed.unlink()


def keep_secrets(path: Path, new: Mapping[str, str], *, replace: bool = False) -> list[str]:
    """Write variables that the file does not have yet, and with `replace` those it has; the names of those that were
    written. Other lines stay as they are."""
    try:
        text = path.read_text("utf-8")
    except FileNotFoundError:
        text = ""
    lines = [(_variable_of(line), line) for line in text.splitlines()]
    known = {name for name, _ in lines}
    written = {name: value for name, value in new.items() if replace or name not in known}
    if not written:
        return []
    if any(not value or "\n" in value or "'" in value for value in written.values()):
        raise InvalidRequest(
            "a secret that is empty, or holds a quote or a line break, cannot be kept", "Give another."
        )
    kept = [line for name, line in lines if name not in written]
    made = [f"{name}='{value}'" for name, value in written.items()]
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    unnamed = path.with_name(f".{path.name}.{secrets.token_hex(4)}.new")
    descriptor = os.open(unnamed, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write("\n".join((*kept, *made)) + "\n")
            file.flush()
            os.fsync(descriptor)
        unnamed.replace(path)
    finally:
        unnamed.unlink(missing_ok=True)
    return [*written]


def _variable_of(line: str) -> str:
    return line.strip().removeprefix("export ").partition("=")[0].strip()


def model_of(home: Path, name: str) -> str | None:
    """The model that an agent's file names; None where there is no such file, or none that can be read."""
    try:
        found = read_agent_file(agent_file(home, name)).data.get("model")
    except (WakefulError, OSError):
        return None
    return found if isinstance(found, str) else None


def is_reachable() -> bool:
    """Does the owner's file say how the owner is reached?"""
    try:
        return REACH_NAME in owner_targets()
    except WakefulError:
        return False
