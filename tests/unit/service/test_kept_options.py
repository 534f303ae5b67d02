"""Which options a daemon has that takes the place of another one."""

import pytest

from wakeful.service.serving.options import ServeOptions, checked_options, keep_options, typed

REACHED = ServeOptions(access="lan", host="0.0.0.0", port=9000, advertise="https://hooks.example.org")
CODE = ServeOptions(tools=("shop:agents", "shop:refund"), model="scripted:demo", folder="/srv/shop")


def test_code_and_model_are_kept_with_the_folder_of_the_code_unless_others_are_given() -> None:
    found = keep_options(checked_options(listen="none"), CODE, is_placed=True)
    assert found.options == CODE.model_copy(update={"host": None})
    assert (found.kept, found.dropped) == (
        ("--tools shop:agents", "--tools shop:refund", "--model scripted:demo"),
        (),
    )
    others = checked_options(tools=("bank:agents",), model="scripted:other")
    assert keep_options(others, CODE, is_placed=False) == (others, (), ())


@pytest.mark.spec("HOL-DAEMON-10")
def test_where_it_listens_is_as_before_where_nothing_is_given_and_what_is_given_elsewhere() -> None:
    found = keep_options(checked_options(), REACHED, is_placed=False)
    assert found.options == REACHED
    assert found.kept == ("--access lan", "--port 9000", "--advertise https://hooks.example.org")
    assert found.dropped == ()
    elsewhere = keep_options(checked_options(port=0), REACHED, is_placed=True)
    assert elsewhere.options == checked_options(port=0)
    assert elsewhere.dropped == ("--access lan", "--advertise https://hooks.example.org")
    assert keep_options(REACHED, REACHED, is_placed=True).dropped == ()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (ServeOptions(), ""),
        (REACHED, "--access lan --port 9000 --advertise https://hooks.example.org"),
        (ServeOptions(host=None), "--listen none"),
        (ServeOptions(access="tailnet", host="100.64.0.7"), "--access tailnet --host 100.64.0.7"),
        (CODE, "--tools shop:agents --tools shop:refund --model scripted:demo"),
    ],
)
def test_options_are_shown_as_they_are_typed(options: ServeOptions, words: str) -> None:
    assert " ".join(typed(options)) == words
