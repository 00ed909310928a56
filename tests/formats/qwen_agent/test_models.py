"""Where our models do more than upstream's; and the documentation's stricter rules.

`check` reports what breaks the stricter rules, and `model_validate` with their context refuses it. They are never on by
default.
"""

from __future__ import annotations

from json import JSONDecodeError
from typing import Any

import pytest
from pydantic import ValidationError

from chatledger.formats.qwen_agent import (
    DOCUMENTED,
    ContentItem,
    FunctionCall,
    Message,
    ModelResponse,
    Problem,
    UnknownField,
    Usage,
    check,
)


def test_unknown_key_is_a_key_error_and_an_attribute_error() -> None:
    with pytest.raises(UnknownField, match="no attribute 'missing'") as caught:
        Message("user", "x")["missing"]
    assert isinstance(caught.value, KeyError)
    assert isinstance(caught.value, AttributeError)


def test_text_with_an_empty_image_is_a_text() -> None:
    item = ContentItem(text="a", image="")
    assert (item.type, item.value) == ("text", "a")


def test_a_field_that_is_given_goes_before_an_empty_one() -> None:
    assert ContentItem(image="", file="a.pdf").get_type_and_value() == ("file", "a.pdf")


def test_an_item_emptied_by_assignment_is_an_empty_text() -> None:
    item = ContentItem(text="a")
    item["text"] = None
    assert item.get_type_and_value() == ("text", "")


@pytest.mark.parametrize(
    ("item", "is_media"),
    [
        (ContentItem(text="a"), False),
        (ContentItem(file="a.pdf"), False),
        (ContentItem(image="a"), True),
        (ContentItem(audio={"data": "a"}), True),
        (ContentItem(video=["a"]), True),
    ],
)
def test_media_content_is_image_audio_and_video(item: ContentItem, is_media: bool) -> None:
    assert item.is_media_content() is is_media


def test_anything_but_text_makes_a_message_multimodal() -> None:
    assert Message("user", [ContentItem(text="a"), ContentItem(file="a.pdf")]).is_multimodal()
    assert not Message("user", [ContentItem(text="a")]).is_multimodal()
    assert not Message("user", "a").is_multimodal()


@pytest.mark.parametrize(
    ("item", "extension"),
    [
        (ContentItem(image="https://example.com/cat.JPG"), "jpg"),
        (ContentItem(file="archive.tar.gz"), "gz"),
        (ContentItem(file="README"), None),
        (ContentItem(image="https://example.com/cat.jpg?size=2"), "jpg?size=2"),
        (ContentItem(audio="a.wav"), None),
        (ContentItem(text="a.txt"), None),
    ],
)
def test_file_extension_is_the_text_after_the_last_dot(item: ContentItem, extension: str | None) -> None:
    assert item.get_file_extension() == extension


def test_text_content_joins_texts_that_are_not_empty_by_lines() -> None:
    items = [ContentItem(text="a"), ContentItem(text=""), ContentItem(image="b"), ContentItem(text="c")]
    assert Message("user", items).get_text_content() == "a\nc"
    assert Message("user", "plain").get_text_content() == "plain"
    assert Message("user", []).get_text_content() == ""


def test_add_argument_makes_a_new_call() -> None:
    call = FunctionCall("search", '{"query": "Zürich"}')
    assert call.add_argument("limit", 5) == FunctionCall("search", '{"query": "Zürich", "limit": 5}')
    assert call == FunctionCall("search", '{"query": "Zürich"}')


def test_add_argument_needs_an_object() -> None:
    with pytest.raises(ValueError, match="not an object but list"):
        FunctionCall("search", "[1]").add_argument("limit", 5)


def test_parsed_arguments_may_be_any_json_value() -> None:
    assert FunctionCall("f", "[1, null]").get_parsed_arguments() == [1, None]
    with pytest.raises(JSONDecodeError):
        FunctionCall("f", '{"code": ').get_parsed_arguments()


def test_response_content_is_the_text_of_the_last_message() -> None:
    call = FunctionCall("f", "{}")
    response = ModelResponse(messages=[Message("assistant", "", function_call=call), Message("assistant", "Done")])
    assert response.get_content() == "Done"
    assert response.get_function_calls() == [call]
    assert ModelResponse(messages=[]).get_content() == ""


def test_response_dumps_without_none() -> None:
    response = ModelResponse(messages=[Message("assistant", "a")], model="qwen-max", created=0)
    dump = {"messages": [{"role": "assistant", "content": "a"}], "model": "qwen-max", "created": 0}
    assert (response.model_dump(), repr(response)) == (dump, f"ModelResponse({dump})")


def test_usage_adds_and_counts_a_missing_cost_as_zero() -> None:
    one = Usage(prompt_tokens=1, completion_tokens=2, total_tokens=3)
    assert one + Usage(prompt_tokens=10, cost=0.5) == Usage(
        prompt_tokens=11, completion_tokens=2, total_tokens=3, cost=0.5
    )
    assert repr((one + one).cost) == "0.0"


def changed(message: Message, key: str, value: Any) -> Message:
    message[key] = value
    return message


@pytest.mark.parametrize(
    ("message", "problems"),
    [
        (Message("user", ""), []),
        (Message("function", "", name="f"), []),
        (Message("function", ""), [Problem("name", "a function message needs the name of its function")]),
        (Message("function", "", name=""), [Problem("name", "a function message needs the name of its function")]),
        (
            Message("assistant", "", function_call=FunctionCall("", "{")),
            [
                Problem("function_call.name", "a function call needs a name"),
                Problem("function_call.arguments", "the arguments are not JSON"),
            ],
        ),
        (
            Message("assistant", "", function_call=FunctionCall(" f", "3")),
            [Problem("function_call.name", "the name ' f' has spaces around it")],
        ),
        (
            Message("user", [ContentItem(text="a"), ContentItem(text="a", image="")]),
            [Problem("content[1]", "expected one kind of content, not text and image")],
        ),
        (
            changed(Message("user", ""), "role", "human"),
            [Problem("role", "unknown role 'human'; known roles: user, assistant, system, function")],
        ),
    ],
)
def test_check_reports_what_the_documentation_does_not_allow(message: Message, problems: list[Problem]) -> None:
    assert check(message) == problems


def test_check_takes_the_real_models(upstream: Any) -> None:
    assert check(upstream.Message("function", "")) == check(Message("function", ""))


def test_documented_rules_refuse_a_nameless_result() -> None:
    data = {"role": "function", "content": "x"}
    assert Message.model_validate(data).name is None
    with pytest.raises(ValidationError, match="needs the name of its function"):
        Message.model_validate(data, context=DOCUMENTED)


def test_documented_rules_strip_the_name_of_a_call() -> None:
    data = {"role": "assistant", "content": "", "function_call": {"name": " f ", "arguments": "{}"}}
    assert Message.model_validate(data, context=DOCUMENTED).function_call == FunctionCall("f", "{}")
    assert FunctionCall.model_validate(data["function_call"], context=DOCUMENTED) == FunctionCall("f", "{}")


@pytest.mark.parametrize("call", [{"name": "  ", "arguments": "{}"}, {"name": "f", "arguments": "print(1)"}])
def test_documented_rules_refuse_a_bad_call(call: dict[str, str]) -> None:
    with pytest.raises(ValidationError):
        FunctionCall.model_validate(call, context=DOCUMENTED)
    with pytest.raises(ValidationError):
        Message.model_validate({"role": "assistant", "content": "", "function_call": call}, context=DOCUMENTED)
