"""The examples of the Qwen-Agent schema document and of the Qwen-Agent data-structure analysis, as they stand there.

Where the real package does otherwise than a document says, the test says what holds.
"""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from chatledger.formats import qwen_agent
from chatledger.formats.qwen_agent import CODEC, DOCUMENTED, ContentItem, FunctionCall, Message, check
from chatledger.models import ChatMessage, ToolCall
from chatledger.rules import Tip, judge


def decode(*messages: Message) -> list[ChatMessage]:
    stored = CODEC.decode(messages).messages
    assert CODEC.as_models(CODEC.encode(stored).payload) == list(messages)
    return stored


def test_schema_document_constants() -> None:
    names = ("SYSTEM", "USER", "ASSISTANT", "FUNCTION", "TEXT", "IMAGE", "FILE", "AUDIO", "VIDEO", "ROLE", "CONTENT")
    for name in (*names, "REASONING_CONTENT", "NAME"):
        assert getattr(qwen_agent, name) == name.lower()


def test_schema_document_dictionary_style_access() -> None:
    message = Message(role="user", content="Hello")
    assert message["role"] == "user"


def test_schema_document_safe_retrieval() -> None:
    assert Message(role="user", content="Hello").get("non_existent_key", "default") == "default"


def test_schema_document_clean_serialization() -> None:
    assert Message(role="user", content="Hello").model_dump() == {"role": "user", "content": "Hello"}


def test_schema_document_readable_string() -> None:
    message = Message(role="user", content="Hello")
    assert str(message) == str(message.model_dump()) == "{'role': 'user', 'content': 'Hello'}"


def test_schema_document_function_call() -> None:
    call = FunctionCall(name="get_weather", arguments='{"city": "Beijing"}')
    assert (call.name, call.arguments) == ("get_weather", '{"city": "Beijing"}')


@pytest.mark.parametrize(
    ("item", "type_", "value"),
    [
        (ContentItem(text="Hello"), "text", "Hello"),
        (ContentItem(image="https://example.jpg"), "image", "https://example.jpg"),
        (ContentItem(image="data:image/png;base64,..."), "image", "data:image/png;base64,..."),
    ],
)
def test_schema_document_valid_content_items(item: ContentItem, type_: str, value: str) -> None:
    assert (item.type, item.value) == (type_, value)


def test_schema_document_invalid_content_item() -> None:
    with pytest.raises(ValueError, match=r"Exactly one .* must be provided"):
        ContentItem(text="Hi", image="...")


def test_schema_document_content_none_is_an_empty_string() -> None:
    assert Message(role="assistant", content=None).content == ""


def test_schema_document_role_must_be_one_of_four() -> None:
    with pytest.raises(ValidationError, match="must be one of user,assistant,system,function"):
        Message(role="tool", content="")


def test_schema_document_plain_text_message() -> None:
    [stored] = decode(Message(role="user", content="What is the weather in Tokyo?"))
    assert (stored.role, stored.content) == ("user", "What is the weather in Tokyo?")


def test_schema_document_multimodal_input() -> None:
    content = [ContentItem(text="Describe this image:"), ContentItem(image="https://example.com/cat.jpg")]
    [stored] = decode(Message(role="user", content=content))
    assert stored.text == "Describe this image:"


def test_schema_document_function_call_and_response() -> None:
    call = Message(
        role="assistant",
        content="",
        function_call=FunctionCall(name="get_weather", arguments='{"city": "Tokyo"}'),
    )
    response = Message(role="function", name="get_weather", content='{"temperature": 25, "unit": "Celsius"}')
    asked, answered = decode(call, response)
    assert asked.tool_calls == [ToolCall(name="get_weather", arguments='{"city": "Tokyo"}')]
    assert (answered.role, answered.name, answered.tool_call_id) == ("tool", "get_weather", None)
    assert judge(Tip(), [asked, answered], branch=0, level="strict").tip.open_calls == ()


def test_schema_document_response_with_reasoning_trace() -> None:
    trace = "Step 1: Identify the city. Step 2: Fetch weather data..."
    thought, spoken = decode(
        Message(role="assistant", content="", reasoning_content=trace),
        Message(role="assistant", content="It is 25 degrees Celsius"),
    )
    assert (thought.reasoning_text, spoken.text) == (trace, "It is 25 degrees Celsius")


def test_schema_document_json_in_json_out_and_models_in_models_out() -> None:
    models = [Message(role="user", content="Hello")]
    dicts = [message.model_dump() for message in models]
    assert CODEC.given_as(CODEC.decode(models).messages) == "models"
    assert CODEC.given_as(CODEC.decode(dicts).messages) == "dicts"


def test_analysis_clear_parameters() -> None:
    message = Message(role="user", content="请帮我分析这张图片", name="用户A")
    assert check(message) == []
    assert decode(message)[0].name == "用户A"


def test_analysis_multimodal_message() -> None:
    items = [ContentItem(text="请分析这张图片的内容"), ContentItem(image="https://example.com/image.jpg")]
    message = Message(role="user", content=items)
    assert message.is_multimodal()
    assert message.get_text_content() == "请分析这张图片的内容"
    assert items[1].get_file_extension() == "jpg"


def test_analysis_empty_message_is_advised_against_and_allowed() -> None:
    assert check(Message(role="user", content="")) == []


def test_analysis_item_of_two_kinds_is_refused() -> None:
    with pytest.raises(ValidationError):
        ContentItem(text="文本", image="图片")


def test_analysis_json_arguments() -> None:
    call = FunctionCall("web_search", '{"query": "Python机器学习", "max_results": 5}')
    assert call.get_parsed_arguments() == {"query": "Python机器学习", "max_results": 5}
    assert call.add_argument("lang", "zh").arguments == '{"query": "Python机器学习", "max_results": 5, "lang": "zh"}'


def test_analysis_type_and_value() -> None:
    assert ContentItem(text="你好").get_type_and_value() == ("text", "你好")
    assert ContentItem(image="https://example.com/image.jpg").get_type_and_value()[0] == "image"


def test_analysis_function_message_needs_a_name_only_under_the_documented_rules() -> None:
    data = {"role": "function", "content": "执行结果"}
    assert Message.model_validate(data) == Message("function", "执行结果")
    with pytest.raises(ValidationError):
        Message.model_validate(data, context=DOCUMENTED)


def test_analysis_content_has_no_default() -> None:
    with pytest.raises(TypeError, match="content"):
        Message(role="user")  # type: ignore[call-arg]
