"""Logs of agents as a file of JSON lines, and back. A file is believed only as a whole, after its chains were checked.

The first line names the format, then come logs, their rows as they are stored, and the contents that they refer to; the
last line counts them, so that a file that was cut off is noticed.
"""

import asyncio
import base64
import hashlib
import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from wakeful.contracts.errors import AgentNotFound, EventRefused, InvalidRequest
from wakeful.ports import Store
from wakeful.ports.transfer import StoredLog, StoredRow
from wakeful.views.store_upkeep import TransferReport

FORMAT = "wakeful-logs"
VERSION = 1


async def export_logs(store: Store, path: Path, agents: Sequence[str] = ()) -> TransferReport:
    """Write the logs of these agents, or of all. The file appears as a whole. Raises AgentNotFound, StoreDamaged."""
    if await asyncio.to_thread(path.exists):
        raise InvalidRequest(f"{path} is there already", "Name a file that is not there, or remove it first.")
    logs: list[StoredLog] = []
    for agent_id in agents or await store.agents():
        log = await store.transfer.stored_log(agent_id)
        if log is None:
            raise AgentNotFound(f"there is no log of an agent {agent_id!r} in {store.location}", "wakeful store stats")
        logs.append(log)
    partial, blobs, events = path.with_name(f"{path.name}.partial"), 0, 0
    try:
        handle = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)  # what agents said is not for others
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            _write(file, {"format": FORMAT, "version": VERSION, "runtime_id": store.runtime_id})
            for log in logs:
                _write(file, {"agent": log.agent_id, "cut": log.cut, "cut_hash": log.cut_hash.hex()})
                for row in log.rows:
                    _write(file, _row_line(row))
                events += await _count(store, log)
            async for digest, data in store.transfer.referenced_blobs(logs):
                _write(file, {"blob": digest, "data": base64.b64encode(data).decode()})
                blobs += 1
            _write(file, {"end": True, "agents": len(logs), "events": events, "blobs": blobs})
            file.flush()
            os.fsync(file.fileno())
        partial.rename(path)
    except OSError as error:
        raise InvalidRequest(f"{path} cannot be written: {error}", "Name a file in a folder that is there.") from None
    finally:
        partial.unlink(missing_ok=True)
    return TransferReport(file=str(path), agents=[log.agent_id for log in logs], events=events, blobs=blobs)


async def import_logs(store: Store, path: Path) -> TransferReport:
    """Take in every log of a file that is not here yet: an import that was killed is completed by another one.

    Raises InvalidRequest, StoreDamaged or EventRefused: then no log was taken in.
    """
    whole, blobs = _read(path)
    for log in whole:  # all chains, before the first log is written
        store.transfer.check(log)
    logs = [log for log in whole if not await _is_here(store, log)]
    if not logs and whole:
        raise EventRefused(
            f"all that {path} holds is in {store.location} already: nothing was imported",
            "Import the file into a store that does not have it.",
        )
    for data in blobs:
        await store.put_blob(data, "application/octet-stream")
    events = 0
    for log in logs:
        events += await store.transfer.take_in(log)
    return TransferReport(file=str(path), agents=[log.agent_id for log in logs], events=events, blobs=len(blobs))


async def _is_here(store: Store, log: StoredLog) -> bool:
    """Was the log taken in already? It may have gone on since. Raises EventRefused for another log of that agent."""
    here = await store.transfer.stored_log(log.agent_id)
    if here is None:
        return False
    is_begun_alike = (here.cut, here.cut_hash) == (log.cut, log.cut_hash)
    if not is_begun_alike or [row.hash for row in here.rows[: len(log.rows)]] != [row.hash for row in log.rows]:
        raise EventRefused(
            f"another log of agent {log.agent_id} is in {store.location} already: nothing was imported",
            "Import the file into a store that does not have that agent.",
        )
    return True


async def _count(store: Store, log: StoredLog) -> int:
    newest = await store.read(log.agent_id, after=log.rows[-1].seq - 1) if log.rows else []
    return (newest[-1].seq if newest else log.cut) - log.cut


def _read(path: Path) -> tuple[list[StoredLog], list[bytes]]:
    """Raises InvalidRequest, naming the line."""
    logs: list[StoredLog] = []
    rows: list[StoredRow] = []
    blobs: list[bytes] = []
    ended = False
    for number, line in _lines(path):
        try:
            if number == 1:
                if (line["format"], line["version"]) != (FORMAT, VERSION):
                    raise ValueError(f"it is {line['format']!r}, version {line['version']}")
            elif ended:
                raise ValueError("there is something after the end")
            elif "agent" in line:
                rows = []
                logs.append(StoredLog(str(line["agent"]), int(line["cut"]), bytes.fromhex(line["cut_hash"]), rows))
            elif "seq" in line:
                if not logs:
                    raise ValueError("a row comes before its agent")
                rows.append(_row(line))
            elif "blob" in line:
                data = base64.b64decode(line["data"], validate=True)
                if f"sha256:{hashlib.sha256(data).hexdigest()}" != line["blob"]:
                    raise ValueError("the content does not match its hash")
                blobs.append(data)
            elif "end" in line:
                ended = True
                if (len(logs), len(blobs)) != (line["agents"], line["blobs"]):
                    raise ValueError("lines are missing before it")
            else:
                raise ValueError("the line is of no known kind")
        except (ValueError, KeyError, TypeError) as error:
            raise _wrong(path, number, error) from None
    if not ended:
        raise InvalidRequest(f"{path} is cut off: its last line is missing", "Export the logs again.")
    return logs, blobs


def _lines(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    try:
        with path.open(encoding="utf-8") as file:
            for number, text in enumerate(file, 1):
                try:
                    line = json.loads(text)
                except ValueError as error:
                    raise _wrong(path, number, error) from None
                if not isinstance(line, dict):
                    raise _wrong(path, number, ValueError("the line is not a JSON object"))
                yield number, line
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or error
        raise InvalidRequest(f"{path} cannot be read: {why}", "wakeful store export FILE makes one") from None


def _wrong(path: Path, number: int, error: Exception) -> InvalidRequest:
    what = f"there is no {error}" if isinstance(error, KeyError) else str(error)
    return InvalidRequest(f"{path}, line {number}: {what}: nothing was imported", "wakeful store export FILE makes one")


def _row_line(row: StoredRow) -> dict[str, Any]:
    body = base64.b64encode(row.body).decode()
    return {"seq": row.seq, "header": row.header.decode(), "body": body, "hash": row.hash.hex()}


def _row(line: dict[str, Any]) -> StoredRow:
    body = base64.b64decode(line["body"], validate=True)
    return StoredRow(int(line["seq"]), line["header"].encode(), body, bytes.fromhex(line["hash"]))


def _write(file: Any, line: dict[str, Any]) -> None:
    file.write(json.dumps(line, ensure_ascii=False, separators=(",", ":")) + "\n")
