"""The codec of every text column."""

from __future__ import annotations

import gc
import math
import sys
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chatledger.errors import EncryptionError, LimitExceeded
from chatledger.models.json import same_json
from chatledger.storage.schema.text import (
    CIPHERTEXT_HEADER,
    ESCAPE_MARK,
    decode_json,
    decode_text,
    encode_json,
    encode_key,
    encode_text,
)
from tests.reasons import because

# Any character, surrogates included; and those that mean something to the codec, so that they meet.
TEXT = st.text(alphabet=st.characters()) | st.text(alphabet=f'{ESCAPE_MARK}\\u0d8\x00\ud800\ude00\U0001f600a"')
TEXT = TEXT | st.text(alphabet="k\x00\\").map(lambda text: f"\ue0011:k:{text}")
KEYS = st.text(alphabet=f"{ESCAPE_MARK}\\ua0\x00\ud800", min_size=1, max_size=5)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=200)
@given(TEXT)
def test_any_text_comes_back(text: str) -> None:
    assert decode_text(encode_text(text)) == text


@settings(max_examples=200)
@given(TEXT)
def test_both_drivers_accept_encoded_text(text: str) -> None:
    stored = encode_text(text)
    assert "\x00" not in stored
    assert stored.encode().decode() == stored


@settings(max_examples=200)
@given(TEXT, TEXT)
def test_two_texts_have_two_encodings(left: str, right: str) -> None:
    assert (encode_text(left) == encode_text(right)) == (left == right)


@settings(max_examples=200)
@given(TEXT)
def test_encoded_text_can_be_encoded_again(text: str) -> None:
    stored = encode_text(text)
    assert decode_text(encode_text(stored)) == stored


@settings(max_examples=200)
@given(st.text(alphabet=st.characters(exclude_categories=["Cs"], exclude_characters="\x00")))
def test_ordinary_text_is_stored_as_it_is(text: str) -> None:
    assert encode_text(text) == (text if not text.startswith(ESCAPE_MARK) else ESCAPE_MARK + text.replace("\\", "\\\\"))


@settings(max_examples=200)
@given(TEXT)
def test_no_encoded_text_begins_like_ciphertext(text: str) -> None:
    assert CIPHERTEXT_HEADER.match(encode_text(text)) is None


def test_decoding_ciphertext_as_text_is_refused() -> None:
    with pytest.raises(
        EncryptionError, check=because("no-key"), match="encrypted with the key '2026-11', and no keys were given"
    ) as caught:
        decode_text("\ue0011:2026-11:AAAA")
    assert caught.value.key_id == "2026-11"


@pytest.mark.parametrize(
    ("text", "stored"),
    [
        ("", ""),
        ("a\\u0000", "a\\u0000"),
        ("a" + ESCAPE_MARK, "a" + ESCAPE_MARK),
        (ESCAPE_MARK, ESCAPE_MARK + ESCAPE_MARK),
        ("\x00", ESCAPE_MARK + "\\u0000"),
        ("\\u0000\x00", ESCAPE_MARK + "\\\\u0000\\u0000"),
        ("a\ud83d\ude00", ESCAPE_MARK + "a\\ud83d\\ude00"),
        ("\U0001f600", "\U0001f600"),
        (ESCAPE_MARK + "\\", ESCAPE_MARK + ESCAPE_MARK + "\\\\"),
        ("\ue001", "\ue001"),  # as a release without encryption stored it
        ("\ue0011:k", "\ue0011:k"),
        ("\ue0011:k:", ESCAPE_MARK + "\ue0011:k:"),
        ("\ue00112:k.1_-:\\", ESCAPE_MARK + "\ue00112:k.1_-:\\\\"),
        (" \ue0011:k:", " \ue0011:k:"),
    ],
    ids=ascii,
)
def test_known_texts_have_known_encodings(text: str, stored: str) -> None:
    assert (encode_text(text), decode_text(stored)) == (stored, text)


@settings(max_examples=200)
@given(JSON)
def test_any_json_comes_back(value: Any) -> None:
    assert same_json(decode_json(encode_json(value)), value)


@settings(max_examples=200)
@given(JSON)
def test_both_drivers_accept_encoded_json(value: Any) -> None:
    stored = encode_json(value) or ""
    assert "\x00" not in stored
    assert stored.encode().decode() == stored


def test_none_is_encoded_as_null() -> None:
    assert (encode_json(None), decode_json(None)) == (None, None)


@pytest.mark.parametrize("value", [math.nan, -math.inf, -0.0, 1e2, 10**30, "", [], {}, False, 0], ids=repr)
def test_a_lone_value_comes_back(value: Any) -> None:
    assert same_json(decode_json(encode_json(value)), value)


def test_two_surrogates_stay_two() -> None:
    assert decode_json(encode_json(["\ud83d\ude00", "\U0001f600"])) == ["\ud83d\ude00", "\U0001f600"]


@settings(max_examples=200)
@given(KEYS, KEYS)
def test_two_keys_have_two_encodings(left: str, right: str) -> None:
    assert (encode_key(left, "id") == encode_key(right, "id")) == (left == right)


@pytest.mark.parametrize("key", ["a", "a" * 512, "ä" * 256, "\U0001f600" * 128, "\x00" * 84, " ", "user:42/x"], ids=len)
def test_a_key_of_1_to_512_bytes_is_kept(key: str) -> None:
    assert decode_text(encode_key(key, "thread_id")) == key


@pytest.mark.parametrize(
    ("key", "size"),
    [("a" * 513, 513), ("ä" * 256 + "a", 513), ("\x00" * 85, 513), (ESCAPE_MARK * 171, 516), ("\ud800" * 600, 3_603)],
    ids=["ascii", "umlauts", "NULs", "marks", "surrogates"],
)
def test_a_key_of_more_bytes_is_refused_with_its_size(key: str, size: int) -> None:
    with pytest.raises(LimitExceeded) as caught:
        encode_key(key, "thread_id")
    assert (caught.value.limit, caught.value.given, caught.value.maximum) == ("bytes of thread_id", size, 512)


def test_an_empty_key_is_refused() -> None:
    with pytest.raises(LimitExceeded, match="thread_id must not be empty; 1 to 512 bytes are allowed"):
        encode_key("", "thread_id")


def calls_of(work: Callable[[], object]) -> int:
    """The functions that the work calls."""
    calls = 0

    def note(frame: Any, event: str, argument: Any) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    gc.disable()  # a collection calls the finalizers of whatever other tests have left
    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(None)
        gc.enable()
    return calls


@pytest.mark.parametrize("text", ["\ud800" * 10_000, "\ud800a" * 10_000, "\x00\\" * 10_000, "\ud800\udc00" * 10_000])
def test_no_function_is_called_for_each_escape(text: str) -> None:
    stored, written = encode_text(text), encode_json([text])
    assert calls_of(lambda: encode_text(text)) < 50
    assert calls_of(lambda: decode_text(stored)) < 50
    assert calls_of(lambda: encode_json({text: text})) < 50
    assert calls_of(lambda: decode_json(written)) < 50


@pytest.mark.parametrize(
    ("damaged", "text"),
    [
        ("\\", "\\"),
        ("\\ud80", "\\ud80"),
        ("\\U0001f600", "\\U0001f600"),
        ("\\uD800", "\\uD800"),
        ("\\u0041", "A"),
        ("\\n\\ud800", "\\n\ud800"),
    ],
)
def test_what_is_no_escape_of_ours_stays(damaged: str, text: str) -> None:
    assert decode_text(ESCAPE_MARK + damaged) == text
