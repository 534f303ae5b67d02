"""The words of a brief, from the event that holds them."""

from wakeful.contracts.conversation import AssistantItem
from wakeful.contracts.events import AssistantRecorded, BriefCreated, TurnFailed
from wakeful.decisions.briefs import failure_text
from wakeful.gate.large_content import resolve
from wakeful.ports import Store


async def brief_text(store: Store, event_id: str) -> str:
    """Blank where the event is gone, or where the brief has no words."""
    agent_id, _, seq = event_id.rpartition(":")
    found = await store.read(agent_id, after=int(seq) - 1, limit=1) if event_id else []
    event = found[0].fact.event if found else None
    if isinstance(event, BriefCreated):
        return event.text
    if isinstance(event, TurnFailed):
        return failure_text(event)
    if isinstance(event, AssistantRecorded):
        whole = await resolve(event.item, store.get_blob)
        assert isinstance(whole, AssistantItem)
        return whole.text
    return ""
