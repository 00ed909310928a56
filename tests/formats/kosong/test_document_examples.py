"""The examples of the kosong.message document, in its order, as they print on the models of release 0.23.

Where the document is wrong about its own release, the test says so: an exclude_none dump of a message keeps the None
inside its parts.
"""

from __future__ import annotations

import base64
import json

from chatledger.formats.kosong.v0_23 import (
    CODEC,
    AudioURLPart,
    ContentPart,
    ImageURLPart,
    Message,
    TextPart,
    ThinkPart,
    ToolCall,
    ToolCallPart,
)


def call(id_: str, name: str, arguments: str | None) -> ToolCall:
    return ToolCall(id=id_, function=ToolCall.FunctionBody(name=name, arguments=arguments))


def image(url: str, id_: str | None = None) -> ImageURLPart:
    return ImageURLPart(image_url=ImageURLPart.ImageURL(url=url, id=id_))


def audio(url: str, id_: str | None = None) -> AudioURLPart:
    return AudioURLPart(audio_url=AudioURLPart.AudioURL(url=url, id=id_))


def assert_stored(*messages: Message) -> None:
    assert CODEC.as_models(CODEC.encode(CODEC.decode(list(messages)).messages).payload) == list(messages)


def test_plain_text_messages() -> None:
    user = Message(role="user", content="你好，世界！")
    assert user.model_dump(exclude_none=True) == {"role": "user", "content": "你好，世界！"}
    assert_stored(
        user, Message(role="system", content="你是一个友好的助手。"), Message(role="assistant", content="你好！")
    )


def test_multi_part_message() -> None:
    assert_stored(
        Message(role="user", content=[TextPart(text="这张图片里有什么？"), image("https://example.com/image.png")])
    )


def test_message_with_a_tool_call() -> None:
    weather = call("call_123", "get_weather", '{"city": "北京"}')
    assert_stored(Message(role="assistant", content=[TextPart(text="让我帮你查询天气。")], tool_calls=[weather]))


def test_tool_response_message() -> None:
    assert_stored(Message(role="tool", tool_call_id="call_123", content="北京：晴天，温度 25°C"))


def test_text_part() -> None:
    assert TextPart(text="Hello, world!").model_dump() == {"type": "text", "text": "Hello, world!"}
    assert_stored(Message(role="user", content=[TextPart(text="第一段文本。"), TextPart(text="第二段文本。")]))


def test_adjacent_texts_merge() -> None:
    part = TextPart(text="Hello, ")
    assert part.merge_in_place(TextPart(text="world!")) is True
    assert part.text == "Hello, world!"


def test_think_part() -> None:
    part = ThinkPart(think="我需要先分析这个问题...")
    assert part.model_dump() == {"type": "think", "think": "我需要先分析这个问题...", "encrypted": None}
    assert_stored(Message(role="assistant", content=[part, TextPart(text="让我帮你解决这个问题。")]))


def test_thinks_merge_until_one_is_encrypted() -> None:
    part = ThinkPart(think="第一步：")
    assert part.merge_in_place(ThinkPart(think="分析问题")) is True
    assert part.think == "第一步：分析问题"
    assert ThinkPart(think="思考", encrypted="signature").merge_in_place(ThinkPart(think="更多")) is False


def test_image_by_remote_url() -> None:
    part = image("https://example.com/image.png")
    assert part.model_dump() == {
        "type": "image_url",
        "image_url": {"url": "https://example.com/image.png", "id": None},
    }
    assert_stored(Message(role="user", content=[TextPart(text="请分析这张图片："), part]))


def test_image_and_audio_by_data_uri() -> None:
    encoded = base64.b64encode(b"\x89PNG").decode()
    assert_stored(
        Message(role="user", content=[image(f"data:image/png;base64,{encoded}")]),
        Message(role="user", content=[audio(f"data:audio/mpeg;base64,{encoded}")]),
    )


def test_ids_tell_images_apart() -> None:
    first, second = (image(f"https://example.com/image{n}.png", f"image_{n}") for n in (1, 2))
    assert_stored(Message(role="user", content=[TextPart(text="比较这两张图片的差异："), first, second]))


def test_audio_by_remote_url() -> None:
    part = audio("https://example.com/audio.mp3")
    assert part.model_dump() == {
        "type": "audio_url",
        "audio_url": {"url": "https://example.com/audio.mp3", "id": None},
    }
    assert_stored(Message(role="user", content=[TextPart(text="请转录这段音频："), part]))


def test_ids_tell_speakers_apart() -> None:
    first, second = (audio(f"https://example.com/speaker{n}.mp3", f"speaker_{n}") for n in (1, 2))
    assert_stored(Message(role="user", content=[TextPart(text="比较这两段音频的说话人："), first, second]))


def test_tool_call() -> None:
    assert call("call_123", "get_weather", '{"city": "北京"}').model_dump() == {
        "type": "function",
        "id": "call_123",
        "function": {"name": "get_weather", "arguments": '{"city": "北京"}'},
    }


def test_several_tool_calls_in_one_message() -> None:
    calls = [
        call("call_1", "get_weather", '{"city": "北京"}'),
        call("call_2", "get_time", '{"timezone": "Asia/Shanghai"}'),
    ]
    assert_stored(Message(role="assistant", content=[TextPart(text="让我帮你查询天气和时间。")], tool_calls=calls))


