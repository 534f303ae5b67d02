"""How a reply ended, and what follows for it before it is believed: of no use, cut off in a call, or of an unknown end.

A call whose arguments were cut off is never run: the model is told, and may make it again. What else an unfinished
answer means is decided in `decisions.answer_ends`.
"""

from collections.abc import Sequence
from typing import Any

from wakeful.contracts.content import Text, Thinking
from wakeful.contracts.conversation import AssistantItem, CallPart, UserItem
from wakeful.contracts.errors import ModelFailure
from wakeful.contracts.events import AnswerRejected, WarningIssued
from wakeful.contracts.model_settings import ModelSettings
from wakeful.contracts.models import Reply
from wakeful.decisions.answer_ends import NO_ROOM, length_words
from wakeful.decisions.levels import Level
from wakeful.ports import Model

MAX_CALLS_PER_REPLY = 256
WIDER = 4
"""By so much the limit of an answer is raised that was cut off."""
CUT_OFF = "Your answer was cut off at its limit of tokens. There is more room now: give the whole answer again."
UNKNOWN_END = "unknown_finish_reason"
"""The code of the warning about a reply that ended with a word that nobody here knows."""
_WORDS = (Text, Thinking)


def most_output(model: Model, settings: ModelSettings) -> int | None:
    """As many tokens as an answer may have; a model that does not say has no limit that is known."""
    most = getattr(model, "most_output", None)
    return most(settings) if most is not None else None


def refuse_unusable(model_ref: str, reply: Reply, limit: int | None) -> None:
    """Raises ModelFailure for a reply that nothing can be made of."""
    parts = reply.item.parts
    if not reply.may_be_empty:
        if reply.stop_reason == "length" and all(map(_is_thought_or_nothing, parts)):
            words = length_words(model_ref, reply.finish_reason, limit)
            thoughts = "; with thinking on, its thoughts count too"
            # The same request would come to the same limit: it is not made again.
            raise ModelFailure(
                f"the model said nothing: {words}{thoughts}", kind="empty_response", stage="decode", retryable=False
            )
        unsaid = all(map(_is_thought_or_nothing, parts)) or bool(reply.item.calls)
        if reply.stop_reason in ("content_filter", "refusal") and unsaid:
            who = (
                f"{model_ref} refused to answer"
                if reply.stop_reason == "refusal"
                else f"{model_ref}'s answer was held back by its provider's filter"
            )
            raise ModelFailure(f"{who}; ask differently, or another model", kind="content_filtered", stage="decode")
        if all(map(_says_nothing, parts)):
            raise ModelFailure("the model said nothing", kind="empty_response", stage="decode")
    if len(parts) > MAX_CALLS_PER_REPLY and (made := len(reply.item.calls)) > MAX_CALLS_PER_REPLY:
        many = f"the model made {made} calls at once; the limit is {MAX_CALLS_PER_REPLY}"
        raise ModelFailure(many, kind="invalid_response", stage="decode")


def without_cut_call(reply: Reply, limit: int | None) -> AssistantItem:
    """The reply's item; a call in which it was cut off says so, and cannot be run.

    What is whole as JSON was not cut. Nothing at all may be a call without arguments or one whose arguments had not
    begun: nobody can tell, so that it is asked for again.
    """
    last = reply.item.parts[-1] if reply.item.parts else None
    if reply.stop_reason != "length" or not isinstance(last, CallPart) or last.arguments or last.refused is not None:
        return reply.item
    if last.arguments_ref is not None:
        return reply.item
    at = f" of {limit:,} tokens" if limit is not None else ""
    why = f"the reply was cut off at its limit{at} in the middle of this call. Make it again, with less to write"
    cut = last.model_copy(update={"arguments": None, "raw_arguments": last.raw_arguments or "", "refused": why})
    return reply.item.model_copy(update={"parts": (*reply.item.parts[:-1], cut)})


def asked_again(level: Level, models: Sequence[Model], why: str) -> AnswerRejected:
    """What becomes of an answer of a certain form that was cut off: it is asked for once more, with more room for it,
    where its model may write more than it was allowed to."""
    ended = level.answer.ended
    assert ended is not None and level.config is not None
    model = next((each for each in models if each.ref == ended.model_ref), None)
    wider = None
    if level.answer.max_tokens is None and model is not None and ended.finish_reason not in NO_ROOM:
        wider = _wider(model, level.config.model_settings, ended.output_limit)
    return AnswerRejected(
        item=UserItem(parts=(Text(CUT_OFF),), origin="runtime"), errors=(why,), final=wider is None, max_tokens=wider
    )


def _wider(model: Model, settings: ModelSettings, limit: int | None) -> int | None:
    """A larger limit of output than the one that cut the reply off; None where there is none."""
    now = limit or settings.max_tokens
    if now is None:
        return None
    own = most_output(model, settings.without("max_tokens"))
    wider = now * WIDER if own is None else min(now * WIDER, own)
    return wider if wider > now else None


def ending_warning(model_ref: str, reply: Reply) -> list[WarningIssued]:
    """What is said of a reply whose end has a name that is not known: it counts as whole."""
    if reply.stop_reason != "other" or reply.item.calls:
        return []
    said = repr(reply.finish_reason) if reply.finish_reason else "a word"
    message = f"{model_ref} ended its answer with {said}, which is not known here: look whether the answer is whole"
    return [WarningIssued(code=UNKNOWN_END, message=message)]


def _says_nothing(part: Any) -> bool:
    return isinstance(part, _WORDS) and not part.text


def _is_thought_or_nothing(part: Any) -> bool:
    return isinstance(part, Thinking) or _says_nothing(part)
