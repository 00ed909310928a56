"""A call that the model asks for. Name and arguments stay verbatim: models really emit broken JSON."""

from __future__ import annotations

import json
from typing import Any, Self

from pydantic import ValidationInfo, model_validator

from chatledger.formats.qwen_agent.base import BaseModelCompatibleDict
from chatledger.formats.qwen_agent.check import call_problems, is_documented, refuse


class FunctionCall(BaseModelCompatibleDict):
    name: str
    arguments: str

    def __init__(self, name: str, arguments: str) -> None:
        super().__init__(name=name, arguments=arguments)

    @model_validator(mode="after")
    def _as_documented(self, info: ValidationInfo) -> Self:
        if is_documented(info):
            self.name = self.name.strip()
            refuse(call_problems(self))
        return self

    def get_parsed_arguments(self) -> Any:
        """The arguments as a value, an object in nearly all calls. Raises JSONDecodeError if they are not JSON."""
        return json.loads(self.arguments)

    def add_argument(self, key: str, value: Any) -> FunctionCall:
        """A new call with one more argument; this one stays. Raises ValueError if the arguments are not an object."""
        arguments = self.get_parsed_arguments()
        if not isinstance(arguments, dict):
            raise ValueError(f"the arguments of {self.name} are not an object but {type(arguments).__name__}")
        return FunctionCall(self.name, json.dumps({**arguments, key: value}, ensure_ascii=False))
