"""Models from values that were validated before: what the ledger stored, and copies with a few fields set.

Validating a row again would find what it found when the row was written, at half the cost of reading a page. Tests hold
what is built here equal to what validation gives.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, TypeVar

from pydantic import BaseModel

M = TypeVar("M", bound=BaseModel)

_set = object.__setattr__


def build(model: type[M], fields: Mapping[str, Any]) -> M:
    """An instance with these fields and the defaults of the others; fields that nobody knows are kept as well."""
    return revive(model, {**blank(model), **fields}, set(fields))


def revive(model: type[M], values: dict[str, Any], given: set[str]) -> M:
    """An instance with all its fields in their order, of which `given` do not merely have their default.

    Instances of a frozen model may share `given`: nothing but an assignment adds to it, and copies copy it.
    """
    instance = model.__new__(model)
    _set(instance, "__dict__", values)
    _set(instance, "__pydantic_fields_set__", given)
    _set(instance, "__pydantic_extra__", None)
    _set(instance, "__pydantic_private__", None)
    return instance


def blank(model: type[BaseModel]) -> dict[str, Any]:
    """All fields in the order of the model with their defaults."""
    defaults, made_anew = _defaults(model)
    values = defaults.copy()
    for name, factory in made_anew:
        values[name] = factory()
    return values


def copy_with(instance: M, fields: Mapping[str, Any]) -> M:
    """`instance.model_copy(update=fields)`, for a model without private attributes."""
    copied = instance.__class__.__new__(instance.__class__)
    _set(copied, "__dict__", {**instance.__dict__, **fields})
    _set(copied, "__pydantic_fields_set__", instance.__pydantic_fields_set__ | fields.keys())
    _set(copied, "__pydantic_extra__", None)
    _set(copied, "__pydantic_private__", None)
    return copied


@lru_cache(maxsize=64)
def _defaults(model: type[BaseModel]) -> tuple[dict[str, Any], tuple[tuple[str, Any], ...]]:
    """All fields in the order of the model with their defaults, and what makes those that are made anew each time."""
    fields = model.model_fields
    made_anew = tuple((name, field.default_factory) for name, field in fields.items() if field.default_factory)
    return {name: field.default for name, field in fields.items()}, made_anew
