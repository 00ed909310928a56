"""Mutants: the protections that `mutants.toml` lists, each taken away by other words in a source file.

The words are replaced while a process loads the file, so nothing is written to the disk, and the library knows nothing
of it. Neither the replaced source nor its bytecode is kept.
"""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
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


def read_mutants() -> Sequence[Mutant]:
    rows = tomllib.loads(Path(__file__).with_name("mutants.toml").read_text())
    return [Mutant(name, **row) for name, row in rows.items()]


def activate(name: str) -> None:
    """Take the protection away from the files that this process loads from now on, however it loads them."""
    mutant = next(mutant for mutant in read_mutants() if mutant.name == name)
    if mutant.client and "pytest" in sys.modules:
        return
    words = {str(path_of(file)): pairs for file, pairs in mutant.source.items()}
    late = words.keys() & {getattr(module, "__file__", None) for module in list(sys.modules.values())}
    assert not late, f"loaded before the mutant: {late}"
    get_code = SourceFileLoader.get_code

    def reworded(self: SourceFileLoader, module: str) -> CodeType | None:
        if self.path not in words:
            return get_code(self, module)
        source = reword(self.get_data(self.path).decode(), words[self.path])
        return compile(source, self.path, "exec", dont_inherit=True)

    SourceFileLoader.get_code = reworded  # type: ignore[method-assign,assignment]


def path_of(file: str) -> Path:
    return ROOT / (file if file.startswith(("tests/", "migrations/")) else f"src/chatledger/{file}")


def reword(source: str, words: Sequence[str]) -> str:
    """The source with each of the words, which must stand in it once, replaced by what follows them."""
    for old, new in zip(words[::2], words[1::2], strict=True):
        assert source.count(old) == 1, f"{old!r} stands there {source.count(old)} times"
        source = source.replace(old, new)
    return source
