"""The system's manager of services: files with which it starts the daemon by itself, and what it is told by it."""

import math
import os
import re
import shlex
import socket
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias
from xml.sax.saxutils import escape

from wakeful.service.serving.options import END_SECONDS
from wakeful.service.serving.run_files import SECRETS, home_folder, log_path
from wakeful.settings.daemon import owner_drain

Manager: TypeAlias = Literal["systemd", "launchd"]
UNIT = "wakeful.service"
AGENT = "io.wakeful.daemon.plist"
WATCHDOG_SECONDS = 120
SEND_SECONDS = 1.0
"""A manager has room for a few words that it has not read. One that reads none of them is not waited for."""


class StartFile(NamedTuple):
    """A file for the system's manager of services, and the commands that put it into force."""

    path: Path
    text: str
    commands: tuple[str, ...]


def start_file(arguments: tuple[str, ...], manager: Manager | None = None, folder: Path | None = None) -> StartFile:
    """For this user, this home and these options of `serve`. `folder`: where the modules of `--tools` are found; None:
    there are none."""
    if (manager or ("launchd" if sys.platform == "darwin" else "systemd")) == "launchd":
        return _launchd(arguments, folder)
    return _systemd(arguments, folder)


def _systemd(arguments: tuple[str, ...], folder: Path | None) -> StartFile:
    """`KillMode=process`: tasks have supervisors of their own and outlive the daemon; the manager must not end them."""
    home = home_folder().absolute()
    line = " ".join(_word(each) for each in (sys.executable, "-P", "-m", "wakeful.surfaces.cli", "serve", *arguments))
    begins = "" if folder is None else f"WorkingDirectory={str(folder).replace('%', '%%')}\n"
    text = f"""[Unit]
Description=wakeful: agents that live
Documentation=man:systemd.service(5)
After=network-online.target
Wants=network-online.target

[Service]
Type=notify
NotifyAccess=main
{begins}ExecStart={line}
Environment=WAKEFUL_HOME={_quoted(str(home))}
EnvironmentFile=-{str(home / SECRETS).replace("%", "%%")}
KillMode=process
KillSignal=SIGTERM
TimeoutStopSec={_stop_seconds()}
Restart=on-failure
RestartSec=5
WatchdogSec={WATCHDOG_SECONDS}

[Install]
WantedBy=default.target
"""
    base = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config")
    return StartFile(
        base / "systemd" / "user" / UNIT,
        text,
        (
            "systemctl --user daemon-reload",
            f"systemctl --user enable --now {UNIT}",
            "loginctl enable-linger   # so that it runs while you are logged out",
        ),
    )


def _launchd(arguments: tuple[str, ...], folder: Path | None) -> StartFile:
    words = [sys.executable, "-P", "-m", "wakeful.surfaces.cli", "serve", *arguments]
    listed = "\n".join(f"    <string>{escape(word)}</string>" for word in words)
    begins = "" if folder is None else f"\n  <key>WorkingDirectory</key><string>{escape(str(folder))}</string>"
    text = f"""<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
<plist version="1.0">
<dict>
  <key>Label</key><string>{AGENT.removesuffix(".plist")}</string>
  <key>ProgramArguments</key>
  <array>
{listed}
  </array>{begins}
  <key>EnvironmentVariables</key>
  <dict><key>WAKEFUL_HOME</key><string>{escape(str(home_folder().absolute()))}</string></dict>
  <key>RunAtLoad</key><true/>
  <key>KeepAlive</key><dict><key>SuccessfulExit</key><false/></dict>
  <key>AbandonProcessGroup</key><true/>
  <key>ExitTimeOut</key><integer>{_stop_seconds()}</integer>
  <key>StandardOutPath</key><string>{escape(str(log_path().absolute()))}</string>
  <key>StandardErrorPath</key><string>{escape(str(log_path().absolute()))}</string>
</dict>
</plist>
"""
    path = Path.home() / "Library" / "LaunchAgents" / AGENT
    return StartFile(path, text, (f"launchctl bootstrap gui/{os.getuid()} {shlex.quote(str(path))}",))


def _stop_seconds() -> int:
    """How long the manager waits before it kills: longer than a drain takes. systemd is told anew when one begins."""
    return math.ceil(owner_drain() + END_SECONDS)


def _word(value: str) -> str:
    """A word of a command line as systemd reads it: in `$` it sees a variable, in `%` a value of its own."""
    escaped = value.replace("%", "%%").replace("$", "$$")
    return (
        escaped
        if re.fullmatch(r"[\w@%+=:,./$-]+", escaped)
        else '"' + escaped.replace("\\", "\\\\").replace('"', '\\"') + '"'
    )


def _quoted(value: str) -> str:
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%") + '"'


def notify(state: str, environ: Mapping[str, str] = os.environ, *, seconds: float = SEND_SECONDS) -> bool:
    """Send the manager a state such as `READY=1` (`sd_notify`). False: nobody wants to be told, or has room for it
    within these seconds."""
    address = environ.get("NOTIFY_SOCKET", "")
    if not address.startswith(("/", "@")):
        return False
    with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as sender:
        sender.settimeout(seconds)
        sender.connect("\0" + address[1:] if address[0] == "@" else address)
        sender.sendall(state.encode())
        return True
    return False


def watchdog_seconds(environ: Mapping[str, str] = os.environ) -> float | None:
    """How often to say that it is alive; None: nobody listens. Often enough that one look at which something was wrong,
    and mended, ends nothing."""
    limit, process = environ.get("WATCHDOG_USEC", ""), environ.get("WATCHDOG_PID", "")
    if not limit.isdigit() or int(limit) <= 0 or (process and process != str(os.getpid())):
        return None
    return int(limit) / 1_000_000 / 4
