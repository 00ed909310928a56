"""Reads the text after each field of a model from its source, for the JSON schema.

Pydantic reads these texts itself with `use_attribute_docstrings`, for every class when it is imported: that makes
`import chatledger.models` a fifth slower. Here a schema pays for them, and only a service's documentation has one.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from functools import lru_cache
from itertools import pairwise


@lru_cache(maxsize=128)
def field_descriptions(model: type) -> dict[str, str]:
    """The text after each field of the class and of its bases. Empty if the source is not at hand."""
    texts: dict[str, str] = {}
    for kind in reversed(model.__mro__):
        texts |= _own(kind)
    return texts


def _own(kind: type) -> dict[str, str]:
    if kind is object or kind.__module__.partition(".")[0] == "pydantic":
        return {}
    try:
        (node,) = ast.parse(textwrap.dedent(inspect.getsource(kind))).body
    except (OSError, TypeError, SyntaxError, ValueError):  # made at run time, or stored without its source
        return {}
    return dict(_texts(node.body)) if isinstance(node, ast.ClassDef) else {}


def _texts(body: list[ast.stmt]) -> list[tuple[str, str]]:
    return [
        (field.target.id, inspect.cleandoc(text.value.value))
        for field, text in pairwise(body)
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name)
        if isinstance(text, ast.Expr) and isinstance(text.value, ast.Constant) and isinstance(text.value.value, str)
    ]
