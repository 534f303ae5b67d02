"""What a run was given as secrets, learned from its facts in order: by name, and by what the tools declared.

A call's own arguments stand in the log as the model wrote them and, beside them, as they may be shown. What is missing
in the second is a secret, whatever the reason: nothing has to be known about the tool.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from wakeful.contracts.conversation import AssistantItem, ToolItem, UserItem
from wakeful.contracts.envelope import Fact, StoredFact
from wakeful.contracts.events import ActionRequired, ActionResolved, AssistantRecorded, HistoryImported, ToolStarted
from wakeful.contracts.tools import ToolDeclaration
from wakeful.decisions.redaction import declared_by, redact
from wakeful.decisions.secret_shapes import hide_shapes, hide_shapes_in
from wakeful.decisions.secret_values import SecretValues, hidden_texts


class RunSecrets(SecretValues):
    """The secrets of one run. `take` it every fact before that fact, or a later one, is shown.

    What looks like a secret is hidden with them, in arguments, too.
    """

    __slots__ = ("_given", "declarations")

    def __init__(self, keys: Iterable[str] = ()) -> None:
        super().__init__(keys)
        self.declarations: Mapping[str, ToolDeclaration] = {}
        """What the tools of the run declare, where that is known; a call's own facts say the same a little later."""
        self._given: dict[tuple[str | None, str], Mapping[str, Any]] = {}
        """Arguments of calls whose redacted form is not known yet, by turn and call: readers learn from many turns."""

    def hide(self, text: str) -> str:
        return hide_shapes(super().hide(text))

    def hide_keys(self, text: str) -> str:
        return hide_shapes(super().hide_keys(text))

    def hide_in(self, value: Any) -> Any:
        return self.hidden_in(value)

    def hide_keys_in(self, value: Any) -> Any:
        return hide_shapes_in(super().hide_keys_in(value))

    def learn(self, facts: Iterable[StoredFact], declarations: Mapping[str, ToolDeclaration] | None = None) -> None:
        """Learn from all of them at once."""
        if declarations is not None:
            self.declarations = declarations
        for recorded in facts:
            self.take(recorded.fact)

    def take(self, fact: Fact) -> None:
        """Learn from a fact."""
        event, call = fact.event, (fact.turn_id, fact.call_id or "")
        if isinstance(event, AssistantRecorded):
            self.said([event.item], fact.turn_id)
        elif isinstance(event, ToolStarted | ActionRequired):
            given = self._given.pop(call, None)
            if given is not None and event.safe_args:
                self.add(hidden_texts(given, event.safe_args))
        elif isinstance(event, ActionResolved):
            if event.arguments is not None:
                self.given(event.arguments, self.declarations.get(event.tool_name))
                self._given[call] = event.arguments
        elif isinstance(event, HistoryImported):
            self.said(event.items, fact.turn_id)

    def said(self, items: "Iterable[UserItem | AssistantItem | ToolItem]", turn_id: str | None = None) -> None:
        """Learn from the calls of a conversation."""
        for item in items:
            if not isinstance(item, AssistantItem):
                continue
            for part in item.calls:
                if part.arguments:
                    self.given(part.arguments, self.declarations.get(part.name))
                    self._given[turn_id, part.call_id] = part.arguments

    def given(self, arguments: Mapping[str, Any], declaration: ToolDeclaration | None = None) -> None:
        """Learn from the arguments of one call."""
        raw = dict(arguments)
        self.add(hidden_texts(raw, redact(raw, declared_by(declaration))))
