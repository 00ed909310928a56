"""Formats of others: registered by a program, or named by an installed package."""

from __future__ import annotations

import logging
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from chatledger import ChatMessage, InvalidArgument
from chatledger.errors import IdConflict, UnknownFormat
from chatledger.formats import (
    Codec,
    Decoded,
    Written,
    format_names,
    get_codec,
    recognise,
    recognition_order,
    register,
    unusable_formats,
)
from chatledger.formats import registry as module
from chatledger.models import RulesLevel
from chatledger.transfer.shapes import _OWN, AUTO
from tests.formats.packages import make_package

OURS = tuple(module._CODECS)


@dataclass(frozen=True)
class Shouts(Codec):
    """Messages of users, as texts in a list."""

    name: str = "shouts"
    before: Sequence[str] = ()

    def recognises(self, payload: object) -> bool:
        return isinstance(payload, list) and bool(payload) and all(isinstance(text, str) for text in payload)

    def decode(self, payload: object, *, rules: RulesLevel = "strict") -> Decoded:
        assert isinstance(payload, list)
        return Decoded([ChatMessage(role="user", content=text, format=self.name) for text in payload])

    def encode(self, messages: Sequence[ChatMessage], *, carry: bool = False) -> Written:
        return Written([message.content for message in messages], [(index,) for index in range(len(messages))])


@pytest.fixture(autouse=True)
def _registry(monkeypatch: pytest.MonkeyPatch) -> None:
    """A registry without registered formats."""
    monkeypatch.setattr(module, "_FORMATS", module.Registry(module._CODECS))


Package = Callable[..., None]


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Package:
    """Installs a package with entry points and the source of one module."""

    def install(name: str, points: str, **modules: str) -> None:
        for module_name in modules:
            monkeypatch.delitem(sys.modules, module_name, raising=False)
        monkeypatch.syspath_prepend(make_package(tmp_path, name, points, **modules))

    return install


SOURCE = "from tests.formats.test_register import Shouts\nCODEC = Shouts({name!r})\n"


def test_a_registered_format_has_its_name_and_is_recognised() -> None:
    codec = Shouts()
    register(codec)
    assert get_codec("shouts") is codec
    assert recognise(["Hi"]) is codec
    assert format_names() == sorted([*OURS, "shouts"])
    assert recognition_order() == [*OURS, "shouts"]


def test_a_format_may_come_after_all_were_asked() -> None:
    with pytest.raises(UnknownFormat):
        recognise(["Hi"])
    register(Shouts())
    assert recognise(["Hi"]).name == "shouts"
    assert recognition_order() == [*OURS, "shouts"]


def test_the_same_codec_again_changes_nothing() -> None:
    codec = Shouts()
    register(codec)
    register(codec)
    assert recognition_order() == [*OURS, "shouts"]


@pytest.mark.parametrize("name", ["shouts", "openai-chat"])
def test_a_name_has_one_codec(name: str) -> None:
    register(Shouts())
    known = get_codec(name)
    with pytest.raises(IdConflict, match=f"the format '{name}' is registered already, as .*; choose") as caught:
        register(Shouts(name))
    assert caught.value.id == name
    assert get_codec(name) is known


@pytest.mark.parametrize("name", ["kosong", "auto", "sharegpt"])
def test_a_name_that_means_something_else_is_refused(name: str) -> None:
    with pytest.raises(InvalidArgument, match=f"codec cannot be named '{name}': chatledger uses this name"):
        register(Shouts(name))


def test_the_names_of_records_are_those_of_imports() -> None:
    assert {AUTO, *_OWN} == module.RECORD_NAMES


def test_a_codec_is_asked_before_the_formats_that_it_names() -> None:
    register(Shouts("a", before=("b", "openai-responses", "kosong", "later")))
    register(Shouts("b"))
    register(Shouts("c", before=["a"]))
    first = OURS.index("kosong/0.30")
    assert recognition_order() == [*OURS[:first], "c", "a", *OURS[first:], "b"]


LACKING: list[tuple[object, str]] = [
    (Shouts, r"codec must be an instance: pass Shouts\(\), not the class"),
    (None, r"codec needs NoneType\.name"),
    (Shouts(""), r"codec needs Shouts\.name: 1 to 64"),
    (Shouts("a b"), r"codec needs Shouts\.name: 1 to 64"),
    (Shouts("x" * 65), r"codec needs Shouts\.name: 1 to 64"),
    (Shouts(before="openai-chat"), r"codec needs a list or tuple of format names in Shouts\.before"),
]


def without(method: str) -> object:
    members = {name: getattr(Shouts, name) for name in ("recognises", "decode", "encode") if name != method}
    return type("Half", (), {"name": "half", **members})()


def having(**members: Any) -> object:
    return type("Odd", (Shouts,), members)()


LACKING += [
    (without("recognises"), r"codec needs the method Half\.recognises\(payload\)"),
    (without("decode"), r"codec needs the method Half\.decode\(payload, \*, rules=\)"),
    (without("encode"), r"codec needs the method Half\.encode\(messages, \*, carry=\)"),
    (having(decode=lambda self, payload: None), r"the arguments Odd\.decode\(payload, \*, rules=\)"),
    (having(encode=lambda self, *, carry=False: None), r"the arguments Odd\.encode\(messages, \*, carry=\)"),
    (having(given_as=lambda self, messages: "dicts"), r"codec needs the method Odd\.as_models\(payload\)"),
]


