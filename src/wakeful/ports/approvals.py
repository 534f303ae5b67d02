"""What was asked of people and clients, and the rules that people added while deciding."""

from typing import Any, Literal, NamedTuple, Protocol, TypeAlias

from wakeful.ports.tables import Condition, RowQuery, Rows, Table, TableIndex

ActionKind: TypeAlias = Literal["approval", "question", "client_tool", "pending_action"]


class ActionRow(NamedTuple):
    """Something a turn asked of somebody outside: an approval, a question, a call that a client runs. Decided once.

    A host may keep such things of its own here, too (`action.staged`): those have no turn.
    """

    action_id: str
    kind: ActionKind
    agent_id: str
    agent_name: str
    turn_id: str
    thread_id: str
    step: int
    call_id: str
    tool_name: str
    status: str
    """`pending`; then approved, rejected, timed_out, or, of a client's call, completed."""
    requested_at: int
    expires_at: int
    decided_at: int | None
    decided_by: str | None
    required_seq: int
    """The event that asked."""
    resolved_seq: int | None
    """The event that decided."""


_PENDING = Condition("status", "=", "pending")
_OLDEST_FIRST = ("requested_at", "agent_id", "required_seq")
ALL_ACTIONS = RowQuery(_OLDEST_FIRST, few="whoever asks for every approval there ever was gets every one")
PENDING_ACTIONS = RowQuery(_OLDEST_FIRST, where=_PENDING, served_by="actions_pending")
ACTIONS_OF_TURN = RowQuery(_OLDEST_FIRST, equal=("turn_id",), served_by="actions_of_turn")
PENDING_ACTIONS_OF_TURN = RowQuery(_OLDEST_FIRST, equal=("turn_id",), where=_PENDING, served_by="actions_of_turn")

ACTIONS = Table(
    "actions",
    ActionRow,
    key=("action_id",),
    indexes=(
        TableIndex("actions_pending", ("requested_at",), where=_PENDING),
        TableIndex("actions_of_turn", ("turn_id",)),
    ),
    queries=(ALL_ACTIONS, PENDING_ACTIONS, ACTIONS_OF_TURN, PENDING_ACTIONS_OF_TURN),
)
"""`status` leaves `pending` once, in the transaction of the event that decides."""


class RuleRow(NamedTuple):
    """A rule somebody added while deciding: calls like that one are not asked about again."""

    rule_id: str
    agent_id: str
    agent_name: str
    rule: dict[str, Any]
    added_at: int
    added_by: str
    revoked_at: int | None
    revoked_by: str | None


ALL_RULES = RowQuery(("added_at", "rule_id"), few="a person added each rule")
RULES_OF_AGENT = RowQuery(("added_at", "rule_id"), equal=("agent_name",), few="a person added each rule")

APPROVAL_RULES = Table("rules", RuleRow, key=("rule_id",), queries=(ALL_RULES, RULES_OF_AGENT))


class Approvals(Rows, Protocol):
    """Reads what was asked of people and clients."""

    async def action(self, action_id: str) -> ActionRow | None:
        return await self.get_row(ACTIONS, action_id)

    async def actions(self, *, pending_only: bool = False, turn_id: str | None = None) -> list[ActionRow]:
        """What was asked of people and clients, oldest first."""
        if turn_id is None:
            return await self.list_rows(ACTIONS, PENDING_ACTIONS if pending_only else ALL_ACTIONS)
        return await self.list_rows(ACTIONS, PENDING_ACTIONS_OF_TURN if pending_only else ACTIONS_OF_TURN, turn_id)

    async def rules(self, agent_name: str | None = None) -> list[RuleRow]:
        """Rules that were added while deciding, oldest first, revoked ones included."""
        if agent_name is None:
            return await self.list_rows(APPROVAL_RULES, ALL_RULES)
        return await self.list_rows(APPROVAL_RULES, RULES_OF_AGENT, agent_name)
