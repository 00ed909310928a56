"""Every public name has a description, and every type that a public call names is public itself."""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

from chatledger.blocking.face import FACES
from tests.public_names import Definition, Function, find, members, public, repositories

NAMES = {
    **{name: one for name, one in public().items() if not name.startswith("chatledger.blocking.")},  # made of these
    **{f"ledger.{name}": one for name, one in repositories().items()},
}
CLASSES = {name: one for name, one in NAMES.items() if one.is_class}
MADE_BY_THE_LIBRARY = {"Draft", "Ledger", "MessageFile", "Opening", "Repositories", "Turn"}
"""Classes whose `__init__` is no public call, like that of a repository."""
FOR_THE_LIBRARY = {"KeyRing.of", "NewThread.rows", "NewThread.tenant", "OpenTelemetry.observe", "Transaction.over"}
"""Members that only the library itself uses."""
VALIDATORS = {"Text", "UtcDatetime", "Tokens", "Cost", "Count", "Flag", "Name", "Number", "Score", "Whole"}
"""Types of model fields that are a str, a datetime, a number or a bool to their reader."""


def test_no_name_is_left_out() -> None:
    assert len(NAMES) > 150
    assert set(repositories()) >= {"threads", "messages", "branches", "runs", "feedback", "kv", "erasures", "drafts"}


@pytest.mark.parametrize("name", sorted(NAMES))
def test_each_public_name_has_a_description(name: str) -> None:
    assert NAMES[name].text


@pytest.mark.parametrize("name", sorted(CLASSES))
def test_each_public_member_has_a_description(name: str) -> None:
    assert [str(member) for member in members(CLASSES[name]).values() if not member.text] == []


def test_the_reference_has_each_name() -> None:
    pages = Path(__file__).parents[1] / "docs" / "reference" / "api"
    shown = re.findall(r"^::: (\S+)$", "\n".join(page.read_text() for page in pages.glob("*.md")), re.MULTILINE)
    assert {name for name in NAMES if re.fullmatch(r"chatledger\.\w+", name)} - set(shown) == set()


def names_in(annotation: ast.expr | None) -> Iterator[str]:
    for node in ast.walk(annotation) if annotation is not None else ():
        if isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.isidentifier():
            yield node.value


def types_of(definition: Definition) -> Iterator[str]:
    """The names in the signature of a call, in the annotation of an attribute, or in the value of an alias."""
    node = definition.node
    if isinstance(node, Function):
        arguments = (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs, node.args.vararg, node.args.kwarg)
        for argument in filter(None, arguments):
            yield from names_in(argument.annotation)
        yield from names_in(node.returns)
    elif isinstance(node, ast.AnnAssign):
        yield from names_in(node.value if ast.unparse(node.annotation) == "TypeAlias" else node.annotation)


def calls_of(definition: Definition) -> Iterator[Definition]:
    """The definition itself or, of a class, what its caller sees."""
    if not definition.is_class:
        yield definition
        return
    yield from (one for one in members(definition).values() if one.name not in FOR_THE_LIBRARY)
    is_made = definition.name in MADE_BY_THE_LIBRARY or definition.name.endswith("Repository")
    if not is_made and (init := find_init(definition)) is not None:
        yield init


def find_init(definition: Definition) -> Definition | None:
    assert isinstance(definition.node, ast.ClassDef)
    for node in definition.node.body:
        if isinstance(node, ast.FunctionDef) and node.name == "__init__":
            return Definition(definition.module, f"{definition.name}.__init__", node, None)
    return None


def is_type(definition: Definition) -> bool:
    """Whether it is a class or an alias, and no validator or type variable."""
    node = definition.node
    is_variable = isinstance(node, ast.Assign) and isinstance(node.value, ast.Call)
    return not isinstance(node, Function) and not is_variable


PUBLIC = {(one.module, one.name) for one in NAMES.values()}