@pytest.mark.parametrize(("codec", "said"), LACKING)
def test_a_codec_that_lacks_something_is_refused(codec: Any, said: str) -> None:
    with pytest.raises(InvalidArgument, match=said):
        register(codec)
    assert recognition_order() == list(OURS)


def test_an_unknown_format_lists_the_known_ones() -> None:
    register(Shouts())
    with pytest.raises(
        UnknownFormat, match=r"unknown format 'chat'; known formats: .*openai-responses, .*qwen-agent, shouts"
    ):
        get_codec("chat")


def test_the_format_of_a_package_is_loaded_when_it_is_used(package: Package) -> None:
    package(
        "acme", "loud = acme_loud:CODEC\nhigh = acme_high:CODEC", acme_loud=SOURCE.format(name="loud"), acme_high=""
    )
    get_codec("openai-chat")
    assert "acme_loud" not in sys.modules
    assert isinstance(get_codec("loud"), Shouts)
    assert get_codec("loud") is sys.modules["acme_loud"].CODEC
    assert "acme_high" not in sys.modules


def test_all_formats_of_packages_are_recognised(package: Package) -> None:
    package("acme", "loud = acme_loud:CODEC", acme_loud=SOURCE.format(name="loud"))
    assert recognise(["Hi"]).name == "loud"
    assert format_names() == sorted([*OURS, "loud"])


BROKEN = {
    "missing = acme_nowhere:CODEC": r"cannot be loaded from acme_nowhere:CODEC of the package acme: ModuleNotFound",
    "missing = acme_broken:OTHER": r"cannot be loaded from acme_broken:OTHER of the package acme: AttributeError",
    "missing = acme_broken:CODEC": r"cannot be loaded from .*: codec is named 'broken', but its entry point",
    "missing = acme_broken:Shouts": r"cannot be loaded from .*: codec must be an instance: pass Shouts\(\)",
    "missing = acme_raises:CODEC": r"cannot be loaded from acme_raises:CODEC of the package acme: ZeroDivisionError",
    "kosong = acme_broken:CODEC": r"of acme_broken:CODEC of the package acme is not used: the name belongs",
    "auto = acme_broken:CODEC": r"of acme_broken:CODEC of the package acme is not used: the name belongs",
}


@pytest.mark.parametrize("point", BROKEN)
def test_a_broken_entry_point_is_named_and_the_others_work(
    package: Package, point: str, caplog: pytest.LogCaptureFixture
) -> None:
    sources = {"acme_broken": SOURCE.format(name="broken"), "acme_raises": "1 / 0"}
    package("acme", f"{point}\nloud = acme_loud:CODEC", acme_loud=SOURCE.format(name="loud"), **sources)
    name = point.split(" ")[0]
    with caplog.at_level(logging.WARNING, "chatledger.formats"):
        assert format_names() == sorted([*OURS, "loud"])
        assert recognise(["Hi"]).name == "loud"
    [(broken, fault)] = unusable_formats().items()
    assert broken == name
    assert re.match(BROKEN[point], fault)
    assert [record.message for record in caplog.records] == [f"the format {name!r} {fault}"]
    if name == "missing":
        with pytest.raises(UnknownFormat, match=f"the format 'missing' {BROKEN[point]}"):
            get_codec(name)


def test_a_name_of_two_packages_is_neither(package: Package) -> None:
    package("acme", "loud = acme_loud:CODEC", acme_loud=SOURCE.format(name="loud"))
    package("bolt", "loud = bolt_loud:CODEC", bolt_loud=SOURCE.format(name="loud"))
    with pytest.raises(
        UnknownFormat, match="acme_loud:CODEC of the package acme and bolt_loud:CODEC of the package bo"
    ):
        get_codec("loud")


def test_a_program_cannot_take_the_name_of_a_package(package: Package) -> None:
    package("acme", "loud = acme_loud:CODEC", acme_loud=SOURCE.format(name="loud"))
    with pytest.raises(IdConflict, match="the format 'loud' is registered already, as tests"):
        register(Shouts("loud"))


def test_a_module_may_register_the_codec_that_its_entry_point_names(package: Package) -> None:
    source = SOURCE.format(name="loud") + "from chatledger.formats import register\nregister(CODEC)\n"
    package("acme", "loud = acme_loud:CODEC", acme_loud=source)
    assert get_codec("loud") is sys.modules["acme_loud"].CODEC
    assert unusable_formats() == {}


def test_a_program_may_register_in_place_of_what_cannot_be_loaded(package: Package) -> None:
    package("acme", "loud = acme_loud:CODEC", acme_loud="1 / 0")
    register(Shouts("loud"))
    assert get_codec("loud") == Shouts("loud")
    assert unusable_formats() == {}


@pytest.mark.parametrize("element", [{}, [], 0, {"role": "user"}])
def test_a_long_list_that_begins_like_no_format_is_looked_at_no_further(element: Any) -> None:
    class Counting(list[Any]):
        """A list that counts the elements that are asked for."""

        seen = 0

        def __iter__(self) -> Iterator[Any]:
            for one in super().__iter__():
                self.seen += 1
                yield one

    payload = Counting([element] * 10_000)
    with pytest.raises(UnknownFormat):
        recognise(payload)
    assert payload.seen == 0


def test_a_conversation_whose_format_shows_late_is_recognised() -> None:
    plain = [{"role": "user", "content": "?"}, {"role": "assistant", "content": "!"}] * 10
    late = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": "x"}]}
    assert recognise(plain).name == "openai-chat"
    assert recognise([*plain, late]).name == "anthropic"
