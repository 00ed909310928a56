"""Reading: the typed fields, the refusals of strict with their paths, and the results of lenient."""

from __future__ import annotations

from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest

from chatledger.errors import DecodeError
from chatledger.formats.agent_service import CODEC, ChatMessage
from chatledger.models import ChatMessage as LedgerMessage
from chatledger.models import Loss, ToolCall
from tests.formats.agent_service.examples import SimpleHistory, a_service_class
from tests.formats.measured import encode, refusal


def decoded(row: dict[str, Any], rules: Any = "strict") -> LedgerMessage:
    [message] = CODEC.decode([row], rules=rules).messages
    return message


def test_every_field_has_its_place() -> None:
    call = {"name": "search", "args": {"b": 1, "a": 2}, "id": "call_1", "type": "tool_call"}
    message = decoded(
        {
            "type": "ai",
            "content": "Let me look.",
            "tool_calls": [call],
            "tool_call_id": None,
            "run_id": "run-7",
            "response_metadata": {"tokens_used": 50},
            "custom_data": {"chart": "data:"},
        }
    )
    assert message == LedgerMessage(
        role="assistant",
        content="Let me look.",
        tool_calls=[ToolCall(id="call_1", name="search", arguments={"b": 1, "a": 2})],
        run_id="run-7",
        response_metadata={"tokens_used": 50},
        custom_data={"chart": "data:"},
        format="agent-service",
    )


@pytest.mark.parametrize(
    ("type_", "role"), [("human", "user"), ("ai", "assistant"), ("tool", "tool"), ("custom", "custom")]
)
def test_types_are_roles(type_: str, role: str) -> None:
    assert decoded({"type": type_, "content": ""}).role == role


def test_a_custom_message_that_names_a_role_stays_custom() -> None:
    assert decoded({"type": "custom", "content": "Be brief.", "custom_data": {"role": "system"}}).role == "custom"


def test_a_tool_result_without_an_id_is_left_to_the_rules() -> None:
    assert decoded({"type": "tool", "content": "21"}).tool_call_id is None


def test_defaults_say_nothing() -> None:
    message = decoded({"type": "ai", "content": "", "tool_calls": [], "response_metadata": {}, "custom_data": {}})
    assert (message.tool_calls, message.response_metadata, message.custom_data) == (None, None, None)


BAD_ROWS = [
    ({"content": "x"}, "$[0].type"),
    ({"type": "system", "content": "x"}, "$[0].type"),
    ({"type": "ai"}, "$[0].content"),
    ({"type": "ai", "content": ["x"]}, "$[0].content"),
    ({"type": "ai", "content": "x", "run_id": 7}, "$[0].run_id"),
    ({"type": "ai", "content": "x", "custom_data": None}, "$[0].custom_data"),
    ({"type": "ai", "content": "x", "tool_calls": {}}, "$[0].tool_calls"),
    ({"type": "ai", "content": "x", "tool_calls": [{"args": {}, "id": None}]}, "$[0].tool_calls[0].name"),
    ({"type": "ai", "content": "x", "tool_calls": [{"name": "f", "args": "{}", "id": "1"}]}, "$[0].tool_calls[0].args"),
    ({"type": "ai", "content": "x", "tool_calls": [{"name": "f", "args": {}}]}, "$[0].tool_calls[0].id"),
]


@pytest.mark.parametrize(("row", "path"), BAD_ROWS)
def test_a_row_that_is_not_of_the_format_is_refused_with_its_path(row: dict[str, Any], path: str) -> None:
    assert refusal(CODEC, [row]) == path


@pytest.mark.parametrize("row", [row for row, path in BAD_ROWS[1:]])
def test_lenient_keeps_it_as_it_is_and_reads_it_as_a_model(row: dict[str, Any]) -> None:
    result = CODEC.decode([row], rules="lenient")
    payload = encode(CODEC, result.messages).payload
    assert (payload, result.losses) == ({"messages": [row]}, [])
    assert len(CODEC.as_models(payload).messages) == 1


def test_lenient_keeps_an_unknown_type_as_the_role() -> None:
    assert decoded({"type": "task", "content": "x"}, "lenient").role == "task"


def test_an_unknown_type_is_custom_to_the_models() -> None:
    payload = encode(CODEC, CODEC.decode([{"type": "task", "content": "x"}], rules="lenient").messages).payload
    assert CODEC.as_models(payload).messages == [ChatMessage(type="custom", content="x", custom_data={"role": "task"})]


@pytest.mark.parametrize(("args", "arguments"), [("{", "{"), ([1, 2.0], "[1,2.0]"), (None, None), (7, "7")])
def test_lenient_keeps_args_that_are_not_an_object_as_text(args: Any, arguments: str | None) -> None:
    row = {"type": "ai", "content": "x", "tool_calls": [{"name": "f", "args": args, "id": "1"}]}
    assert decoded(row, "lenient").tool_calls == [ToolCall(id="1", name="f", arguments=arguments)]


@pytest.mark.parametrize("rules", ["strict", "lenient"])
@pytest.mark.parametrize("row", [{"content": "x"}, {"type": None, "content": "x"}, {"type": 7, "content": "x"}])
def test_a_message_without_a_type_is_refused_at_every_level(row: dict[str, Any], rules: Any) -> None:
    assert refusal(CODEC, {"messages": [row]}, rules=rules) == "$.messages[0].type"


