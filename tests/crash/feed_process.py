"""A program that follows the feed of a store: `python feed_process.py STORE OUT`.

It writes each entry's cursor and event on a line of OUT, and begins behind the last line that stands there.
"""

import asyncio
import sys
from pathlib import Path

from wakeful import open_store


async def main(path: Path, out: Path) -> None:
    known = out.read_text().splitlines() if out.exists() else []
    after = known[-1].split()[0] if known else None
    with out.open("a") as file:
        async with open_store(path) as store:
            async for entry in store.feed(after, follow=True):
                file.write(f"{entry.cursor} {entry.envelope.event_id}\n")
                file.flush()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), Path(sys.argv[2])))
