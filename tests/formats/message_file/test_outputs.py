from __future__ import annotations

import base64
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from chatledger.formats.message_file import (
    CodeExecutionOutput,
    CodeExecutionOutputBuilder,
    MessageOutput,
    MessageOutputBuilder,
    output_from_dict,
)


def test_an_output_is_its_content_its_type_and_its_nonce() -> None:
    output: MessageOutput = (
        MessageOutputBuilder().with_content("21 °C").with_mime_type("text/markdown").with_nonce("n").build()
    )
    assert list(output.to_dict().items()) == [("content", "21 °C"), ("mime_type", "text/markdown"), ("nonce", "n")]


def test_a_missing_nonce_is_a_new_uuid4_for_each_output() -> None:
    builder = MessageOutputBuilder().with_content("x").with_nonce(None)
    nonces = [builder.build().nonce, builder.build().nonce, output_from_dict({"content": "x"}).nonce]
    assert len(set(nonces)) == 3
    assert [UUID(nonce).version for nonce in nonces] == [4, 4, 4]


def test_binary_content_is_base64_with_its_type() -> None:
    output = MessageOutputBuilder().with_binary_content(b"\x89PNG\0", "image/png").build()
    assert (base64.b64decode(output.content), output.mime_type) == (b"\x89PNG\0", "image/png")


def a_failed_program() -> CodeExecutionOutputBuilder:
    builder = CodeExecutionOutputBuilder().with_stdout("one\r\ntwo\n").with_stderr("oh\fno")
    return builder.with_status(1).with_duration(0.5).with_lang("bash")


def test_the_content_of_a_code_output_is_derived_from_its_streams() -> None:
    output: CodeExecutionOutput = a_failed_program().build()
    assert output.content == "stdout> one\nstdout> two\nstderr> oh\nstderr> no"


def test_a_code_output_keeps_its_streams_as_written() -> None:
    output = a_failed_program().build()
    assert list(output.to_dict().items()) == [
        ("content", output.content),
        ("mime_type", "text/plain"),
        ("nonce", output.nonce),
        ("stdout", "one\r\ntwo\n"),
        ("stderr", "oh\fno"),
        ("status", 1),
        ("duration", 0.5),
        ("lang", "bash"),
    ]


def test_a_code_output_without_a_word_is_a_success_in_no_time() -> None:
    output = CodeExecutionOutputBuilder().build()
    assert (output.content, output.stdout_content, output.stderr_content) == ("", "", "")
    assert (output.status, output.duration, output.lang) == (0, 0.0, "python")


@pytest.mark.parametrize("status", [0, 137, "success", "failed"])
def test_a_status_is_a_number_or_a_word(status: int | str) -> None:
    assert CodeExecutionOutputBuilder().with_status(status).build().status == status


@pytest.mark.parametrize(
    "fields", [{"status": True}, {"status": None}, {"duration": "0.5s"}, {"duration": -1}, {"duration": float("nan")}]
)
def test_a_status_or_a_duration_of_another_kind_is_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        output_from_dict({"stdout": "", **fields})


@pytest.mark.parametrize(
    "data",
    [
        {},
        {"content": None},
        {"content": "x", "mime_type": ""},
        {"content": "x", "nonce": ""},
        {"content": "x", "status": 0},
        {"stderr": "x", "surprise": 1},
    ],
)
def test_a_value_that_is_not_an_output_is_refused(data: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        output_from_dict(data)


def test_an_output_without_content_is_not_built() -> None:
    with pytest.raises(ValidationError):
        MessageOutputBuilder().with_mime_type("text/plain").build()


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_a_stream_tells_a_code_output(stream: str) -> None:
    assert isinstance(output_from_dict({stream: ""}), CodeExecutionOutput)
    assert not isinstance(output_from_dict({"content": ""}), CodeExecutionOutput)


texts = st.text(max_size=20)
mime_types = st.sampled_from(["text/plain", "image/png"])
plain = st.fixed_dictionaries({"content": texts, "mime_type": mime_types, "nonce": st.text(min_size=1)})
code = st.fixed_dictionaries(
    {
        "mime_type": mime_types,
        "nonce": st.text(min_size=1),
        "stdout": texts,
        "stderr": texts,
        "status": st.integers() | texts,
        "duration": st.integers(0) | st.floats(0, allow_nan=False, allow_infinity=False),
        "lang": texts,
    }
)


@given(plain | code)
def test_an_output_comes_back_from_its_dict(data: dict[str, Any]) -> None:
    output = output_from_dict(data)
    again = output_from_dict(output.to_dict())
    assert again == output
    assert repr(again.to_dict()) == repr(output.to_dict())
    assert {key: output.to_dict()[key] for key in data} == data


def test_an_output_does_not_change() -> None:
    output = MessageOutputBuilder().with_content("x").build()
    with pytest.raises(ValidationError):
        output.content = "y"  # type: ignore[misc]
