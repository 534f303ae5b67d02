"""A scripted model that is wholly hostile, an agent it drives, and everything that comes out of its runs."""

import json
import os
from pathlib import Path
from typing import Any

from kit.gates.confined_commands import level
from kit.runs.engine_runs import calls as asked
from kit.runs.whole_views import run_stream, transcript
from wakeful import Agent, RunResult, run
from wakeful.contracts.envelope import StoredFact
from wakeful.service.queries.turns import EventReader, wire
from wakeful.store.sqlite import SqliteStore
from wakeful.testing import scripted

READ, WRITE, EDIT, PATCH = (f"wakeful/{name}" for name in ("read_file", "write_file", "edit_file", "apply_patch"))
COMMAND = "wakeful/exec_command"


def command(cmd: str, **more: Any) -> tuple[str, dict[str, Any]]:
    return COMMAND, {"cmd": cmd, **more}


async def attack(root: Path, *rounds: list[tuple[str, Any]], store: Path | None = None, **agent: Any) -> RunResult[Any]:
    """Let the model make these calls, round by round, in a workspace whose store lies in it."""
    level("bubblewrap")  # or a skip that says what is missing
    steps = [*(asked(*each) for each in rounds), "I am done."]
    given = {"workspace": root, "profile": "coding", **agent}
    who = Agent("hostile", scripted(steps, leftover="ignore"), **given)
    return await run(who, "go", store=store if store is not None else root / "state.db")


def refusals(result: RunResult[Any]) -> list[str]:
    """What each call was told; a call that succeeded makes the test fail."""
    told = []
    for call in result.calls():
        assert call.status != "success", (call.tool, call.arguments, call.result[:300])
        assert call.error, call
        told.append(call.error)
    return told


async def everything(result: RunResult[Any], store: Path) -> str:
    """All that anybody could read of a run: the store's own bytes, and every view of it."""
    facts: list[StoredFact] = list(result.facts())
    opened = await SqliteStore.open(str(store))
    try:
        reader = EventReader(opened)
        events = [wire(await reader.read(recorded)) for recorded in facts]
    finally:
        await opened.close()
    views = [
        events,
        result.to_dict(reveal=True),
        [call.model_dump(mode="json") for call in result.calls()],
        [event.model_dump(mode="json") for event in run_stream(result.turn_id, facts)],
        [entry.model_dump(mode="json") for entry in transcript(facts)],
    ]
    return "\n".join([*_stored(store), *(json.dumps(view, ensure_ascii=False) for view in views)])


def _stored(store: Path) -> list[str]:
    found = [path for path in store.parent.glob(f"{store.name}*") if path.is_file()]
    found += [path for path in Path(f"{store}.blobs").rglob("*") if path.is_file()]
    return [path.read_bytes().decode(errors="replace") for path in found]


def unchanged(folder: Path) -> dict[str, bytes]:
    """Every file beneath a folder, to be compared with itself later."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def is_running(marker: str) -> bool:
    own = str(os.getpid())
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if folder.name != own and marker.encode() in (folder / "cmdline").read_bytes():
                return True
        except OSError:
            continue
    return False