@pytest.mark.parametrize(
    "payload", [None, "x", 7, {}, {"messages": None}, {"messages": "x"}, SimpleNamespace(messages=[])]
)
def test_a_payload_without_messages_is_refused(payload: object) -> None:
    assert refusal(CODEC, payload) == "$"


@pytest.mark.parametrize("message", [None, "x", SimpleNamespace(type="ai", content="x")])
def test_a_value_that_is_not_a_message_is_refused(message: object) -> None:
    assert refusal(CODEC, [{"type": "ai", "content": "x"}, message]) == "$[1]"


NOW = datetime(2026, 1, 2, tzinfo=UTC)

NOT_JSON: list[tuple[dict[str, Any], str, dict[str, Any]]] = [
    ({"at": [0, NOW]}, ".custom_data.at[1]", {"at": [0, "2026-01-02 00:00:00+00:00"]}),
    ({"n": {1: "a"}}, ".custom_data.n", {"n": {"1": "a"}}),
    ({"pair": (1, 2)}, ".custom_data.pair", {"pair": [1, 2]}),
    ({"bytes": b"x"}, ".custom_data.bytes", {"bytes": "b'x'"}),
    (
        {"model": ChatMessage(type="ai", content="x")},
        ".custom_data.model",
        {"model": ChatMessage(type="ai", content="x").model_dump()},
    ),
]


@pytest.mark.parametrize("as_object", [True, False])
@pytest.mark.parametrize(("data", "path", "_coerced"), NOT_JSON)
def test_a_value_that_is_not_json_is_refused_with_its_path(
    data: dict[str, Any], path: str, _coerced: object, as_object: bool
) -> None:
    row = {"type": "ai", "content": "x", "custom_data": data}
    assert refusal(CODEC, [ChatMessage.model_validate(row) if as_object else row]) == f"$[0]{path}"


@pytest.mark.parametrize(("data", "path", "coerced"), NOT_JSON)
def test_lenient_keeps_the_nearest_json_and_reports_it(
    data: dict[str, Any], path: str, coerced: dict[str, Any]
) -> None:
    result = CODEC.decode([{"type": "ai", "content": "x", "custom_data": data}], rules="lenient")
    assert result.messages[0].custom_data == coerced
    assert result.losses == [Loss("coerced", None, f"$[0]{path}")]


def test_coercing_leaves_the_callers_objects_alone() -> None:
    data = {"pair": (1, 2)}
    CODEC.decode([{"type": "ai", "content": "x", "custom_data": data}], rules="lenient")
    assert data == {"pair": (1, 2)}


def nested(depth: int) -> dict[str, Any]:
    value: dict[str, Any] = {}
    for _ in range(depth):
        value = {"a": value}
    return value


@pytest.mark.parametrize("rules", ["strict", "lenient"])
def test_json_deeper_than_500_is_refused(rules: Any) -> None:
    with pytest.raises(DecodeError):
        CODEC.decode([{"type": "ai", "content": "x", "custom_data": nested(500)}], rules=rules)


def test_json_up_to_500_deep_is_kept() -> None:
    row = {"type": "ai", "content": "x", "custom_data": nested(498), "x": nested(498)}
    assert encode(CODEC, CODEC.decode([row]).messages).payload == {"messages": [row]}


def test_a_cycle_is_refused_even_leniently() -> None:
    data: dict[str, Any] = {}
    data["self"] = data
    with pytest.raises(DecodeError):
        CODEC.decode([{"type": "ai", "content": "x", "custom_data": data}], rules="lenient")


def test_keys_without_a_message_are_refused_or_reported() -> None:
    with pytest.raises(DecodeError):
        CODEC.decode({"messages": [], "next": 1})
    assert CODEC.decode({"messages": [], "next": 1}, rules="lenient").losses == [Loss("around", None, "$")]


def test_of_two_payloads_with_keys_around_them_the_last_is_read() -> None:
    row = {"type": "human", "content": "x"}
    first, last = ({"messages": [row], "page": page} for page in (1, 2))
    messages = CODEC.decode(first).messages + CODEC.decode(last).messages
    encoded = encode(CODEC, [message.model_copy(update={"seq": seq}) for seq, message in enumerate(messages, 1)])
    assert (encoded.payload, encoded.losses) == ({"messages": [row, row], "page": 2}, [Loss("residual", 1, "residual")])


def test_objects_of_a_service_are_read_without_their_class() -> None:
    theirs = a_service_class()(type="ai", content="x", citations=["a"], score=0.5)
    payload = encode(CODEC, CODEC.decode(SimpleHistory(messages=[theirs])).messages).payload
    assert payload == {"messages": [theirs.model_dump()]}
    assert CODEC.as_models(payload).messages[0].model_fields_set == {"type", "content"}


def test_lenient_leaves_a_nameless_call_and_an_empty_run_to_the_residual() -> None:
    row = {"type": "ai", "content": "", "tool_calls": [{"name": "", "args": {}, "id": "1"}], "run_id": ""}
    [message] = CODEC.decode([row], rules="lenient").messages
    assert (message.tool_calls, message.run_id) == (None, None)
    assert encode(CODEC, [message]).payload == {"messages": [row]}
