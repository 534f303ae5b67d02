"""Messages on phones: notices, approvals with their buttons, codes for pairing, and what was decided; and the desk
that both speaks and listens.

A message goes to a channel that somebody is paired with. Once an approval is decided, wherever, its message says by
whom and loses its buttons.
"""

from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from wakeful.contracts.channels import BUTTONS, HOW_TO_ANSWER, TOPIC, Button, ChannelMessage, SayPurpose
from wakeful.contracts.envelope import Fact
from wakeful.contracts.errors import EventRefused, InvalidConfig
from wakeful.contracts.events import ActionRequired, ActionResolved, ChannelMessageAttempted, ChannelMessageClosed
from wakeful.contracts.notices import NotifyTarget
from wakeful.decisions.channels import ChannelQuestion, code_of, cut, decided_words, pairing_code, question_for
from wakeful.decisions.notices import pause_before
from wakeful.decisions.salted_secrets import SaltedSecret, salted
from wakeful.decisions.secret_shapes import hide_shapes_in
from wakeful.engine.run_request import Engine
from wakeful.ports import ActionRow, WakeRow
from wakeful.ports.channels import ChannelFailure, ChannelRow
from wakeful.ports.notices import NoticeRow
from wakeful.runtime.channel_inputs import DECIDED_BY_PEOPLE, ChannelInputs
from wakeful.runtime.channel_listeners import CarryOut, ChannelListeners, Connect
from wakeful.runtime.parked_providers import append_to_runtime
from wakeful.views.presentation.call_lines import call_lines, is_recorded_whole

WIDE = 10_000
"""Columns of a line: a phone folds them itself."""


class Delivery(NamedTuple):
    """What became of a message."""

    error: str
    """Blank: it arrived."""
    ref: str | None = None
    action_id: str | None = None
    retry_after: float = 0.0


Deliver: TypeAlias = Callable[[NoticeRow, str], Awaitable[Delivery]]
"""Shows a notice on the channel of that name."""


