"""The base of all models: frozen, without unknown fields, and without empty fields in `repr`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Annotated, Any, ClassVar

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
