"""`check_format` accepts our own formats, and notices each promise that a codec breaks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from chatledger import InvalidArgument
from chatledger.formats import format_names, get_codec, registry
from chatledger.formats.losses.capabilities import SAMPLES
from chatledger.formats.openai_chat import OpenAIChat
from chatledger.testing import check_format
from tests.formats.round_trips import ROUND_TRIPS
from tests.formats.test_write_a_format import EXAMPLE, TALK

THINGS = (
    "system messages",
    "images as data",
    "signatures of reasoning",
    "several calls in a message",
    "text beside calls",
)

CODECS = {name: get_codec(name) for name in format_names()}


@pytest.fixture(autouse=True)
def _few_formats(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two formats beside the one that is checked, since tests of conversion try each with each."""
    checked = request.getfixturevalue("name") if "name" in request.fixturenames else None
    few = {name: place for name, place in registry._CODECS.items() if name in ("kosong/0.30", "openai-chat", checked)}
    monkeypatch.setattr(registry, "_FORMATS", registry.Registry(few))


def acme(*changes: tuple[str, str]) -> Any:
    """The codec of the page, with something else in its source."""
    source = EXAMPLE
    for old, new in changes:
        assert old in source
        source = source.replace(old, new)
    names: dict[str, Any] = {}
    exec(source, names)
    return names["Acme"]()


def problems(codec: Any, samples: Any = (TALK,)) -> str:
    with pytest.raises(AssertionError) as caught:
        check_format(codec, samples)
    return str(caught.value)


@pytest.mark.parametrize("name", CODECS)
def test_our_formats_pass(name: str) -> None:
    codec = CODECS[name]
    check_format(codec, [codec.encode(SAMPLES[thing].alternatives[0]).payload for thing in THINGS])


@pytest.mark.parametrize("name", [trip.format for trip in ROUND_TRIPS if trip.levels is not None])
def test_objects_of_our_formats_pass(name: str) -> None:
    codec: Any = CODECS[name]
    check_format(codec, [codec.as_models(codec.encode(SAMPLES[thing].alternatives[0]).payload) for thing in THINGS[:2]])


READ = "def read(source: Any, path: str) -> ChatMessage:\n"
ENCODE = "return write_all(messages)"
WRITTEN = "written = write_all(messages); return Written(written.payload, {})"
SURE = "return isinstance(payload, list) and payload != [] and all(map(is_message, payload))"
RECOGNISES = "    def recognises("
CLASSES = """
    def given_as(self, messages):
        return "dicts"

    def as_models(self, payload):
        return payload[1:]
"""
BROKEN: dict[str, tuple[list[tuple[str, str]], str]] = {
    "identity": (
        [("keep_deep(source, write(message))", "None")],
        "sample 0: does not come back equal, but as [{'who': 'human', 'says': 'Oslo?'}",
    ),
    "the name": ([("        format=NAME,\n", "")], "sample 0: decode gives messages with the format None"),
    "the payload is left alone": ([(READ, READ + '    source.pop("at", 0)\n')], "sample 0: decode changes the payload"),
    "the messages are left alone": (
        [(ENCODE, f"[one.residual.clear() for one in messages if type(one.residual) is dict]; {ENCODE}")],
        "encode changes the messages",
    ),
    "levels": (
        [("        return Decoded(", '        payload = payload[rules == "lenient" :]\n        return Decoded(')],
        "sample 0: lenient rules do not read it as strict rules do",
    ),
    "storage": (
        [("keep_deep(source, write(message))", '{"at": (1, 2)}')],
        "sample 0, message 0: is not what the ledger would give back of it",
    ),
    "windows": (
        [(ENCODE, f"assert [one.role for one in messages][:1] != ['tool']; {ENCODE}")],
        "sample 0, messages 3 to 4: encode raised AssertionError",
    ),
    "roles": ([(" if message.role in WHO]", "]")], "custom messages: encode raised KeyError: 'custom'"),
    "losses": (
        [(ENCODE, WRITTEN.format("written.origins[::-1], written.kept"))],
        "sample 0: what decode gave is not what it gives after encode: ",
    ),
    "origins": ([(ENCODE, WRITTEN.format("()"))], "the origins are [] for 4 messages read as 4"),
    "origins that a function finds": (
        [(ENCODE, WRITTEN.format("lambda: written.origins[1:], written.kept"))],
        "the origins are [(1,), (2,), (3,)] for 4 messages read as 4",
    ),
    "whose residuals are kept": (
        [(ENCODE, WRITTEN.format("written.origins, range(len(messages))"))],
        "names of speakers: kept are [0, 1], but only [] are of the format",
    ),
    "the result": (
        [(ENCODE, f"{ENCODE}.payload")],
        "sample 0: encode must return a Written, not list",
    ),
    "JSON": ([(ENCODE, "return Written({1}, ())")], "encode gives a payload that is not JSON: $ set is not JSON"),
    "refusals": (
        [("    require_json(source, path)\n", "")],
        "sample 0 with an error: decode at strict raised ValidationE",
    ),
    "absent keys": ([('source.get("says"),', 'source["says"],')], "with an error: decode at strict raised KeyError"),
    "recognition": ([(SURE, 'return "who" in payload[0]')], "a value that is no payload: recognises raised TypeError"),
    "a sure answer": ([(SURE, "return payload and 1")], "sample 0: recognises must return True or False"),
    "what is another's": (
        [
            (SURE, "return isinstance(payload, list)"),
            ("    name = NAME\n", '    name = NAME\n    before = ["openai-chat"]\n'),
        ],
        "openai-chat: recognises is sure of its payloads too: [",
    ),
    "classes": ([(RECOGNISES, f"{CLASSES}\n{RECOGNISES}")], "sample 0: is another payload after it was objects"),
}


@pytest.mark.parametrize("promise", BROKEN)
def test_a_broken_promise_is_noticed(promise: str) -> None:
    changes, said = BROKEN[promise]
    assert said in problems(acme(*changes))


@dataclass(frozen=True)
class Dialect(OpenAIChat):
    """Recognises what openai-chat recognises."""

    name: str = "dialect"


def test_a_format_that_is_never_asked_is_noticed() -> None:
    said = "sample 0: openai-chat is sure of it as well and asked first: give the codec `before`"
    assert said in problems(Dialect(), [[{"role": "user", "content": "Oslo?"}]])


def test_the_report_is_short() -> None:
    lines = problems(acme((ENCODE, "raise ValueError")), [TALK] * 9).splitlines()
    assert lines[0].startswith("the format 'acme' has ")
    assert len(lines) == 22
    assert lines[-1].startswith("- … and ")


def test_a_check_without_samples_or_without_a_codec_is_refused() -> None:
    with pytest.raises(InvalidArgument, match="samples must hold a payload of the format at least"):
        check_format(acme(), [])
    with pytest.raises(InvalidArgument, match=r"codec needs object\.name"):
        check_format(object(), [TALK])  # type: ignore[arg-type]
