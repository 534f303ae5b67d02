"""Keys out of texts."""

import pytest

from kit.wires.wire_formats import ALL, GEMINI, KEY, MESSAGES, WireFormat
from wakeful.ports import Secretive
from wakeful.providers.wire.redaction import public_url, redact, secrets_of, secrets_of_url


def test_a_key_goes_in_every_spelling_and_other_words_stay() -> None:
    key = "sk/a b+c=\n1"
    text = f"raw {key}, quoted sk%2Fa%20b%2Bc%3D%0A1, shown {key!r}, and words"
    shown = redact(text, [key])
    assert "sk" not in shown and shown.startswith("raw [redacted]") and shown.endswith("and words")


def test_a_short_word_is_no_secret() -> None:
    assert redact("the local server", ["local", ""]) == "the local server"


def test_a_longer_key_goes_before_a_shorter_one_within_it() -> None:
    assert redact("x abcdefgh-1234 y", ["abcdefgh", "abcdefgh-1234"]) == "x [redacted] y"


def test_every_header_but_the_public_ones_holds_a_secret() -> None:
    found = secrets_of({"Authorization": "Bearer tok-123456", "X-Custom": "custom-1234", "Accept": "text/event-stream"})
    assert set(found) == {"tok-123456", "Bearer tok-123456", "custom-1234"}


def test_a_shown_url_has_no_user_and_no_query() -> None:
    url = "https://me:pass-word@host:8000/v1/x?key=sk-123456#f"
    assert public_url(url) == "https://host:8000/v1/x"
    assert set(secrets_of_url(url)) == {"pass-word", "sk-123456"}


@pytest.mark.parametrize("wire", ALL, ids=str)
def test_every_model_keeps_its_key_out_of_a_text(wire: WireFormat) -> None:
    model = wire.model("http://127.0.0.1:9", headers={"x-account": "account-0123456789"})
    assert isinstance(model, Secretive)
    assert model.redacted(f"a {KEY} and 'Bearer {KEY}' of account-0123456789") == (
        "a [redacted] and 'Bearer [redacted]' of [redacted]"
        if wire in (MESSAGES, GEMINI)
        else "a [redacted] and '[redacted]' of [redacted]"
    )
