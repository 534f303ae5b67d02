"""Payloads packed and unpacked: nothing is lost, and what was packed once can be read for ever."""

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wakeful.store.row_compression import _FIRST, FIRST, LONGEST, PLAIN, pack, unpack


@given(st.binary(max_size=3000) | st.text(max_size=2000).map(str.encode))
def test_what_was_packed_comes_back(payloads: bytes) -> None:
    assert unpack(pack(payloads), len(payloads)) == payloads


def test_a_usual_event_takes_a_fraction_of_its_length() -> None:
    said = b'{"model_ref":"openai:gpt-x","attempt":1,"stop_reason":"tool_calls","context_build_ms":0.2}'
    assert len(pack(said)) < len(said) / 2
    assert pack(said)[0] == FIRST


def test_what_gets_no_shorter_or_is_long_is_stored_as_it_is() -> None:
    for said in (b"", bytes(range(256)), b"a" * (LONGEST + 1)):
        assert (pack(said)[0], pack(said)[5:]) == (PLAIN, said)


def test_a_dictionary_never_changes() -> None:
    """Every row that was packed with it would be lost."""
    digest = hashlib.sha256(_FIRST).hexdigest()
    assert digest == "1c4bdbe8d035de58e0d4e0a5cb4a068d860cc7c5797621bdf307853ccdc17b23"


def test_rows_of_the_first_dictionary_are_read() -> None:
    packed = bytes.fromhex("01e194f2a523947ca1e583a1652d00")
    assert unpack(packed, 42) == b'{"model_ref":"scripted:inline","items":19}'


@pytest.mark.parametrize("length", [0, 41, 43, 10_000])
def test_another_length_than_was_packed_is_refused(length: int) -> None:
    with pytest.raises(ValueError, match="packed"):
        unpack(pack(b'{"model_ref":"scripted:inline","items":19}'), length)


def test_every_changed_bit_is_noticed_also_one_that_says_nothing() -> None:
    said = b'{"model_ref":"scripted:inline","items":19}'
    for bit in range(len(pack(said)) * 8):
        changed = bytearray(pack(said))
        changed[bit // 8] ^= 1 << bit % 8
        with pytest.raises(ValueError, match="packed"):
            unpack(bytes(changed), len(said))
