"""A store for tests that holds every fact to the published schema before it is appended.

The typed events cannot be written wrong by accident, but a fact's ids can be missing, and `model_construct`, which the
engine uses for speed, checks nothing. In tests each fact is seen once as a reader outside would get it.
"""

from collections.abc import Sequence

from wakeful.contracts.envelope import Fact, StoredFact, published
from wakeful.contracts.errors import EventRefused
from wakeful.contracts.schema import validate_event
from wakeful.ports import AdmissionAnswer, Claim, Store
from wakeful.testing.wrapped_store import WrappedStore


class ValidatingStore(WrappedStore):
    """Raises EventRefused, naming the event and the path of each problem; what is valid goes on to the store inside."""

    def __init__(self, inner: Store) -> None:
        super().__init__(inner)
        self.validated = 0
        """How many facts were seen."""

    async def admit(
        self, agent_id: str, facts: Sequence[Fact], *, reserve: bool = False, claim: bool = False
    ) -> AdmissionAnswer | None:
        self._validate(agent_id, facts)
        return await super().admit(agent_id, facts, reserve=reserve, claim=claim)

    async def append(
        self, claim: Claim, facts: Sequence[Fact], *, barrier: bool = False, rest: bool = False, last: bool = False
    ) -> list[StoredFact]:
        self._validate(claim.agent_id, facts)
        return await super().append(claim, facts, barrier=barrier, rest=rest, last=last)

    def _validate(self, agent_id: str, facts: Sequence[Fact]) -> None:
        for fact in facts:
            # The store inside gives the number; any will do to see whether the rest is valid.
            event = published(StoredFact(agent_id, 1, fact), self.runtime_id)
            problems = validate_event(event.model_dump(mode="json", exclude_none=True))
            if problems:
                listed = "; ".join(f"{problem.path or 'the event'}: {problem.message}" for problem in problems)
                raise EventRefused(
                    f"{event.type} does not fit the published schema: {listed}",
                    "the schema is docs/reference/events.schema.json, the payloads are in wakeful.contracts.events",
                )
            self.validated += 1