@dataclass(slots=True)
class ChannelMessages:
    """Shows messages on phones."""

    engine: Engine
    connect: Connect

    async def deliver(self, row: NoticeRow, name: str) -> Delivery:
        """A notice, on a channel that is there and paired."""
        channel = await self.engine.store.channel(name)
        if channel is None or channel.state != "paired":
            return Delivery(f"there is no channel {name} that a phone is paired with: wakeful channel list")
        action = await self._pending(row)
        try:
            if action is None:
                title = "test" if row.kind == "test" else row.kind.replace("_", " ")
                message = self._hidden(ChannelMessage(f"{row.agent_id}: {title}", cut(row.words)))
            else:
                message = await self._question(channel, action)
            ref = await self.connect(channel).publish(channel.peer, message)
        except ChannelFailure as problem:
            return Delivery(problem.words, retry_after=problem.retry_after)
        except InvalidConfig as problem:
            return Delivery(problem.message)
        return Delivery("", ref, action.action_id if action is not None else None)

    async def tell(self, channel: ChannelRow, words: str) -> None:
        """Some words, if that can be done."""
        with suppress(ChannelFailure, InvalidConfig):
            message = self._hidden(ChannelMessage("wakeful", cut(words)))
            await self.connect(channel).publish(channel.peer, message)

    async def say(self, wake: WakeRow) -> None:
        """A pairing code, or a test."""
        _, purpose, name, peer = wake.subject.split(":", 3)
        row, error = await self.engine.store.channel(name), ""
        if row is not None and row.state != "removed":
            message = self._pairing(row, peer) if purpose == "pairing" else self._test(row)
            try:
                await self.connect(row).publish(peer or row.peer, message)
            except ChannelFailure as problem:
                error = problem.words
            except InvalidConfig as problem:
                error = problem.message
        said: SayPurpose = "pairing" if purpose == "pairing" else "test"
        event = ChannelMessageAttempted(
            channel=name, purpose=said, peer=peer, error=self.engine.keys().hide(error)[:500]
        )
        await append_to_runtime(self.engine, Fact(event, self.engine.clock.now()))

    async def close(self, wake: WakeRow) -> None:
        """Say what was decided, where a phone shows the question."""
        store = self.engine.store
        row, action = await store.channel_message(wake.cause_id), await store.action(wake.cause_id)
        if row is None or row.is_closed or action is None or action.status == "pending":
            return
        channel, failure = await store.channel(row.channel), None
        if channel is not None and channel.state == "paired":
            message = self._hidden(ChannelMessage(f"{action.agent_name}: decided", await self._decided(action)))
            try:
                for ref in row.refs:
                    await self.connect(channel).revise(channel.peer, ref, message)
            except ChannelFailure as problem:
                failure = problem
            except InvalidConfig as problem:
                failure = ChannelFailure(problem.message)
        now, attempt = self.engine.clock.now(), row.attempts + 1
        pause = pause_before(attempt) if failure is not None else None
        wanted = round(failure.retry_after * 1_000_000) if failure is not None else 0
        event = ChannelMessageClosed(
            channel=row.channel,
            action_id=row.action_id,
            attempt=attempt,
            error=self.engine.keys().hide(failure.words)[:500] if failure is not None else "",
            next_at=None if pause is None else now + max(pause, wanted),
        )
        with suppress(EventRefused):
            await store.admit(row.agent_id, [Fact(event, now)])

    # --- words -------------------------------------------------------------------------------------------------------

    def _pairing(self, row: ChannelRow, peer: str) -> ChannelMessage:
        code = pairing_code(self._secret(row), row.name, row.generation, peer or TOPIC, row.pairing_until)
        words = f"The pairing code is {code}\n\nType it where wakeful runs:\nwakeful channel pair {row.name} {code}"
        return ChannelMessage("wakeful", words)

    def _test(self, row: ChannelRow) -> ChannelMessage:
        subject = f"t{self.engine.clock.now()}"  # each test has codes of its own
        code = code_of(self._secret(row), row.name, row.generation, subject, "test", "k")
        return ChannelMessage("wakeful", "This is a test: messages arrive. Press OK.", (Button("OK", code),))

    async def _pending(self, row: NoticeRow) -> ActionRow | None:
        action = await self.engine.store.action(row.about) if row.kind == "action_required" and row.about else None
        is_open = action is not None and action.status == "pending" and action.kind in DECIDED_BY_PEOPLE
        return action if is_open else None

    async def _question(self, channel: ChannelRow, action: ActionRow) -> ChannelMessage:
        (entry,) = await self.engine.store.read(action.agent_id, after=action.required_seq - 1, limit=1)
        event = entry.fact.event
        assert isinstance(event, ActionRequired)
        asked = ChannelQuestion(
            action_id=action.action_id,
            binding=event.binding,
            is_question=event.action_type == "question",
            choices=event.choices,
            agent=action.agent_name,
            tool=action.tool_name,
            prompt=_prompt(event),
            reason=event.reason,
            working_directory=event.working_directory,
            expires_at=action.expires_at,
            is_whole=is_recorded_whole(event.safe_args),
        )
        may_decide = "decide" in channel.scopes and (not event.approvers or channel.caller in event.approvers)
        secret, buttons = self._secret(channel), BUTTONS[channel.kind] if may_decide else 0
        how = HOW_TO_ANSWER[channel.kind]
        return self._hidden(question_for(asked, secret, channel.name, channel.generation, buttons=buttons, how=how))

    async def _decided(self, action: ActionRow) -> str:
        note, status = "", action.status
        if action.resolved_seq is not None:
            (entry,) = await self.engine.store.read(action.agent_id, after=action.resolved_seq - 1, limit=1)
            event = entry.fact.event
            if isinstance(event, ActionResolved):
                note, status = event.reason, "answered" if event.decision == "answer" else status
        return decided_words(action.tool_name, status, action.decided_by or "", note)

    def _secret(self, row: ChannelRow) -> SaltedSecret:
        return salted(self.engine.store.secret, row.salt)

    def _hidden(self, message: ChannelMessage) -> ChannelMessage:
        hide = self.engine.keys().hide
        return message._replace(title=hide(message.title), text=hide(message.text))


def _prompt(event: ActionRequired) -> str:
    """The question, or the whole call as it was written; before it, what a tool itself says about its call."""
    if event.action_type == "question":
        return event.prompt
    lines = call_lines(event.tool_name, hide_shapes_in(event.safe_args), WIDE)
    own_words = [] if event.prompt.startswith(f"Run {event.tool_name}(") else [event.prompt]
    return "\n".join([*own_words, *(line.text for line in lines)])


class ChannelDesk:
    """Channels at work."""

    def __init__(self, engine: Engine, connect: Connect, carry_out: CarryOut) -> None:
        self._store = engine.store
        self._messages = ChannelMessages(engine, connect)
        self._listening = ChannelListeners(engine, connect, carry_out, self._messages.tell, ChannelInputs(engine))

    async def run(self) -> None:
        """Listen until it is cancelled."""
        await self._listening.run()

    async def deliver(self, row: NoticeRow, name: str) -> Delivery:
        return await self._messages.deliver(row, name)

    async def work(self, wake: WakeRow) -> None:
        """Do what is due."""
        match wake.subject.split(":", 2)[1]:
            case "input":
                await self._listening.settle(wake)
            case "decided":
                await self._messages.close(wake)
            case _:
                await self._messages.say(wake)

    async def default_target(self) -> NotifyTarget | None:
        """Where notices go of agents that say nothing else: to the phone that was paired first."""
        paired = [row for row in await self._store.channels() if row.state == "paired"]
        return NotifyTarget(to=f"channel:{paired[0].name}") if paired else None
