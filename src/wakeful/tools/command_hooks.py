"""A hook that is a command: the input as JSON on its standard input, its verdict as JSON on its standard output.

It gets an environment without secrets, and no more time, and no more room for what it says, than a hook has. Whatever
ends the wait, nothing that it started is left: it runs under the sandbox's launcher, which ends all of it. What a
command that failed would have said is not known, so that it has denied.
"""

import asyncio
import json
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from wakeful import programs
from wakeful.sandbox import level_probe
from wakeful.tools.hooks import HookInput, NoVerdict

MAX_ANSWER_BYTES = 65_536
MAX_COMPLAINT_BYTES = 2_000


class CommandFailed(RuntimeError):
    """The command could not be run to its end, or did not end well."""


class CommandHook:
    """Asks a command. The hook around it gives it its time."""

    def __init__(self, command: Sequence[str], directory: str, environment: Callable[[], Mapping[str, str]]) -> None:
        self._command = tuple(command)
        self._directory = directory
        self._environment = environment

    async def __call__(self, call: HookInput) -> Any:
        said = json.dumps(call.to_dict(), ensure_ascii=False, default=str).encode("utf-8", "replace")
        answer = (await self.run(said)).strip()
        if not answer:
            return None
        try:
            verdict = json.loads(answer)
        except ValueError:
            raise NoVerdict("printed something that is not JSON") from None
        if verdict is not None and not isinstance(verdict, dict):
            raise NoVerdict(f"printed a {type(verdict).__name__}, not an object")
        return verdict

    async def run(self, said: bytes) -> bytes:
        """Start it, give it these bytes, and wait for its end. What it printed. Raises CommandFailed or NoVerdict."""
        program = programs.find(self._command[0], owners=True)
        if program is None:
            what = "it is not on the PATH, or only where an agent may write"
            raise CommandFailed(f"{self._command[0]} could not be started: {what}")
        tells, status = os.pipe()
        lifeline, holds = os.pipe()
        plan = {
            "argv": [program, *self._command[1:]],
            "cwd": self._directory,
            "status": status,
            "lifeline": lifeline,
            "tty": False,
            "confined": False,
            "rlimits": {"RLIMIT_CORE": 0},
        }
        line = [*level_probe.interpreter("from wakeful.sandbox.launcher import main; main()"), json.dumps(plan)]
        ours = [tells, holds]
        try:
            try:
                process = await asyncio.create_subprocess_exec(
                    *line,
                    stdin=asyncio.subprocess.PIPE,
                    stdout=asyncio.subprocess.PIPE,
                    stderr=asyncio.subprocess.PIPE,
                    env=dict(self._environment()),
                    pass_fds=(status, lifeline),
                    start_new_session=True,
                )
            finally:
                os.close(status)
                os.close(lifeline)
            try:
                answer, complaint = await self._talk(process, said)
            finally:
                os.close(ours.pop())  # the launcher sees it, and ends whatever is left
                await asyncio.shield(asyncio.ensure_future(_over(process)))
            return self._ended(_told(tells), answer, complaint)
        finally:
            for end in ours:
                os.close(end)

    async def _talk(self, process: asyncio.subprocess.Process, said: bytes) -> tuple[bytes, bytes]:
        assert process.stdin is not None and process.stdout is not None and process.stderr is not None
        writing = asyncio.ensure_future(_write(process.stdin, said))
        complaining = asyncio.ensure_future(_first(process.stderr, MAX_COMPLAINT_BYTES))
        try:
            answer = await _first(process.stdout, MAX_ANSWER_BYTES + 1, stop=True)
            if len(answer) > MAX_ANSWER_BYTES:
                raise NoVerdict(f"printed more than {MAX_ANSWER_BYTES} bytes")
            return answer, await complaining
        finally:
            for other in (writing, complaining):
                other.cancel()
            await asyncio.gather(writing, complaining, return_exceptions=True)

    def _ended(self, told: dict[str, Any], answer: bytes, complaint: bytes) -> bytes:
        words = complaint.decode(errors="replace").strip()
        name = self._command[0]
        if "spawn-error" in told:
            raise CommandFailed(f"{name} could not be started: {told['spawn-error']}")
        if told.get("exit-code") != 0:
            raise CommandFailed(f"{name} ended with status {told.get('exit-code')}" + (f": {words}" if words else ""))
        return answer


async def _write(stream: asyncio.StreamWriter, data: bytes) -> None:
    try:
        stream.write(data)
        await stream.drain()
        stream.close()
        await stream.wait_closed()
    except (BrokenPipeError, ConnectionResetError):
        pass  # it does not want to know


async def _first(stream: asyncio.StreamReader, most: int, *, stop: bool = False) -> bytes:
    """The first bytes of a stream. The rest is read and forgotten, or left unread with `stop`."""
    kept = b""
    while piece := await stream.read(65_536):
        kept += piece[: most - len(kept)]
        if stop and len(kept) >= most:
            break
    return kept


async def _over(process: asyncio.subprocess.Process) -> None:
    """Wait until it has ended. What it still says is read: asyncio counts a process as ended when its pipes are."""
    assert process.stdout is not None and process.stderr is not None
    await asyncio.gather(_first(process.stdout, 0), _first(process.stderr, 0))
    await process.wait()


def _told(tells: int) -> dict[str, Any]:
    """What the launcher said; it has ended, so that there is nothing to wait for."""
    said: dict[str, Any] = {}
    with os.fdopen(os.dup(tells), "rb") as lines:
        for line in lines:
            said.update(json.loads(line))
    return said
