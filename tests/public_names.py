"""The public names, and what the source says about each: read as a documentation generator reads it, without importing.

So the adapters are read as well where their frameworks are missing, and a description is the one that stands in the
source, not one that a base class of Python or Pydantic lends.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path

import chatledger

ROOT = Path(chatledger.__file__).parents[1]
ADAPTERS = ("agent_framework", "google_adk", "langchain", "langgraph", "openai_agents", "pydantic_ai")
MODULES = (
    "chatledger",
    "chatledger.admin",
    "chatledger.answers",
    "chatledger.blocking",
    "chatledger.errors",
    "chatledger.formats",
    "chatledger.message_file",
    "chatledger.server",
    "chatledger.testing",
    "chatledger.types",
    *(f"chatledger.adapters.{name}" for name in ADAPTERS),
)
REPOSITORIES = "chatledger.repositories"
"""The attributes of a ledger: the repositories are reached by them, and are exported nowhere."""

Function = ast.FunctionDef | ast.AsyncFunctionDef
Node = ast.ClassDef | Function | ast.AnnAssign | ast.Assign | ast.ImportFrom


@dataclass(frozen=True)
class Definition:
    """A class, a function or a value, where it is defined. `text` is its description."""

    module: str
    name: str
    node: Node
    text: str | None

    @property
    def is_class(self) -> bool:
        return isinstance(self.node, ast.ClassDef)

    def __str__(self) -> str:
        return f"{self.module}.{self.name}"


@cache
def source_of(module: str) -> ast.Module | None:
    path = ROOT.joinpath(*module.split("."))
    for file in (path.with_suffix(".py"), path / "__init__.py"):
        if file.is_file():
            return ast.parse(file.read_text())
    return None


def exported(module: str) -> list[str]:
    """The names in `__all__`."""
    source = source_of(module)
    assert source is not None, module
    lists = [node.value for node in source.body if isinstance(node, ast.Assign) and _targets(node) == ["__all__"]]
    return list(ast.literal_eval(lists[0]))


@cache
def find(module: str, name: str) -> Definition | None:
    """The definition of a name that a module of the library defines or imports; None for one of elsewhere."""
    found = _names(module).get(name)
    if found is None:
        return None
    node, text = found
    if isinstance(node, ast.ImportFrom):
        original = next(one.name for one in node.names if (one.asname or one.name) == name)
        return find(node.module or "", original) if (node.module or "").startswith("chatledger") else None
    return Definition(module, name, node, text)


@cache
def _names(module: str) -> dict[str, tuple[Node, str | None]]:
    source = source_of(module)
    return {} if source is None else dict(_definitions(source.body))


def _definitions(body: list[ast.stmt]) -> Iterator[tuple[str, tuple[Node, str | None]]]:
    for node, following in pairwise([*body, ast.Pass()]):
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.name, (node, ast.get_docstring(node))
        elif isinstance(node, ast.AnnAssign | ast.Assign):
            for name in _targets(node):
                yield name, (node, _text(following))
        elif isinstance(node, ast.ImportFrom):
            for one in node.names:
                yield one.asname or one.name, (node, None)
        elif isinstance(node, ast.If | ast.With):  # TYPE_CHECKING; the import of a framework
            yield from _definitions(node.body)


def _targets(node: ast.AnnAssign | ast.Assign) -> list[str]:
    targets = [node.target] if isinstance(node, ast.AnnAssign) else node.targets
    return [target.id for target in targets if isinstance(target, ast.Name)]


def _text(node: ast.stmt) -> str | None:
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
        return node.value.value
    return None


def members(of: Definition) -> dict[str, Definition]:
    """The public members of a class, also those that it inherits from a class of the library: methods, properties, and
    attributes, which the class declares or its `__init__` sets.
    """
    assert isinstance(of.node, ast.ClassDef)
    found: dict[str, Definition] = {}
    for base in map(ast.unparse, of.node.bases):
        if (inherited := find(of.module, base.partition("[")[0])) is not None and inherited.is_class:
            found |= members(inherited)
    own = dict(_definitions(of.node.body))
    init = next((node for node, _ in own.values() if isinstance(node, Function) and node.name == "__init__"), None)
    for name in _set_by(init) if init else ():
        if name not in found and name not in own:
            found[name] = Definition(of.module, f"{of.name}.{name}", init, None)  # type: ignore[arg-type]
    for name, (node, text) in own.items():
        if name not in found or text is not None or not isinstance(node, Function):  # an override need not repeat it
            found[name] = Definition(of.module, f"{of.name}.{name}", node, text)
    return {name: one for name, one in found.items() if not name.startswith("_") and name != "model_config"}


def _set_by(init: Function) -> Iterator[str]:
    for node in init.body:
        if not isinstance(node, ast.AnnAssign | ast.Assign):
            continue
        for target in [node.target] if isinstance(node, ast.AnnAssign) else node.targets:
            if isinstance(target, ast.Attribute) and ast.unparse(target.value) == "self":
                yield target.attr


def public() -> dict[str, Definition]:
    """The public names with their modules, and the classes of the repositories."""
    found: dict[str, Definition] = {}
    for module in MODULES:
        for name in exported(module):
            definition = find(module, name)
            assert definition is not None, f"{module}.{name}"
            found[f"{module}.{name}"] = definition
    return found


def repositories() -> dict[str, Definition]:
    ledger = find(REPOSITORIES, "Repositories")
    assert ledger is not None
    return {
        name: repository
        for name, one in members(ledger).items()
        if isinstance(one.node, ast.AnnAssign)
        and (repository := find(REPOSITORIES, ast.unparse(one.node.annotation))) is not None
    }
