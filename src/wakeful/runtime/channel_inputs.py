"""What comes from a paired phone, read: a press, a line, or words about a question that is open.

Nothing is carried out here. A press names its approval by its code; words are tied to their question by a short code
that is before them, or in the message that they reply to.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from wakeful.contracts.channels import ChannelUpdate
from wakeful.contracts.events import ActionRequired, AnyEvent, ChannelInputReceived
from wakeful.decisions.channel_answers import (
    UnfitWords,
    answer_code,
    decided_by,
    read_reply,
    same_code,
    which_question,
)
from wakeful.decisions.channels import Code, action_of, input_id_of, is_genuine, read_code, read_words
from wakeful.decisions.salted_secrets import salted
from wakeful.engine.run_request import Engine
from wakeful.ports import ActionRow
from wakeful.ports.channels import ChannelRow

DECIDED_BY_PEOPLE = ("approval", "question")
_DECIDING = ("approve", "reject", "answer")
HOW_TO_SPEAK = "reply to a question, or write its code and your words; or /pause AGENT, or /send AGENT TEXT"


@dataclass(slots=True)
class ChannelInputs:
    """Reads what phones want."""

    engine: Engine

    async def wanted(self, row: ChannelRow, update: ChannelUpdate) -> ChannelInputReceived | UnfitWords:
        """What a paired phone asks for, if it may, and if it was not asked for before. A refusal without words is
        silence: a code that is wrong or old gets no answer."""
        code = read_code(update.text)
        event: ChannelInputReceived | UnfitWords | None
        if code is not None:
            event = await self._pressed(row, code, input_id_of("code", update.text.strip()))
        else:
            event = self._said(row, update) or await self._answered(row, update)
        if isinstance(event, UnfitWords):
            return event
        if event is None or await self.engine.store.channel_input(event.input_id) is not None:
            return UnfitWords("")
        return event

    async def _pressed(self, row: ChannelRow, code: Code, input_id: str) -> ChannelInputReceived | None:
        secret, name, generation = salted(self.engine.store.secret, row.salt), row.name, row.generation
        if code.verb == "ok":
            if not is_genuine(secret, name, generation, code.subject, "test", code):
                return None
            return ChannelInputReceived(channel=name, input_id=input_id, caller=row.caller, verb="ok")
        action = await self.engine.store.action(action_of(code))
        if action is None or "decide" not in row.scopes or not self._is_undecided(action):
            return None
        asked = await self._asked(action)
        if not is_genuine(secret, name, generation, action.action_id, asked.binding, code):
            return None
        if code.verb == "answer" and code.choice >= len(asked.choices):
            return None
        return ChannelInputReceived(
            channel=name,
            input_id=input_id,
            caller=row.caller,
            verb=code.verb,
            action_id=action.action_id,
            agent_id=action.agent_id,
            words=asked.choices[code.choice] if code.verb == "answer" else "",
        )

    def _said(self, row: ChannelRow, update: ChannelUpdate) -> ChannelInputReceived | None:
        said = read_words(update.text)
        if said is None or ("send" if said.verb == "send" else "decide") not in row.scopes:
            return None
        return _received(row, update, verb=said.verb, agent_id=said.agent, words=said.text)

    async def _answered(self, row: ChannelRow, update: ChannelUpdate) -> ChannelInputReceived | UnfitWords:
        """Words about a question that is open: its code is before them, or in the message that they reply to."""
        reply = read_reply(update.text, update.reply_to)
        if reply is None or "decide" not in row.scopes:
            return UnfitWords(HOW_TO_SPEAK)
        secret, which = salted(self.engine.store.secret, row.salt), (row.name, row.generation)
        for action in await self.engine.store.actions(pending_only=True):
            begins = which_question(secret, *which, action.action_id)
            if not reply.code.startswith(begins) or not self._is_undecided(action):
                continue
            asked = await self._asked(action)
            if not same_code(reply.code, answer_code(secret, *which, action.action_id, asked.binding)):
                continue
            is_question = asked.action_type == "question"
            found = decided_by(reply.words, is_question=is_question, choices=asked.choices)
            if isinstance(found, UnfitWords):
                return found
            about = {"action_id": action.action_id, "agent_id": action.agent_id}
            return _received(row, update, verb=found.verb, words=found.words, **about)
        return UnfitWords("this matches no open question; it may have been decided already: wakeful approvals")

    def _is_undecided(self, action: ActionRow) -> bool:
        is_open = action.status == "pending" and action.expires_at > self.engine.clock.now()
        return is_open and action.kind in DECIDED_BY_PEOPLE

    async def _asked(self, action: ActionRow) -> ActionRequired:
        (entry,) = await self.engine.store.read(action.agent_id, after=action.required_seq - 1, limit=1)
        assert isinstance(entry.fact.event, ActionRequired)
        return entry.fact.event


def is_second(event: ChannelInputReceived, before: Sequence[AnyEvent]) -> bool:
    """The same press again, or another decision about what was decided in the same look."""
    others = [each for each in before if isinstance(each, ChannelInputReceived)]
    decided = [each.action_id for each in others if each.verb in _DECIDING]
    return event in others or (event.verb in _DECIDING and event.action_id in decided)


def _received(row: ChannelRow, update: ChannelUpdate, **fields: Any) -> ChannelInputReceived:
    """Words of a phone; the same update again is the same input."""
    input_id = input_id_of(row.name, str(row.generation), update.update_id)
    return ChannelInputReceived(channel=row.name, input_id=input_id, caller=row.caller, **fields)
