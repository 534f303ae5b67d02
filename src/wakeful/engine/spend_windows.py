"""The spend windows of one turn, as they were when the runner looked last.

Looking is for the words: which window has no room, and when most of one is used up. What holds is the store's own
check, in the transaction that holds the money back (`store.tables.spending`): two runners that have seen the same rest
of a window both try, and one of them is refused and looks again.
"""

from collections.abc import Sequence
from decimal import Decimal

from wakeful.contracts.budgets import SpendWindow
from wakeful.contracts.envelope import Fact, StoredFact
from wakeful.contracts.events import (
    AssistantRecorded,
    BudgetNoticed,
    CostRecorded,
    LimitChanged,
    ModelFailed,
    TurnResumed,
)
from wakeful.contracts.spending import (
    RUNTIME,
    SpendRow,
    WindowKey,
    WindowPassed,
    WindowRef,
    agent_scope,
    dollars,
    nanodollars,
    principal_scope,
)
from wakeful.decisions.ledger import Room
from wakeful.decisions.levels import OpenRequest
from wakeful.decisions.spend_windows import (
    OwnerWindows,
    allowed_in,
    applying,
    costs_nothing,
    is_noticeable,
    passed_by,
    window_words,
)
from wakeful.ports import Clock, Spending

_NOTHING = Decimal(0)


def window_rested_on(recorded: Sequence[StoredFact]) -> WindowPassed | None:
    """The window that a turn with these facts rests on."""
    for entry in reversed(recorded):
        event = entry.fact.event
        if isinstance(event, TurnResumed):
            return None
        if isinstance(event, LimitChanged) and event.window is not None:
            return event.window
    return None


def windows_of_turn(
    store: Spending,
    clock: Clock,
    agents: Sequence[tuple[str, Sequence[SpendWindow]]],
    principal: str | None,
    owner: OwnerWindows,
    payers: Sequence[tuple[str, Sequence[SpendWindow]]] = (),
) -> "TurnWindows | None":
    """The spend windows that hold for a turn; None: none does. `agents` work in it, its own first; `payers` made its
    agent, and everything counts in their windows, too."""
    if owner.runtime or owner.of_principal(principal) or [name for name, windows in (*agents, *payers) if windows]:
        return TurnWindows(store, clock, agents, principal, owner, payers)
    return None


class TurnWindows:
    """What the requests of a turn are held to, besides the turn's own budget."""

    def __init__(
        self,
        store: Spending,
        clock: Clock,
        agents: Sequence[tuple[str, Sequence[SpendWindow]]],
        principal: str | None,
        owner: OwnerWindows,
        payers: Sequence[tuple[str, Sequence[SpendWindow]]] = (),
    ) -> None:
        self._store, self._clock = store, clock
        self._agents = [(name, windows) for name, windows in (*agents, *payers) if windows]
        self._payers = {name for name, _ in payers}
        self._turns_own = agents[0][0]
        self._principal = principal
        self._owner = owner
        self._scopes = [*(agent_scope(name) for name, _ in self._agents), principal_scope(principal or ""), RUNTIME]
        self._rows: dict[WindowKey, SpendRow] = {}
        self._provisional = 0
        """Of the newest lost attempt: counted at what was held, until its price is known."""

    def of(self, agent: str) -> tuple[WindowRef, ...]:
        """Those that a request counts in now: of the turn's agent, of whoever asks, of the principal, of all."""
        asking = [each for each in self._agents if each[0] in (self._turns_own, agent, *self._payers)]
        return applying(asking, self._principal, self._owner, self._clock.now())

    async def look(self, asked: Sequence[OpenRequest]) -> None:
        """See what is spent and held now. Also in windows that have turned since one of these requests was made."""
        since = min([self._clock.now(), *(window.turns - 1 for each in asked for window in each.windows)])
        self._rows = {row.key: row for row in await self._store.spending(self._scopes, after=since)}

    def refusal(self, windows: Sequence[WindowRef], usd: Decimal, settling: Decimal = _NOTHING) -> LimitChanged | None:
        """What is written instead of a request that one of these windows has no room for.

        `settling` is left out of the sums: what the turn itself holds for requests under way, which may not cost it.
        """
        needed, free = nanodollars(usd), nanodollars(settling)
        rows = self._rows
        if free:
            rows = {key: row._replace(held=max(0, row.held - free)) for key, row in rows.items()}
        passed = passed_by(windows, rows, needed)
        if passed is None:
            return None
        row = self._rows.get(passed.key)
        taken = row.taken if row is not None else 0
        words = window_words(passed)
        if passed.is_hopeless:
            words = f"a request of up to {passed.needed} dollars is more than {words} allows at all"
        return LimitChanged(
            limit_name="cost",
            limit=float(passed.allowed),
            observed=float(dollars(taken + needed)),
            what=words,
            window=passed,
        )

    def rooms(self, windows: Sequence[WindowRef], short: Decimal, whole: Decimal) -> list[Room]:
        """What is left of each of these windows for a request that costs as much with a short and a long answer."""
        found = []
        for window in windows:
            row = self._rows.get(window.key)
            left = allowed_in(window, row) - (row.taken if row is not None else 0)
            found.append(Room(Decimal(dollars(left)), short, whole, window_words(window)))
        return found

    def hold(self, windows: Sequence[WindowRef], usd: Decimal) -> None:
        """A request of this price is about to be made: the next one of the same pass finds so much less."""
        for window in windows:
            row = self._row(window)
            self._rows[row.key] = row._replace(held=row.held + nanodollars(usd), limit=nanodollars(window.usd))

    def settle(self, asked: OpenRequest | None, fact: Fact) -> None:
        """What is known of a request's price by this fact, before the fact is folded."""
        if asked is None or not asked.windows:
            return
        event, held = fact.event, nanodollars(asked.held_usd)
        if isinstance(event, CostRecorded):
            cost, freed = nanodollars(event.amount), 0
            if event.lost:
                cost, self._provisional = cost - self._provisional, 0
        elif isinstance(event, AssistantRecorded):
            cost, freed = 0 if asked.priced else held, held
        elif isinstance(event, ModelFailed):
            cost, freed = 0 if costs_nothing(event) else held, held
            self._provisional = cost
        else:
            return
        for window in asked.windows:
            row = self._row(window)
            limit = nanodollars(window.usd)
            self._rows[row.key] = row._replace(spent=row.spent + cost, held=row.held - freed, limit=limit)

    def notices(self) -> list[BudgetNoticed]:
        """What somebody should know and nobody has been told. Told once: the store refuses a second time."""
        said = []
        for row in [row for row in self._rows.values() if is_noticeable(row)]:
            self._rows[row.key] = row._replace(noticed=True)
            window = WindowRef(
                scope=row.scope, period=row.period, began=row.began, turns=row.turns, usd=dollars(row.limit)
            )
            percent = row.spent * 100 // row.allowed if row.allowed else 100
            said.append(
                BudgetNoticed(
                    window=window,
                    percent=percent,
                    spent=dollars(row.spent),
                    held=dollars(row.held),
                    granted=dollars(row.granted),
                )
            )
        return said

    def _row(self, window: WindowRef) -> SpendRow:
        found = self._rows.get(window.key)
        return found if found is not None else SpendRow(*window.key, window.turns, nanodollars(window.usd))