def test_arguments_of_a_tool_call() -> None:
    arguments = call("call_456", "calculate", '{"expression": "2 + 3"}').function.arguments
    assert arguments is not None
    assert json.loads(arguments) == {"expression": "2 + 3"}


def test_a_tool_call_grows_by_its_parts() -> None:
    growing = call("call_789", "search", None)
    growing.merge_in_place(ToolCallPart(arguments_part='{"query": '))
    assert growing.function.arguments == '{"query": '
    growing.merge_in_place(ToolCallPart(arguments_part='"Python"}'))
    assert growing.function.arguments == '{"query": "Python"}'


def test_tool_call_parts_merge() -> None:
    part = ToolCallPart(arguments_part='{"city": ')
    assert part.model_dump() == {"arguments_part": '{"city": '}
    assert part.merge_in_place(ToolCallPart(arguments_part='"北京"}')) is True
    assert part.arguments_part == '{"city": "北京"}'


def test_dict_of_a_message_keeps_the_none_inside_its_parts() -> None:
    message = Message(role="user", content=[TextPart(text="这是什么？"), image("https://example.com/img.png")])
    assert message.model_dump(exclude_none=True) == {
        "role": "user",
        "content": [
            {"type": "text", "text": "这是什么？"},
            # The document leaves the id out, which only the part's own exclude_none dump does.
            {"type": "image_url", "image_url": {"url": "https://example.com/img.png", "id": None}},
        ],
    }


def test_message_from_a_dict() -> None:
    function = {"name": "get_weather", "arguments": '{"city": "北京"}'}
    data = {
        "role": "assistant",
        "content": [{"type": "text", "text": "Hello!"}],
        "tool_calls": [{"type": "function", "id": "call_123", "function": function}],
    }
    message = Message.model_validate(data)
    assert message.role == "assistant"
    assert message.tool_calls == [call("call_123", "get_weather", '{"city": "北京"}')]
    assert CODEC.encode(CODEC.decode([data]).messages).payload == [data]


def test_json_of_a_message() -> None:
    message = Message(role="user", content=[TextPart(text="你好")])
    text = message.model_dump_json(exclude_none=True)
    assert text == '{"role":"user","content":[{"type":"text","text":"你好"}]}'
    assert Message.model_validate_json(text) == message


def test_parts_are_recognised_by_their_type() -> None:
    content = [
        {"type": "text", "text": "文本"},
        {"type": "think", "think": "思考"},
        {"type": "image_url", "image_url": {"url": "https://example.com/img.png"}},
        {"type": "audio_url", "audio_url": {"url": "https://example.com/audio.mp3"}},
    ]
    parts = Message.model_validate({"role": "user", "content": content}).content
    assert [type(part) for part in parts] == [TextPart, ThinkPart, ImageURLPart, AudioURLPart]


def test_multimodal_conversation() -> None:
    text = TextPart(text="请分析这张图片和这段音频：")
    media: list[ContentPart] = [image("https://example.com/photo.jpg"), audio("https://example.com/voice.mp3")]
    assert_stored(Message(role="user", content=[text, *media]))


def test_tool_call_flow() -> None:
    weather = call("call_123", "get_weather", '{"city": "北京"}')
    assert_stored(
        Message(role="user", content="北京今天天气怎么样？"),
        Message(role="assistant", content=[TextPart(text="让我查询一下。")], tool_calls=[weather]),
        Message(role="tool", tool_call_id="call_123", content="北京：晴天，25°C"),
        Message(role="assistant", content="北京今天是晴天，温度 25°C。"),
    )


def test_empty_content_beside_a_call_dumps_as_none() -> None:
    message = Message(
        role="assistant", content="", tool_calls=[call("call_456", "execute_action", '{"action": "save"}')]
    )
    assert message.model_dump(exclude_none=True)["content"] is None
    assert_stored(message)


def test_names_tell_users_apart() -> None:
    assert_stored(
        Message(role="user", name="Alice", content="我觉得这个方案不错。"),
        Message(role="user", name="Bob", content="我有不同的看法。"),
    )


def test_a_text_and_a_list_of_it_dump_differently() -> None:
    assert Message(role="user", content="你好").model_dump()["content"] == "你好"
    listed = Message(role="user", content=[TextPart(text="你好")])
    assert listed.model_dump()["content"] == [{"type": "text", "text": "你好"}]


def test_a_doubled_call_id_is_accepted() -> None:
    assert_stored(
        Message(role="assistant", content="", tool_calls=[call("call_1", "f", "{}"), call("call_1", "g", "{}")])
    )


def test_recommended_order() -> None:
    assert_stored(
        Message(role="system", content="系统提示"),
        Message(role="user", content="用户问题"),
        Message(role="assistant", content="", tool_calls=[call("call_abc", "f", "{}")]),
        Message(role="tool", tool_call_id="call_abc", content="工具结果"),
        Message(role="assistant", content="基于工具结果的回复"),
    )


def test_partial_and_complete_messages() -> None:
    assert_stored(
        Message(role="assistant", content=[TextPart(text="正在生成")], partial=True),
        Message(role="assistant", content=[TextPart(text="正在生成完整的响应。")], partial=False),
    )


def test_text_parts_of_a_message() -> None:
    def texts(message: Message) -> list[str]:
        if isinstance(message.content, str):
            return [message.content]
        return [part.text for part in message.content if isinstance(part, TextPart)]

    assert texts(Message(role="user", content="a")) == ["a"]
    assert texts(Message(role="user", content=[TextPart(text="b"), ThinkPart(think="c")])) == ["b"]
