"""Payloads of kosong in both revisions, and lines of its context files."""

from __future__ import annotations

import io
from typing import Any

from chatledger.formats import kosong
from chatledger.formats.kosong import context_file, v0_23
from tests.formats.golden import Cases
from tests.formats.golden.foreign import FOREIGN

FUNCTION = {"name": "weather", "arguments": '{"city":"Oslo"}'}
CALL = {"type": "function", "id": "c1", "function": FUNCTION, "extras": None}
FULL: dict[str, Any] = {
    "role": "assistant",
    "name": None,
    "content": "Cold.",
    "tool_calls": None,
    "tool_call_id": None,
    "partial": None,
}

STRICT: dict[str, Any] = {
    "full dumps": [FULL, {**FULL, "tool_calls": [CALL], "partial": True}],
    "short dumps": [
        {"role": "user", "content": "Oslo?"},
        {"role": "assistant", "content": [], "tool_calls": [{"type": "function", "id": "c1", "function": FUNCTION}]},
        {"role": "assistant", "content": None, "partial": False},
    ],
    "keys in another order, and unknown ones": [{"content": "Oslo?", "later": {"x": 1}, "role": "user"}],
    "parts": [
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "this?"},
                {"text": "this?", "type": "text", "later": 1},
                {"type": "think", "think": "North.", "encrypted": "c2ln"},
                {"type": "think", "think": "North."},
                {"type": "image_url", "image_url": {"url": "https://example.org/a.png", "later": 1}},
                {"type": "audio_url", "audio_url": {"url": "https://example.org/a.wav", "id": "a"}},
                {"type": "video_url", "video_url": {"url": "https://example.org/a.mp4", "id": None}},
                {"type": "later", "x": 1},
            ],
        }
    ],
    "calls with more": [
        {**FULL, "tool_calls": [{**CALL, "later": 1, "function": {"arguments": "{}", "name": "f", "later": 1}}, CALL]},
        {**FULL, "tool_calls": [{"type": "function", "id": "c1", "function": {"name": "f"}, "extras": {"x": 1}}]},
    ],
}
LENIENT: dict[str, Any] = {
    "an unknown role": [{"role": "narrator", "content": "It rains."}],
    "malformed": [
        {"role": "user", "content": [{"type": "text"}, 1], "name": 1, "partial": "yes"},
        {"role": "user"},
        {**FULL, "tool_calls": [{**CALL, "function": {**FUNCTION, "name": ""}}, {**CALL, "id": 1}]},
        {**FULL, "tool_calls": "none"},
    ],
    "live objects": [{**FULL, "later": (1, 2)}],
}
LINES = {
    "as written": b'{"role":"user","content":"Oslo?"}\n',
    "spaced": b'{"role": "user", "content": "\\u00e5"}\n',
    "ascii": b'{"role":"user","content":"\\u00e5"}\n',
    "unicode": '{"role": "user", "content": "å"}\n'.encode(),
    "in no style": b' {"role" :"user",  "content":"a"}\n',
    "another order": b'{"content":"a","role":"user"}\n',
    "a full dump": b'{"role":"user","name":null,"content":"a","tool_calls":null,"tool_call_id":null,"partial":null}\n',
    "partial": b'{"role":"user","content":"a","partial":true}\n',
    "a list of one text": b'{"role":"user","content":[{"type":"text","text":"a"}]}\n',
    "blank lines and endings": b'\n  \n{"role":"user","content":"a"}\r\n\n',
    "no last newline": b'{"role":"user","content":"a"}',
    "records": b'{"role": "_usage", "token_count": 120}\n{"role":"_checkpoint","id":0}\n',
}


class Dumped(kosong.Message):
    """An application's own message, whose dump has a key more."""

    later: int = 1


def objects(module: Any) -> dict[str, Any]:
    """Messages as objects: made by a constructor, read from a dump, with parts of other types than their classes."""
    odd = module.TextPart(type="later", text="a")
    image = module.ImageURLPart(image_url=module.ImageURLPart.ImageURL(url="https://example.org/a.png"))
    made = module.ToolCall(id="c1", function=module.ToolCall.FunctionBody(name="weather", arguments=None))
    call = {"type": "function", "id": "c1", "function": FUNCTION}
    text = module.TextPart(text="a")
    return {
        "objects that were made": [
            module.Message(role="user", content="Oslo?"),
            module.Message(role="user", content=[text]),
            module.Message(role="assistant", content=[], tool_calls=[made], partial=False),
            module.Message(role="user", content=[text, image]),
        ],
        "objects that were read": [
            module.Message.model_validate({"role": "user", "content": "Oslo?", "name": None}),
            module.Message.model_validate({**FULL, "content": [{"type": "text", "text": "a"}], "tool_calls": [CALL]}),
            module.Message.model_validate({"role": "user", "content": [{"type": "think", "think": "a"}]}),
            module.Message.model_validate(
                {"role": "user", "content": [{"type": "think", "think": "a", "encrypted": None}], "tool_calls": [call]}
            ),
        ],
        "objects of other types": [
            module.Message(role="user", content=[odd]),
            module.Message(role="user", content=[module.UnknownPart(type="later", value={"type": "later", "x": 1})]),
            module.Message(role="user", content=[text, odd, image]),
        ],
    }


def cases() -> Cases:
    found: dict[str, Any] = {}
    for name, module in (("0.30", kosong), ("0.23", v0_23)):
        codec = module.CODEC
        read = {key: codec.decode(payload) for key, payload in {**STRICT, **objects(module)}.items()}
        read |= {key: codec.decode(payload, rules="lenient") for key, payload in LENIENT.items()}
        read["of other formats"] = codec.decode(codec.encode(FOREIGN).payload)
        files = {key: context_file.read(io.BytesIO(line), codec=codec) for key, line in LINES.items()}
        bad = context_file.read(io.BytesIO(b"{\n\xff\n"), codec=codec, rules="lenient")
        found |= {f"{name}: {key}": one.messages for key, one in read.items()}
        found |= {f"{name}, a line: {key}": file.messages for key, file in files.items()}
        found[f"{name}, a line: bad"] = bad.messages
    later = Dumped(role="user", content="a", later=2)
    return {**found, "0.30: a class of an application": kosong.CODEC.decode([later]).messages}
