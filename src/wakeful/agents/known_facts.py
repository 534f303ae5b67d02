"""A turn's stored facts, for its result: in memory while they are few, read back from the log when they are many.

A long turn must not keep every fact it ever wrote alive: it would cost memory, and the garbage collector would walk
over all of them again and again.
"""

from collections.abc import Callable, Iterable, Sequence

from wakeful.contracts.envelope import Fact, Recorded

KEPT = 1_000
"""A turn with more facts than this keeps none of them."""


class KnownFacts:
    """What is known of a turn's facts in this process."""

    def __init__(self, agent_id: str, recorded: Sequence[Recorded], read: Callable[[], list[Recorded]]) -> None:
        self._agent_id = agent_id
        self._facts: list[Fact] | None = []
        self._seqs: list[int] = []
        """Where each of the facts stands. An object for the pair would be one more for each fact of every open turn."""
        self._read = read
        self.last_seq = 0
        self.add(recorded)

    def add(self, recorded: Sequence[Recorded]) -> None:
        """Facts that are stored now, wherever they stand."""
        self._keep([entry.fact for entry in recorded], [entry.seq for entry in recorded])

    def add_own(self, facts: Sequence[Fact], first_seq: int) -> None:
        """Facts of the owner that are stored now, one after the other."""
        self._keep(facts, range(first_seq, first_seq + len(facts)))

    def _keep(self, facts: Iterable[Fact], seqs: Sequence[int]) -> None:
        if seqs:
            self.last_seq = seqs[-1]
            if self._facts is not None:
                self._facts.extend(facts)
                self._seqs.extend(seqs)
                if len(self._facts) > KEPT:
                    self._facts = None
                    self._seqs.clear()

    def __call__(self) -> list[Recorded]:
        """All of them, in order."""
        if self._facts is None:
            return self._read()
        return [Recorded(self._agent_id, seq, fact) for seq, fact in zip(self._seqs, self._facts, strict=True)]
