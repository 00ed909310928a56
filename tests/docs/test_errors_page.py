"""The page of errors draws the tree that is, with the attributes of each class."""

from __future__ import annotations

import inspect
import re

from chatledger import errors
from chatledger.errors import ChatLedgerError
from tests.docs.parts import DOCS, in_page

PAGE = DOCS / "reference" / "errors.md"
ROWS = re.findall(r"^\| ((?:· )*)`(\w+)` \| (.*?) ?\| (.*?) ?\| (\d+) \|$", in_page(PAGE, "tree"), re.MULTILINE)
CLASSES = [value for value in vars(errors).values() if inspect.isclass(value) and issubclass(value, ChatLedgerError)]


def test_the_tree_of_the_page_is_that_of_the_classes() -> None:
    drawn, above = [], {-1: "Exception"}
    for dots, name, *_ in ROWS:
        depth = dots.count("·")
        above[depth] = name
        drawn.append((name, above[depth - 1]))
    assert drawn == [(kind.__name__, kind.__base__.__name__) for kind in CLASSES if kind.__base__]


def test_the_attributes_of_each_error_are_on_the_page() -> None:
    drawn = {name: set(re.findall(r"`(\w+)`", attributes)) for _, name, attributes, *_ in ROWS}
    tree = {kind.__name__: _attributes(kind) for kind in CLASSES}
    assert drawn == tree


def _attributes(kind: type) -> set[str]:
    """The attributes that the class itself sets, and its properties. The page says of all what each status is."""
    init = vars(kind).get("__init__")
    properties = {name for name, value in vars(kind).items() if isinstance(value, property)}
    if kind is not ChatLedgerError:
        properties -= {"http_status", "retry_after"}
    return properties | set(re.findall(r"self\.(\w+) = ", inspect.getsource(init) if init else ""))


def test_the_tables_name_only_errors_that_exist() -> None:
    known = {kind.__name__ for kind in CLASSES} | {"ValueError", "ValidationError", "TypeError", "LookupError"}
    known.add("CancelledError")
    text = PAGE.read_text(encoding="utf-8")
    named = set(re.findall(r"`(?:asyncio\.)?([A-Z]\w+(?:Error|Found|Conflict|Unknown))`", text))
    assert named <= known
