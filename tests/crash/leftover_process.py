"""An agent that works in a folder: `main(root, store, steps, die_at)`, or as a script with ROOT STORE STEPS.

`steps` is what its model says. The process ends at the `die_at`-th look at a file that is staged, 0: at none.
"""

import asyncio
import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

from wakeful import Agent, run
from wakeful.testing import scripted


async def main(root: Path, store: Path, steps: Any, die_at: int = 0) -> None:
    seen = 0

    def watch(event: str, given: tuple[Any, ...]) -> None:
        nonlocal seen
        names = [os.fsdecode(each) for each in given if isinstance(each, str | bytes)]
        if event in ("open", "os.rename", "os.remove") and any(".wakeful-" in name for name in names):
            seen += 1
            if seen == die_at:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(watch)
    agent = Agent("a", scripted(steps), workspace=root, profile="coding")
    sys.stdout.write(f"{(await run(agent, 'go', key='k', store=store)).status}\n")


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), Path(sys.argv[2]), json.loads(sys.argv[3])))
