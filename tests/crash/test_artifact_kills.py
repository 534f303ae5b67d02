"""A model that reads what was cut, killed at every moment: the page is read again, and the answer is the same."""

import hashlib

from crash.sweeps import sweep
from wakeful import Agent, RunContext, run, tool
from wakeful.ports import Store
from wakeful.testing import Ledger, scripted

WHOLE = "".join(f"line {number}\n" for number in range(30_000))
ARTIFACT = hashlib.sha256(WHOLE.encode()).hexdigest()[:12]


@tool(effect="pure")
def report(ctx: RunContext[Ledger]) -> str:
    """A long report."""
    return WHOLE


async def reads_a_page(store: Store, ledger: Ledger) -> None:
    script = [
        {"calls": [{"name": "report"}]},
        {"calls": [{"name": "read_artifact", "arguments": {"artifact": ARTIFACT, "offset": 100, "limit": 20}}]},
        "Read.",
    ]
    agent = Agent("reader", scripted(script), tools=[report], deps_type=Ledger)
    result = await run(agent, "go", deps=ledger, store=store, key="one")
    (page,) = result.calls("read_artifact")
    assert page.result.startswith(WHOLE[100:120]) and result.output == "Read."


def test_a_page_that_was_cut_off_is_read_again() -> None:
    sweep(reads_a_page, 8)
