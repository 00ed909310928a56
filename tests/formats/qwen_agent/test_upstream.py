"""Our models beside the real package's: the same code gives the same values, texts and errors with both."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from chatledger.formats import qwen_agent

Probe = Callable[[Any], Any]


def assigned(q: Any) -> Any:
    message = q.Message("user", "x")
    message["role"] = "bogus"
    message["content"] = "y"
    return message["role"], message.content


def assigned_unknown(q: Any) -> Any:
    q.Message("user", "x")["unknown"] = 1


VALUES: dict[str, Probe] = {
    "positional": lambda q: q.Message("assistant", "a", "because", "Ada", q.FunctionCall("f", "{}"), {"k": None}),
    "keywords": lambda q: q.Message(role="user", content=[q.ContentItem(text="a"), q.ContentItem(image="b")]),
    "from dicts": lambda q: q.Message("user", [{"text": "a"}, {"video": [None, {"fps": None}]}]),
    "content None": lambda q: q.Message("user", None),
    "content empty": lambda q: q.Message("user", ""),
    "content no items": lambda q: q.Message("user", []),
    "unknown keyword": lambda q: q.Message("user", "x", unknown=1),
    "unknown keys validated": lambda q: q.Message.model_validate({"role": "user", "content": "x", "unknown": 1}),
    "reasoning items": lambda q: q.Message("assistant", "", [q.ContentItem(text="because")]),
    "reasoning empty": lambda q: q.Message("assistant", "", ""),
    "nameless result": lambda q: q.Message("function", "x"),
    "empty call": lambda q: q.FunctionCall("", "print(1)"),
    "spaces kept": lambda q: q.FunctionCall(" f ", ' {"b": 1, "a": 2}'),
    "text with empty image": lambda q: q.ContentItem(text="a", image=""),
    "empty text": lambda q: q.ContentItem(text=""),
    "audio dict": lambda q: q.ContentItem(audio={"data": None, "more": {"x": None}}),
    "extra": lambda q: q.Message("user", "x", extra={"b": 1e2, "a": None, "c": -0.0, "d": 10**30, 3: (1, 2)}),
    "NaN": lambda q: q.Message("user", "x", extra={"a": float("nan"), "b": float("inf")}),
    "lone surrogate": lambda q: q.Message("user", "a\ud800", extra={"\udfff": "\ud800"}),
    "items": lambda q: [q.ContentItem(text="a")],
}
RESULTS: dict[str, Probe] = {
    "item": lambda q: q.Message("user", "x")["content"],
    "assigned without validation": assigned,
    "get": lambda q: q.Message("user", "x").get("content", "default"),
    "get falsy": lambda q: q.Message("user", "").get("content", "default"),
    "get None": lambda q: q.Message("user", "").get("name"),
    "get missing": lambda q: q.Message("user", "").get("missing", 3),
    "type and value": lambda q: q.ContentItem(file="a.pdf").get_type_and_value(),
    "type": lambda q: q.ContentItem(video=["a"]).type,
    "value": lambda q: q.ContentItem(audio={"data": "x"}).value,
    "fields set": lambda q: q.Message("user", "x").model_fields_set,
    "equal": lambda q: q.Message("user", "x") == q.Message(role="user", content="x"),
    "schema": lambda q: q.Message.model_json_schema(),
    "constants": lambda q: [
        *(q.SYSTEM, q.USER, q.ASSISTANT, q.FUNCTION, q.IMAGE, q.FILE, q.AUDIO, q.VIDEO),
        *(q.ROLE, q.CONTENT, q.REASONING_CONTENT, q.NAME, q.DEFAULT_SYSTEM_MESSAGE),
    ],
}
ERRORS: dict[str, Probe] = {
    "unknown role": lambda q: q.Message("bogus", "x"),
    "no role": lambda q: q.Message(content="x"),
    "no content": lambda q: q.Message("user"),
    "no content validated": lambda q: q.Message.model_validate({"role": "user"}),
    "content of numbers": lambda q: q.Message("user", [1]),
    "two kinds": lambda q: q.ContentItem(text="a", image="b"),
    "no kind": lambda q: q.ContentItem(),
    "empty image": lambda q: q.ContentItem(image=""),
    "no frames": lambda q: q.ContentItem(video=[]),
    "unknown kind": lambda q: q.ContentItem(type="text", text="a"),
    "unknown kind inside": lambda q: q.Message("user", [{"type": "text", "text": "a"}]),
    "unknown key of a call": lambda q: q.FunctionCall("f", "{}", id="1"),
    "arguments None": lambda q: q.FunctionCall("f", None),
    "arguments object": lambda q: q.FunctionCall("f", {"a": 1}),
    "extra list": lambda q: q.Message("user", "x", extra=[1]),
    "missing attribute": lambda q: q.Message("user", "x")["missing"],
    "assign unknown": assigned_unknown,
    "surrogate as JSON": lambda q: q.Message("user", "\ud800").model_dump_json(),
}


def shown(value: Any) -> list[Any]:
    one = value if not isinstance(value, list) else value[0]
    texts = [repr(value), str(value), repr(one.model_dump()), repr(one.model_dump(exclude_none=False))]
    return [*texts, *(as_json(one, **options) for options in ({}, {"exclude_none": False}, {"indent": 2}))]


def as_json(value: Any, **options: Any) -> str:
    try:
        text: str = value.model_dump_json(**options)
    except ValueError as error:  # a lone surrogate has no UTF-8
        return repr(error)
    return text


def error_of(probe: Probe, q: Any) -> Exception:
    with pytest.raises(Exception) as caught:  # noqa: PT011 - which one is what the test compares
        probe(q)
    return caught.value


@pytest.mark.parametrize("name", VALUES)
def test_reads_as_upstream_does(name: str, upstream: Any) -> None:
    assert shown(VALUES[name](qwen_agent)) == shown(VALUES[name](upstream))


@pytest.mark.parametrize("name", RESULTS)
def test_behaves_as_upstream_does(name: str, upstream: Any) -> None:
    assert RESULTS[name](qwen_agent) == RESULTS[name](upstream)


@pytest.mark.parametrize("name", ERRORS)
def test_refuses_as_upstream_does(name: str, upstream: Any) -> None:
    theirs = error_of(ERRORS[name], upstream)
    ours = error_of(ERRORS[name], qwen_agent)
    assert isinstance(ours, type(theirs))
    assert str(ours) == str(theirs)
