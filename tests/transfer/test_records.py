from __future__ import annotations

import gzip
import io
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chatledger.models.json import same_json
from chatledger.transfer import records, source
from chatledger.transfer.records import BadRecord, Record, read_records


def read(content: bytes, **options: Any) -> list[Record | BadRecord]:
    return list(read_records(io.BytesIO(content), **options))


def outcomes(content: bytes, **options: Any) -> list[Any]:
    """Values, and (record, byte, detail) for what is none."""
    return [
        one.value if isinstance(one, Record) else (one.error.record, one.error.byte, one.error.detail)
        for one in read(content, **options)
    ]


def nested(depth: int) -> bytes:
    return b"[" * depth + b"]" * depth


@pytest.mark.parametrize("content", [b"[]", b" [ \n ] "])
def test_no_records(content: bytes) -> None:
    assert read(content) == []


@pytest.mark.parametrize("content", [b"", b" \r\n\t", b"\xef\xbb\xbf"])
def test_an_empty_file_is_not_json_but_may_hold_no_lines(content: bytes) -> None:
    assert outcomes(content) == [(0, len(content), "the file is empty")]
    assert outcomes(content, lines=True) == []


def test_array_of_records() -> None:
    first, second = read(b'[ {"a": 1},\n {"a": "]}\\""} ]')
    assert first == Record({"a": 1}, "array", 0, None, 2, 10)
    assert second == Record({"a": ']}"'}, "array", 1, None, 13, 26)


def test_lines_are_counted_with_the_blank_ones() -> None:
    assert read(b'\n{"a": 1}\r\n\n{"a": 2}') == [
        Record({"a": 1}, "lines", 0, 2, 1, 11),
        Record({"a": 2}, "lines", 1, 4, 12, 20),
    ]


def test_object_over_several_lines_is_one_record() -> None:
    assert read(b'\n{\n"a": [1]\n}\n') == [Record({"a": [1]}, "object", 0, None, 1, 13)]


def test_message_list_is_one_record() -> None:
    messages = [{"role": "user", "content": "hi"}]
    assert [one.container for one in read(json.dumps(messages).encode()) if isinstance(one, Record)] == ["lines"]
    assert outcomes(json.dumps(messages, indent=1).encode()) == [messages]
    assert outcomes(b'[{"role": "user"}]\n[{"role": "system"}]\n') == [[{"role": "user"}], [{"role": "system"}]]


def test_array_of_message_lists() -> None:
    assert outcomes(b'[[{"role": "user"}], []]') == [[{"role": "user"}], []]


def test_field_says_that_objects_with_a_role_are_records() -> None:
    assert outcomes(b'[{"role": "user", "talk": []}]', field="talk") == [{"role": "user", "talk": []}]


def test_byte_order_mark_is_skipped() -> None:
    assert outcomes(b'\xef\xbb\xbf{"a": 1}\n') == [{"a": 1}]


def test_numbers_that_json_has_no_words_for_are_kept() -> None:
    numbers = b'{"n": [NaN, Infinity, -Infinity, 1e400, 1000000000000000000000000000000, -0.0, 1e2]}'
    assert repr(outcomes(numbers)) == "[{'n': [nan, inf, -inf, inf, 1000000000000000000000000000000, -0.0, 100.0]}]"


def test_bad_line_hides_no_other() -> None:
    assert outcomes(b'{"a": 1}\n{"a": \n{"a": "\xff"}\n{"a": 4}\n') == [
        {"a": 1},
        (1, 16, "the record ends too early (Expecting value)"),
        (2, 23, "not UTF-8"),
        {"a": 4},
    ]


def test_bad_element_hides_no_other() -> None:
    assert outcomes(b'[{"a": 1}, {"a" 2}, {"a": "\xff"}, nope, {"a": 5}]') == [
        {"a": 1},
        (1, 16, "not JSON: Expecting ':' delimiter"),
        (2, 27, "not UTF-8"),
        (3, 32, "not JSON: Expecting value"),
        {"a": 5},
    ]


