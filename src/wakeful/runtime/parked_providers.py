"""Providers that let nobody in: a key that is refused, a quota that is used up. Told once, asked again by one probe.

The first turn that finds out rests, and parks the provider. An agent all of whose models are parked is paused when it
would run; one that owes nothing is left alone. A probe asks for one word, after a while that doubles; once it is
answered, the agents go on by themselves, and so do the turns that rest.
"""

from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from wakeful.contracts.envelope import MAIN_THREAD, Fact, StoredFact
from wakeful.contracts.errors import AgentMissing, EventRefused, ForTheCaller
from wakeful.contracts.events import ModelWaiting, ProviderParked, ProviderUnparked, TurnProviderReturned
from wakeful.contracts.events.holds import RUNTIME_STREAM
from wakeful.contracts.models import FailureKind
from wakeful.engine.agent import Agent
from wakeful.engine.prepare.models import model_choices
from wakeful.engine.run_request import Engine
from wakeful.ports import Model, WakeRow
from wakeful.ports.notices import ParkedProviderRow
from wakeful.runtime.own_streams import append_to_stream

PARKS: Final[frozenset[FailureKind]] = frozenset({"auth_error", "quota_exhausted"})
FIRST_PROBE: Final = 60 * 1_000_000
LAST_PROBE: Final = 3600 * 1_000_000
RUNTIME = "runtime"


async def append_to_runtime(engine: Engine, *facts: Fact) -> None:
    """Write to the runtime's own stream."""
    await append_to_stream(engine.store, RUNTIME_STREAM, facts)
    engine.reads.forget()


def provider_of(model_ref: str) -> str:
    return model_ref.partition(":")[0]


def providers_of(agent: Agent[Any, Any]) -> tuple[str, ...]:
    """Of all models that an agent may ask."""
    models = (agent.model, *agent.fallbacks)
    return tuple(dict.fromkeys(provider_of(model if isinstance(model, str) else model.ref) for model in models))


@dataclass(slots=True)
class ProviderParking:
    """Parks providers, and lets them go."""

    engine: Engine
    agent_of: Callable[[str], Awaitable[Agent[Any, Any]]]
    """An agent as it is run now. Raises AgentMissing, or what is wrong with its definition."""
    ask: Callable[[Model], Awaitable[object]]
    """Asks a model for one word. Raises ModelFailure."""
    resume: Callable[[str, int], Awaitable[object]]
    """Lets an agent run again, unless another change came after this moment."""
    first_probe: int = FIRST_PROBE
    """Microseconds until a provider is asked again; then twice as long each time."""

    async def blocks(self, agent: Agent[Any, Any]) -> ParkedProviderRow | None:
        """The parked provider that keeps an agent from running; None: one of its models may be asked."""
        first: ParkedProviderRow | None = None
        for model in (agent.model, *agent.fallbacks):
            ref = model if isinstance(model, str) else model.ref
            row = await self._known(provider_of(ref))
            if row is None:
                return None
            first = first or row
        return first

    async def _known(self, provider: str) -> ParkedProviderRow | None:
        """Hundreds of turns that begin at the same moment ask once."""
        return await self.engine.reads.get(("parked", provider), lambda: self.engine.store.parked_provider(provider))

    async def look_at(self, agent_id: str, facts: Sequence[StoredFact]) -> None:
        """A turn rests: if a provider let it in no more, park that provider. Told once."""
        waits = (entry.fact.event for entry in reversed(facts) if isinstance(entry.fact.event, ModelWaiting))
        wait = next(waits, None)
        if wait is not None and wait.failure_kind in PARKS:
            await self._park(agent_id, wait.model_ref, wait.failure_kind, wait.message)

    async def probe(self, wake: WakeRow) -> None:
        """The time has come to ask a parked provider again."""
        await self.probe_now(wake.cause_id)

    async def probe_now(self, provider: str) -> bool:
        """Ask a parked provider; its agents go on where it answers."""
        row = await self.engine.store.parked_provider(provider)
        if row is None:
            return True
        problem = await self._asked(row)
        if problem is None:
            await self._unpark(provider)
            return True
        now = self.engine.clock.now()
        event = ProviderParked(
            provider=row.provider,
            model_ref=row.model_ref,
            agent_id=row.found_by,
            failure_kind=row.failure_kind,
            message=self.engine.keys().hide(str(problem))[:500],
            probes=row.probes + 1,
            probes_at=now + min(self.first_probe << (row.probes + 1), LAST_PROBE),
        )
        with suppress(EventRefused):
            await append_to_runtime(self.engine, Fact(event, now, MAIN_THREAD))
        return False

    async def _asked(self, row: ParkedProviderRow) -> Exception | None:
        try:
            model = await self._model_of(row)
            if model is not None:  # else nobody has that model any more
                await self.ask(model)
        except Exception as problem:
            return problem
        return None

    async def _model_of(self, row: ParkedProviderRow) -> Model | None:
        """The model that was refused; where the agent that found out is not here any more, one of another agent that
        waits for the provider."""
        try:
            agent = await self.agent_of(row.found_by)
        except (AgentMissing, ForTheCaller):
            return await self._model_of_another(row.provider)
        models = model_choices(self.engine.resolve_model, agent).models
        return next((each for each in models if each.ref == row.model_ref), None)

    async def _model_of_another(self, provider: str) -> Model | None:
        for held in await self.engine.store.held_agents():
            if (held.control, held.cause) != ("paused", "provider"):
                continue
            with suppress(AgentMissing, ForTheCaller):
                models = model_choices(self.engine.resolve_model, await self.agent_of(held.agent_id)).models
                if found := next((each for each in models if provider_of(each.ref) == provider), None):
                    return found
        return None

    async def _park(self, agent_id: str, model_ref: str, kind: FailureKind, message: str) -> None:
        now = self.engine.clock.now()
        event = ProviderParked(
            provider=provider_of(model_ref),
            model_ref=model_ref,
            agent_id=agent_id,
            failure_kind=kind,
            message=message[:500],
            probes_at=now + self.first_probe,
        )
        with suppress(EventRefused):  # somebody found out before
            await append_to_runtime(self.engine, Fact(event, now, MAIN_THREAD))

    async def _unpark(self, provider: str) -> None:
        event = ProviderUnparked(provider=provider, by=RUNTIME)
        with suppress(EventRefused):
            await append_to_runtime(self.engine, Fact(event, self.engine.clock.now(), MAIN_THREAD))
        await self.let_go()
        await self._wake_turns(provider)

    async def let_go(self) -> None:
        """Agents go on that no parked provider keeps. A runtime that begins does it, too: the one before it may have
        been killed when a provider was parked no more, and its agents were still paused."""
        for row in await self.engine.store.held_agents():
            if row.control == "paused" and row.cause == "provider" and await self._is_free(row.agent_id):
                with suppress(EventRefused):  # somebody else decided about it meanwhile
                    await self.resume(row.agent_id, row.changed_at)

    async def _is_free(self, agent_id: str) -> bool:
        try:
            return await self.blocks(await self.agent_of(agent_id)) is None
        except (AgentMissing, ForTheCaller):
            return True  # no provider keeps it from running: its code is missing, and that is said when it is due

    async def _wake_turns(self, provider: str) -> None:
        """Turns that rest for it are due now."""
        now = self.engine.clock.now()
        for wake in await self.engine.store.all_timed_wakes():
            if wake.cause == "provider" and provider in wake.cause_id.split(", "):
                fact = Fact(TurnProviderReturned(provider=provider), now, wake.thread_id, wake.subject)
                with suppress(EventRefused):  # it is over
                    await self.engine.store.admit(wake.agent_id, [fact])
