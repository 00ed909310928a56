"""Mutants: the protections that `mutants.toml` lists, each taken away by other words in a source file.

The words are replaced while a process loads the file, so nothing is written to the disk, and the library knows nothing
of it. Neither the replaced source nor its bytecode is kept.
"""

from __future__ import annotations

import json
import sys
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Mutant:
    """A row. `without`: what is taken away. `test`: what must fail then, as arguments of pytest, below tests. `finds`:
    a pattern of the failure, so that the test fails for that and nothing else. `source`: by file, the words and what
    stands in their place, in turn. `client`: only in the processes that a test starts.
    """

    name: str
    without: str
    test: str
    finds: str
    source: Mapping[str, Sequence[str]]
    client: bool = False


@dataclass(frozen=True)
class Fault:
    """A generated mutant. `line` is from 1, `column` in characters from 0; `stands` is the whole line, and
    `replaced` may go beyond it.
    """

    file: str
    line: int
    column: int
    stands: str
    replaced: str
    replacement: str
    kind: str


def read_mutants() -> Sequence[Mutant]:
    rows = tomllib.loads(Path(__file__).with_name("mutants.toml").read_text())
    return [Mutant(name, **row) for name, row in rows.items()]


def activate(name: str) -> None:
    """Take the protection of this name away, or make the fault that is given as JSON."""
    if name.startswith("{"):
        fault = Fault(**json.loads(name))
        _replace({fault.file: partial(change, fault=fault)})
        return
    mutant = next(mutant for mutant in read_mutants() if mutant.name == name)
    if not (mutant.client and "pytest" in sys.modules):
        _replace({file: partial(reword, words=words) for file, words in mutant.source.items()})


def _replace(sources: Mapping[str, Callable[[str], str]]) -> None:
    """Load other sources in place of these files from now on, however this process loads them."""
    others = {str(path_of(file)): other for file, other in sources.items()}
    late = others.keys() & {getattr(module, "__file__", None) for module in list(sys.modules.values())}
    assert not late, f"loaded before the mutant: {late}"
    get_code = SourceFileLoader.get_code

    def replaced(self: SourceFileLoader, module: str) -> CodeType | None:
        if self.path not in others:
            return get_code(self, module)
        source = others[self.path](self.get_data(self.path).decode())
        return compile(source, self.path, "exec", dont_inherit=True)

    SourceFileLoader.get_code = replaced  # type: ignore[method-assign,assignment]


def path_of(file: str) -> Path:
    return ROOT / (file if file.startswith(("tests/", "migrations/")) else f"src/chatledger/{file}")


def reword(source: str, words: Sequence[str]) -> str:
    """The source with each of the words, which must stand in it once, replaced by what follows them."""
    for old, new in zip(words[::2], words[1::2], strict=True):
        assert source.count(old) == 1, f"{old!r} stands there {source.count(old)} times"
        source = source.replace(old, new)
    return source


def change(source: str, fault: Fault) -> str:
    """The source with the fault, also when its line has moved. Raises ValueError when it has changed."""
    lines = source.split("\n")
    places = [number for number, line in enumerate(lines, 1) if line == fault.stands]
    line = fault.line if fault.line in places else places[0] if len(places) == 1 else None
    before = "" if line is None else "".join(f"{text}\n" for text in lines[: line - 1]) + fault.stands[: fault.column]
    rest = source[len(before) :]
    if line is None or not rest.startswith(fault.replaced):
        raise ValueError(f"{fault.file}:{fault.line} does not read {fault.replaced!r} any more: the line has changed")
    return before + fault.replacement + rest[len(fault.replaced) :]
