"""Makes the signatures of the site plain: `timeout: float = 10.0` where the source has a constant, `str | None` where
the type of a field has a validator, and no value where the value of an attribute is code.

An extension of Griffe, which reads the source for mkdocstrings; only the environment of `make docs` has it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

from griffe import (  # type: ignore[import-not-found]
    AliasResolutionError,
    CyclicAliasError,
    ExprBinOp,
    ExprName,
    ExprSubscript,
    Extension,
)

_PLAIN = {"Text": "str", "UtcDatetime": "datetime", "Tokens": "int", "Cost": "Decimal"}
"""Types of fields that only add a validator."""


class Signatures(Extension):  # type: ignore[misc]  # without Griffe it is Any
    def on_package(self, *, pkg: Any, loader: Any, **_: Any) -> None:
        constants: dict[tuple[str, str], str] = {}
        stubs = []
        for member in _members(pkg):
            if member.is_attribute:
                member.annotation = _plain(member.annotation)
                if member.parent.is_class and not _is_plain(member.value):
                    member.value = None
                continue
            for parameter in member.parameters:
                if isinstance(parameter.default, ExprName) and (value := _value(parameter.default, loader)):
                    parameter.default = constants[member.name, parameter.name] = value
                elif parameter.default == "...":
                    stubs.append((member.name, parameter))
        for name, parameter in stubs:  # of chatledger.blocking, whose calls have the defaults of the asynchronous ones
            parameter.default = constants.get((name, parameter.name), "...")


def _members(owner: Any) -> Iterator[Any]:
    """Every function and attribute."""
    for member in owner.members.values():
        if member.is_alias:
            continue
        if member.is_function or member.is_attribute:
            yield member
        else:
            yield from _members(member)


def _plain(annotation: Any) -> Any:
    """The type without validators: `Annotated[int, Field(ge=0)] | None` is `int | None`."""
    if isinstance(annotation, ExprSubscript) and getattr(annotation.left, "name", "") == "Annotated":
        return _plain(annotation.slice.elements[0])
    if isinstance(annotation, ExprBinOp):
        annotation.left, annotation.right = _plain(annotation.left), _plain(annotation.right)
    for name in annotation.iterate(flat=True) if annotation is not None and not isinstance(annotation, str) else ():
        if isinstance(name, ExprName):
            name.name = _PLAIN.get(name.name, name.name)
    return annotation


def _is_plain(value: Any) -> bool:
    """Whether the value of an attribute says something without the code around it."""
    if value is None:
        return True
    return not any(isinstance(node, ast.Name | ast.Call) for node in ast.walk(ast.parse(str(value), mode="eval")))


def _value(name: Any, loader: Any) -> str | None:
    """The literal that a constant of ours stands for."""
    try:
        found = loader.modules_collection[name.canonical_path]
        value = str(found.final_target.value if found.is_alias else found.value)
        ast.literal_eval(value)
    except (KeyError, AttributeError, AliasResolutionError, CyclicAliasError, ValueError, SyntaxError):
        return None
    return value
