"""`cancel`, `interrupt`, `pause`, `interject`: what may be asked of a turn that is under way, wherever it runs."""

from typing import TYPE_CHECKING, Literal

from wakeful.contracts.content import Prompt
from wakeful.surfaces.library.run_checks import StorePlace, existing_store

if TYPE_CHECKING:
    from wakeful.service.commands.interruption import InterruptAnswer


async def cancel(store: StorePlace, turn_id: str) -> bool:
    """Ask a turn to stop, by its id, its key or the beginning of its id. False when it is over already."""
    from wakeful.surfaces.library import late_imports

    async with late_imports.opened_store(existing_store(store)) as opened:
        row = await late_imports.find_turn(opened, turn_id)
        return await late_imports.cancel_turn(late_imports.new_engine(opened), row.turn_id)


async def interrupt(
    store: StorePlace,
    *,
    turn_id: str | None = None,
    thread: str | None = None,
    agent: str | None = None,
    queue: Literal["keep", "clear"] = "keep",
    requested_by: str = "caller",
    interrupt_id: str | None = None,
) -> "InterruptAnswer":
    """Ask a turn, or the turn that a thread is at, to stop: `accepted`, or `no_op` and why. Does not wait for it.

    `queue="clear"` also stops what waits behind it. The same `interrupt_id` again is the same request.
    """
    from wakeful.surfaces.library import late_imports

    async with late_imports.opened_store(existing_store(store)) as opened:
        return await late_imports.interrupt_turn(
            late_imports.new_engine(opened),
            turn_id=turn_id,
            thread_id=thread,
            agent=agent,
            queue=queue,
            requested_by=requested_by,
            interrupt_id=interrupt_id,
        )


async def pause(store: StorePlace, turn_id: str) -> bool:
    """Ask a turn to rest once nothing of it is under way; `resume` lets it go on. False when it is over or paused."""
    from wakeful.surfaces.library import late_imports

    async with late_imports.opened_store(existing_store(store)) as opened:
        row = await late_imports.find_turn(opened, turn_id)
        return await late_imports.pause_turn(late_imports.new_engine(opened), row.turn_id)


async def interject(store: StorePlace, turn_id: str, prompt: Prompt, *, said_by: str = "caller") -> str:
    """Say something to a turn: its next request takes it along. Returns the message's id once the message is safe.

    Raises TurnOver when the turn has ended.
    """
    from wakeful.surfaces.library import late_imports

    async with late_imports.opened_store(existing_store(store)) as opened:
        row = await late_imports.find_turn(opened, turn_id)
        return await late_imports.interject(late_imports.new_engine(opened), row.turn_id, prompt, said_by=said_by)
