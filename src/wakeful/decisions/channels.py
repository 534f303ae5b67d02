"""What a channel is told, which codes its buttons carry, and what comes back means.

None of them is stored. Topics, pairing codes and codes of buttons follow from the secret of the store and the salt of
their channel. The code of a button is bound to the channel, to the approval, to its arguments and to what it decides;
it is good while the approval is pending, and once.
"""

import hashlib
import hmac
import re
from base64 import b32encode, urlsafe_b64encode
from typing import Final, NamedTuple

from wakeful.contracts.channels import Button, ChannelMessage, ChannelVerb
from wakeful.contracts.envelope import iso
from wakeful.decisions.channel_answers import answer_code
from wakeful.decisions.salted_secrets import SaltedSecret

_PURPOSE: Final = b"wakeful channel"
_CODE: Final = re.compile(r"(?P<subject>[A-Za-z0-9_-]{1,34})\.(?P<verb>[arpk]|[0-9])\.(?P<mac>[A-Za-z0-9_-]{22})")
_VERBS: Final[dict[str, ChannelVerb]] = {"a": "approve", "r": "reject", "p": "pause", "k": "ok"}
_PREFIX: Final = "appr_"
_QUESTION: Final = "ask_"
MOST_TEXT: Final = 1_500
"""Characters of a message: more does not help to decide on a phone."""
ENDS: Final = 400
"""Of those, kept for how to answer."""
MOST_CHOICES: Final = 10


class Code(NamedTuple):
    """A button's code, taken apart."""

    subject: str
    verb: ChannelVerb
    choice: int
    """Of an answer: which choice."""
    letter: str
    mac: str


class Words(NamedTuple):
    """A line that somebody wrote: `/send AGENT TEXT` or `/pause AGENT`."""

    verb: ChannelVerb
    agent: str
    text: str


class ChannelQuestion(NamedTuple):
    """What of an approval or a question a phone shows, and its codes are bound to."""

    action_id: str
    binding: str
    is_question: bool
    choices: tuple[str, ...]
    agent: str
    tool: str
    prompt: str
    reason: str
    working_directory: str | None
    expires_at: int
    is_whole: bool = True
    """Does the prompt say all of the call? A record may hold a preview of long arguments."""


def topic_of(secret: SaltedSecret, channel: str, generation: int, which: str) -> str:
    """A topic that nobody guesses: `out` is read by the phone, `in` by the runtime."""
    return "wk" + _digest(secret, "topic", channel, str(generation), which)[:30].replace("-", "x").replace("_", "y")


def pairing_code(secret: SaltedSecret, channel: str, generation: int, peer: str, until: int) -> str:
    """Shown on a phone, typed in the terminal: `7F3K-92QD`."""
    key = hmac.digest(secret, _PURPOSE, "sha256")
    digest = hmac.digest(key, "\0".join(("pairing", channel, str(generation), peer, str(until))).encode(), "sha256")
    code = b32encode(digest)[:8].decode()
    return f"{code[:4]}-{code[4:]}"


def same_pairing_code(given: str, code: str) -> bool:
    """As people type: without the dash, in small letters."""
    plain = re.sub(r"[\s-]", "", given).upper()
    return hmac.compare_digest(plain.encode("utf-8", "replace"), code.replace("-", "").encode())


def code_of(secret: SaltedSecret, channel: str, generation: int, subject: str, binding: str, letter: str) -> str:
    """At most 64 bytes: what a button of Telegram may carry."""
    mac = _digest(secret, "code", channel, str(generation), subject, binding, letter)[:22]
    return f"{subject.removeprefix(_PREFIX)}.{letter}.{mac}"


def read_code(text: str) -> Code | None:
    """A code, taken apart; None: it is none of ours."""
    found = _CODE.fullmatch(text.strip())
    if found is None:
        return None
    letter = found["verb"]
    verb = _VERBS.get(letter, "answer")
    return Code(found["subject"], verb, int(letter) if verb == "answer" else -1, letter, found["mac"])


def action_of(code: Code) -> str:
    """The approval or the question that a code names."""
    return code.subject if code.subject.startswith(_QUESTION) else f"{_PREFIX}{code.subject}"


