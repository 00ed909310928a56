"""What is built from trusted values equals what validation gives."""

from __future__ import annotations

import pytest
from pydantic import BaseModel

from chatledger import ChatMessage, Feedback, ImagePart, OpaquePart, TextPart, ThinkPart, ToolCall
from chatledger.models.base import build, copy_with, revive, revive_all
from chatledger.types import Violation

FULL = ChatMessage(
    role="assistant",
    content=[TextPart(text="a"), ImagePart(url="b"), OpaquePart(type="x", value=[1])],
    reasoning=[ThinkPart(text="hm", signature="s")],
    tool_calls=[ToolCall(id="c", name="f", arguments={"b": 1, "a": 2})],
    custom_data={"z": 1, "a": None},
    violations=[Violation(rule="R5", detail="twice")],
)
INSTANCES: list[BaseModel] = [
    FULL,
    ChatMessage(role="user"),
    TextPart(text="a"),
    ImagePart(),
    ToolCall(name="f"),
    Feedback(run_id="r", key="k", score=1),
]


@pytest.mark.parametrize("instance", INSTANCES, ids=repr)
def test_built_models_equal_validated_ones(instance: BaseModel) -> None:
    given = {name: instance.__dict__[name] for name in instance.model_fields_set}
    built = build(type(instance), given)
    assert built == instance
    assert built.model_fields_set == instance.model_fields_set
    assert repr(built) == repr(instance)
    assert list(built.model_dump()) == list(instance.model_dump())
    assert built.model_dump_json() == instance.model_dump_json()


def test_models_that_are_revived_together_equal_those_that_are_revived_alone() -> None:
    calls = [ToolCall(name="a"), ToolCall(id="c", name="b", arguments="{}")]
    values, given = [one.__dict__ for one in calls], [one.model_fields_set for one in calls]
    together = revive_all(ToolCall, values, given)
    alone = [revive(ToolCall, *one) for one in zip(values, given, strict=True)]
    assert together == alone == calls
    assert [one.model_fields_set for one in together] == given
    assert [(one.model_extra, one.__pydantic_private__) for one in together] == [(None, None)] * 2


def test_generated_defaults_are_not_shared() -> None:
    one, two = build(ChatMessage, {"role": "user"}), build(ChatMessage, {"role": "user"})
    assert one.violations is not two.violations


def test_a_copy_with_fields_is_what_model_copy_gives() -> None:
    fields = {"seq": 3, "run_id": "r"}
    copied, expected = copy_with(FULL, fields), FULL.model_copy(update=fields)
    assert (copied, copied.model_fields_set, repr(copied)) == (expected, expected.model_fields_set, repr(expected))
    assert FULL.seq is None