@pytest.mark.parametrize(
    ("torn", "byte", "detail"),
    [
        (b'[{"a": 1}', 9, "the file ends inside the array"),
        (b'[{"a": 1},', 10, "the file ends inside the array"),
        (b'[{"a": 1}, {"a": [1', 11, "the file ends inside the record"),
        (b'[{"a": 1}, {"a": "1]}', 11, "the file ends inside the record"),
        (b'[{"a": 1} {"a": 2}]', 10, "expected , or ]"),
        (b'[{"a": 1}, , {"a": 2}]', 11, "expected a record"),
        (b'[{"a": 1}] {"a": 2}', 11, "more after the end of the array"),
    ],
)
def test_a_torn_array_yields_the_records_before_the_tear(torn: bytes, byte: int, detail: str) -> None:
    assert outcomes(torn) == [{"a": 1}, (1, byte, detail)]


def test_torn_object_and_what_is_neither() -> None:
    assert outcomes(b'{"a":\n [1') == [(0, 9, "the record ends too early (Expecting ',' delimiter)")]
    assert outcomes(b'"a"') == [(0, 0, "neither an array nor an object")]


@pytest.mark.parametrize("as_lines", [False, True])
@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (b"PK\x03\x04\n{", "a zip archive; unpack it first"),
        (gzip.compress(b'{"a": 1}\n', mtime=0), "gzip; decompress it first (gunzip)"),
        ('{"a": 1}'.encode("utf-16"), "perhaps UTF-16; save it as UTF-8"),
        (
            b"SQLite format 3\x00\x10\x00",
            "a SQLite database; open chatledger's own with --url, and import a framework's with --from and --store",
        ),
        (b"\n<!doctype html>\n<p>{", "HTML or XML; is it an error page?"),
        (b"id,text\na,hello\n", "perhaps CSV; convert it to JSON lines first"),
        (b'"id";"text"\n"a";"hello"\n', "perhaps CSV; convert it to JSON lines first"),
        (b"\x00\x01\x02", "binary data"),
        ("Grüße".encode("latin-1"), "text that is not UTF-8, or binary data"),
        (b"Dear reader,\nhello\n", "other text"),
    ],
)
def test_a_file_that_is_no_json_says_what_it_looks_like(content: bytes, kind: str, as_lines: bool) -> None:
    assert [one[2] for one in outcomes(content, lines=as_lines)] == [f"not JSON but {kind}"]


def test_a_broken_first_line_is_not_taken_for_a_file_of_something_else() -> None:
    assert outcomes(b'# exported\n{"a": 1}\n', lines=True)[1:] == [{"a": 1}]


@pytest.mark.parametrize("as_lines", [False, True])
@pytest.mark.parametrize("indent", [0, 1, "\t"])
def test_objects_over_several_lines_are_records(indent: Any, as_lines: bool) -> None:
    values = [{"a": 1, "b": [{"c": {}}, []]}, {"d": "}\n{"}, {"e": [{"f": 2}]}]
    content = "\n".join(json.dumps(value, indent=indent) for value in values).encode()
    assert outcomes(content, lines=as_lines) == values
    assert [(one.container, content[one.byte : one.end][:1]) for one in read(content) if isinstance(one, Record)] == [
        ("lines", b"{")
    ] * 3


def test_objects_need_nothing_between_them() -> None:
    assert outcomes(b'{"a": 1}{"b": 2} {"c": 3}') == [{"a": 1}, {"b": 2}, {"c": 3}]


def test_an_array_over_several_lines_is_one_whatever_its_name() -> None:
    assert outcomes(b'[\n{"a": 1},\n{"b": 2}\n]\n', lines=True) == [{"a": 1}, {"b": 2}]