def is_genuine(secret: SaltedSecret, channel: str, generation: int, subject: str, binding: str, code: Code) -> bool:
    """Was this code made here, for this? In constant time."""
    made = code_of(secret, channel, generation, subject, binding, code.letter)
    return hmac.compare_digest(made.rpartition(".")[2], code.mac)


def input_id_of(*parts: str) -> str:
    """One id for one press or one message, for ever."""
    return "inp_" + hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()[:24]


def read_words(text: str) -> Words | None:
    """What a line asks for; None: nothing."""
    first, _, rest = text.strip().partition(" ")
    agent, _, words = rest.strip().partition(" ")
    if first == "/pause" and agent and not words.strip():
        return Words("pause", agent, "")
    if first == "/send" and agent and words.strip():
        return Words("send", agent, words.strip())
    return None


def question_for(
    asked: ChannelQuestion, secret: SaltedSecret, channel: str, generation: int, *, buttons: int, how: str
) -> ChannelMessage:
    """An approval or a question on a phone, and how to answer it in words. Where no button may be shown, it says what
    to type in the terminal. A call that a phone has no room for can be rejected there, and not approved: neither by a
    button nor in words."""
    title = f"{asked.agent} asks" if asked.is_question else f"{asked.agent} wants to call {asked.tool}"
    lines = [asked.prompt]
    if asked.reason and not asked.is_question:
        lines.append(f"why it asks: {asked.reason}")
    if asked.working_directory:
        lines.append(f"in {asked.working_directory}")
    last = [f"until {iso(asked.expires_at)}"]

    def button(label: str, letter: str) -> Button:
        return Button(label[:40], code_of(secret, channel, generation, asked.action_id, asked.binding, letter))

    shown: list[Button] = []
    fits = len(asked.action_id.removeprefix(_PREFIX)) <= 34 and asked.action_id.startswith((_PREFIX, _QUESTION))
    where = f"wakeful approvals show {asked.action_id}"
    is_shown = asked.is_question or (asked.is_whole and len(chr(10).join(lines).encode()) <= MOST_TEXT - ENDS)
    takes_words = bool(buttons) and fits and is_shown
    if buttons and fits and not is_shown:
        shown = [button("Reject", "r"), button("Pause", "p")]
        last.append(f"too long to approve here: {where}")
    elif not takes_words:
        last.append(f"decide in the terminal: {where}")
    elif not asked.is_question:
        shown = [button("Approve", "a"), button("Reject", "r"), button("Pause", "p")]
    elif 0 < len(asked.choices) <= min(buttons, MOST_CHOICES):
        shown = [button(choice, str(number)) for number, choice in enumerate(asked.choices)]
    else:
        shown = [button("Reject", "r"), button("Pause", "p")]
        last += [f"choices: {', '.join(asked.choices)}"] if asked.choices else []
    if takes_words:
        words = "your answer" if asked.is_question else "approve or reject, and a note"
        code = answer_code(secret, channel, generation, asked.action_id, asked.binding)
        last.append(f"in words: {how} {code} {words}")
    ends = cut("\n".join(last), MOST_TEXT // 2)
    text = f"{cut(chr(10).join(lines), MOST_TEXT - len(ends) - 1)}\n{ends}"
    return ChannelMessage(title, text, tuple(shown), urgent=True, wants_words=takes_words)


def decided_words(tool: str, status: str, by: str, note: str = "") -> str:
    """What the message says once it is decided."""
    if status == "timed_out":
        return f"{tool}: nobody decided in time"
    return cut(f"{tool}: {status} by {by}" + (f": {note}" if note else ""))


def cut(text: str, most: int = MOST_TEXT) -> str:
    return text if len(text) <= most else f"{text[: most - 20]} ... (cut here)"


def _digest(secret: SaltedSecret, *parts: str) -> str:
    key = hmac.digest(secret, _PURPOSE, "sha256")
    made = hmac.digest(key, "\0".join(parts).encode("utf-8", "surrogatepass"), "sha256")
    return urlsafe_b64encode(made).rstrip(b"=").decode()
