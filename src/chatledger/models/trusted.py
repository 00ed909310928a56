"""Builds models from values that were validated before: stored rows, and copies with a few fields set.

A row was validated when it was written. Validating it again would find the same, and would be half of the cost of
reading a page. Tests check that the models built here equal validated ones.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import repeat
from typing import Any, TypeVar

from pydantic import BaseModel

M = TypeVar("M", bound=BaseModel)

# The parts of a model instance. Calling the descriptors costs two thirds of `object.__setattr__`, which looks them up
# by name.
_new = object.__new__
_set_values = BaseModel.__dict__["__dict__"].__set__
_set_given = BaseModel.__dict__["__pydantic_fields_set__"].__set__
_set_extra = BaseModel.__dict__["__pydantic_extra__"].__set__
_set_private = BaseModel.__dict__["__pydantic_private__"].__set__


def build(model: type[M], fields: Mapping[str, Any]) -> M:
    """An instance with these fields and the defaults of the others. Unknown fields are kept."""
    return revive(model, {**blank(model), **fields}, set(fields))


def revive(model: type[M], values: dict[str, Any], given: set[str]) -> M:
    """An instance with all its fields in their order. `given` names those that were set, and not left at their default.

    Instances of a frozen model may share `given`: only an assignment adds to it, and copies copy it.
    """
    instance = _new(model)
    _set_values(instance, values)
    _set_given(instance, given)
    _set_extra(instance, None)
    _set_private(instance, None)
    return instance


def revive_all(model: type[M], values: Sequence[dict[str, Any]], given: Iterable[set[str]]) -> list[M]:
    """As `revive`, for each of the values with its `given`. Loops in C cost less than a call for each instance."""
    instances: list[M] = list(map(_new, repeat(model, len(values))))
    for put, those in (
        (_set_values, values),
        (_set_given, given),
        (_set_extra, repeat(None)),
        (_set_private, repeat(None)),
    ):
        deque(map(put, instances, those), maxlen=0)
    return instances


def blank(model: type[BaseModel]) -> dict[str, Any]:
    """The defaults of all fields, in the order of the model."""
    defaults, made_anew = _defaults(model)
    values = defaults.copy()
    for name, factory in made_anew:
        values[name] = factory()
    return values


def copy_with(instance: M, fields: Mapping[str, Any]) -> M:
    """`instance.model_copy(update=fields)`, for a model without private attributes."""
    given = instance.__pydantic_fields_set__ | fields.keys()
    return revive(instance.__class__, {**instance.__dict__, **fields}, given)


@lru_cache(maxsize=64)
def _defaults(model: type[BaseModel]) -> tuple[dict[str, Any], tuple[tuple[str, Any], ...]]:
    """The defaults of all fields, in the order of the model, and the factories of the fields that have one."""
    fields = model.model_fields
    made_anew = tuple((name, field.default_factory) for name, field in fields.items() if field.default_factory)
    return {name: field.default for name, field in fields.items()}, made_anew
