"""No agent at all: a bare apsw loop that commits four hashed facts a round. What durability alone costs here.

The facts have about the content of a round's (reply, intent, result, next request), as JSON, each chained to the one
before it by its hash. One transaction a round, the same settings as wakeful's store: write-ahead log, synchronous
NORMAL, one `fdatasync` at the end.
"""

import json
import os
from hashlib import blake2b
from pathlib import Path

import apsw

from contestants import Turn
from contestants.work import FINAL, add, arguments

_INSERT = "INSERT INTO facts (seq, header, body, hash) VALUES (?, ?, ?, ?)"


def prepare(rounds: int, folder: Path) -> Turn:
    async def turn() -> str:
        path = folder / "facts.db"
        connection = apsw.Connection(str(path))
        connection.pragma("journal_mode", "wal")
        connection.pragma("synchronous", "NORMAL")
        connection.execute("CREATE TABLE facts (seq INTEGER PRIMARY KEY, header BLOB, body BLOB, hash BLOB)")
        execute = connection.cursor().execute
        seq, previous = 0, bytes(32)
        for number in range(rounds):
            given = arguments(number)
            call = {"call_id": f"call_{number}", "name": "add"}
            reply = {"model_ref": "bare:loop", "stop_reason": "tool_calls", "calls": [{**call, "arguments": given}]}
            result = await add(**given)
            facts = (
                ("model.completed", reply),
                ("tool.started", {**call, "effect": "pure", "safe_args": given}),
                ("tool.result", {**call, "text": str(result), "size_bytes": 4}),
                ("model.requested", {"model_ref": "bare:loop", "items": 2 * number}),
            )
            execute("BEGIN IMMEDIATE")
            for kind, payload in facts:
                seq += 1
                header, body = json.dumps([kind, seq, "turn_1"]).encode(), json.dumps(payload).encode()
                previous = blake2b(previous + header + blake2b(body, digest_size=32).digest(), digest_size=32).digest()
                execute(_INSERT, (seq, header, body, previous))
            execute("COMMIT")
        descriptor = os.open(f"{path}-wal", os.O_RDWR)
        os.fdatasync(descriptor)
        os.close(descriptor)
        connection.close()
        return FINAL

    return turn
