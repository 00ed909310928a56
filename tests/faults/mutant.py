"""A mutant, and how it takes a protection away from the library in its own process."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType
from typing import Any


@dataclass(frozen=True)
class Mutant:
    """`without`: what is taken away. `finds`: words of the failure, so that it fails for that and nothing else."""

    name: str
    test: str
    without: str
    finds: str
    apply: Callable[[], None]
    client_only: bool = False


def put(module: ModuleType, **names: object) -> None:
    """In the place of what is there: a protection that has another name by now is not taken away."""
    assert names.keys() <= vars(module).keys(), f"{module.__name__} has no {names.keys() - vars(module).keys()}"
    vars(module).update(names)


def reword(module: ModuleType, name: str, words: str, instead: str = "") -> None:
    """A function, wherever it is imported, as if its source had other words in one place."""
    original = vars(module)[name]
    source = inspect.getsource(original)
    assert source.count(words) == 1, f"{module.__name__}.{name} has {words!r} {source.count(words)} times"
    made: dict[str, Any] = {}
    exec(source.replace(words, instead), vars(module), made)
    for other in list(sys.modules.values()):
        if getattr(other, name, None) is original:
            put(other, **made)
