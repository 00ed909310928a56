"""The values of `kv`: alone, and in the append whose messages they belong to."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import rule

from chatledger import InvalidArgument, Put, VersionConflict
from tests.conversations import assistant, user
from tests.faults.machine.base import THREADS, Base, threads
from tests.faults.machine.model import Scope

SCOPES: tuple[Scope, ...] = (
    ("tenant",),
    ("user", "ada"),
    *(("thread", thread) for thread in THREADS),
    ("thread", THREADS[0], "n"),
)
scopes = st.sampled_from(SCOPES)
keys = st.sampled_from(["k1", "k2"])
objects: st.SearchStrategy[Any] = st.dictionaries(st.sampled_from("zab"), st.integers(0, 2), max_size=2)
values: st.SearchStrategy[Any] = objects | st.sampled_from([None, [1.5, "é\0"], ""])
offs = st.none() | st.integers(0, 1)
"""How far the expected version is from the present one; None: any will do."""


class ValueRules(Base):
    def is_missing(self, scope: Scope) -> bool:
        """Whether the scope is that of a thread that does not exist. Then calls say so."""
        if scope[0] != "thread":
            return False
        return self.of(scope[1], lambda: self.own.kv.put(scope, "k1", 1)) is None

    def expected(self, scope: Scope, key: str, off: int | None) -> int | None:
        return None if off is None else self.model.version(scope, key) + off

    @rule(scope=scopes, key=keys, value=values, off=offs)
    def put_a_value(self, scope: Scope, key: str, value: Any, off: int | None) -> None:
        if self.is_missing(scope):
            return
        putting = self.own.kv.put(scope, key, value, expected=self.expected(scope, key, off))
        if off:
            self.refuses(VersionConflict, putting)
            return
        self.model.put(scope, key, value, self.do(putting).version)

    @rule(scope=scopes, key=keys, more=objects, off=offs)
    def merge_a_value(self, scope: Scope, key: str, more: dict[str, Any], off: int | None) -> None:
        if self.is_missing(scope):
            return
        merging = self.own.kv.put(scope, key, more, expected=self.expected(scope, key, off), merge=True)
        before = self.model.values.get(scope, {}).get(key, ({}, 0))[0]
        if off:
            self.refuses(VersionConflict, merging)
        elif not isinstance(before, dict):
            self.refuses(InvalidArgument, merging)
        else:
            merged = self.do(merging)
            assert list(merged.value.items()) == list({**before, **more}.items())
            self.model.put(scope, key, {**before, **more}, merged.version)

    @rule(scope=scopes, key=keys, off=offs)
    def delete_a_value(self, scope: Scope, key: str, off: int | None) -> None:
        if self.is_missing(scope):
            return
        deleting = self.own.kv.delete(scope, key, expected=self.expected(scope, key, off))
        if off:
            self.refuses(VersionConflict, deleting)
            return
        there = key in self.model.values.get(scope, {})
        assert self.do(deleting) == there
        if there:
            del self.model.values[scope][key]

    @rule(thread=threads, said=st.dictionaries(keys, values, min_size=1), off=offs)
    def append_with_values(self, thread: str, said: dict[str, Any], off: int | None) -> None:
        """All of it, or nothing: the version of the first one may be another than expected."""
        key = next(iter(said))
        expected = self.expected(("thread", thread), key, off)
        self.append_as(thread, [user("with values"), assistant("!")], kv={**said, key: Put(said[key], expected)})

    @rule(thread=threads, text=st.sampled_from(["one", "two"]))
    def repeat_with_other_values(self, thread: str, text: str) -> None:
        """A repeat writes no value."""
        found = self.model.threads.get(thread)
        last = found.path[-1] if found and found.path else None
        if last is None or last.state == "partial":
            return
        assert self.do(self.own.messages.append(thread, [last], kv={"k1": text})).replayed
        self.assert_values(("thread", thread))

    @rule(scope=scopes)
    def list_values(self, scope: Scope) -> None:
        if not self.is_missing(scope):
            self.assert_values(scope)

    def assert_values(self, scope: Scope) -> None:
        listed = {one.key: (one.value, one.version) for one in self.do(self.own.kv.list(scope))}
        assert listed == self.model.values.get(scope, {})
        for key, (value, version) in listed.items():
            one = self.do(self.own.kv.get(scope, key))
            assert one is not None
            assert (one.value, one.version) == (value, version)
