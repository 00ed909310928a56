"""Pydantic models that can be used like dicts, as Qwen-Agent's are.

Dumps leave out None unless asked for it. `model[key] = value` assigns without validating, as upstream does; what comes
of that is judged when the message is decoded.
"""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel


class UnknownField(AttributeError, KeyError):
    """No such field. A KeyError to who writes `message[key]`, an AttributeError to who knows upstream."""

    __str__ = AttributeError.__str__


class BaseModelCompatibleDict(BaseModel):
    def __getitem__(self, item: str) -> Any:
        try:
            return getattr(self, item)
        except AttributeError as error:
            raise UnknownField(str(error)) from None

    def __setitem__(self, key: str, value: Any) -> None:
        setattr(self, key, value)

    def get(self, key: str, default: Any = None) -> Any:
        """The field's value; `default` if there is no such field or its value is falsy (None, `""`, `[]`, `{}`, 0)."""
        return getattr(self, key, None) or default

    def model_dump(self, **kwargs: Any) -> dict[str, Any]:
        return super().model_dump(**{"exclude_none": True, **kwargs})

    def model_dump_json(self, **kwargs: Any) -> str:
        return super().model_dump_json(**{"exclude_none": True, **kwargs})

    def __str__(self) -> str:
        return str(self.model_dump())

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.model_dump()})"
