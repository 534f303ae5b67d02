"""Free words from a phone: the short code that ties them to a question, and what they decide.

A code is typed by a person, or stands in the message that is replied to. Its first half says which question it is
about, its second half proves that it was made here for these arguments. It is good while the question is open; nothing
of it is stored. The words are data: of an answer they are its content, of an approval the note.
"""

import hmac
import re
from base64 import b32encode
from typing import Final, NamedTuple

from wakeful.contracts.channels import ChannelVerb
from wakeful.decisions.salted_secrets import SaltedSecret

_PURPOSE: Final = b"wakeful channel answer"
_HALF: Final = "[A-Za-z2-7]{4}"
_TYPED: Final = re.compile(rf"\s*(?P<code>{_HALF}-{_HALF})(?:[\s:,.]+(?P<words>.*))?", re.DOTALL)
_SHOWN: Final = re.compile(rf"\b{_HALF}-{_HALF}\b")
_DECIDES: Final = re.compile(r"\s*(?P<verb>approve|reject)\b[\s:,.-]*(?P<note>.*)", re.DOTALL | re.IGNORECASE)
_CHANNEL: Final = "channel:"


class PhoneReply(NamedTuple):
    """Words about a question."""

    code: str
    words: str


class UnfitWords(NamedTuple):
    """Nothing follows from the words."""

    words: str


class DecidingWords(NamedTuple):
    """What words decide."""

    verb: ChannelVerb
    words: str


def answer_code(secret: SaltedSecret, channel: str, generation: int, action_id: str, binding: str) -> str:
    """Short enough to be typed: `7F3K-92QD`."""
    which = which_question(secret, channel, generation, action_id)
    return f"{which}-{_half(secret, 'proof', channel, str(generation), action_id, binding)}"


def which_question(secret: SaltedSecret, channel: str, generation: int, action_id: str) -> str:
    """The first half of a code, which needs nothing but the question's name."""
    return _half(secret, "which", channel, str(generation), action_id)


def read_reply(text: str, reply_to: str = "") -> PhoneReply | None:
    """A code and words: the code before the words, or in the message that they reply to. None: there is no code."""
    typed = _TYPED.fullmatch(text)
    if typed is not None:
        return PhoneReply(typed["code"].upper(), (typed["words"] or "").strip())
    shown = _SHOWN.findall(reply_to)
    return PhoneReply(shown[-1].upper(), text.strip()) if shown else None  # ours is the last; before it an agent wrote


def same_code(given: str, code: str) -> bool:
    """In constant time."""
    return hmac.compare_digest(given.encode(), code.encode())


def decided_by(words: str, *, is_question: bool, choices: tuple[str, ...]) -> DecidingWords | UnfitWords:
    """What the words decide. A choice may be written as people write on phones; about an approval they say which."""
    if not words:
        return UnfitWords("write your answer after the code")
    if is_question:
        fitting = [choice for choice in choices if choice.casefold() == words.casefold()]
        if choices and not fitting:
            return UnfitWords(f"that is not one of the choices: {', '.join(choices)}")
        return DecidingWords("answer", fitting[0] if fitting else words)
    found = _DECIDES.fullmatch(words)
    if found is None:
        return UnfitWords("begin with approve or reject, then your note")
    return DecidingWords("approve" if found["verb"].lower() == "approve" else "reject", found["note"].strip())


def words_from_outside(resolver: str, reason: str, answer: object, choices: tuple[str, ...]) -> str:
    """Why what was decided brings words of somebody who is not the operator; blank: it brings none.

    A choice that an agent offered is no new word, whoever pressed it.
    """
    is_free = bool(reason) or (answer is not None and answer not in choices)
    return f"words of {resolver}" if is_free and resolver.startswith(_CHANNEL) else ""


def _half(secret: SaltedSecret, *parts: str) -> str:
    key = hmac.digest(secret, _PURPOSE, "sha256")
    made = hmac.digest(key, "\0".join(parts).encode("utf-8", "surrogatepass"), "sha256")
    return b32encode(made)[:4].decode()
