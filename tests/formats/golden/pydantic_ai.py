"""Payloads of pydantic-ai."""

from __future__ import annotations

from typing import Any

from chatledger.formats import get_codec
from tests.formats.golden import Cases

TIME = {"timestamp": "2026-11-01T12:00:00.123456Z"}
CALL = {"part_kind": "tool-call", "tool_name": "weather", "args": {"city": "Oslo"}, "tool_call_id": "c1"}
TEXT = {"content": "Cold.", "part_kind": "text"}
RETURN = {"part_kind": "tool-return", "tool_name": "weather", "tool_call_id": "c1"}
PIXEL = {"kind": "binary", "data": "-_8=", "media_type": "image/png", "identifier": "a9993e"}


def request(*parts: Any, **head: Any) -> dict[str, Any]:
    return {"parts": list(parts), "kind": "request", **head}


def user(content: Any, **more: Any) -> dict[str, Any]:
    return {"content": content, **more, "part_kind": "user-prompt"}


def response(*parts: Any, **head: Any) -> dict[str, Any]:
    return {"parts": list(parts), "kind": "response", **head}


STRICT: dict[str, Any] = {
    "nothing to keep": [
        {
            "parts": [user("Oslo?")],
            "timestamp": None,
            "instructions": None,
            "kind": "request",
            "run_id": None,
            "conversation_id": None,
            "metadata": None,
            "state": "complete",
        }
    ],
    "heads": [
        request(user("a", **TIME), run_id="r", conversation_id="c", instructions="Be short.", **TIME),
        response(TEXT, usage={"input_tokens": 1}, model_name="m", run_id="r", later={"x": 1}, **TIME),
    ],
    "several parts of a request": [
        request({"content": "Be short.", "part_kind": "system-prompt", "scope": "request", **TIME}, user("a"), user([]))
    ],
    "a request without parts": [request(run_id="r")],
    "items": [
        request(
            user(
                [
                    "a",
                    PIXEL,
                    {**PIXEL, "data": "+/8="},
                    {"kind": "image-url", "url": "https://h/a.png", "media_type": "image/png", "identifier": "1eca4f"},
                    {"kind": "text-content", "content": "b", "metadata": {"x": 1}},
                    {"kind": "structured-content", "content": "c", "value": 1},
                    {"kind": "cache-point", "ttl": "5m"},
                ]
            )
        )
    ],
    "results": [
        response({"content": "Wait.", "part_kind": "text"}, CALL),
        request(
            {**RETURN, "content": {"t": 4}, "outcome": "success", "content_file_digests": []},
            {**RETURN, "content": "no", "outcome": "denied"},
            {**RETURN, "content": None},
            {**RETURN, "content": PIXEL},
            {**RETURN, "content": ["a", PIXEL]},
        ),
    ],
    "retries": [
        request(
            {"part_kind": "retry-prompt", "content": "bad", "tool_name": "weather", "tool_call_id": "c1", **TIME},
            {"part_kind": "retry-prompt", "content": [{"type": "missing"}], "tool_name": None, "tool_call_id": "p"},
            {"part_kind": "retry-feedback", "content": "bad", "retry": {"cause": "model_retry"}},
        )
    ],
    "other parts of a request": [request({"part_kind": "instruction-delta", "content": "a"}, user("b"))],
    "parts of a response": [
        response(
            {"part_kind": "thinking", "content": "hm", "signature": "c2ln", "provider_name": "anthropic", "id": "rs_1"},
            CALL,
            {**TEXT, "id": "msg_1"},
            {"part_kind": "file", "content": PIXEL, "provider_name": "google"},
            {"part_kind": "builtin-tool-call", "tool_name": "web_search", "tool_call_id": "n"},
            {**CALL, "provider_details": {"thought_signature": "x"}},
        )
    ],
}
LENIENT: dict[str, Any] = {
    "malformed": [
        {"kind": "later", "parts": []},
        request({"part_kind": "user-prompt", "content": 1}),
        response({**CALL, "tool_name": ""}),
    ]
}


def cases() -> Cases:
    codec = get_codec("pydantic-ai")
    found: Cases = {
        **{name: codec.decode(payload).messages for name, payload in STRICT.items()},
        **{name: codec.decode(payload, rules="lenient").messages for name, payload in LENIENT.items()},
    }
    return found