NEVER_NAMED = {"chatledger.ledger.Opening", "chatledger.repositories.threads.Unset"}
"""What `Ledger.open` returns, to await or to enter, and the default of an argument that None would clear."""


@pytest.mark.parametrize("name", sorted(NAMES))
def test_the_types_that_a_public_call_names_are_public(name: str) -> None:
    hidden = {
        str(kind)
        for one in calls_of(NAMES[name])
        for word in types_of(one)
        if not word.startswith("_") and word not in VALIDATORS and (kind := find(one.module, word)) is not None
        if is_type(kind) and (kind.module, kind.name) not in PUBLIC
    }
    assert hidden - NEVER_NAMED == set()


def test_a_blocking_class_has_the_descriptions_of_its_asynchronous_one() -> None:
    for face in FACES.values():
        calls = [getattr(face, name) for name in vars(face) if not name.startswith("_")]
        assert face.__doc__
        assert calls
        assert all(call.__doc__ for call in calls)


# --- Examples ---------------------------------------------------------------------------------------------------------

EXAMPLES = {
    "ledger.begin",
    "ledger.messages.alternatives",
    "ledger.feedback.record",
    "ledger.feedback.summary",
    "ledger.kv.put",
    "ledger.messages.append",
    "ledger.messages.find",
    "ledger.messages.follow",
    "ledger.messages.history",
    "ledger.messages.prompt",
    "ledger.messages.stream",
    "ledger.open",
    "ledger.runs.finish",
    "ledger.runs.start",
    "ledger.threads.create",
    "ledger.threads.list",
    "ledger.user",
    "chatledger.admin.backup",
    "chatledger.admin.migrate",
}
"""The calls that people use most."""
DESCRIBED = {
    **{name: one.text for name, one in NAMES.items()},
    **{
        f"{'ledger' if name == 'chatledger.Ledger' else name}.{member}": one.text
        for name, kind in CLASSES.items()
        for member, one in members(kind).items()
    },
}


def examples_in(text: str) -> list[str]:
    """The indented blocks of a docstring."""
    blocks = re.findall(r"(?:^|\n\n)((?: {4}.*(?:\n|$)|\n(?= {4}))+)", inspect.cleandoc(text))
    return [textwrap.dedent(block) for block in blocks]


def test_the_calls_that_people_use_most_have_an_example() -> None:
    assert {name for name in EXAMPLES if not examples_in(DESCRIBED[name] or "")} == set()


@pytest.mark.parametrize("name", sorted(name for name, text in DESCRIBED.items() if examples_in(text or "")))
def test_each_example_is_python(name: str) -> None:
    for example in examples_in(DESCRIBED[name] or ""):
        compile(example, name, "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)


def calls_in(example: str) -> Iterator[tuple[str, list[str]]]:
    """The calls on a ledger or a transaction, with the names of their arguments."""
    for node in ast.walk(ast.parse(example)):
        if isinstance(node, ast.Call) and ast.unparse(node.func).startswith(("ledger.", "Ledger.", "tx.", "mine.")):
            called = re.sub(r"\.user\('\w+'\)(?=\.)", "", ast.unparse(node.func))  # a view has the same calls
            yield called.partition(".")[2], [one.arg for one in node.keywords if one.arg]


@pytest.mark.parametrize("name", sorted(EXAMPLES))
def test_each_example_calls_what_there_is(name: str) -> None:
    for example in examples_in(DESCRIBED[name] or ""):
        for call, arguments in calls_in(example):
            called = find_call(call)
            accepted = {one.arg for one in (*called.args.args, *called.args.kwonlyargs)}
            assert set(arguments) <= accepted, call


def find_call(call: str) -> Function:
    noun, _, verb = call.rpartition(".")
    owner = CLASSES[f"ledger.{noun}"] if noun else CLASSES["chatledger.Ledger"]
    node = members(owner)[verb].node
    assert isinstance(node, Function)
    return node
