"""Searching an agent's memory: 100,000 entries, words that are rare and words that are everywhere.

    python benchmarks/memory_search.py
    python benchmarks/memory_search.py --entries 10000 --searches 200

The entries are briefs of a real store, written as facts. Measured are making the index from nothing, and searches the
way a tool call makes them: the index is opened, brought up to date with the log, asked, and closed. The aim is a p95
under 20 ms for words in under 1 % of the entries; words that stand in every entry have to stay within the same order.
"""

import argparse
import asyncio
import random
import tempfile
import time
from pathlib import Path
from statistics import median

from reporting import Aim, aims_table, number, table

from wakeful.contracts.content import Text
from wakeful.contracts.conversation import UserItem
from wakeful.contracts.envelope import Fact
from wakeful.contracts.events import BriefCreated, MessageAdmitted, SessionStarted
from wakeful.engine.agent_memory import AgentMemory, index_place
from wakeful.retrieval.memory_index import EVERYTHING, Reach
from wakeful.store.sqlite import SqliteStore

ENTRIES, SEARCHES, BATCH = 100_000, 300, 4
AGENT = "ada"
AIM_MS = 20.0
SYLLABLES = ("ba", "ke", "li", "mo", "nu", "ra", "se", "ti", "vo", "xa")
HAN = "天地玄黄宇宙洪荒日月盈昃辰宿列张寒来暑往秋收冬藏"

TEXT = """## Memory search

{entries:,} entries of one agent, {searches} searches of each kind, each with opening the index and bringing it up to
date. {made}
"""


def words_of(chance: random.Random, entry: int, entries: int) -> str:
    """About 60 words: most from a vocabulary of 10,000, one that is in all, one in half, one in about 0.9 %."""
    said = ["".join(chance.choices(SYLLABLES, k=4)) for _ in range(50)]
    said += ["common", "deploy" if entry % 2 else "review", f"topic{entry % 110}", f"ticket{entry}"]
    said += ["".join(chance.choices(HAN, k=6)), "部署" if entry % 200 == 0 else "检查"]
    chance.shuffle(said)
    return " ".join(said)


async def filled(store: SqliteStore, entries: int) -> None:
    chance = random.Random(7)
    message = MessageAdmitted(message_id="msg_1", item=UserItem(parts=(Text("go"),)))
    await store.admit(
        AGENT, [Fact(SessionStarted(agent_name=AGENT, temporary=False), 1), Fact(message, 1, "main", "turn_1")]
    )
    claim = await store.claim("turn_1")
    for first in range(0, entries, BATCH):
        facts = [
            Fact(
                BriefCreated(
                    brief_id=f"brief_{entry}",
                    brief_kind="progress",
                    text=words_of(chance, entry, entries),
                    principal="" if entry % 10 else f"user{entry % 1000}",
                ),
                entry + 1,
                "main",
                "turn_1",
            )
            for entry in range(first, min(entries, first + BATCH))
        ]
        await store.append(claim, facts)
    await store.release(claim)


def questions(entries: int) -> "dict[str, tuple[list[str], Reach]]":
    chance = random.Random(8)
    some = [chance.randrange(entries) for _ in range(SEARCHES)]
    vocabulary = ["".join(chance.choices(SYLLABLES, k=4)) for _ in range(SEARCHES)]
    own = Reach(frozenset({"", "user7"}))
    return {
        "one entry": ([f"ticket{entry}" for entry in some], EVERYTHING),
        "0.5 %": (vocabulary, EVERYTHING),
        "0.9 %": ([f"topic{entry % 110}" for entry in some], EVERYTHING),
        "0.9 %, in the chat of one person": ([f"topic{entry % 110}" for entry in some], own),
        "three rare words": ([" ".join(vocabulary[at : at + 3]) for at in range(SEARCHES - 3)], EVERYTHING),
        "Chinese, 0.5 %": (["部署"] * SEARCHES, EVERYTHING),
        "Chinese and Latin": ([f"部署 topic{entry % 110}" for entry in some], EVERYTHING),
        "half of all": (["deploy"] * SEARCHES, EVERYTHING),
        "all": (["common"] * SEARCHES, EVERYTHING),
        "all, in the chat of one person": (["common"] * SEARCHES, own),
        "eight common words": (["common deploy review 检查 common deploy review 检查"] * SEARCHES, EVERYTHING),
    }


async def measured(entries: int = ENTRIES, searches: int = SEARCHES) -> str:
    """The section of the report."""
    with tempfile.TemporaryDirectory() as folder:
        store = await SqliteStore.open(str(Path(folder) / "store.db"))
        try:
            await filled(store, entries)
            memory = AgentMemory(store, AGENT, Path(folder) / "home")
            began = time.perf_counter()
            await memory.newest(1)
            built = time.perf_counter() - began
            place = index_place(store, AGENT)
            assert place is not None
            size = await asyncio.to_thread(lambda: place.stat().st_size)
            rows, rare = [], []
            for name, (asked, reach) in questions(entries).items():
                took, found = [], 0
                for question in asked[:searches]:
                    began = time.perf_counter()
                    found = len((await memory.search(question, reach, 10)).found)
                    took.append((time.perf_counter() - began) * 1_000)
                took.sort()
                p95 = took[int(len(took) * 0.95)]
                if "%" in name or name in ("one entry", "three rare words"):
                    rare.append(p95)
                rows.append((name, number(median(took)), number(p95), number(took[-1]), str(found)))
            searched = table(("words in", "p50 ms", "p95 ms", "max ms", "found"), rows)
            worst = Aim("words in under 1 % of the entries, the slowest p95", max(rare), AIM_MS, "ms")
            made = f"Making the index took {built:.1f} s; it has {size / 1e6:.0f} MB."
            text = TEXT.format(entries=entries, searches=searches, made=made)
            return f"{text}\n{searched}\n\n{aims_table([worst])}\n"
        finally:
            await store.close()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--entries", type=int, default=ENTRIES)
    parser.add_argument("--searches", type=int, default=SEARCHES)
    given = parser.parse_args()
    print(asyncio.run(measured(given.entries, given.searches)))
