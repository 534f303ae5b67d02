"""Words while they come: whoever listens hears an attempt from its beginning, whole words, each once."""

from wakeful.contracts.models import TextDelta
from wakeful.engine.watchers import ModelGlimpsed, OutputGlimpsed
from wakeful.service.live_words import MOST_CALLS, OUTPUT_CHARS, WORD_CHARS, Heard, LiveWords, ThreadWords


def unheard() -> None:
    """A bell that nobody waits for."""


def say(words: ThreadWords, *pieces: str, step: int = 1, attempt: int = 1, level: str | None = None) -> None:
    for piece in pieces:
        words.hear("t1", ModelGlimpsed(step, attempt, TextDelta(text=piece), level))


def test_a_listener_hears_whole_words_each_once_and_a_late_one_hears_them_from_the_beginning() -> None:
    live = LiveWords()
    with live.running("ops", "main") as words, live.listening("ops", "main", unheard) as early:
        say(words, "once ", "upon a ti")
        assert early.heard("t1") == [Heard("t1", None, 1, 1, "once upon a ")], "a word is heard when it is whole"
        assert early.heard("t1") == []
        say(words, "me ")
        assert early.heard("t1") == [Heard("t1", None, 1, 1, "time ")]
        with live.listening("ops", "main", unheard) as late:
            assert late.heard("t1") == [Heard("t1", None, 1, 1, "once upon a time ")]
            assert late.heard("another turn") == []


def test_a_slow_listener_hears_more_at_once_and_nothing_of_an_attempt_that_was_lost() -> None:
    live = LiveWords()
    with live.running("ops", "main") as words, live.listening("ops", "main", unheard) as slow:
        say(words, "lost ", "words ")
        say(words, *("word " for _ in range(1_000)), attempt=2)
        say(words, "inside ", level="child")
        assert slow.heard("t1") == [
            Heard("t1", None, 1, 2, "word " * 1_000),
            Heard("t1", "child", 1, 1, "inside "),
        ]
        say(words, "x" * (WORD_CHARS + 1), step=2)
        assert [len(each.text) for each in slow.heard("t1")] == [WORD_CHARS + 1], "no word is waited for for ever"


def test_nothing_is_kept_when_the_turn_rests_and_nobody_listens() -> None:
    live = LiveWords()
    with live.running("ops", "main") as words:
        taken = [words.is_taken]
        say(words, "unheard ")
        with live.listening("ops", "main", unheard):
            taken.append(words.is_taken)
    assert taken == [False, True]
    assert live._threads == {}
    assert words.attempts == {}


def output(call_id: str, text: str) -> OutputGlimpsed:
    return OutputGlimpsed(1, call_id, "wakeful/exec_command", text)


def test_the_end_of_what_a_call_puts_out_is_kept_from_a_line_on_and_each_listener_hears_it_once() -> None:
    words = LiveWords()
    with words.running("ops", "main") as seats, words.listening("ops", "main", unheard) as early:
        lines = [f"{number:09}\n" for number in range(OUTPUT_CHARS // 10 + 100)]
        for line in lines:
            seats.hear("turn_1", output("call_1", line))
        with words.listening("ops", "main", unheard) as late:
            (heard,), (same,) = early.heard_output("turn_1"), late.heard_output("turn_1")
        assert heard == same and heard.text == "".join(lines)[heard.offset :]
        assert OUTPUT_CHARS - 10 < len(heard.text) <= OUTPUT_CHARS and heard.offset % 10 == 0
        assert early.heard_output("turn_1") == [] == early.heard_output("turn_2")
        seats.hear("turn_1", output("call_1", "x" * OUTPUT_CHARS + "\nlast\n"))
        assert [each.text for each in early.heard_output("turn_1")] == ["last\n"]


def test_output_is_kept_of_the_newest_calls_of_a_turn_and_until_it_rests() -> None:
    words = LiveWords()
    with words.listening("ops", "main", unheard) as listener:
        with words.running("ops", "main") as seats:
            for number in range(MOST_CALLS + 1):
                seats.hear("turn_1", output(f"call_{number}", f"{number}\n"))
            heard = [each.call_id for each in listener.heard_output("turn_1")]
            assert heard == [f"call_{number}" for number in range(1, MOST_CALLS + 1)]
        with words.listening("ops", "main", unheard) as late:
            assert late.heard_output("turn_1") == []
