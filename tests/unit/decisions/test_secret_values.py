"""Secrets by value: in which spellings they are found, where they are hidden and where they are not."""

import json
from urllib.parse import quote

from wakeful.contracts.sensitive_names import REDACTED
from wakeful.decisions.secret_values import MOST_VALUES, SecretValues, hidden_texts, keys_only

ODD = 'p"w/d&ü\n-7'


def known(*values: str, keys: tuple[str, ...] = ()) -> SecretValues:
    secrets = SecretValues(keys)
    secrets.add(values)
    return secrets


def test_every_usual_spelling_of_a_value_is_hidden() -> None:
    secrets = known(ODD)
    for spelling in (ODD, quote(ODD), quote(ODD, safe=""), json.dumps(ODD)[1:-1], repr(ODD)[1:-1]):
        assert secrets.hide(f"a {spelling} b") == f"a {REDACTED} b"


def test_a_value_that_begins_with_another_goes_whole() -> None:
    assert known("secret", "secret-longer").hide("x secret-longer secret") == f"x {REDACTED} {REDACTED}"


def test_short_words_and_the_mask_itself_are_no_secrets() -> None:
    assert known("abc", "").hide("abc def") == "abc def"
    assert not SecretValues(["short"])
    assert list(hidden_texts({"token": REDACTED}, {"token": REDACTED})) == []


def test_what_was_hidden_is_found_by_comparing_the_two_forms() -> None:
    raw = {"user": "ann", "login": {"password": "hunter2"}, "list": [{"pin": 123456}], "all": {"a": ["x-value"]}}
    safe = {"user": "ann", "login": {"password": REDACTED}, "list": [{"pin": REDACTED}], "all": REDACTED}
    assert list(hidden_texts(raw, safe)) == ["hunter2", "123456", "x-value"]


def test_values_are_hidden_outside_arguments_and_keys_everywhere() -> None:
    secrets = known("hunter2", keys=("sk-0123456789",))
    shown = secrets.hide_in(
        {
            "preview": "hunter2 sk-0123456789",
            "arguments": {"cmd": "echo hunter2 sk-0123456789"},
            "tool_name": "hunter2",
            "number": 5,
            "deep": [{"text": "hunter2"}],
        }
    )
    assert shown == {
        "preview": f"{REDACTED} {REDACTED}",
        "arguments": {"cmd": f"echo hunter2 {REDACTED}"},
        "tool_name": "hunter2",
        "number": 5,
        "deep": [{"text": REDACTED}],
    }


def test_a_number_that_is_a_secret_is_hidden_too() -> None:
    assert known("1234567").hide_in({"code": 1234567, "other": 7654321}) == {"code": REDACTED, "other": 7654321}


def test_bytes_lose_keys_and_nothing_else() -> None:
    secrets = keys_only(frozenset({"sk-0123456789"}))
    assert secrets.hide_bytes(b"\xff\x00sk-0123456789\xfe") == b"\xff\x00[redacted]\xfe"
    assert keys_only(frozenset()).hide_bytes(b"sk-0123456789") == b"sk-0123456789"


def test_how_many_values_are_kept_is_bounded() -> None:
    secrets = known(*(f"value-{n}" for n in range(MOST_VALUES + 10)))
    assert secrets.hide("value-0;") == "value-0;"
    assert secrets.hide(f"value-{MOST_VALUES};") == f"{REDACTED};"
