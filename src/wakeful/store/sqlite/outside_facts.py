"""What is handed over to be let in: facts from outside."""

from collections.abc import Sequence
from typing import NamedTuple

from wakeful.contracts.envelope import Fact
from wakeful.store.encoding import PackedRow


class OutsideFacts(NamedTuple):
    """Facts that come from outside, and the rows they are stored as."""

    agent_id: str
    facts: Sequence[Fact]
    stored: Sequence[PackedRow]
