"""The SDK's own objects are read, in the loop that its users write."""

from __future__ import annotations

from typing import Any

import pytest
from openai.types.responses import Response, ResponseFunctionToolCall, ResponseOutputMessage
from pydantic import BaseModel

from chatledger import Ledger, Payload
from chatledger.errors import DecodeError
from chatledger.formats.openai_responses import CODEC

ASK = {"role": "user", "content": "Tokyo and Lima?"}
THOUGHT = {"id": "rs_1", "summary": [], "type": "reasoning", "encrypted_content": "gAAA"}
CALLS = [
    {"arguments": "{}", "call_id": f"call_{place}", "name": "weather", "type": "function_call", "id": f"fc_{place}"}
    for place in ("tokyo", "lima")
]
ANSWER = {
    "id": "msg_1",
    "content": [{"annotations": [], "text": "25 and 19.", "type": "output_text", "logprobs": []}],
    "role": "assistant",
    "status": "completed",
    "type": "message",
}


def response(*output: dict[str, Any]) -> Response:
    rest: dict[str, Any] = {"parallel_tool_calls": True, "tool_choice": "auto", "tools": []}
    return Response.model_validate(
        {"id": "resp", "created_at": 0, "model": "m", "object": "response", "output": output, **rest}
    )


def result(place: str) -> dict[str, Any]:
    return {"type": "function_call_output", "call_id": f"call_{place}", "output": place}


async def test_an_agent_loop_is_appended_piece_by_piece_under_strict_rules(ledger: Ledger) -> None:
    await ledger.threads.create("t", rules="strict")
    pieces: list[Any] = [
        [ASK],
        response(THOUGHT, *CALLS).output,
        [result("lima")],
        [result("tokyo")],
        response(ANSWER).output,
        "And Oslo?",
    ]
    for piece in pieces:
        await ledger.messages.append("t", Payload(piece, "openai-responses"), run_id="run-7")
    stored = await ledger.messages.history("t")
    history = stored.encode("openai-responses")
    results = [result("lima"), result("tokyo")]
    assert history.payload == [ASK, THOUGHT, *CALLS, *results, ANSWER, {"role": "user", "content": "And Oslo?"}]
    assert {loss.code for loss in history.losses} == {"run-id"}  # which no item has a place for
    roles = [message.role for message in stored]
    assert roles == ["user", "assistant", "tool", "tool", "assistant", "user"]


async def test_the_input_as_a_program_sends_it_again_is_synced(ledger: Ledger) -> None:
    await ledger.threads.create("t")
    sent: list[Any] = [ASK]
    results = [result("tokyo"), result("lima")]
    pieces: list[list[Any]] = [[*response(THOUGHT, *CALLS).output], results, [*response(ANSWER).output]]
    for piece in pieces:
        sent += piece
        await ledger.messages.sync("t", CODEC.decode(sent).messages)
    history = await ledger.messages.history("t")
    assert history.encode("openai-responses").payload == [ASK, THOUGHT, *CALLS, *results, ANSWER]
    assert len(history) == 5


def test_keys_that_were_not_given_stay_absent() -> None:
    call = ResponseFunctionToolCall(arguments="{}", call_id="c", name="f", type="function_call")
    payload = CODEC.encode(CODEC.decode([ASK, call]).messages).payload
    assert payload[1] == {"arguments": "{}", "call_id": "c", "name": "f", "type": "function_call"}


def test_objects_inside_dicts_are_read() -> None:
    said = ResponseOutputMessage.model_validate(ANSWER)
    request = {"instructions": "Be brief.", "input": [{**ANSWER, "content": said.content}]}
    assert CODEC.encode(CODEC.decode(request).messages).payload == {**request, "input": [ANSWER]}


def test_objects_are_recognised() -> None:
    assert CODEC.recognises([ASK, *response(THOUGHT, *CALLS).output])
    assert CODEC.recognises(response(ANSWER).output)


def test_a_response_in_the_place_of_its_output_is_refused() -> None:
    with pytest.raises(DecodeError, match="input"):
        CODEC.decode(response(ANSWER))


class Broken(BaseModel):
    def model_dump(self, **options: Any) -> dict[str, Any]:
        raise RuntimeError("gone")


@pytest.mark.parametrize("value", [Broken(), object(), b"Hi", {1, 2}])
def test_an_object_that_does_not_dump_is_refused(value: object) -> None:
    for payload in ([value], {"input": [value]}, value):
        with pytest.raises(DecodeError, match="input"):
            CODEC.decode(payload)
        assert not CODEC.recognises(payload)
