"""The base of all models: frozen, without unknown fields, and without empty fields in `repr`; and how to build them."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import lru_cache
from itertools import repeat
from typing import Annotated, Any, ClassVar, TypeVar

from pydantic import (
    AfterValidator,
    AwareDatetime,
    BaseModel,
    ConfigDict,
    GetJsonSchemaHandler,
    Strict,
    TypeAdapter,
    ValidationError,
)

from chatledger.errors import InvalidArgument


class Model(BaseModel):
    model_config: ClassVar[ConfigDict] = ConfigDict(
        frozen=True, extra="forbid", allow_inf_nan=True, ser_json_inf_nan="constants"
    )

    @classmethod
    def __get_pydantic_json_schema__(cls, core_schema: Any, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        """The JSON schema, in which each field has the text after it as its description."""
        from chatledger.models.descriptions import field_descriptions

        schema = handler(core_schema)
        texts = field_descriptions(cls)
        for name, field in handler.resolve_ref_schema(schema).get("properties", {}).items():
            if name in texts:
                field.setdefault("description", texts[name])
        return schema

    def __repr_args__(self) -> Iterator[tuple[str | None, Any]]:
        """The fields for `repr`, without those that are None or an empty list or dict by default."""
        for name, value in super().__repr_args__():
            if not self._is_left_out(name, value):
                yield name, value

    def _is_left_out(self, name: str | None, value: Any) -> bool:
        field = type(self).model_fields.get(name or "")
        if field is None or field.is_required():
            return False
        default = field.get_default(call_default_factory=True)
        return (default is None or default in ([], {})) and type(value) is type(default) and value == default


@contextmanager
def refusing(argument: str | None = None) -> Iterator[None]:
    """Raises InvalidArgument where a model refuses the argument of a call. It says the place and the reason, and not
    the value: Pydantic's own error quotes that. Without `argument`, the fields of the model are the arguments.
    """
    try:
        yield
    except ValidationError as error:
        (first, *_) = error.errors(include_url=False, include_context=False, include_input=False)
        name, *steps = first["loc"] if argument is None else (argument, *first["loc"])
        place = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in steps)
        unknown = first["type"].startswith("union_tag")  # its text quotes the tag
        detail = "has no known type" if unknown else first["msg"].removeprefix("Value error, ")
        raise InvalidArgument(str(name), f"is not valid{place and f' at {place}'}: {detail}") from None


def refuse_own_fields(value: Model, model: type[Model], argument: str, home: str) -> None:
    """Raises InvalidArgument for a value with fields that `model` lacks: of a subclass, or set by `model_copy`. They
    would not be stored. `home` says where the caller can put them.
    """
    held = vars(value) if type(value) is model else {**type(value).model_fields, **(value.model_extra or {})}
    own = [name for name in held if name not in model.model_fields]
    if own:
        names = ", ".join(map(repr, own))
        detail = f"of the class {type(value).__name__} would lose {names}, which {model.__name__} does not have"
        raise InvalidArgument(argument, f"{detail}; put that in {home}")


def _to_utc(moment: datetime) -> datetime:
    try:
        return moment.astimezone(UTC)
    except OverflowError as error:
        raise ValueError("outside the years 1 to 9999 in UTC") from error


Text = Annotated[str, Strict()]
"""A text. By default Pydantic makes one of bytes: then b"x" and "x" would be the same id."""

UtcDatetime = Annotated[AwareDatetime, AfterValidator(_to_utc)]
_MOMENT: TypeAdapter[datetime | None] = TypeAdapter(UtcDatetime | None)


def read_moment(argument: str, moment: Any) -> datetime | None:
    """The argument of a call as a time in UTC. Raises InvalidArgument for a time without a zone."""
    with refusing(argument):
        return _MOMENT.validate_python(moment)


"""A time with its zone, kept in UTC. A time without a zone is refused, since it could mean any of 26 hours."""


# --- Values that were validated before --------------------------------------------------------------------------------

# Stored rows, and copies with a few fields set: a row was validated when it was written. Validating it again would find
# the same, and would be half of the cost of reading a page. Tests check that the models built here equal validated
# ones.

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


def revive(model: type[M], values: dict[str, Any], fields_set: set[str]) -> M:
    """An instance with all its fields in their order. `fields_set` names those that somebody set.

    Instances of a frozen model may share `fields_set`: only an assignment adds to it, and copies copy it.
    """
    instance = _new(model)
    _set_values(instance, values)
    _set_given(instance, fields_set)
    _set_extra(instance, None)
    _set_private(instance, None)
    return instance


def revive_all(model: type[M], values: Sequence[dict[str, Any]], fields_set: Iterable[set[str]]) -> list[M]:
    """As `revive`, for each of the values with its `fields_set`. Loops in C cost less than a call for each instance."""
    instances: list[M] = list(map(_new, repeat(model, len(values))))
    for put, those in (
        (_set_values, values),
        (_set_given, fields_set),
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
    """`instance.model_copy(update=fields)`."""
    if instance.__pydantic_private__ is not None:  # of a subclass of the application
        return instance.model_copy(update=fields)
    fields_set = instance.__pydantic_fields_set__.union(fields)
    return revive(instance.__class__, {**instance.__dict__, **fields}, fields_set)


@lru_cache(maxsize=64)
def _defaults(model: type[BaseModel]) -> tuple[dict[str, Any], tuple[tuple[str, Any], ...]]:
    """The defaults of all fields, in the order of the model, and the factories of the fields that have one."""
    fields = model.model_fields
    made_anew = tuple((name, field.default_factory) for name, field in fields.items() if field.default_factory)
    return {name: field.default for name, field in fields.items()}, made_anew
