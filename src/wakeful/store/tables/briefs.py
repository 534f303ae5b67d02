"""Rules of `briefs`."""

from wakeful.contracts.envelope import event_id, named
from wakeful.contracts.events import BriefCreated
from wakeful.ports.briefs import BriefRow
from wakeful.store.tables.row_rules import AtHand, LogEntry, RowRule, Rules


def _created(entry: LogEntry, event: BriefCreated, rows: AtHand) -> list[BriefRow]:
    text = event_id(entry.agent_id, entry.seq) if event.text else ""
    if event.text_ref is not None:
        text = named(event.text_ref, entry.agent_id, entry.seq)
    row = BriefRow(
        brief_id=event.brief_id,
        agent_id=entry.agent_id,
        thread_id=entry.fact.thread_id or "",
        turn_id=entry.fact.turn_id or "",
        kind=event.brief_kind,
        visibility=event.visibility,
        work_item_id=event.work_item_id or "",
        workspace_id=event.workspace_id,
        related_message_id=event.related_message_id or "",
        related_task_id=event.related_task_id or "",
        created_seq=entry.seq,
        text_event_id=text,
        created_at=entry.fact.at,
        principal=event.principal,
        derived_from=event.derived_from,
    )
    return [row]


BRIEF_RULES: Rules = {BriefCreated: RowRule(_created)}
