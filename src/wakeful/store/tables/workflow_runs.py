"""Rules of `workflow_runs`."""

from wakeful.contracts.events import MessageAdmitted
from wakeful.ports.workflow_runs import WorkflowRunRow
from wakeful.store.tables.row_rules import AtHand, LogEntry, RowRule, Rules


def _admitted(entry: LogEntry, event: MessageAdmitted, rows: AtHand) -> list[WorkflowRunRow]:
    if event.workflow_ref is None:
        return []
    return [WorkflowRunRow(event.message_id, entry.agent_id, entry.fact.at)]


WORKFLOW_RUN_RULES: Rules = {MessageAdmitted: RowRule(_admitted)}
