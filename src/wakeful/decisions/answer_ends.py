"""Answers that are not whole: cut off at a limit, ended by a filter, refused by the model.

Such an answer is no completion: its text is kept, and whoever asked is told what happened and what to do. A reply that
made calls is none of these: its turn goes on. A word for the end that nobody here knows counts as a whole answer, and
the run has a warning.
"""

from typing import NamedTuple

from wakeful.contracts.events import StopCause
from wakeful.decisions.levels import Level

NO_ROOM = frozenset({"model_context_window_exceeded", "model_length"})
"""Words for an answer that no larger limit would have helped: there was no room left in the model's window."""
CUT_CAUSES: frozenset[StopCause] = frozenset({"cut_off", "filtered", "refused"})


class CutAnswer(NamedTuple):
    """Why an answer is not whole."""

    cause: StopCause
    message: str


def cut_answer(level: Level) -> CutAnswer | None:
    """What is wrong with the end of a level's newest reply; None for a whole answer, and for one with calls."""
    ended = level.answer.ended
    if ended is None or level.round.batch:
        return None
    said = f" (finish reason {ended.finish_reason!r})" if ended.finish_reason else ""
    match ended.stop_reason:
        case "length":
            return CutAnswer("cut_off", length_words(ended.model_ref, ended.finish_reason, ended.output_limit))
        case "content_filter":
            words = (
                f"{ended.model_ref}: the provider's filter ended the answer{said}. Ask differently, or another model"
            )
            return CutAnswer("filtered", words)
        case "refusal":
            return CutAnswer("refused", f"{ended.model_ref} refused to answer{said}. Ask differently, or another model")
        case _:
            return None


def length_words(model_ref: str, finish_reason: str | None, limit: int | None) -> str:
    """An answer that was cut off, and which limit cut it."""
    said = f" (finish reason {finish_reason!r})" if finish_reason else ""
    if finish_reason in NO_ROOM:
        return (
            f"{model_ref} stopped in the middle of its answer: its context window is full{said}. Give it less to read"
        )
    at = f"at its limit of {limit:,} output tokens" if limit is not None else "at its limit of output tokens"
    more = f" (it is {limit})" if limit is not None else ""
    return (
        f"{model_ref} stopped in the middle of its answer, {at}{said}. "
        f"Raise max_tokens{more} in settings=, or ask for less at once"
    )