def test_a_broken_object_over_several_lines_hides_no_other() -> None:
    content = b'{\n "a": 1\n}\n{\n "b" 2\n}\nnoise\nmore {\n{\n "c": 3\n}\n{\n "d":\n{\n "e": 5\n}\n'
    assert outcomes(content) == [
        {"a": 1},
        (1, 19, "not JSON: Expecting ':' delimiter"),
        (2, 23, "not JSON: Expecting value"),
        {"c": 3},
        (4, 56, "the record ends too early (Expecting value)"),
        {"e": 5},
    ]


@pytest.mark.parametrize("as_lines", [False, True])
def test_a_broken_first_line_hides_no_other(as_lines: bool) -> None:
    assert outcomes(b'{"a": \n{"b": 2}\n{"c": 3}\n', lines=as_lines) == [
        (0, 7, "the record ends too early (Expecting value)"),
        {"b": 2},
        {"c": 3},
    ]


def test_a_file_of_nothing_but_torn_objects_is_read_once() -> None:
    """Each is searched for its end, so that the search must not begin anew for each."""
    searched: list[int] = []

    class Counted(source.ByteSource):
        def value_length(self) -> int | None:
            searched.append(self.byte)
            return super().value_length()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(records, "ByteSource", Counted)
        assert len(read(b"{\n" * 1_000)) == 1_000
    assert searched == [0]


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@given(st.lists(json_values, max_size=5), st.sampled_from([None, 1]), st.integers(1, 9), st.booleans())
def test_any_array_is_read_in_any_chunks(values: list[Any], indent: int | None, chunk: int, ascii_only: bool) -> None:
    content = json.dumps(values, indent=indent, ensure_ascii=ascii_only).encode("utf-8", "surrogatepass")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(source, "CHUNK", chunk)
        assert same_json(outcomes(content, field="x"), values)


@given(
    st.lists(json_values, min_size=1, max_size=5),
    st.lists(st.tuples(st.integers(0, 300), st.sampled_from([b"", b'"', b"]", b"{", b"\xff", b"\xc3", b",", b" x"]))),
    st.integers(1, 80),
    st.booleans(),
)
def test_parsing_in_place_equals_parsing_by_bounds(
    values: list[Any], broken: list[tuple[int, bytes]], chunk: int, ascii_only: bool
) -> None:
    content = json.dumps(values, ensure_ascii=ascii_only).encode("utf-8", "surrogatepass")
    for at, put in broken:
        content = content[:at] + put + content[at + 1 :]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(source, "CHUNK", chunk)
        in_place = read(content, field="x")
        patch.setattr(records, "_read_good", lambda source, index: None)
        assert repr(in_place) == repr(read(content, field="x"))  # as NaN is not NaN, and an error not its like


@given(
    st.lists(st.dictionaries(st.text(), json_values, min_size=1), min_size=1, max_size=5),
    st.sampled_from([None, 0, 1]),
    st.sampled_from(["", " ", "\n"]),
    st.integers(1, 9),
)
def test_any_objects_are_read_in_any_chunks(values: list[Any], indent: int | None, between: str, chunk: int) -> None:
    content = between.join(json.dumps(value, indent=indent) for value in values).encode()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(source, "CHUNK", chunk)
        assert same_json(outcomes(content), values)


@given(st.lists(json_values, min_size=1, max_size=5), st.integers(1, 9))
def test_any_lines_are_read_in_any_chunks(values: list[Any], chunk: int) -> None:
    content = "\n".join(json.dumps(value) for value in values).encode()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(source, "CHUNK", chunk)
        assert same_json(outcomes(content, lines=True), values)


def test_memory_is_that_of_a_record() -> None:
    class Endless(io.RawIOBase):
        """An array of which only what was asked for exists."""

        given = 0

        def read(self, size: int = -1) -> bytes:
            self.given += 1
            return b'[{"a": 1}' if self.given == 1 else b', {"a": 1}' * (size // 10)

    stream = Endless()
    records = read_records(stream)  # type: ignore[arg-type]
    for _ in range(10_000):
        next(records)
    assert stream.given < 3
