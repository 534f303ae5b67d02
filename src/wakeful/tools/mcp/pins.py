"""What each server's tools were when they were accepted: a changed tool is parked until somebody accepts the change.

The first sight of a tool pins it. A later sight that differs is written down beside the pin, with the words it would
have shown the model; accepting makes that, and nothing newer, the pin.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from wakeful.contracts.errors import InvalidConfig
from wakeful.tools.mcp.files import locked, read_json, write_json
from wakeful.tools.mcp.tool_list import MAX_DESCRIPTION, ListedTool

VERSION = 1


@dataclass(frozen=True, slots=True)
class ParkedTool:
    """A tool that is not what was accepted."""

    tool: str
    since: str
    """When what was accepted was first seen, and when it changed: `2026-01-01`."""
    changed: str
    description: str
    """What it says of itself now."""


@dataclass(frozen=True, slots=True)
class PinnedTool:
    """A tool that was accepted."""

    tool: str
    since: str


class Pins:
    """The pins in one file, which any number of processes share."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def check(self, server: str, tools: Sequence[ListedTool]) -> dict[str, ParkedTool]:
        """Pin what is new; name what changed. Raises InvalidConfig when the file cannot be read: then nothing holds."""
        if self._all_known(server, tools):
            return {}
        today = datetime.now(UTC).date().isoformat()
        parked: dict[str, ParkedTool] = {}
        with locked(self.path):
            data = self._read()
            known = data["servers"].setdefault(server, {})
            for tool in tools:
                pin = known.get(tool.name)
                if pin is None:
                    known[tool.name] = {"fingerprint": tool.fingerprint, "since": today}
                elif pin["fingerprint"] == tool.fingerprint:
                    pin.pop("pending", None)  # it went back to what was accepted
                else:
                    pending = pin.get("pending")
                    if not pending or pending["fingerprint"] != tool.fingerprint:
                        words = tool.description[:MAX_DESCRIPTION]
                        pin["pending"] = {"fingerprint": tool.fingerprint, "seen": today, "description": words}
                    parked[tool.name] = _parked(tool.name, pin)
            write_json(self.path, data)
        return parked

    def approve(self, server: str, tools: Sequence[str] | None = None) -> list[ParkedTool]:
        """Accept what changed, of all tools or of these; says what was accepted."""
        accepted: list[ParkedTool] = []
        with locked(self.path):
            data = self._read()
            for name, pin in data["servers"].get(server, {}).items():
                if pin.get("pending") and (tools is None or name in tools):
                    accepted.append(_parked(name, pin))
                    pending = pin.pop("pending")
                    pin |= {"fingerprint": pending["fingerprint"], "since": pending["seen"]}
            if accepted:
                write_json(self.path, data)
        return accepted

    def parked(self, server: str) -> list[ParkedTool]:
        """What waits for somebody."""
        known = self._read()["servers"].get(server, {})
        return [_parked(name, pin) for name, pin in sorted(known.items()) if pin.get("pending")]

    def known(self, server: str) -> list[PinnedTool]:
        """Every tool the server ever had here."""
        return [PinnedTool(name, pin["since"]) for name, pin in sorted(self._read()["servers"].get(server, {}).items())]

    def _all_known(self, server: str, tools: Sequence[ListedTool]) -> bool:
        """The common case, without a lock and without a write."""
        known = self._read()["servers"].get(server, {})
        return all(
            (pin := known.get(tool.name)) is not None
            and pin["fingerprint"] == tool.fingerprint
            and not pin.get("pending")
            for tool in tools
        )

    def _read(self) -> dict[str, Any]:
        data = read_json(self.path) or {"version": VERSION, "servers": {}}
        servers = data.get("servers")
        if (
            data.get("version") != VERSION
            or not isinstance(servers, dict)
            or not all(map(_is_server, servers.values()))
        ):
            raise InvalidConfig(f"{self.path} holds no pins of this version", "repair the file, or move it away")
        return data


def _is_server(known: Any) -> bool:
    return isinstance(known, dict) and all(
        isinstance(pin, Mapping) and isinstance(pin.get("fingerprint"), str) and isinstance(pin.get("since"), str)
        for pin in known.values()
    )


def _parked(name: str, pin: Mapping[str, Any]) -> ParkedTool:
    pending = pin["pending"]
    return ParkedTool(name, pin["since"], pending["seen"], pending.get("description", ""))
