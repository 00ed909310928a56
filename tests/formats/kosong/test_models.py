from __future__ import annotations

import pytest
from pydantic import TypeAdapter, ValidationError

from chatledger.formats.kosong import CODEC, ContentPart, Message, TextPart, ThinkPart, UnknownPart, models, v0_23


@pytest.fixture(autouse=True)
def _registry_as_before(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(models, "_REGISTRY", dict(models._REGISTRY))


def through_the_store(*messages: Message) -> list[Message]:
    models: list[Message] = CODEC.as_models(CODEC.encode(CODEC.decode(list(messages)).messages).payload)
    return models


def test_extract_text_joins_the_texts() -> None:
    message = Message(role="user", content=[TextPart(text="a"), ThinkPart(think="b"), TextPart(text="c")])
    assert (message.extract_text(), message.extract_text(sep="\n")) == ("ac", "a\nc")


def test_a_subclass_registers_by_its_type() -> None:
    class Place(ContentPart):
        type: str = "place"
        name: str

    message = Message.model_validate({"role": "user", "content": [{"type": "place", "name": "Tokyo"}]})
    assert message.content == [Place(name="Tokyo")]
    assert through_the_store(message) == [message]


def test_the_last_registration_wins() -> None:
    class Louder(TextPart):
        type: str = "text"
        volume: int = 1

    message = Message.model_validate({"role": "user", "content": [{"type": "text", "text": "a", "volume": 2}]})
    assert message.content == [Louder(text="a", volume=2)]
    assert through_the_store(message) == [message]


def test_a_subclass_without_its_own_type_is_refused() -> None:
    with pytest.raises(ValueError, match="must have a `type` field"):
        type("Nameless", (TextPart,), {})


def test_a_lone_subclass_of_text_keeps_its_class_though_its_dump_is_the_text() -> None:
    class Note(TextPart):
        type: str = "note"
        by: str = "ada"

    message = Message(role="user", content=[Note(text="a", by="bob")])
    assert message.model_dump()["content"] == "a"
    assert through_the_store(message) == [message]
    assert CODEC.encode(CODEC.decode([message]).messages).payload == [message.model_dump()]


def test_an_unknown_part_is_kept_and_becomes_known_when_its_class_is_registered() -> None:
    part = {"type": "place", "name": "Tokyo", "later": [1]}
    [stored] = CODEC.decode([{"role": "user", "content": [part]}]).messages
    [before] = CODEC.as_models(CODEC.encode([stored]).payload)

    class Place(ContentPart):
        type: str = "place"
        name: str

    [after] = CODEC.as_models(CODEC.encode([stored]).payload)
    assert before.content == [UnknownPart(type="place", value=part)]
    assert after.content == [Place(name="Tokyo")]


def test_a_part_that_its_class_refuses_is_an_unknown_one_when_read() -> None:
    [stored] = CODEC.decode([{"role": "user", "content": [{"type": "place", "name": "Tokyo"}]}]).messages

    class Place(ContentPart):
        type: str = "place"
        latitude: float

    [message] = CODEC.as_models(CODEC.encode([stored]).payload)
    assert message.content == [UnknownPart(type="place", value={"type": "place", "name": "Tokyo"})]
    assert Place.registered_as == "place"


def test_any_part_is_read_by_its_type() -> None:
    assert TypeAdapter(ContentPart).validate_python({"type": "text", "text": "a"}) == TextPart(text="a")


def test_a_part_without_type_is_refused() -> None:
    with pytest.raises(ValidationError):
        Message.model_validate({"role": "user", "content": [{"text": "a"}]})


def test_the_older_revision_does_not_know_videos() -> None:
    part = {"type": "video_url", "video_url": {"url": "u"}}
    message = v0_23.Message.model_validate({"role": "user", "content": [part]})
    assert message.content == [UnknownPart(type="video_url", value=part)]
